package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// submitHet submits a heterogeneous job of so many components.
func (w *world) submitHet(size int, change func(k int, s *JobSpec)) JobID {
	w.t.Helper()
	c := &SubmitHet{}
	for k := range size {
		spec := &JobSpec{Layout: &Layout{}, Name: "het", UID: alice.UID, GID: alice.GID, User: "alice"}
		if change != nil {
			change(k, spec)
		}
		c.Specs = append(c.Specs, spec)
	}
	return w.ok(alice, c).Result.(JobID)
}

// setOf is the decision that starts a heterogeneous job, component k on node k.
func (w *world) setOf(lead JobID, cpu int) (d Decision) {
	for k, o := range w.s.Components(w.job(lead)) {
		one := Decision{
			Job: o.ID, Task: TaskAny,
			Start: &Alloc{
				Partition: "main",
				Shares:    []Share{{Node: nodeName(k), CPUs: NewIDSet(cpu), MemMB: 100, Tasks: 1}},
			},
		}
		if k == 0 {
			d = one
		} else {
			d.With = append(d.With, one)
		}
	}
	return d
}

func (w *world) decide(d Decision) *Error {
	w.t.Helper()
	return w.ok(sys, &Decide{Decisions: []Decision{d}}).Result.([]*Error)[0]
}

// startHet has component k run on node k.
func (w *world) startHet(lead JobID, cpu int) {
	w.t.Helper()
	if err := w.decide(w.setOf(lead, cpu)); err != nil {
		w.t.Fatal(err)
	}
	for k, o := range w.s.Components(w.job(lead)) {
		w.report(nodeName(k), o.ID, NodeReady)
	}
}

// phases tells in which phase each component is.
func (w *world) phases(lead JobID, want string) {
	w.t.Helper()
	got := ""
	for _, o := range w.s.Components(w.job(lead)) {
		got += fmt.Sprint(o.Phase)
	}
	if got != want {
		w.t.Fatalf("components are in phases %s, want %s", got, want)
	}
}

func TestHetSubmit(t *testing.T) {
	w := newWorld(t, 3)
	w.submit(nil)
	lead := w.submitHet(3, func(k int, s *JobSpec) { s.NodeList = []NodeName{nodeName(k)} })
	for k := range 3 {
		j := w.job(lead + JobID(k))
		if *j.Het != (HetPart{lead, k, 3}) || len(j.Spec.Exclude) != 2 {
			t.Errorf("component %d is %+v and keeps off %v", k, *j.Het, j.Spec.Exclude)
		}
	}
	ok := &JobSpec{Layout: &Layout{}, Name: "x", UID: alice.UID, User: "alice"}
	with := func(change func(*JobSpec)) *JobSpec { c := *ok; c.Layout = c.Layout.Clone(); change(&c); return &c }
	count, next := w.s.JobCount(), w.s.NextID
	for name, c := range map[string]struct {
		specs []*JobSpec
		kind  ErrKind
	}{
		"one":  {[]*JobSpec{ok}, ErrHetSize},
		"many": {slices.Repeat([]*JobSpec{ok}, MaxHetSize+1), ErrHetSize},
		"array": {
			[]*JobSpec{ok, with(func(s *JobSpec) { s.Array = &ArraySpec{Tasks: RangeIDSet(1, 2)} })},
			ErrArray,
		},
		"partition": {[]*JobSpec{ok, with(func(s *JobSpec) { s.Partitions = []string{"none"} })}, ErrPartition},
		"same node": {
			[]*JobSpec{
				with(func(s *JobSpec) { s.NodeList = []NodeName{"n1"} }),
				with(func(s *JobSpec) { s.NodeList = []NodeName{"n1"} }),
			},
			ErrNodeName,
		},
	} {
		if w.refused(alice, &SubmitHet{Specs: c.specs}, c.kind); w.s.JobCount() != count || w.s.NextID != next {
			t.Errorf("%s: a refused submission left something", name)
		}
	}
	again := &SubmitHet{Specs: []*JobSpec{ok, ok}, Key: "k"}
	if a, b := w.ok(alice, again).Result, w.ok(alice, again).Result; a != b {
		t.Errorf("made again it is job %v, not %v", b, a)
	}
}

func TestHetIDsInARow(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.MaxJobID = 6
	w.ok(root, &Configure{Config: &cfg})
	first := w.submit(nil) // 1
	w.s.NextID = 5
	if lead := w.submitHet(3, nil); lead != first+1 {
		t.Errorf("with 1 taken and 2 left before the end the leader is %d", lead)
	}
	if id := w.submit(nil); id != 5 {
		t.Errorf("the next job is %d", id)
	}
}

