package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// resizeTo asks for so many nodes, or those named.
func resizeTo(id JobID, k int, names ...NodeName) *UpdateJob {
	u := &UpdateJob{Ref: Ref{Job: id}, Runs: true}
	if k > 0 {
		u.Patch.MinNodes = &k
	}
	if names != nil {
		u.Patch.NodeList = &names
	}
	return u
}

// running starts a batch job on n nodes, n0 first.
func running(w *world, n int) JobID {
	id := w.submit(func(s *JobSpec) { s.Kind, s.MinNodes, s.MaxNodes, s.Tasks = Batch, n, n, n })
	var names []NodeName
	for i := range n {
		names = append(names, nodeName(i))
	}
	return w.run(id, 0, names...)
}

// goldenResize has a job of three nodes give two back, which become clean of it one after the other, and end.
func goldenResize(w *world) {
	id := running(w, 3)
	w.pass(10 * time.Second)
	w.ok(alice, resizeTo(id, 1))
	w.report("n2", id, NodeDone)
	license := ""
	w.ok(root, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Licenses: &license}, Runs: true})
	waits, least, prefer := w.submit(nil), 2, ""
	w.ok(alice, &UpdateJob{
		Ref:   Ref{Job: waits},
		Patch: Patch{ResetAccrue: true, Prefer: &prefer, DelayBoot: new(time.Duration), CPUsPerGPU: &least},
	})
	w.ok(alice, &Cancel{Ref: Ref{Job: waits}})
	w.pass(time.Minute)
	w.report("n1", id, NodeDone)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.report("n0", id, NodeDone)
}

// keeping starts a batch job on n nodes, n0 first, that goes on when others fail.
func keeping(w *world, n int) JobID {
	id := w.submit(func(s *JobSpec) {
		s.Kind, s.MinNodes, s.MaxNodes, s.Tasks = Batch, n, n, n
		s.NoKill = true
	})
	var names []NodeName
	for i := range n {
		names = append(names, nodeName(i))
	}
	return w.run(id, 0, names...)
}

// goldenNoKill has a job of three nodes lose two, its first at last.
func goldenNoKill(w *world) {
	names := []NodeName{"keep0", "keep1", "keep2"}
	for _, n := range names {
		w.ok(sys, &NodeUp{Name: n, Inventory: smallNode()})
	}
	id := w.submit(func(s *JobSpec) {
		s.Kind, s.MinNodes, s.MaxNodes, s.Tasks = Batch, 3, 3, 3
		s.NoKill = true
	})
	w.run(id, 0, names...)
	w.pass(10 * time.Second)
	w.ok(sys, &NodeDown{Nodes: names[2:]})
	w.pass(10 * time.Second)
	w.ok(sys, &NodeDown{Nodes: names[:1]})
	w.report(names[1], id, NodeDone)
}

// TestNoKill: a job that is to go on when nodes fail ends with its first alone.
func TestNoKill(t *testing.T) {
	w := newWorld(t, 4)
	id := keeping(w, 4)
	w.pass(10 * time.Second)
	out := w.ok(sys, &NodeDown{Nodes: []NodeName{"n2"}})
	j := w.want(id, Running)
	if got := fmt.Sprint(j.AllocNodes(), LostNodes(j), j.Leaving()); got != "[n0 n1 n3] [n2] []" {
		t.Errorf("nodes, lost ones and those that it leaves: %s", got)
	}
	if !w.s.Load("n2").CPUs.Empty() {
		t.Error("the node that failed is still held")
	}
	was := slices.IndexFunc(out.Events, func(e Event) bool { return e.Sized != nil })
	if was < 0 || len(out.Events[was].Sized.AllocNodes()) != 4 {
		t.Errorf("history was told of %+v", out.Events)
	}
	w.pass(10 * time.Second)
	w.ok(alice, resizeTo(id, 2))
	w.report("n3", id, NodeDone)
	if j := w.want(id, Running); fmt.Sprint(j.AllocNodes(), LostNodes(j)) != "[n0 n1] [n2]" {
		t.Errorf("after it got smaller: %v, lost %v", j.AllocNodes(), LostNodes(j))
	}
	w.ok(root, &Suspend{Ref: Ref{Job: id}})
	w.pass(10 * time.Second)
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n1"}})
	w.ok(root, &Suspend{Ref: Ref{Job: id}, Resume: true})
	if j := w.want(id, Running); fmt.Sprint(j.AllocNodes(), LostNodes(j)) != "[n0] [n2 n1]" {
		t.Errorf("of one that stands: %v, lost %v", j.AllocNodes(), LostNodes(j))
	}
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}})
	if j := w.job(id); j.Phase == Running || j.Outcome != NodeFailed && j.Phase != Pending {
		t.Errorf("without its first node it is in phase %d, %v", j.Phase, j.Outcome)
	}
}

