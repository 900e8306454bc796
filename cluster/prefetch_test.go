package cluster

import (
	"testing"
	"time"
)

// prefetching has a job ask for an image before its time counts.
func prefetching(s *JobSpec) { s.Limit, s.Prefetch = 10*time.Minute, &Prefetch{Image: "r#i"} }

// TestPrefetch: a job whose nodes get its image has all of its time when they are ready, however long that took, and
// is neither late nor over before; the image cannot be had: it has failed, with the reason.
func TestPrefetch(t *testing.T) {
	w := newWorld(t, 2)
	id := w.start(w.submit(prefetching), TaskAny, 0, "n0", "n1")
	if j := w.job(id); !Fetching(j) || !Configuring(j) || j.Preparing() || !j.LaunchLimit(w.s.Config()).IsZero() {
		t.Fatalf("at the start: %+v, %+v", j, j.Prelude)
	}
	w.pass(time.Hour)
	w.due()
	w.report("n0", id, NodeReady)
	w.want(id, Starting)
	w.report("n1", id, NodeReady)
	if j := w.want(id, Running); Configuring(j) || !j.EndLimit(w.s.Config()).Equal(w.now.Add(10*time.Minute)) {
		t.Errorf("when all are ready: %+v, %+v until %v", j, j.Prelude, j.EndLimit(w.s.Config()))
	}
	w.pass(11 * time.Minute)
	w.due()
	if j := w.want(id, Ending); j.EndingWhy != TimedOut {
		t.Errorf("when its time is over: %v", j.EndingWhy)
	}
	w.report("n0", id, NodeDone)
	w.report("n1", id, NodeDone)

	id = w.start(w.submit(prefetching), TaskAny, 0, "n0")
	w.seq["n0"]++
	w.ok(sys, &Report{Node: "n0", Seq: w.seq["n0"], Updates: []Update{{Kind: BatchOver, Job: id,
		Attempt: w.job(id).Attempt, At: w.now, Error: "no such image"}}})
	w.report("n0", id, NodeDone)
	if j := w.want(id, Ended); j.Outcome != Failed || j.WaitNote != "no such image" {
		t.Errorf("without the image: %v %q", j.Outcome, j.WaitNote)
	}

	id = w.start(w.submit(prefetching), TaskAny, 0, "n0")
	w.ok(root, &Cancel{Ref: Ref{Job: id}})
	w.want(id, Ending) // its node has heard of it, and ends it
}

// TestPrefetchAfterProlog: nodes hear of the job once the servers' prolog is over, and get its image then.
func TestPrefetchAfterProlog(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.PrologServer = "/x"
	w.ok(root, &Configure{Config: &cfg})
	id := w.start(w.submit(prefetching), TaskAny, 0, "n0")
	if j := w.job(id); !j.Preparing() || Fetching(j) {
		t.Errorf("before: %+v", j.Prelude)
	}
	for e := range w.s.Hooks() {
		w.ok(sys, &HooksDone{Ends: []HookEnd{{ID: e.ID}}})
	}
	if j := w.job(id); j.Preparing() || !Fetching(j) {
		t.Errorf("after: %+v", j.Prelude)
	}
}
