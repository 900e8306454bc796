package cluster

import (
	"strings"
	"testing"
	"time"
)

// TestStraggler: a slow GPU counts for its node; what else is done follows the job's rule.
func TestStraggler(t *testing.T) {
	for _, c := range []struct {
		name   string
		rule   StragglerAction
		node   NodeName
		want   StragglerAction
		placed string
		says   string
	}{
		{"no rule", "", "n1", StragglerDefault, "[n0 n1] [n2] []", ""},
		{"off", StragglerOff, "n1", StragglerOff, "[n0 n1] [n2] []", ""},
		{"report", StragglerReport, "n1", StragglerReport, "[n0 n1] [n2] []", "STRAGGLER: GPU 3 is slow"},
		{"swap", StragglerSwap, "n1", StragglerSwap, "[n0 n2] [] [n1]", "STRAGGLER: GPU 3 is slow; a spare has"},
		{"swap of the first node", StragglerSwap, "n0", StragglerReport, "[n0 n1] [n2] []", "STRAGGLER: GPU 3 is slow"},
		{"a node of another job", StragglerSwap, "n3", StragglerOff, "[n0 n1] [n2] []", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 4)
			id := standing(w, 3, 1, func(s *JobSpec) { s.Resilience.Straggler = c.rule })
			w.pass(time.Minute)
			found := &StragglerFound{Job: id, Attempt: 1, Node: c.node, Text: "GPU 3 is slow"}
			w.refused(alice, found, ErrUser)
			if got := w.ok(sys, found).Result; got != c.want {
				t.Fatalf("%v, want %q", got, c.want)
			}
			j := w.want(id, Running)
			if got := placed(j); got != c.placed {
				t.Errorf("%s, want %s", got, c.placed)
			}
			if !strings.HasPrefix(j.SystemComment, c.says) || (c.says == "") != (j.SystemComment == "") {
				t.Errorf("comment %q", j.SystemComment)
			}
			if slow := Survived(j).Slow; (slow != nil) != (c.want != StragglerOff) {
				t.Errorf("noted: %+v", slow)
			}
			if got := w.ok(sys, found).Result; got != StragglerOff {
				t.Errorf("it is dealt with twice: %v", got)
			}
		})
	}
}

// TestDayBudget: what is used up is there again after a day.
func TestDayBudget(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var b Budget
	for i := range 3 {
		left := false
		if b, left = b.left(2, now); left != (i < 2) {
			t.Errorf("action %d: %v", i, left)
		}
		b.Used++
		now = now.Add(time.Hour)
	}
	if _, left := b.left(2, now.Add(budgetTime)); !left {
		t.Error("nothing is left after a day")
	}
}
