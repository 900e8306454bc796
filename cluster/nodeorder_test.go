package cluster

import (
	"fmt"
	"slices"
	"testing"
)

// TestNodeOrder: nodes that came in any order are listed as Slurm 22.05 lists these, before and after a restart.
func TestNodeOrder(t *testing.T) {
	want := []NodeName{"B1", "a-2-9", "a-2-10", "a-10-2", "n", "n010", "n02", "n1b", "n2", "n9", "n10", "x", "x1"}
	w := newWorld(t, 0)
	for _, name := range []NodeName{
		"n10", "n9", "n2", "n02", "n010", "a-10-2", "a-2-10", "a-2-9", "x1", "x", "B1", "n1b", "n",
	} {
		w.ok(sys, &NodeUp{Name: name, Inventory: smallNode()})
	}
	if got := namesOf(&w.s.tables); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	w.ok(sys, &NodeDown{Nodes: []NodeName{"a-10-2", "x"}})
	w.ok(root, &NodeDelete{Nodes: []NodeName{"a-10-2", "x"}})
	if got := fmt.Sprint(namesOf(&w.s.tables)); got != "[B1 a-2-9 a-2-10 n n010 n02 n1b n2 n9 n10 x1]" {
		t.Errorf("after two have gone: %v", got)
	}
	for _, a := range want {
		for _, b := range want {
			if (CompareNodes(a, b) < 0) != (slices.Index(want, a) < slices.Index(want, b)) || CompareNodes(a, b) != -CompareNodes(b, a) {
				t.Errorf("%s and %s: %d", a, b, CompareNodes(a, b))
			}
		}
	}
}
