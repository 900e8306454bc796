package cluster

import (
	"testing"
	"time"
)

// pair starts a job on n0 and n1, of which only n0 confirms it.
func pair(w *world, change func(*JobSpec)) JobID {
	w.t.Helper()
	id := w.submit(func(s *JobSpec) {
		s.MinNodes = 2
		if change != nil {
			change(s)
		}
	})
	w.start(id, TaskAny, 0, "n0", "n1")
	w.report("n0", id, NodeReady)
	return id
}

func (w *world) node(n NodeName) *Node {
	w.t.Helper()
	node, ok := w.s.Node(n)
	if !ok {
		w.t.Fatalf("no node %s", n)
	}
	return node
}

func late(s *State, now time.Time) (ids []JobID) {
	for j := range s.Unconfirmed(now) {
		ids = append(ids, j.ID)
	}
	return ids
}

// A node that does not confirm a launch in time undoes it: what it held is free, the job waits without
// it, and what it says later only tells that it is there.
func TestLaunchUnconfirmed(t *testing.T) {
	w := newWorld(t, 3)
	id := pair(w, nil)
	limit := w.now.Add(w.s.Config().LaunchTimeout)
	if next := w.s.NextTimer(w.now); !next.Equal(limit) {
		t.Errorf("the next timer is %s, want %s", next, limit)
	}
	expire := &Expire{Jobs: []JobID{id}, Why: EndLaunchFailure}
	w.pass(w.s.Config().LaunchTimeout - time.Second)
	if ids := late(w.s, w.now); ids != nil {
		t.Errorf("late already: %v", ids)
	}
	w.ok(sys, expire)
	w.want(id, Starting)

	w.pass(time.Second)
	if ids := late(w.s, w.now); len(ids) != 1 || ids[0] != id {
		t.Errorf("late: %v", ids)
	}
	w.ok(sys, expire)
	w.want(id, Ending)
	if n := w.node("n1"); !n.Drain || n.Reason != launchUnconfirmed || !w.s.Load("n1").CPUs.Empty() {
		t.Errorf("the silent node: %+v, %+v", n, w.s.Load("n1"))
	}
	w.report("n0", id, NodeDone)
	j := w.want(id, Pending)
	if j.Held != NotHeld || j.Restarts != 1 || len(j.Avoid) != 1 || j.Avoid[0].Node != "n1" || !w.ready(id) {
		t.Errorf("the job is back as %+v", j)
	}
	w.report("n1", id, NodeReady) // of the attempt that is over
	w.want(id, Pending)
	if n := w.node("n1"); n.Drain || n.Reason != "" {
		t.Errorf("the node that is heard of again: %+v", n)
	}
	w.start(id, TaskAny, 0, "n0", "n2")
	w.report("n0", id, NodeReady)
	w.report("n2", id, NodeReady)
	w.pass(time.Hour)
	w.ok(sys, &Expire{Jobs: []JobID{id}, Why: EndLaunchFailure})
	w.want(id, Running)
}

// All nodes of a job may be silent.
func TestLaunchUnheard(t *testing.T) {
	w := newWorld(t, 4)
	id := w.start(w.submit(func(s *JobSpec) { s.MinNodes = 2 }), TaskAny, 0, "n0", "n1")
	w.pass(time.Minute)
	w.ok(sys, &Expire{Jobs: []JobID{id}, Why: EndLaunchFailure})
	if j := w.want(id, Pending); len(j.Avoid) != 2 || j.Held != NotHeld {
		t.Errorf("the job is back as %+v", j)
	}
}

// A node that cannot launch a job by its own fault is drained; what could not be launched by three
// nodes is held, and is free of all that when it is released.
func TestLaunchFailed(t *testing.T) {
	w := newWorld(t, 4)
	id := w.submit(nil)
	for i := range maxLaunches {
		n := nodeName(i)
		w.run(id, 0, n)
		w.seq[n]++
		w.ok(sys, &Report{Node: n, Seq: w.seq[n],
			Updates: []Update{{Kind: LaunchFailed, Job: id, Attempt: w.job(id).Attempt, At: w.now,
				Error: "no space left on device", Fault: i == 0}}})
		w.report(n, id, NodeDone)
	}
	if n := w.node("n0"); !n.Drain || n.Reason != "Launch failed: no space left on device" || n.ReasonBy != "slurm" {
		t.Errorf("a node with a fault: %+v", n)
	}
	if n := w.node("n1"); n.Drain {
		t.Errorf("a node without a fault: %+v", n)
	}
	if j := w.wantWait(id, WaitLaunchFailedHeld); len(j.Avoid) != maxLaunches {
		t.Errorf("held: %+v", j)
	}
	w.ok(alice, &HoldJobs{Ref: Ref{Job: id}})
	if j := w.want(id, Pending); j.Avoid != nil || !w.ready(id) {
		t.Errorf("released: %+v", j)
	}
}

// An allocation that nobody has been told of goes back into the queue too; in the end it is given up.
func TestLaunchOfAllocation(t *testing.T) {
	w := newWorld(t, 8)
	id := w.submit(func(s *JobSpec) { s.Kind = Allocation })
	for i := range maxLaunches {
		w.start(id, TaskAny, 0, nodeName(i))
		w.pass(time.Minute)
		w.ok(sys, &Expire{Jobs: []JobID{id}, Why: EndLaunchFailure})
	}
	if j := w.want(id, Ended); j.Outcome != NodeFailed || j.EndReason != EndLaunchFailure || j.Restarts != maxLaunches-1 {
		t.Errorf("given up: %+v", j)
	}
}

// Of a gang's confirmations only the last one is news: with each event all its nodes ask for their work, of
// which nothing has changed.
func TestConfirmationsAreNoNews(t *testing.T) {
	w := newWorld(t, 3)
	id := w.submit(func(s *JobSpec) { s.MinNodes = 3 })
	w.start(id, TaskAny, 0, "n0", "n1", "n2")
	for i, n := range []NodeName{"n1", "n0", "n2"} {
		w.seq[n]++
		out := w.apply(sys, &Report{
			Node: n, Seq: w.seq[n], Updates: []Update{{Kind: NodeReady, Job: id, Attempt: 1, At: w.now}},
		})
		if told, last := len(out.Events) > 0, i == 2; told != last {
			t.Errorf("confirmation by %s: events %+v", n, out.Events)
		}
		if j := w.job(id); len(j.Waiting) != 2-i || (j.Phase == Running) != (i == 2) {
			t.Errorf("after %s it waits for %v in phase %d", n, j.Waiting, j.Phase)
		}
	}
}
