package cluster

import (
	"fmt"
	"testing"
	"time"
)

// permitExpand has the cluster let jobs get the nodes of others.
func permitExpand(w *world) {
	cfg := *w.s.Config()
	cfg.Expand = true
	w.ok(root, &Configure{Config: &cfg})
}

// expanding submits an allocation that is to expand a job.
func expanding(w *world, id JobID, change func(*JobSpec)) JobID {
	return w.submit(func(s *JobSpec) { asExpanding(s, id, change) })
}

func asExpanding(s *JobSpec, id JobID, change func(*JobSpec)) {
	s.Kind, s.MinNodes, s.Tasks = Allocation, 1, 1
	s.Depends.Terms = []Depend{{Type: ExpandJob, Job: id, Task: TaskAny}}
	if change != nil {
		change(s)
	}
}

// giveAll asks a job to give all of its nodes away.
func giveAll(id JobID) *UpdateJob {
	none := 0
	return &UpdateJob{Ref: Ref{Job: id}, Runs: true, Patch: Patch{MinNodes: &none}}
}

// goldenExpand has a job of one node get two of another, and end.
func goldenExpand(w *world) {
	for _, n := range []NodeName{"x0", "x1", "x2"} {
		w.ok(sys, &NodeUp{Name: n, Inventory: smallNode()})
	}
	permitExpand(w)
	id := w.run(w.submit(nil), 0, "x0")
	w.pass(time.Second)
	more := w.run(expanding(w, id, nil), 0, "x1", "x2")
	w.pass(time.Second)
	w.ok(alice, giveAll(more))
	w.report("x2", more, NodeDone)
	w.report("x1", more, NodeDone)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	for _, n := range []NodeName{"x0", "x1", "x2"} {
		w.report(n, id, NodeDone)
	}
}

func TestExpand(t *testing.T) {
	w := newWorld(t, 4)
	permitExpand(w)
	id := w.run(w.submit(func(s *JobSpec) { s.Kind, s.Limit, s.MinNodes, s.Tasks = Batch, time.Hour, 2, 2 }), 0, "n0", "n2")
	w.pass(150 * time.Second)
	more := expanding(w, id, func(s *JobSpec) { s.Limit = 5 * time.Minute })
	if j := w.job(more); j.Limit != 57*time.Minute || fmt.Sprint(j.Spec.Exclude) != "[n0 n2]" {
		t.Errorf("it has %s and keeps away from %v", j.Limit, j.Spec.Exclude)
	}
	w.run(more, 0, "n1", "n3")
	w.pass(10 * time.Second)
	out := w.ok(alice, giveAll(more))
	j := w.want(id, Running)
	if got := fmt.Sprint(j.AllocNodes()); got != "[n0 n2 n1 n3]" || !j.ResizedAt().Equal(w.now) {
		t.Errorf("the job has %s since %v", got, j.ResizedAt())
	}
	if j.Spec.MinNodes != 4 || j.Spec.Tasks != 3 || *j.Alloc.Billing != 4 {
		t.Errorf("it asks for %d nodes and %d tasks, and is billed %v", j.Spec.MinNodes, j.Spec.Tasks, *j.Alloc.Billing)
	}
	for i, was := range []*Job{out.Events[0].Sized, out.Events[1].Sized} {
		if was == nil || was.Outcome != Resized || len(was.AllocNodes()) != 2 || was.ID != []JobID{more, id}[i] {
			t.Fatalf("history was told of %+v", was)
		}
	}
	over := w.want(more, Ending)
	if over.EndingWhy != Completed || len(over.AllocNodes()) != 0 || over.On("n3").Phase != Ending {
		t.Errorf("the other: %+v", over)
	}
	if l := w.s.Load("n1"); l.MemMB != 100 || l.CPUs.String() != "0" || len(l.Jobs) != 2 {
		t.Errorf("node n1 holds %+v", l)
	}
	w.report("n1", more, NodeDone)
	w.ok(sys, &NodeQuiet{Nodes: []NodeName{"n3"}})
	w.report("n3", more, NodeDone)
	w.want(more, Ended)
	w.want(id, Running)
	w.ok(alice, resizeTo(id, 3))
	w.report("n3", id, NodeDone)
	if l := w.s.Load("n3"); l.MemMB != 0 || len(l.Jobs) != 0 {
		t.Errorf("node n3 holds %+v", l)
	}
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	for _, n := range []NodeName{"n0", "n2", "n1"} {
		w.report(n, id, NodeDone)
	}
	w.want(id, Ended)
}

