package cluster

import (
	"testing"
	"time"
)

// TestNewsOf: a node tells of the jobs that it is a part of, and of no others; nobody is charged for time that has
// not come.
func TestNewsOf(t *testing.T) {
	w := newWorld(t, 3)
	id := w.run(w.submit(nil), 0, "n0", "n1")
	pending := w.submit(nil)
	far := w.now.Add(100 * 365 * 24 * time.Hour)
	news := func(node NodeName, job JobID, attempt int, kind UpdateKind) []Update {
		u := Update{Kind: kind, Job: job, Attempt: attempt, At: far}
		if kind == StepNow {
			u.Step = &Step{ID: StepID{Job: job}, Attempt: attempt, Started: w.now, Ended: far}
		}
		return w.s.Snapshot().NewsOf(node, []Update{u}, w.now)
	}
	for _, kind := range []UpdateKind{BatchOver, JobLost, NodeDone, LaunchFailed, NodeReady, StepNow} {
		if got := news("n2", id, 1, kind); len(got) > 0 {
			t.Errorf("%s of another node's job is taken", kind)
		}
		if got := news("n1", id, 2, kind); len(got) > 0 {
			t.Errorf("%s of an attempt that there is not is taken", kind)
		}
		if got := news("n2", pending, 0, kind); len(got) > 0 {
			t.Errorf("%s of a job that has not begun is taken", kind)
		}
		got := news("n1", id, 1, kind)
		if len(got) != 1 {
			t.Errorf("%s of a node's own job is left out", kind)
			continue
		}
		if u := got[0]; u.At.Sub(w.now) > maxAhead || u.Step != nil && u.Step.Ended.Sub(w.now) > maxAhead {
			t.Errorf("%s: it was at %v", kind, u.At)
		}
	}
}