func TestHetStart(t *testing.T) {
	w := newWorld(t, 3)
	lead := w.submitHet(2, nil)
	d := w.setOf(lead, 0)
	alone, twice := d, d
	alone.With = nil
	twice.With = []Decision{
		{
			Job: lead + 1, Task: TaskAny,
			Start: &Alloc{Partition: "main", Shares: []Share{{Node: "n0", CPUs: NewIDSet(1), Tasks: 1}}},
		},
	}
	for name, bad := range map[string]Decision{
		"the leader alone": alone, "the other alone": d.With[0], "a node twice": twice,
	} {
		if w.decide(bad) == nil {
			t.Errorf("%s started", name)
		}
		w.phases(lead, "00")
	}
	w.ok(alice, &HoldJobs{Ref: Ref{Job: lead + 1}, Hold: HeldUser})
	if w.decide(d) == nil {
		t.Error("it started though a component is held")
	}
	w.phases(lead, "00")
	w.ok(alice, &HoldJobs{Ref: Ref{Job: lead}, Hold: NotHeld})
	if err := w.decide(d); err != nil {
		t.Fatal(err)
	}
	w.report("n0", lead, NodeReady)
	w.phases(lead, "11") // the script waits for the other
	w.report("n1", lead+1, NodeReady)
	w.phases(lead, "22")
	if s := w.job(lead + 1).OwnSteps(); len(s) != 0 {
		t.Errorf("a component without a script has steps %v", s)
	}
}

// TestHetEnds tells what of a component's end the others share.
func TestHetEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *world, lead JobID)
		want string // phases of three components
		end  Outcome
	}{
		"script": {func(w *world, lead JobID) { w.over(lead, 3) }, "544", Failed},
		"cancel": {func(w *world, lead JobID) { w.ok(alice, &Cancel{Ref: Ref{Job: lead}}) }, "444", Cancelled},
		"cancel one": {
			func(w *world, lead JobID) { w.ok(alice, &Cancel{Ref: Ref{Job: lead + 1}}) }, "242", Cancelled,
		},
		"cancel part": {
			func(w *world, lead JobID) { w.ok(alice, &Cancel{Ref: Ref{Job: lead, Part: 3}}) }, "224",
			Cancelled,
		},
		"node lost": {
			func(w *world, lead JobID) { w.ok(sys, &NodeDown{Nodes: []NodeName{"n1"}}) }, "404", NodeFailed,
		},
		"limit of lead": {func(w *world, lead JobID) { w.limit(lead) }, "444", TimedOut},
		"limit of one":  {func(w *world, lead JobID) { w.limit(lead + 1) }, "242", TimedOut},
		"finish":        {func(w *world, lead JobID) { w.ok(alice, &Finish{Job: lead}) }, "444", Completed},
		"suspend":       {func(w *world, lead JobID) { w.ok(root, &Suspend{Ref: Ref{Job: lead}}) }, "333", NoOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			lead := w.submitHet(3, nil)
			w.startHet(lead, 0)
			c.do(w, lead)
			w.phases(lead, c.want)
			for _, o := range w.s.Components(w.job(lead)) {
				if o.Phase == Ending && o.EndingWhy != c.end {
					t.Errorf("component %d ends as %d", o.Het.Offset, o.EndingWhy)
				}
			}
		})
	}
}

// limit has a component's time limit run out.
func (w *world) limit(id JobID) {
	l := time.Minute
	w.ok(root, &UpdateJob{Ref: Ref{Job: id, Part: 1 - min(int(w.job(id).Het.Offset), 1)}, Patch: Patch{Limit: &l}})
	w.pass(2 * time.Minute)
	w.due()
}

func TestHetRequeue(t *testing.T) {
	w := newWorld(t, 3)
	lead := w.submitHet(3, nil)
	w.startHet(lead, 0)
	w.ok(alice, &Cancel{Ref: Ref{Job: lead + 2}})
	w.report("n2", lead+2, NodeDone)
	w.phases(lead, "225")
	w.refused(alice, &Requeue{Ref: Ref{Job: lead + 1}}, ErrHetLeader)
	w.ok(alice, &Requeue{Ref: Ref{Job: lead}})
	w.phases(lead, "440")
	w.report("n1", lead+1, NodeDone)
	w.report("n0", lead, NodeDone)
	w.phases(lead, "000")
	w.refused(alice, &Requeue{Ref: Ref{Job: lead}}, ErrPending)
	w.pass(time.Hour)
	w.startHet(lead, 0)
	w.phases(lead, "222")
}

