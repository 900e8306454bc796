package api

import (
	"errors"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestOldClient: a call that a client does not know yet is told as such; other errors stay as they are.
func TestOldClient(t *testing.T) {
	err := OldClient(cluster.Errorf(cluster.NotFound, "", "no such call: POST %s", CreateHelped.Path))
	if !strings.Contains(err.Error(), "upgrade it") {
		t.Errorf("%v", err)
	}
	for _, other := range []error{
		errors.New("no such call"),
		cluster.Errorf(cluster.NotFound, "", "there is no job 7"),
		cluster.Errorf(cluster.Denied, "", "no such call"),
	} {
		if got := OldClient(other); got != other {
			t.Errorf("%v becomes %v", other, got)
		}
	}
}
