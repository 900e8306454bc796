package cluster

import (
	"testing"
	"time"
)

// TestTrouble: new faults, launches that failed and losses count on the node, and half as much a day later.
func TestTrouble(t *testing.T) {
	w := newWorld(t, 0)
	up := func(scored bool, faults ...Fault) {
		inv := smallNode()
		inv.Faults = faults
		w.ok(sys, &NodeUp{Name: "n0", Inventory: inv, Scored: scored, Again: true})
	}
	is := func(what string, want float64) {
		t.Helper()
		n, _ := w.s.Node("n0")
		if got := n.Score(w.now); got != want {
			t.Errorf("%s: %v points, want %v", what, got, want)
		}
		if n.Shaky(w.now) != (want >= ShakyPoints) {
			t.Errorf("%s: shaky is %v", what, n.Shaky(w.now))
		}
	}
	flap := Fault{
		Kind: FaultPort, Part: "mlx5_0/1", Cause: "link_downed", Text: "it flaps", Action: FaultNote,
		Passing: true,
	}
	down := Fault{
		Kind: FaultPort, Part: "mlx5_1/1", Cause: "down", Text: "it is down", Action: FaultDrain,
		Passing: true,
	}
	up(false, flap)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}})
	is("of a client of before", 0)
	if n, _ := w.s.Node("n0"); n.Trouble != nil {
		t.Error("a log of before counts", n.Trouble)
	}
	up(true)
	up(true, flap)
	is("a note", 1)
	up(true, flap)
	is("the same", 1)
	up(true, flap, down)
	is("a drain", 4)
	w.now = w.now.Add(24 * time.Hour)
	is("a day later", 2)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}})
	is("lost", 6)
	w.now = w.now.Add(12 * time.Hour)
	is("half a day later", 4.242)
	shun := flap
	shun.Cause, shun.Action = "symbol_error", FaultShun
	up(true, shun)
	if n, _ := w.s.Node("n0"); !n.Shaky(w.now.Add(240*time.Hour)) || n.Lacks != "it flaps" {
		t.Errorf("a fault for which large jobs avoid the node: %+v", n)
	}
	up(true)
	if n, _ := w.s.Node("n0"); n.Shaky(w.now.Add(24*time.Hour)) || n.Lacks != "" {
		t.Errorf("it is over: %+v", n)
	}
	w.now = w.now.Add(100 * 24 * time.Hour)
	is("long ago", 0)
}
