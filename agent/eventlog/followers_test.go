package eventlog

import "testing"

// TestFollowers: nobody takes the places of others, and places that were left are free again.
func TestFollowers(t *testing.T) {
	f := Followers[int]{All: 4, Each: 2}
	var last func()
	for i, c := range []struct {
		who       int
		free, out bool // without a bound; the last one leaves before
		want      bool
	}{
		{1, false, false, true}, {1, false, false, true}, {1, false, false, false}, {2, false, false, true},
		{0, true, false, true}, {3, false, false, false}, {3, false, true, true}, {0, true, true, true},
		{0, true, false, false},
	} {
		if c.out {
			last()
		}
		leave, ok := f.Enter(c.who, !c.free)
		if ok != c.want {
			t.Errorf("step %d: user %d follows: %v", i, c.who, ok)
		}
		if ok {
			last = leave
		}
	}
	if last(); f.Count() != 3 || f.of[1] != 2 || len(f.of) != 2 {
		t.Errorf("%d follow: %v", f.Count(), f.of)
	}
}
