package cluster

import (
	"testing"
	"time"
)

// TestResumeAfter: a node that is taken out of service for a time serves again after it, unless that was taken back.
func TestResumeAfter(t *testing.T) {
	w := newWorld(t, 2)
	why := "fan"
	set := func(action NodeAction, after time.Duration) *NodeSet {
		return &NodeSet{Nodes: []NodeName{"n0"}, Action: action, Reason: &why, ResumeAfter: &after}
	}
	due := func() []Command { return Due(w.s.Snapshot(), w.now) }
	w.refused(root, set(NodeFail, time.Minute), ErrResumeTime)
	w.refused(root, set("", time.Minute), ErrResumeTime)
	w.ok(root, set(NodeDrain, time.Minute))
	at := w.now.Add(time.Minute)
	if next := w.s.NextTimer(w.now); !next.Equal(at) || len(due()) != 0 {
		t.Errorf("the clock wakes at %v, want %v; due now %v", next, at, due())
	}
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeDrain, Reason: &why}) // keeps the time
	w.ok(sys, &NodeResumeDue{Nodes: []NodeName{"n0"}})                             // too early
	if n := w.node("n0"); !n.Drain || !n.ResumeAt.Equal(at) {
		t.Errorf("before its time: %+v", n)
	}
	w.refused(root, &NodeResumeDue{Nodes: []NodeName{"n0"}}, ErrUser)
	w.pass(time.Minute)
	list := due()
	if len(list) != 1 {
		t.Fatalf("due at its time: %v", list)
	}
	w.ok(sys, list[0])
	if n := w.node("n0"); n.Drain || n.Reason != "" || !n.ResumeAt.IsZero() || !n.Usable() {
		t.Errorf("after its time: %+v", n)
	}

	w.ok(root, set(NodeDrain, time.Minute))
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeSetDown, Reason: &why}) // forgets it, as in Slurm
	if n := w.node("n0"); !n.ResumeAt.IsZero() {
		t.Errorf("set down without a time: %+v", n)
	}
	w.ok(root, set(NodeSetDown, time.Minute))
	w.ok(root, set(NodeSetDown, -1))
	if n := w.node("n0"); !n.ResumeAt.IsZero() {
		t.Errorf("taken back: %+v", n)
	}
	w.ok(root, set(NodeSetDown, time.Minute))
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume})
	w.pass(time.Hour)
	if n := w.node("n0"); !n.ResumeAt.IsZero() || len(due()) != 0 {
		t.Errorf("resumed before: %+v, due %v", n, due())
	}
}
