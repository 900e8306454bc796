package machine

import (
	"fmt"
	"testing"
	"time"
)

// TestSystem: what follows from free space, a file system that turns read-only, and a wrong clock.
func TestSystem(t *testing.T) {
	s := newSystem(t.TempDir())
	s.disks() // the real ones can be looked at
	for _, c := range []struct {
		what  string
		root  disk
		ahead time.Duration
		want  string
	}{
		{what: "well", root: disk{"/", 0.5, false}},
		{what: "filling", root: disk{"/", 0.049, false}, want: "note /: less than 5 % free"},
		{what: "about the limit", root: disk{"/", 0.055, false}, want: "note /: less than 5 % free"},
		{what: "full", root: disk{"/", 0.001, false}, want: "drain /: less than 1 % free"},
		{what: "nearly full again", root: disk{"/", 0.03, false}, want: "note /: less than 5 % free"},
		{what: "emptied", root: disk{"/", 0.2, false}},
		{what: "read-only now", root: disk{"/", 0.2, true}, want: "drain /: the file system has become read-only"},
		{what: "mounted again", root: disk{"/", 0.2, false}},
		{
			what: "a clock", root: disk{"/", 0.2, false}, ahead: -3 * time.Second,
			want: "note clock off by more than 1s against the servers",
		},
		{what: "a better clock", root: disk{"/", 0.2, false}, ahead: 900 * time.Millisecond},
	} {
		got := ""
		for _, f := range s.judge([]disk{c.root, {"/usr", 0, true}}, c.ahead) {
			got += fmt.Sprintf("%s %s", f.Action, f.Text)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
