package cli

import (
	"strings"
	"testing"
)

// TestNotices: the licenses of what muster contains are printed, with the source of the parts that ask for it.
func TestNotices(t *testing.T) {
	var out strings.Builder
	a := app(nil)
	a.Writer = &out
	if err := a.Run([]string{"muster", "notices"}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"  @xterm/xterm 5.5.0: MIT\n", "source: https://github.com/hashicorp/raft, version v",
		"\nMozilla Public License, version 2.0\n"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in the notices", part)
		}
	}
}