func TestResize(t *testing.T) {
	w := newWorld(t, 4)
	id := running(w, 4)
	began := w.job(id).Started
	w.pass(10 * time.Second)
	out := w.ok(alice, resizeTo(id, 2))
	j := w.want(id, Running)
	if got := fmt.Sprint(j.AllocNodes()); got != "[n0 n1]" || !j.ResizedAt().Equal(w.now) {
		t.Errorf("the job has %s since %v", got, j.ResizedAt())
	}
	was := out.Events[0].Sized
	if was == nil || was.Outcome != Resized || len(was.AllocNodes()) != 4 || !was.Ended.Equal(w.now) || !was.Record().Submitted.Equal(j.Submitted) {
		t.Fatalf("history was told of %+v", was)
	}
	if r := j.Record(); !r.Started.Equal(w.now) || !r.Submitted.Equal(w.now) || r.Leaving() != nil || !j.Started.Equal(began) {
		t.Errorf("the record of the new size begins %v", r.Started)
	}
	// The nodes that it leaves end what is there; only then are they free.
	if on := j.On("n3"); on.Phase != Ending || on.EndingWhy != Resized || len(on.AllocNodes()) != 4 || j.On("n1") != j {
		t.Errorf("node n3 is told of %+v", on)
	}
	if w.s.Load("n3").CPUs.Empty() {
		t.Error("node n3 is free before it is clean")
	}
	w.report("n3", id, NodeDone)
	if l := w.s.Load("n3"); !l.CPUs.Empty() || l.MemMB != 0 || len(l.Jobs) != 0 {
		t.Errorf("node n3 is clean and still holds %+v", l)
	}
	next := w.submit(nil)
	w.run(next, 0, "n3")
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n2"}}) // not its node any more
	w.want(id, Running)
	if len(w.job(id).Leaving()) != 0 {
		t.Errorf("it still leaves %v", w.job(id).Leaving())
	}
	w.pass(5 * time.Second)
	w.ok(alice, resizeTo(id, 0, "n0"))
	w.ok(alice, resizeTo(id, 1)) // what it has
	if got := w.job(id).Spec.MinNodes; got != 1 {
		t.Errorf("it asks for %d nodes when it comes back", got)
	}
	w.ok(alice, &Cancel{Ref: Ref{Job: id}}) // while n1 is not clean
	w.report("n0", id, NodeDone)
	w.want(id, Ending)
	w.report("n1", id, NodeDone)
	if j := w.want(id, Ended); j.Ended.Before(j.ResizedAt()) {
		t.Errorf("it ended %v, before its last record began", j.Ended)
	}
}

func TestResizeRefused(t *testing.T) {
	w := newWorld(t, 4)
	id := running(w, 3)
	w.refused(alice, resizeTo(id, 4), ErrUnsupported)
	w.refused(bob, resizeTo(id, 1), ErrUser)
	w.refused(alice, resizeTo(id, 0, "n0", "n3"), ErrNodeName)
	old := resizeTo(id, 2)
	old.Runs = false
	w.refused(alice, old, ErrNotPending)                       // a log of before
	w.refused(alice, resizeTo(id, 0, "n1", "n2"), ErrNodeName) // its first node manages its steps
	none, one, two := 0, 1, 2
	w.refused(alice, &UpdateJob{
		Ref: Ref{Job: id}, Runs: true, Patch: Patch{MinNodes: &one, MaxNodes: &two},
	}, ErrNotPending)
	w.refused(alice, &UpdateJob{Ref: Ref{Job: id}, Runs: true, Patch: Patch{MinNodes: &none}}, ErrNodeCount)
	w.refused(alice, &UpdateJob{Ref: Ref{Job: id}, Runs: true, Patch: Patch{NodeList: &[]NodeName{}}}, ErrNodeName)
	cfg := *w.s.Config()
	cfg.NoShrink = true
	w.ok(root, &Configure{Config: &cfg})
	w.refused(alice, resizeTo(id, 2), ErrUnsupported)
	w.refused(alice, resizeTo(id, 0, "n0"), ErrUnsupported)
	w.ok(alice, resizeTo(id, 3))
	if j := w.want(id, Running); !j.ResizedAt().IsZero() {
		t.Error("a job that keeps its nodes was resized")
	}
}

// TestResizeSuspended: CPUs that were freed are not freed again, nor taken back.
func TestResizeSuspended(t *testing.T) {
	w := newWorld(t, 3)
	id := running(w, 3)
	w.pass(time.Minute)
	w.ok(alice, resizeTo(id, 2)) // n2 is on its way when it stops
	w.pass(time.Minute)
	w.ok(root, &Suspend{Ref: Ref{Job: id}})
	w.pass(time.Minute)
	w.ok(alice, resizeTo(id, 1))
	w.pass(time.Minute)
	w.ok(root, &Suspend{Ref: Ref{Job: id}, Resume: true})
	w.pass(time.Minute)
	for _, n := range []NodeName{"n2", "n1"} {
		w.report(n, id, NodeDone)
		if l := w.s.Load(n); !l.CPUs.Empty() || l.MemMB != 0 {
			t.Errorf("%s holds %+v", n, l)
		}
	}
	w.over(id, 0)
	j := w.job(id)
	if r := j.Record(); r.RunTime(w.now) != time.Minute || r.SuspendTotal != time.Minute || j.RunTime(w.now) != 3*time.Minute {
		t.Errorf("the last record ran %v, suspended %v; the job %v", r.RunTime(w.now), r.SuspendTotal, j.RunTime(w.now))
	}
}