// TestHetLaunch: a node that cannot begin takes back the launch of all.
func TestHetLaunch(t *testing.T) {
	w := newWorld(t, 3)
	lead := w.submitHet(2, nil)
	if err := w.decide(w.setOf(lead, 0)); err != nil {
		t.Fatal(err)
	}
	w.report("n0", lead, NodeReady)
	w.report("n1", lead+1, LaunchFailed, NodeDone)
	w.phases(lead, "40")
	w.report("n0", lead, NodeDone)
	w.phases(lead, "00")
	if a := w.job(lead + 1).Avoid; len(a) != 1 || a[0].Node != "n1" {
		t.Errorf("it avoids %v", a)
	}
	w.pass(time.Hour)
	w.startHet2(lead)
	w.pass(w.s.Config().LaunchTimeout + time.Minute)
	w.ok(sys, &Expire{Jobs: []JobID{lead, lead + 1}, Why: EndLaunchFailure})
	w.phases(lead, "40")
}

// startHet2 starts without that component 1 confirms.
func (w *world) startHet2(lead JobID) {
	w.t.Helper()
	if err := w.decide(w.setOf(lead, 0)); err != nil {
		w.t.Fatal(err)
	}
	w.report("n0", lead, NodeReady)
	w.phases(lead, "11")
}

func TestHetAsAWhole(t *testing.T) {
	w := newWorld(t, 3)
	lead := w.submitHet(3, nil)
	for _, r := range []Ref{{Job: lead + 1}, {Job: lead, Part: 2}} {
		w.refused(alice, &Cancel{Ref: r}, ErrHetPart)
		w.refused(root, &Suspend{Ref: r}, ErrHetPart)
	}
	w.refused(alice, &Cancel{Ref: Ref{Job: lead, Part: 4}}, ErrJobID)
	w.refused(alice, &Cancel{Ref: Ref{Job: lead + 1, Part: 1}}, ErrJobID)
	after := w.submit(func(s *JobSpec) { s.Depends.Terms = []Depend{{Type: AfterOK, Job: lead, Task: TaskAny}} })
	one := w.submit(func(s *JobSpec) { s.Depends.Terms = []Depend{{Type: AfterAny, Job: lead + 1, Task: TaskAny}} })
	w.startHet(lead, 0)
	w.over(lead, 0)
	w.report("n1", lead+1, NodeDone)
	w.phases(lead, "554")
	w.wantWait(after, WaitDependency)
	w.wantWait(one, NoReason)
	w.pass(w.s.Config().MinJobAge + time.Hour)
	if w.due(); w.job(lead).Phase != Ended {
		t.Error("the leader is gone while a component lives")
	}
	w.report("n2", lead+2, NodeDone)
	w.wantWait(after, NoReason)
	w.pass(w.s.Config().MinJobAge + time.Hour)
	if w.due(); w.s.JobCount() != 2 {
		t.Errorf("%d jobs are left", w.s.JobCount())
	}
	single := w.submitHet(2, func(_ int, s *JobSpec) {
		s.Name, s.Depends.Terms = "s", []Depend{{Type: SingletonOf, Task: TaskAny}}
	})
	w.wantWait(single, NoReason)
	w.wantWait(single+1, NoReason)
}

// TestHetLimits gives components shorter limits, each within its own bounds, or starts nothing.
func TestHetLimits(t *testing.T) {
	w := newWorld(t, 2)
	lead := w.submitHet(2, func(k int, s *JobSpec) {
		if s.Limit = time.Hour; k == 1 {
			s.LimitMin = 30 * time.Minute
		}
	})
	for _, limits := range [][2]time.Duration{{30 * time.Minute, 0}, {0, 29 * time.Minute}, {0, 2 * time.Hour}} {
		d := w.setOf(lead, 0)
		d.Limit, d.With[0].Limit = limits[0], limits[1]
		if err := w.decide(d); err == nil {
			t.Errorf("it starts with the limits %v", limits)
		}
		w.phases(lead, "00")
	}
	d := w.setOf(lead, 0)
	d.With[0].Limit = 30 * time.Minute
	if err := w.decide(d); err != nil {
		t.Fatal(err)
	}
	if x, y := w.job(lead).Limit, w.job(lead+1).Limit; x != time.Hour || y != 30*time.Minute {
		t.Errorf("the limits are %v and %v", x, y)
	}
}
