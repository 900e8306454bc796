package cluster

import (
	"testing"
	"time"
)

// TestExternalJob: a job of kind External runs on its nodes without a word of them, and is over at once when it ends.
func TestExternalJob(t *testing.T) {
	submit := func(w *world) JobID {
		return w.submit(func(s *JobSpec) { s.Kind, s.Limit = External, time.Hour })
	}
	for name, end := range map[string]struct {
		by      func(w *world, id JobID)
		outcome Outcome
	}{
		"cancelled": {func(w *world, id JobID) { w.ok(alice, &Cancel{Ref: Ref{Job: id}}) }, Cancelled},
		"out of time": {func(w *world, id JobID) {
			w.pass(time.Hour + time.Minute)
			w.ok(sys, &Expire{Jobs: []JobID{id}, Why: EndTimeLimit})
		}, TimedOut},
		"node down": {func(w *world, _ JobID) {
			why := "broken"
			w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeSetDown, Reason: &why})
		}, NodeFailed},
		"suspended and cancelled": {func(w *world, id JobID) {
			w.ok(root, &Suspend{Ref: Ref{Job: id}})
			w.want(id, Suspended)
			w.ok(root, &Suspend{Ref: Ref{Job: id}, Resume: true})
			w.want(id, Running)
			w.ok(alice, &Cancel{Ref: Ref{Job: id}})
		}, Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			id := submit(w)
			w.start(id, TaskAny, 0, "n0", "n1")
			if j := w.want(id, Running); len(j.Waiting) > 0 || len(j.OwnSteps()) > 0 {
				t.Errorf("it waits for %v and has steps %v", j.Waiting, j.OwnSteps())
			}
			w.refused(alice, &Requeue{Ref: Ref{Job: id}}, ErrBatchOnly)
			end.by(w, id)
			if j := w.want(id, Ended); j.Outcome != end.outcome {
				t.Errorf("it ended as %v, want %v", j.Outcome, end.outcome)
			}
			if used := w.s.Load("n1").Jobs; len(used) > 0 {
				t.Errorf("node n1 still has jobs %v", used)
			}
		})
	}
}

// TestExternalNode: a node of state EXTERNAL serves from its creation on, and is deleted once nothing holds it.
func TestExternalNode(t *testing.T) {
	w := newWorld(t, 1)
	w.ok(root, &NodeCreate{Nodes: []Node{{Name: "e1", Expected: ExpectedExternal, Inventory: smallNode()}}})
	if n, _ := w.s.Node("e1"); !n.Usable() || !n.Inventory.External {
		t.Errorf("node e1 does not serve: %+v", n)
	}
	id := w.submit(func(s *JobSpec) { s.Kind = External })
	w.start(id, TaskAny, 0, "e1")
	w.refused(root, &NodeDelete{Nodes: []NodeName{"e1"}}, ErrBusy)
	w.refused(sys, &NodeUp{Name: "e1", Inventory: smallNode()}, ErrNodeState)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.ok(root, &NodeDelete{Nodes: []NodeName{"e1"}})
	if _, ok := w.s.Node("e1"); ok {
		t.Error("node e1 was not deleted")
	}
}

// TestExternalRefused: what an external job cannot have.
func TestExternalRefused(t *testing.T) {
	for name, change := range map[string]func(*JobSpec){
		"script":       func(s *JobSpec) { s.Script = "x" },
		"array":        func(s *JobSpec) { s.Array = &ArraySpec{Tasks: NewIDSet(1, 2)} },
		"burst buffer": func(s *JobSpec) { s.BurstBuffer = "x" },
		"container":    func(s *JobSpec) { s.Inside = &Container{} },
	} {
		t.Run(name, func(t *testing.T) {
			spec := &JobSpec{Layout: &Layout{}, Kind: External}
			change(spec)
			e, ok := CheckAsked(spec).(*Error)
			if !ok || e.Kind != ErrExternalJob {
				t.Errorf("it is refused with %v", e)
			}
		})
	}
}