// TestResizeCounts: types of GPUs, what it is billed, limits and usage follow the new size.
func TestResizeCounts(t *testing.T) {
	w := newWorld(t, 2)
	cfg := *w.s.Config()
	cfg.Priority, cfg.Enforce = PriorityConfig{Multifactor: true}, Enforce{Associations: true, Limits: true}
	w.ok(root, &Configure{Config: &cfg})
	w.ok(root, &ChangeAccounts{
		Changes: []Change{
			{Account: &Account{Name: "chem"}}, {Assoc: &Association{Account: "chem"}},
			{User: &User{Name: "alice", DefaultAccount: "chem"}},
			{Assoc: &Association{Account: "chem", User: "alice"}},
		},
	})
	id := w.submit(func(s *JobSpec) { s.Account, s.MinNodes = "chem", 2 })
	a := &Alloc{Partition: "main", Types: map[string]int64{"a100": 2, "h100": 2}}
	for _, n := range []NodeName{"n0", "n1"} {
		a.Shares = append(a.Shares, Share{Node: n, CPUs: RangeIDSet(0, 3), GPUs: RangeIDSet(0, 1), Tasks: 1})
	}
	out := w.ok(sys, &Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Start: a}}})
	if e := out.Result.([]*Error)[0]; e != nil {
		t.Fatal(e)
	}
	w.report("n0", id, NodeReady)
	w.report("n1", id, NodeReady)
	w.pass(100 * time.Second)
	w.ok(alice, resizeTo(id, 1))
	j := w.job(id)
	if fmt.Sprint(j.Alloc.Types, *j.Alloc.Billing) != "map[a100:1 h100:1] 4" {
		t.Errorf("the job has GPUs %v and is billed %v", j.Alloc.Types, *j.Alloc.Billing)
	}
	if i := slices.IndexFunc(w.s.held(j), func(a Amount) bool { return a == Amount{"gres/gpu", 2} }); i < 0 {
		t.Errorf("limits see %v", w.s.held(j))
	}
	w.pass(100 * time.Second)
	w.report("n1", id, NodeDone)
	w.over(id, 0)
	acct, _ := w.s.Assoc(w.job(id).Assoc)
	if got := int(acct.Spent.Raw + .5); got != 1200 {
		t.Errorf("%d CPU seconds were charged, want 8 x 100 and 4 x 100", got)
	}
}

// TestUpdateOfRunning: licenses of a job that runs are the operators' to change, and what it holds follows.
func TestUpdateOfRunning(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.Licenses, cfg.Priority = []License{{"foo", 4}}, PriorityConfig{Multifactor: true}
	w.ok(root, &Configure{Config: &cfg})
	id := running(w, 1)
	licenses := func(text string) *UpdateJob {
		return &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Licenses: &text}, Runs: true}
	}
	w.ok(alice, licenses("")) // as they are
	w.refused(alice, licenses("foo:9"), ErrLicense)
	w.refused(alice, licenses("foo"), ErrAccess)
	w.ok(root, licenses("foo:3"))
	if got := w.s.LicensesUsed()["foo"]; got != 3 {
		t.Errorf("%d licenses are in use", got)
	}
	delay, prefer, per := time.Minute, "a", 2
	w.ok(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{DelayBoot: &delay}})
	w.refused(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Prefer: &prefer}}, ErrNotPending)
	w.refused(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{CPUsPerGPU: &per}}, ErrNotPending)
	w.refused(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{ResetAccrue: true}}, ErrNotPending)
	waits := w.submit(nil)
	held := w.submit(func(s *JobSpec) { s.Hold = true })
	w.pass(time.Hour)
	for _, id := range []JobID{waits, held} {
		w.ok(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{ResetAccrue: true, CPUsPerGPU: &per, DelayBoot: &delay}})
	}
	if j := w.job(waits); !j.Accrue.Equal(w.now) || j.Spec.CPUsPerGPU != 2 || j.Spec.DelayBoot != time.Minute {
		t.Errorf("the job that waits: %+v", j)
	}
	if j := w.job(held); !j.Accrue.IsZero() {
		t.Errorf("one that is held accrues since %v", j.Accrue)
	}
	w.refused(alice, &UpdateJob{Ref: Ref{Job: waits}, Patch: Patch{Prefer: &prefer}}, ErrPrefer)
}
