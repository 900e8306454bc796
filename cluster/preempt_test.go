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
	return w.ok(sys, &Decide{
		Decisions: []Decision{{Job: id, Task: TaskAny, Wait: WaitResources, Evict: victims, Partition: "high"}},
	}).Result.([]*Error)[0]
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

// highSet is a heterogeneous job of the partition high that waits, and the decision that jobs leave for it: for each
// component some.
func (w *world) highSet(victims ...[]JobID) (lead JobID, d Decision) {
	lead = w.submitHet(len(victims), func(_ int, s *JobSpec) { inHigh(s) })
	for k, ids := range victims {
		one := Decision{Job: lead + JobID(k), Task: TaskAny, Wait: WaitResources, Evict: ids, Partition: "high"}
		if k == 0 {
			d = one
		} else {
			d.With = append(d.With, one)
		}
	}
	return lead, d
}

// TestPreemptForSet makes others leave for all components of a heterogeneous job, or nobody.
func TestPreemptForSet(t *testing.T) {
	w := preemptWorld(t, PreemptRequeue, 0)
	a, b := w.run(w.submit(nil), 0, "n0"), w.run(w.submit(nil), 0, "n1")
	w.pass(time.Minute)
	other := w.start(w.submit(inHigh), TaskAny, 1, "n1")
	lead, d := w.highSet([]JobID{a}, []JobID{a, b})
	none, alone, follower, mixed, elsewhere := d, d, d.With[0], d, d
	none.Evict, none.With = nil, []Decision{{Job: lead + 1, Task: TaskAny, Evict: []JobID{other}, Partition: "high"}}
	alone.With = nil
	mixed.With = []Decision{{Job: lead + 2, Task: TaskAny, Evict: []JobID{b}, Partition: "high"}}
	elsewhere.With = []Decision{{Job: lead + 1, Task: TaskAny, Evict: []JobID{b}, Partition: "main"}}
	for name, bad := range map[string]Decision{"one that may stay": none, "for the leader alone": alone,
		"for the other alone":         follower,
		"for a job that is not of it": mixed, "for a partition that it does not ask for": elsewhere} {
		if err := w.decide(bad); err == nil || w.job(a).Preempt != nil || w.job(b).Preempt != nil {
			t.Errorf("%s: %v, %+v, %+v", name, err, w.job(a).Preempt, w.job(b).Preempt)
		}
	}
	w.ok(alice, &HoldJobs{Ref: Ref{Job: lead, Part: 2}, Hold: HeldUser})
	if w.decide(d) == nil {
		t.Error("others leave though a component is held")
	}
	w.ok(alice, &HoldJobs{Ref: Ref{Job: lead, Part: 2}})
	if err := w.decide(d); err != nil {
		t.Fatal(err)
	}
	for _, v := range []JobID{a, b} {
		if j := w.want(v, Ending); j.Preempt.By != lead || j.Preempt.Mode != PreemptRequeue {
			t.Errorf("%+v", j.Preempt)
		}
	}
	if x, y := w.job(lead), w.job(lead+1); x.Evicted != (Evictions{1, w.now}) || y.Evicted.Count != 0 || x.Wait != WaitResources || y.Wait != WaitResources {
		t.Errorf("%+v %s, %+v %s", x.Evicted, x.Wait, y.Evicted, y.Wait)
	}
	for k, v := range []JobID{a, b} {
		w.report(nodeName(k), v, NodeDone)
		if w.want(v, Pending); !w.s.Yields(w.job(v), w.now) {
			t.Errorf("job %d does not let the other go first", v)
		}
	}
	again := w.run(w.submit(nil), 0, "n0")
	d.Evict, d.With[0].Evict = []JobID{again}, nil
	w.pass(29 * time.Second)
	if err := w.decide(d); err == nil {
		t.Error("others leave again at once")
	}
}

