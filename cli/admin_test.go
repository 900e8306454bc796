package cli

import (
	"strings"
	"testing"

	"dev.muster/api"
)

// TestOlderServers: a server that has not said yet which log it knows is no sign of an upgrade.
func TestOlderServers(t *testing.T) {
	for want, levels := range map[string][]int{"": {11, 0, 0}, "s2": {11, 10, 11}, "s1,s3": {10, 11, 10}} {
		r := api.MembersResponse{Level: 10}
		for i, n := range levels {
			r.Servers = append(r.Servers, api.Server{Name: "s" + string(rune('1'+i)), Level: n})
		}
		if got := strings.Join(olderServers(r), ","); got != want {
			t.Errorf("%v: %q, want %q", levels, got, want)
		}
	}
}