// TestExpandNamed: a job that asked for its nodes by name gives them as any other; and what has begun to run can be
// changed when the job that it was to expand is over.
func TestExpandNamed(t *testing.T) {
	w := newWorld(t, 3)
	permitExpand(w)
	id := w.run(w.submit(nil), 0, "n0")
	named := func(s *JobSpec) { s.NodeList = []NodeName{"n1"} }
	more := w.run(expanding(w, id, named), 0, "n1")
	other := w.run(expanding(w, id, nil), 0, "n2")
	w.ok(alice, giveAll(more))
	if got := fmt.Sprint(w.want(id, Running).AllocNodes()); got != "[n0 n1]" {
		t.Errorf("the job has %s", got)
	}
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	name := "renamed"
	w.ok(alice, &UpdateJob{Ref: Ref{Job: other}, Runs: true, Patch: Patch{Name: &name}})
}

func TestExpandRefused(t *testing.T) {
	w := newWorld(t, 4)
	id := running(w, 1)
	submit := func(by Identity, id JobID, kind ErrKind, change func(*JobSpec)) {
		t.Helper()
		spec := &JobSpec{Layout: &Layout{}, Name: "job", UID: by.UID, GID: by.GID, User: by.User}
		asExpanding(spec, id, change)
		w.refused(by, &Submit{Spec: spec}, kind)
	}
	submit(alice, id, ErrUnsupported, nil)
	permitExpand(w)
	submit(bob, id, ErrDependency, nil)
	submit(alice, 99, ErrDependency, nil)
	submit(alice, w.submit(nil), ErrDependency, nil) // it waits
	submit(alice, id, ErrDependency, func(s *JobSpec) { s.QOS = "other" })
	submit(alice, id, ErrDependency, func(s *JobSpec) { s.Array = &ArraySpec{Tasks: NewIDSet(1)} })
	submit(alice, id, ErrUnsupported, func(s *JobSpec) { s.NodeList = []NodeName{"n0"} })
	w.refused(alice, resizeTo(id, 2), ErrNotPending)
	w.refused(alice, giveAll(id), ErrNodeCount) // it expands none
	more := expanding(w, id, nil)
	w.refused(alice, &UpdateJob{Ref: Ref{Job: more}, Patch: Patch{Depends: &Depends{}}}, ErrDependency)
	w.run(more, 1, "n1")
	w.refused(bob, giveAll(more), ErrUser)
	w.ok(root, &Suspend{Ref: Ref{Job: id}})
	w.refused(alice, giveAll(more), ErrSuspended)
	w.ok(root, &Suspend{Ref: Ref{Job: id}, Resume: true})
	step := &Step{ID: StepID{more, 0}, Attempt: 1, Started: w.now}
	w.seq["n1"]++
	w.ok(sys, &Report{Node: "n1", Seq: w.seq["n1"], Updates: []Update{{Kind: StepNow, Job: more, Attempt: 1, Step: step}}})
	w.refused(alice, giveAll(more), ErrStepExists)
	script := w.run(w.submit(func(s *JobSpec) { asExpanding(s, id, func(s *JobSpec) { s.Kind = Batch }) }), 0, "n3")
	w.refused(alice, giveAll(script), ErrStepExists)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.refused(alice, giveAll(script), ErrNodeCount)
}