// TestPreemptSet has a heterogeneous job leave as a whole.
func TestPreemptSet(t *testing.T) {
	set := func(mode PreemptMode, grace, own time.Duration, change func(k int, s *JobSpec)) (*world, JobID, JobID) {
		w := preemptWorld(t, mode, grace)
		cfg := *w.s.Config()
		cfg.Partitions = append(cfg.Partitions, Partition{
			Name: "kept", All: true, State: PartitionUp, PreemptMode: "REQUEUE", GraceTime: own,
		},
			Partition{Name: "off", All: true, State: PartitionUp, PreemptMode: "OFF"})
		w.ok(root, &Configure{Config: &cfg})
		lead := w.submitHet(2, change)
		d := w.setOf(lead, 0)
		for k, one := range []*Decision{&d, &d.With[0]} {
			if p := w.job(lead + JobID(k)).Spec.Partitions; len(p) > 0 {
				one.Start.Partition = p[0]
			}
		}
		if err := w.decide(d); err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			w.report(nodeName(k), lead+JobID(k), NodeReady)
		}
		w.pass(time.Minute)
		return w, lead, w.submit(inHigh)
	}
	second := func(part string) func(int, *JobSpec) {
		return func(k int, s *JobSpec) {
			if k == 1 {
				s.Partitions = []string{part}
			}
		}
	}
	for _, c := range []struct {
		name       string
		mode       PreemptMode
		grace, own time.Duration
		change     func(int, *JobSpec)
		named      JobID // by its place in the set
		want       PreemptMode
		until      time.Duration
	}{
		{"cancelled", PreemptCancel, 0, 0, nil, 0, PreemptCancel, 0},
		{"by its second component", PreemptRequeue, 0, 0, nil, 1, PreemptRequeue, 0},
		{"the mildest mode of any", PreemptCancel, 0, 0, second("kept"), 0, PreemptRequeue, 0},
		{
			"the longest grace of any", PreemptCancel, time.Minute, 2 * time.Minute, second("kept"), 0,
			PreemptRequeue, 2 * time.Minute,
		},
		{"one must not come back", PreemptRequeue, 0, 0, func(k int, s *JobSpec) {
			if k == 1 {
				s.Requeue = new(bool)
			}
		}, 0, PreemptCancel, 0},
		{"one is left alone, so all are", PreemptCancel, 0, 0, second("off"), 0, PreemptOff, 0},
		{"one is not outranked, so none is", PreemptCancel, 0, 0, second("high"), 0, PreemptOff, 0},
		{"one is not suspended, so none is", PreemptSuspend, 0, 0, second("off"), 0, PreemptOff, 0},
	} {
		w, lead, job := set(c.mode, c.grace, c.own, c.change)
		err := w.preempt(job, lead+c.named)
		if c.want == PreemptOff {
			if err == nil || w.job(lead).Preempt != nil || w.job(lead+1).Preempt != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		phases := "44"
		if c.until > 0 {
			phases = "22"
		}
		w.phases(lead, phases)
		for k := range JobID(2) {
			p := w.job(lead + k).Preempt
			if p == nil || p.Mode != c.want || p.By != job || c.until > 0 && p.Until.Sub(w.now) != c.until {
				t.Errorf("%s: component %d: %+v", c.name, k, p)
			}
		}
		if c.until > 0 {
			w.pass(c.until)
			w.due()
			w.phases(lead, "44")
		}
		w.report("n0", lead, NodeDone)
		w.report("n1", lead+1, NodeDone)
		w.phases(lead, map[PreemptMode]string{PreemptCancel: "55", PreemptRequeue: "00"}[c.want])
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

// TestPreemptResumeSet has a heterogeneous job suspended to make room for one node's sake, and go on as a whole
// once the CPUs of all its components are free; also if another mode than SUSPEND is that of one of them.
func TestPreemptResumeSet(t *testing.T) {
	for _, part := range []string{"main", "kept"} {
		w := preemptWorld(t, PreemptSuspend, time.Minute)
		cfg := *w.s.Config()
		cfg.Partitions = append(cfg.Partitions, Partition{
			Name: "kept", All: true, State: PartitionUp, PreemptMode: "REQUEUE",
		})
		w.ok(root, &Configure{Config: &cfg})
		lead := w.submitHet(2, func(k int, s *JobSpec) { s.Partitions = []string{[]string{"main", part}[k]} })
		d := w.setOf(lead, 0)
		d.Start.Partition, d.With[0].Start.Partition = "main", part
		if err := w.decide(d); err != nil {
			t.Fatal(err)
		}
		w.report("n0", lead, NodeReady)
		if err := w.preempt(w.submit(inHigh), lead+1); err == nil {
			t.Error("a heterogeneous job is suspended that has not begun")
		}
		w.report("n1", lead+1, NodeReady)
		w.pass(time.Hour)
		job := w.submit(inHigh)
		if err := w.preempt(job, lead+1); err != nil {
			t.Fatal(err)
		}
		w.phases(lead, "33")
		w.run(job, 0, "n1")
		goOn := func(id JobID) *Error { return w.decide(Decision{Job: id, Task: TaskAny, Resume: true}) }
		if goOn(lead) == nil {
			t.Error("it goes on with the CPUs of one component taken")
		}
		w.phases(lead, "33")
		w.pass(time.Hour)
		w.over(job, 0)
		if err := goOn(lead); err != nil {
			t.Fatal(err)
		}
		w.phases(lead, "22")
		for k := range JobID(2) {
			if j := w.job(lead + k); j.Preempt != nil || j.SuspendTotal != time.Hour {
				t.Errorf("component %d stood still for %s, %+v is left", k, j.SuspendTotal, j.Preempt)
			}
		}
	}
}

// TestEvictionPauses doubles them from half a minute to an hour.
func TestEvictionPauses(t *testing.T) {
	for count, want := range map[int]time.Duration{
		1: 30 * time.Second, 2: time.Minute, 3: 2 * time.Minute, 7: 32 * time.Minute, 8: time.Hour,
		1000: time.Hour,
	} {
		if got := (Evictions{count, epoch}).Next(); !got.Equal(epoch.Add(want)) {
			t.Errorf("after %d: %v, want %v", count, got.Sub(epoch), want)
		}
	}
	if got := (Evictions{}).Next(); !got.IsZero() {
		t.Errorf("before the first: %v", got)
	}
}
