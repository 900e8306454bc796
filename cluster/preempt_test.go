package cluster

import (
	"testing"
	"time"
)

// preemptWorld has two nodes and the partitions main (tier 0) and high (tier 1).
func preemptWorld(t *testing.T, mode PreemptMode, grace time.Duration) *world {
	w := newWorld(t, 2)
	cfg := DefaultConfig()
	cfg.Preempt = PreemptConfig{Type: PreemptTier, Mode: string(mode), Exempt: time.Minute}
	cfg.Partitions[0].GraceTime = grace
	cfg.Partitions = append(cfg.Partitions, Partition{Name: "high", All: true, State: PartitionUp, PriorityTier: 1})
	w.ok(root, &Configure{Config: &cfg})
	return w
}

func inHigh(s *JobSpec) { s.Partitions = []string{"high"} }

// preempt decides that jobs leave, and tells why not.
func (w *world) preempt(id JobID, victims ...JobID) *Error {
	w.t.Helper()
	return w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Wait: WaitResources, Evict: victims, Partition: "high"}}}).Result.([]*Error)[0]
}

// TestPreempt carries out each mode, after refusing what is not so any more.
func TestPreempt(t *testing.T) {
	for _, c := range []struct {
		mode    PreemptMode
		grace   time.Duration
		forbid  bool
		phase   Phase // at once, and when its node is clean
		then    Phase
		outcome Outcome
		kept    PreemptMode
	}{
		{PreemptCancel, 0, false, Ending, Ended, Preempted, PreemptCancel},
		{PreemptRequeue, 0, false, Ending, Pending, NoOutcome, PreemptRequeue},
		{PreemptRequeue, 0, true, Ending, Ended, Preempted, PreemptCancel},
		{PreemptCancel, time.Minute, false, Running, Ended, Preempted, PreemptCancel},
		{PreemptRequeue, time.Minute, false, Running, Pending, NoOutcome, PreemptRequeue},
		{PreemptSuspend, time.Minute, false, Suspended, Suspended, NoOutcome, PreemptSuspend},
	} {
		w := preemptWorld(t, c.mode, c.grace)
		v := w.run(w.submit(func(s *JobSpec) {
			if c.forbid {
				s.Requeue = new(bool)
			}
		}), 0, "n0")
		job, equal := w.submit(inHigh), w.submit(nil)
		if err := w.preempt(job, v); (err == nil) != (c.mode == PreemptSuspend) {
			t.Errorf("%s: within the exempt time: %v", c.mode, err)
		}
		if c.mode != PreemptSuspend {
			w.pass(time.Minute)
			other := w.start(w.submit(inHigh), TaskAny, 1, "n1")
			for _, victims := range [][]JobID{{v, other}, {v, 99}, {v, job}, {v, equal}} {
				if err := w.preempt(job, victims...); err == nil || w.job(v).Preempt != nil {
					t.Errorf("%s: %v may not all leave: %v, %+v", c.mode, victims, err, w.job(v).Preempt)
				}
			}
			if w.preempt(equal, v) == nil || w.preempt(other, v) == nil {
				t.Errorf("%s: a job of the same tier or one that runs makes others leave", c.mode)
			}
			if err := w.preempt(job, v); err != nil {
				t.Fatal(err)
			}
		}
		j := w.want(v, c.phase)
		if j.Preempt.By != job || j.Preempt.Mode != c.kept || w.job(job).Evicted != (Evictions{1, w.now}) || w.job(job).Wait != WaitResources {
			t.Errorf("%s: %+v, %+v", c.mode, j.Preempt, w.job(job).Evicted)
		}
		if w.preempt(job, v) == nil {
			t.Errorf("%s: it leaves twice", c.mode)
		}
		if c.phase == Running {
			w.pass(c.grace - 1)
			w.ok(sys, &Expire{Jobs: []JobID{v}, Why: EndPreempted})
			w.want(v, Running)
			if at := w.s.NextTimer(w.now); !at.Equal(j.Preempt.Until) {
				t.Errorf("%s: the clock looks again at %v, the grace ends at %v", c.mode, at, j.Preempt.Until)
			}
			w.pass(1)
			w.due()
			w.want(v, Ending)
		}
		if c.then != Suspended {
			w.report("n0", v, NodeDone)
		}
		if j := w.want(v, c.then); j.Outcome != c.outcome || (c.then == Pending) != (j.Restarts == 1) {
			t.Errorf("%s: outcome %d, restarts %d", c.mode, j.Outcome, j.Restarts)
		}
	}
}

// A job that was suspended to make room goes on if its CPUs are free; one that an operator has suspended does not.
func TestPreemptResume(t *testing.T) {
	w := preemptWorld(t, PreemptSuspend, 0)
	v, own := w.run(w.submit(nil), 0, "n0"), w.run(w.submit(nil), 0, "n1")
	w.ok(root, &Suspend{Ref: Ref{Job: own}})
	job := w.submit(inHigh)
	if err := w.preempt(job, v); err != nil {
		t.Fatal(err)
	}
	goOn := func(id JobID) *Error {
		return w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Resume: true}}}).Result.([]*Error)[0]
	}
	w.run(job, 0, "n0")
	if goOn(v) == nil || goOn(own) == nil || goOn(99) == nil {
		t.Error("a job goes on whose CPUs are taken, that an operator has suspended, or that is not there")
	}
	w.over(job, 0)
	if err := goOn(v); err != nil {
		t.Fatal(err)
	}
	if j := w.want(v, Running); j.Preempt != nil {
		t.Errorf("%+v is left", j.Preempt)
	}
}

// TestEvictionPauses doubles them from half a minute to an hour.
func TestEvictionPauses(t *testing.T) {
	for count, want := range map[int]time.Duration{1: 30 * time.Second, 2: time.Minute, 3: 2 * time.Minute, 7: 32 * time.Minute, 8: time.Hour, 1000: time.Hour} {
		if got := (Evictions{count, epoch}).Next(); !got.Equal(epoch.Add(want)) {
			t.Errorf("after %d: %v, want %v", count, got.Sub(epoch), want)
		}
	}
	if got := (Evictions{}).Next(); !got.IsZero() {
		t.Errorf("before the first: %v", got)
	}
}
