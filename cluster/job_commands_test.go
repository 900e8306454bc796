package cluster

import (
	"slices"
	"testing"
	"time"
)

func TestSubmitRefusals(t *testing.T) {
	yes := uint32(5)
	for name, c := range map[string]struct {
		change func(*JobSpec)
		by     Identity
		kind   ErrKind
	}{
		"for another user":    {func(s *JobSpec) { s.UID = bob.UID }, alice, ErrAccess},
		"unknown partition":   {func(s *JobSpec) { s.Partitions = []string{"nope"} }, alice, ErrPartition},
		"one that takes jobs": {func(s *JobSpec) { s.Partitions = []string{"closed", "main"} }, alice, "-"},
		"more than it has":    {func(s *JobSpec) { s.MinNodes, s.MaxNodes = 3, 3 }, alice, ErrNodeCount},
		"more CPUs":           {func(s *JobSpec) { s.Tasks = 100_000 }, alice, ErrStepCPUs},
		"nodes of another": {func(s *JobSpec) {
			s.Partitions = []string{"main", "other"}
			s.NodeList = []NodeName{"n0"}
		}, alice, ErrNodesOutside},
		"the first that lacks": {func(s *JobSpec) {
			s.Partitions, s.Limit, s.Mem = []string{"main", "short", "lean"}, 2*time.Hour, Mem{MemPerNode, 200}
		}, alice, ErrTimeLimit},
		"partition, then feature": {func(s *JobSpec) {
			s.Partitions = []string{"short"}
			s.Limit = 2 * time.Hour
			s.Constraint = "nope"
		}, alice, ErrTimeLimit},
		"no such feature": {func(s *JobSpec) { s.Constraint = "nope" }, alice, ErrFeature},
		"its memory": {func(s *JobSpec) {
			s.Partitions = []string{"lean"}
			s.Mem = Mem{MemPerNode, 200}
		}, alice, ErrStepMem},
		"drained partition": {func(s *JobSpec) { s.Partitions = []string{"closed"} }, alice, ErrPartitionDown},
		"root's partition":  {func(s *JobSpec) { s.Partitions = []string{"admin"} }, alice, ErrAccess},
		"array beyond size": {func(s *JobSpec) { s.Array = &ArraySpec{Tasks: NewIDSet(1001)} }, alice, ErrArray},
		"empty array":       {func(s *JobSpec) { s.Array = &ArraySpec{} }, alice, ErrArray},
		"negative nice":     {func(s *JobSpec) { s.Nice = -1 }, alice, ErrNice},
		"max below min":     {func(s *JobSpec) { s.MinNodes, s.MaxNodes = 3, 2 }, alice, ErrNodeCount},
		"negative nodes":    {func(s *JobSpec) { s.MinNodes = -1 }, alice, ErrNodeCount},
		"endless tasks":     {func(s *JobSpec) { s.Tasks = 1 << 60 }, alice, ErrNodeCount},
		"negative GPUs":     {func(s *JobSpec) { s.PerNode = []GRES{{Name: "gpu", Count: -1}} }, alice, ErrGRES},
		"negative memory":   {func(s *JobSpec) { s.Mem = Mem{MemPerNode, -5} }, alice, ErrNodeConfig},
		"negative limit":    {func(s *JobSpec) { s.Limit = -1 }, alice, ErrTimeLimit},
		"unknown node":      {func(s *JobSpec) { s.NodeList = []NodeName{"zz"} }, alice, ErrNodeName},
		"unknown excluded":  {func(s *JobSpec) { s.Exclude = []NodeName{"zz"} }, alice, ErrNodeName},
		"deadline in past":  {func(s *JobSpec) { s.Deadline = epoch.Add(-time.Hour) }, alice, ErrBeginTime},
		"script not stored": {func(s *JobSpec) { s.Script = "abc" }, alice, ""},
		"name too long":     {func(s *JobSpec) { s.Name = string(make([]byte, 2000)) }, alice, ErrTooBig},
		"more than MaxTime": {func(s *JobSpec) {
			s.Partitions = []string{"short"}
			s.Limit = 2 * time.Hour
		}, alice, ErrTimeLimit},
		"priority is dropped": {func(s *JobSpec) { s.Priority = &yes }, alice, "-"},
		"root may be nice":    {func(s *JobSpec) { s.Nice = -1 }, root, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			cfg := DefaultConfig()
			cfg.MaxArraySize, cfg.EnforcePartLimits = 1001, "ALL"
			cfg.Partitions = append(cfg.Partitions, Partition{Name: "closed", All: true, State: PartitionDrain},
				Partition{Name: "lean", All: true, State: PartitionUp,
					PartitionLimits: PartitionLimits{MaxMem: Mem{MemPerNode, 100}}},
				Partition{Name: "other", Nodes: []NodeName{"n1"}, State: PartitionUp},
				Partition{Name: "admin", State: PartitionUp, RootOnly: true},
				Partition{Name: "short", All: true, State: PartitionUp,
					PartitionLimits: PartitionLimits{MaxTime: time.Hour}})
			w.ok(root, &Configure{Config: &cfg})
			spec := &JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID, User: "alice"}
			c.change(spec)
			if c.kind != "-" {
				w.refused(c.by, &Submit{Spec: spec}, c.kind)
				return
			}
			id := w.ok(c.by, &Submit{Spec: spec}).Result.(JobID)
			if j := w.job(id); j.Spec.Priority != nil {
				t.Error("an ordinary user set a priority")
			}
		})
	}
	w := newWorld(t, 0)
	w.refused(alice, &Submit{}, "")
	cfg := DefaultConfig()
	cfg.MaxJobCount = 1
	w.ok(root, &Configure{Config: &cfg})
	w.submit(nil)
	w.refused(alice, &Submit{Spec: &JobSpec{Layout: &Layout{}, UID: alice.UID}}, ErrQueueFull)
}

// TestAnyPartLimits: with EnforcePartLimits=ANY one partition is enough, and where there is none the refusal is the
// last one's.
func TestAnyPartLimits(t *testing.T) {
	w := newWorld(t, 1)
	cfg := DefaultConfig()
	cfg.EnforcePartLimits = "ANY"
	cfg.Partitions = append(cfg.Partitions, Partition{
		Name: "lean", All: true, State: PartitionUp, PartitionLimits: PartitionLimits{MaxMem: Mem{MemPerNode, 100}},
	},
		Partition{Name: "short", All: true, State: PartitionUp,
			PartitionLimits: PartitionLimits{MaxTime: time.Hour}})
	w.ok(root, &Configure{Config: &cfg})
	big := func(parts ...string) *Submit {
		return &Submit{
			Spec: &JobSpec{
				Layout: &Layout{Mem: Mem{MemPerNode, 200}}, UID: alice.UID, Partitions: parts,
				Limit: 2 * time.Hour,
			},
		}
	}
	w.refused(alice, big("lean", "short"), ErrTimeLimit)
	w.refused(alice, big("short", "lean"), ErrStepMem)
	w.ok(alice, big("short", "lean", "main"))
}

func TestJobNumbersRunOut(t *testing.T) {
	w := newWorld(t, 0)
	cfg := DefaultConfig()
	cfg.FirstJobID, cfg.MaxJobID = 1, 3
	w.ok(root, &Configure{Config: &cfg})
	for range 3 {
		w.submit(nil)
	}
	w.refused(alice, &Submit{Spec: &JobSpec{Layout: &Layout{}, UID: alice.UID}}, ErrQueueFull)
	cfg.FirstJobID = 5
	w.refused(root, &Configure{Config: &cfg}, "")
	w.refused(root, &Configure{}, "")
}

func TestDefaultsAtSubmission(t *testing.T) {
	w := newWorld(t, 1)
	j := w.job(w.submit(func(s *JobSpec) { s.Nice = 7 }))
	if j.Spec.Account != "alice" || j.Spec.QOS != "normal" || j.Spec.Requeue == nil || !*j.Spec.Requeue ||
		j.Limit != Unlimited || j.Spec.Partitions[0] != "main" || j.Priority != topPriority-1-7 {
		t.Errorf("defaults: %+v of %+v", j.Spec, j)
	}
}

func TestArraySplits(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(func(s *JobSpec) { s.Array = &ArraySpec{Tasks: RangeIDSet(0, 3), Limit: 2} })
	other := w.submit(nil)
	a, b := w.start(id, 0, 0, "n0"), w.start(id, 2, 1, "n0")
	if a != other+1 || b != other+2 {
		t.Errorf("tasks became %d and %d, want %d and %d", a, b, other+1, other+2)
	}
	if j := w.job(a); j.Task != 0 || j.ArrayID != id || !j.Tasks.Empty() {
		t.Errorf("task 0 is %+v", j)
	}
	if j := w.want(id, Pending); j.Tasks.String() != "1,3" {
		t.Errorf("left are %s", j.Tasks)
	}
	share := &Alloc{Shares: []Share{{Node: "n0", CPUs: NewIDSet(5)}}}
	out := w.ok(sys, &Decide{
		Decisions: []Decision{{Job: id, Task: 1, Start: share}, {Job: id, Task: 7, Start: share}},
	}).Result.([]*Error)
	if out[0] == nil || out[1] == nil {
		t.Errorf("beyond the limit of 2 or no task at all: %v", out)
	}
	w.report("n0", a, NodeReady)
	w.over(a, 0)
	if w.s.RunningTasks(id) != 1 {
		t.Errorf("%d tasks run", w.s.RunningTasks(id))
	}
	limit := 5
	w.ok(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{ArrayLimit: &limit}}) // an ended task is no obstacle
	if c := w.start(id, 1, 5, "n0"); c == id {
		t.Error("task 1 was not the last")
	}
	if last := w.start(id, 3, 6, "n0"); last != id {
		t.Errorf("the last task is %d, want the array's own id %d", last, id)
	}
	if j := w.job(id); j.Task != 3 || !j.Tasks.Empty() {
		t.Errorf("the last task's record: %+v", j)
	}
}

func TestArrayCancelAndRequeue(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(func(s *JobSpec) { s.Array = &ArraySpec{Tasks: RangeIDSet(1, 6)} })
	done := w.ok(alice, &Cancel{Ref: Ref{Job: id, Tasks: RangeIDSet(4, 9)}}).Result.([]JobID)
	if len(done) != 3 {
		t.Errorf("cancelled %v", done)
	}
	if j := w.want(id, Pending); j.Tasks.String() != "1-3" {
		t.Errorf("left %s", j.Tasks)
	}
	w.refused(alice, &Cancel{Ref: Ref{Job: id, Tasks: NewIDSet(99)}}, ErrJobID)
	w.ok(alice, &HoldJobs{Ref: Ref{Job: id}, Hold: HeldUser})
	w.wantWait(id, WaitHeldUser)
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.want(id, Ended)
	w.ok(alice, &Requeue{Ref: Ref{Job: id, Tasks: RangeIDSet(1, 3)}}) // a record that never split
	if j := w.want(id, Pending); j.Tasks.String() != "1-3" && j.Task == TaskAny {
		t.Errorf("requeued as tasks %q, task %d", j.Tasks, j.Task)
	}
	w.pass(time.Hour)
	w.due() // each task that has ended leaves by its own clock, whatever becomes of the others
	for _, d := range done {
		if j, there := w.s.Job(d); there {
			t.Errorf("task %d, which was cancelled an hour ago, is there: %+v", d, j)
		}
	}
	if g := w.s.Gone(id); g == nil || g.Failed.String() != "4-6" || g.Begun || g.Unwell || g.Sum.Outcome != Cancelled {
		t.Errorf("what is kept of them: %+v", g)
	}
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.pass(time.Hour)
	w.due()
	if n := w.s.JobCount(); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

func TestCancelInEveryPhase(t *testing.T) {
	w := newWorld(t, 2)
	pending := w.submit(nil)
	w.refused(bob, &Cancel{Ref: Ref{Job: pending}}, ErrAccess)
	w.refused(alice, &Cancel{Ref: Ref{Job: pending}, Sig: 10}, ErrPending)
	w.refused(alice, &Cancel{Ref: Ref{Job: 999}}, ErrJobID)
	w.ok(alice, &Cancel{Ref: Ref{Job: pending}})
	if j := w.want(pending, Ended); j.Outcome != Cancelled || *j.CancelledBy != alice.UID || !j.Ended.Equal(w.now) {
		t.Errorf("cancelled while pending: %+v", j)
	}
	w.refused(alice, &Cancel{Ref: Ref{Job: pending}}, ErrFinished)

	starting := w.start(w.submit(nil), TaskAny, 0, "n0", "n1")
	w.ok(alice, &Cancel{Ref: Ref{Job: starting}})
	w.want(starting, Ending)
	w.report("n1", starting, NodeDone)
	if l := w.s.Load("n1"); !l.CPUs.Empty() {
		t.Error("n1 is still taken")
	}
	w.want(starting, Ending)
	w.report("n0", starting, BatchOver, NodeDone)
	w.want(starting, Ended)

	running := w.run(w.submit(nil), 0, "n0")
	w.ok(alice, &Cancel{Ref: Ref{Job: running}, Sig: 10})
	w.ok(alice, &Cancel{Ref: Ref{Job: running}, Sig: 12, Scope: SignalFull})
	if s := w.want(running, Running).Signals; len(s) != 2 || s[1].Num != 2 || s[1].Step != AllSteps {
		t.Errorf("signals %v", s)
	}
	step := 0
	w.refused(alice, &Cancel{Ref: Ref{Job: running}, Step: &step}, ErrJobID)
	w.ok(root, &Suspend{Ref: Ref{Job: running}})
	w.ok(root, &Cancel{Ref: Ref{Job: running}})
	w.refused(root, &Cancel{Ref: Ref{Job: running}}, ErrFinished) // it is ending already
	w.report("n0", running, LaunchFailed)                         // must not bring it back
	w.report("n0", running, NodeDone)
	if j := w.want(running, Ended); j.Outcome != Cancelled {
		t.Errorf("outcome %d", j.Outcome)
	}

	again := w.run(w.submit(nil), 0, "n0")
	w.ok(alice, &Requeue{Ref: Ref{Job: again}})
	w.ok(alice, &Cancel{Ref: Ref{Job: again}}) // before it is back
	w.report("n0", again, NodeDone)
	w.want(again, Ended)
}

func TestRequeue(t *testing.T) {
	w := newWorld(t, 1)
	cfg := *w.s.Config()
	cfg.RequeueDelay = 2 * time.Minute
	w.ok(root, &Configure{Config: &cfg})
	id := w.submit(nil)
	w.refused(alice, &Requeue{Ref: Ref{Job: id}}, ErrPending)
	w.run(id, 0, "n0")
	w.ok(alice, &Requeue{Ref: Ref{Job: id}})
	w.want(id, Ending)
	w.report("n0", id, NodeDone)
	j := w.wantWait(id, WaitBegin)
	if j.Restarts != 1 || j.Attempt != 1 || j.Alloc != nil || !j.Eligible.Equal(w.now.Add(2*time.Minute)) {
		t.Errorf("requeued: %+v", j)
	}
	if w.ready(id) || !w.s.NextTimer(w.now).Equal(j.Eligible) {
		t.Error("it must wait for its begin time")
	}
	w.pass(3 * time.Minute)
	w.run(id, 0, "n0")
	if a := w.job(id).Attempt; a != 2 {
		t.Errorf("attempt %d", a)
	}
	w.over(id, 3)
	w.ok(alice, &Requeue{Ref: Ref{Job: id}, Hold: true, SpecialExit: true})
	if j := w.wantWait(id, WaitRequeueHeld); j.Held != HeldUser || !j.SpecialExit || j.Priority != 0 {
		t.Errorf("requeued held: %+v", j)
	}
	no := false
	never := w.run(w.submit(func(s *JobSpec) { s.Requeue = &no }), 0, "n0")
	w.refused(alice, &Requeue{Ref: Ref{Job: never}}, ErrDisabled)
	w.over(never, 0)
	alloc := w.submit(func(s *JobSpec) { s.Kind = Allocation })
	w.refused(alice, &Requeue{Ref: Ref{Job: alloc}}, ErrBatchOnly)

	failed := w.start(w.submit(nil), TaskAny, 0, "n0")
	w.report("n0", failed, LaunchFailed, NodeDone)
	w.wantWait(failed, WaitLaunchFailedHeld)
}

func TestSuspend(t *testing.T) {
	w := newWorld(t, 1)
	id := w.run(w.submit(func(s *JobSpec) { s.Limit = time.Hour }), 0, "n0")
	w.refused(alice, &Suspend{Ref: Ref{Job: id}}, ErrAccess)
	for _, resume := range []bool{false, true} {
		w.refused(root, &Suspend{Ref: Ref{Job: w.submit(nil)}, Resume: resume}, ErrPending)
	}
	w.refused(root, &Suspend{Ref: Ref{Job: id}, Resume: true}, ErrNotSuspended)
	w.pass(10 * time.Minute)
	w.ok(root, &Suspend{Ref: Ref{Job: id}})
	w.refused(root, &Suspend{Ref: Ref{Job: id}}, ErrNotRunning)
	if l := w.s.Load("n0"); !l.CPUs.Empty() || l.MemMB != 100 {
		t.Errorf("a suspended job keeps memory and frees CPUs: %+v", l)
	}
	guest := w.run(w.submit(nil), 0, "n0")
	w.pass(2 * time.Hour)
	w.due()
	w.want(id, Suspended) // its limit stands still
	w.ok(sys, &Expire{Jobs: []JobID{id}, Why: EndTimeLimit})
	w.want(id, Suspended)
	w.refused(root, &Suspend{Ref: Ref{Job: id}, Resume: true}, ErrBusy)
	w.over(guest, 0)
	w.ok(root, &Suspend{Ref: Ref{Job: id}, Resume: true})
	if j := w.want(id, Running); j.SuspendTotal != 2*time.Hour || j.RunTime(w.now) != 10*time.Minute {
		t.Errorf("suspended for %s, ran %s", j.SuspendTotal, j.RunTime(w.now))
	}
	w.pass(50 * time.Minute)
	w.due()
	if j := w.want(id, Ending); j.EndingWhy != TimedOut {
		t.Errorf("ends as %d", j.EndingWhy)
	}
}

func TestReportTwice(t *testing.T) {
	w := newWorld(t, 2)
	id := w.run(w.submit(nil), 0, "n0")
	w.seq["n0"]++
	r := &Report{Node: "n0", Seq: w.seq["n0"], Updates: []Update{
		{Kind: StepNow, Job: id, Attempt: 1, Step: &Step{ID: StepID{id, 0}, Started: w.now}},
		{Kind: BatchOver, Job: id, Attempt: 1, At: w.now, Exit: ExitStatus{Code: 1}},
		{Kind: NodeDone, Job: id, Attempt: 1}}}
	out := w.ok(sys, r)
	steps := 0
	for _, e := range out.Events {
		if e.Step != nil && !e.Step.Ended.IsZero() {
			steps++
		}
	}
	if steps != 1 {
		t.Errorf("%d steps were closed, want 1", steps)
	}
	before := content(t, w.s)
	if out := w.ok(sys, r); out.Events != nil || content(t, w.s) != before {
		t.Error("the same report twice changed something")
	}
	w.ok(alice, &Requeue{Ref: Ref{Job: id}})
	w.run(id, 3, "n1")
	w.seq["n0"]++
	w.ok(sys, &Report{
		Node: "n0", Seq: w.seq["n0"],
		Updates: []Update{{Kind: BatchOver, Job: id, Attempt: 1}, {Kind: JobLost, Job: id, Attempt: 1}},
	})
	w.want(id, Running) // news of attempt 1
	w.refused(sys, &Report{Node: "zz", Seq: 1}, ErrNodeName)
	w.ok(sys, &NodeUp{Name: "n1", Inventory: smallNode()}) // its disk was replaced: it counts from 0
	w.seq["n1"] = 0
	w.over(id, 0)
}

func TestManySteps(t *testing.T) {
	w := newWorld(t, 1)
	id := w.run(w.submit(nil), 0, "n0")
	w.seq["n0"]++
	r := &Report{Node: "n0", Seq: w.seq["n0"]}
	for i := range 200 {
		r.Updates = append(r.Updates, Update{
			Kind: StepNow, Job: id, Attempt: 1, Step: &Step{ID: StepID{id, i}, Started: w.now},
		})
	}
	w.ok(sys, r)
	w.over(id, 0)
	for s := range w.s.Steps(0) {
		t.Fatalf("step %v outlives its job", s.ID)
	}
}

func TestNodeDown(t *testing.T) {
	w := newWorld(t, 3)
	no := false
	batch, gang := w.run(w.submit(nil), 0, "n0"), w.run(w.submit(nil), 1, "n0", "n1")
	fixed := w.run(w.submit(func(s *JobSpec) { s.Requeue = &no }), 2, "n0")
	alloc := w.run(w.submit(func(s *JobSpec) { s.Kind = Allocation }), 3, "n0")
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0", "zz"}})
	w.want(batch, Pending)
	w.want(gang, Ending) // n1 must be cleaned first
	for _, id := range []JobID{fixed, alloc} {
		if j := w.want(id, Ended); j.Outcome != NodeFailed || j.EndReason != EndNodeDown {
			t.Errorf("job %d: %+v", id, j)
		}
	}
	w.report("n1", gang, NodeDone)
	w.want(gang, Pending)
	if n, _ := w.s.Node("n0"); n.Usable() || n.Reason != notResponding || n.ReasonBy != "slurm" {
		t.Errorf("node %+v", n)
	}
	bad := &Decide{Decisions: []Decision{{Job: batch, Start: &Alloc{Shares: []Share{{Node: "n0", CPUs: NewIDSet(0)}}}}}}
	if e := w.ok(sys, bad).Result.([]*Error); e[0] == nil {
		t.Error("a job started on a node that is down")
	}
	w.ok(sys, &NodeUp{Name: "n0", Inventory: smallNode()})
	w.run(batch, 0, "n0")
	w.refused(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeSetDown}, ErrReasonNeeded)
	why := "broken"
	w.refused(alice, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeSetDown, Reason: &why}, ErrUser)
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeSetDown, Reason: &why})
	w.want(batch, Pending)
	w.ok(sys, &NodeUp{Name: "n0", Inventory: smallNode()})
	if n, _ := w.s.Node("n0"); n.Usable() {
		t.Error("an operator's down survives registering")
	}
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume})
	w.refused(root, &NodeSet{Nodes: []NodeName{"n1", "n0"}, Action: NodeResume}, ErrNodeState)
}

func TestNodeShrinks(t *testing.T) {
	w := newWorld(t, 1)
	id := w.run(w.submit(nil), 7, "n0")
	less := smallNode()
	less.CPUs = 4
	w.ok(sys, &NodeUp{Name: "n0", Inventory: less, Seq: w.seq["n0"]})
	if n, _ := w.s.Node("n0"); n.Usable() {
		t.Error("a node with less than it gave out takes jobs")
	}
	w.refused(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume}, ErrNodeState)
	w.over(id, 0)
	w.ok(root, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeResume})
}

func TestDecideChecksEachAlone(t *testing.T) {
	w := newWorld(t, 1)
	a, b, c := w.submit(nil), w.submit(nil), w.submit(nil)
	on := func(mem MemMB, cpus ...int) *Alloc {
		return &Alloc{Shares: []Share{{Node: "n0", CPUs: NewIDSet(cpus...), MemMB: mem}}}
	}
	twice := &Alloc{Shares: []Share{{Node: "n0", CPUs: NewIDSet(4)}, {Node: "n0", CPUs: NewIDSet(5)}}}
	out := w.ok(sys, &Decide{Decisions: []Decision{{Job: a, Start: on(10, 0)}, {Job: b, Start: on(10, 0)},
		{Job: b, Start: on(9000, 1)},
		{Job: b, Start: on(1, 8)}, {Job: b, Start: on(-1, 1)}, {Job: b, Start: twice},
		{Job: b, Start: &Alloc{}}, {Job: 99, Start: on(1, 1)},
		{Job: a, Start: on(1, 1)}, {Job: c, Wait: WaitResources, StartsAt: w.now.Add(time.Hour)},
		{Job: b, Start: on(10, 1)}}}).Result.([]*Error)
	for i, e := range out {
		if taken := i == 0 || i == 9 || i == 10; taken != (e == nil) {
			t.Errorf("decision %d: %v", i, e)
		}
	}
	if j := w.wantWait(c, WaitResources); !j.PlannedStart.Equal(w.now.Add(time.Hour)) {
		t.Errorf("planned for %s", j.PlannedStart)
	}
}

func TestPurgeAndBlobs(t *testing.T) {
	w := newWorld(t, 1)
	text := BlobText("#!/bin/sh\n")
	hash := HashBlob(text)
	w.refused(alice, &PutBlob{Hash: hash, Text: BlobText("something else")}, "")
	w.ok(alice, &PutBlob{Hash: hash, Text: text})
	refs := func() int { b, _ := w.s.Blob(hash); return b.Refs }
	scripted := func(s *JobSpec) { s.Script, s.Array = hash, &ArraySpec{Tasks: RangeIDSet(0, 2)} }
	id := w.submit(scripted)
	task := w.start(id, 1, 0, "n0")
	if refs() != 2 {
		t.Errorf("%d references, want 2", refs())
	}
	w.ok(alice, &Cancel{Ref: Ref{Job: id}})
	w.report("n0", task, NodeDone)
	w.due()
	w.want(id, Ended)
	w.pass(w.s.Config().MinJobAge)
	w.due()
	if w.s.JobCount() != 0 || refs() != 0 {
		t.Errorf("%d jobs and %d references are left", w.s.JobCount(), refs())
	}
	if at := w.s.NextTimer(w.now); !at.Equal(w.now.Add(idleBlobAge)) {
		t.Errorf("next timer %s", at)
	}
	w.pass(idleBlobAge)
	w.due()
	if _, ok := w.s.Blob(hash); ok {
		t.Error("the text is still there")
	}
}

func TestTimersOfBeginAndDeadline(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(func(s *JobSpec) { s.Begin, s.Deadline = epoch.Add(time.Hour), epoch.Add(2*time.Hour) })
	w.wantWait(id, WaitBegin)
	if at := w.s.NextTimer(w.now); !at.Equal(epoch.Add(time.Hour)) {
		t.Errorf("first %s", at)
	}
	w.pass(90 * time.Minute)
	if at := w.s.NextTimer(w.now); !at.Equal(epoch.Add(2 * time.Hour)) {
		t.Errorf("then %s: the deadline is forgotten", at)
	}
	w.ok(sys, &Expire{Jobs: []JobID{id}, Why: EndDeadline})
	w.want(id, Pending) // not yet
	w.pass(time.Hour)
	w.due()
	if j := w.want(id, Ended); j.Outcome != DeadlineMissed {
		t.Errorf("outcome %d", j.Outcome)
	}
	cfg := *w.s.Config()
	cfg.MinJobAge = time.Second
	w.ok(root, &Configure{Config: &cfg}) // clocks follow the configuration
}

func TestHold(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(func(s *JobSpec) { s.Hold = true })
	if j := w.wantWait(id, WaitHeldUser); j.Priority != 0 || w.ready(id) {
		t.Errorf("held: %+v", j)
	}
	w.ok(alice, &HoldJobs{Ref: Ref{Job: id}, Hold: NotHeld})
	if !w.ready(id) {
		t.Error("released, but not ready")
	}
	w.ok(root, &HoldJobs{Ref: Ref{Job: id}, Hold: HeldAdmin})
	w.refused(alice, &HoldJobs{Ref: Ref{Job: id}, Hold: NotHeld}, ErrAccess)
	out := w.ok(sys, &Decide{
		Decisions: []Decision{{Job: id, Start: &Alloc{Shares: []Share{{Node: "n0", CPUs: NewIDSet(0)}}}}},
	})
	if out.Result.([]*Error)[0] == nil {
		t.Error("a held job started")
	}
}

// TestReleaseDependent: what waits for another job does not become eligible by being released.
func TestReleaseDependent(t *testing.T) {
	w := newWorld(t, 1)
	first := w.submit(nil)
	id := w.submit(func(s *JobSpec) {
		s.Depends = Depends{
			Terms: []Depend{{Type: AfterOK, Job: first, Task: TaskAny}},
		}
	})
	for _, hold := range []Hold{HeldUser, NotHeld} {
		w.pass(time.Minute)
		w.ok(alice, &HoldJobs{Ref: Ref{Job: id}, Hold: hold})
	}
	if j := w.wantWait(id, WaitDependency); !j.Eligible.IsZero() || !j.Accrue.IsZero() {
		t.Errorf("eligible %v, grows older from %v", j.Eligible, j.Accrue)
	}
}

// TestUpdateRunning has what a Slurm 22.05 let be changed of a running job, by its owner and by root.
func TestUpdateRunning(t *testing.T) {
	text, five, zero, no := "x", 5, uint32(0), false
	some := uint32(77)
	for name, c := range map[string]struct {
		patch Patch
		by    Identity
		want  ErrKind
	}{
		"name": {Patch{Name: &text}, alice, ""}, "comment": {Patch{Comment: &text}, alice, ""},
		"requeue":          {Patch{Requeue: &no}, alice, ""},
		"account":          {Patch{Account: &text}, root, ErrNotPending},
		"qos":              {Patch{QOS: &text}, root, ErrNotPending},
		"wckey":            {Patch{WCKey: &text}, alice, ErrNotPending},
		"dependency":       {Patch{Depends: &Depends{}}, root, ErrNotPending},
		"begin":            {Patch{Begin: &epoch}, alice, ErrNotPending},
		"stdout":           {Patch{Stdout: &text}, root, ErrNotPending},
		"directory":        {Patch{WorkDir: &text}, alice, ErrNotPending},
		"tasks":            {Patch{Tasks: &five}, root, ErrNotPending},
		"contiguous":       {Patch{Contiguous: &no}, alice, ErrNotPending},
		"its partition":    {Patch{Partitions: []string{"main"}}, alice, ""},
		"partition":        {Patch{Partitions: []string{"wide"}}, alice, ErrNotPending},
		"no reservation":   {Patch{Reservation: new(string)}, alice, ""},
		"priority":         {Patch{Priority: &some}, root, ""},
		"owner's priority": {Patch{Priority: &some}, alice, ErrPriorityReset},
		"hold":             {Patch{Priority: &zero}, alice, ""}, "nice": {Patch{Nice: &five}, alice, ""},
	} {
		w := ranked(t, func(cfg *Config) { cfg.Priority.Weights.Age, cfg.Priority.Weights.TRES = 0, nil })
		id := w.submit(nil)
		w.run(id, 0, "n0")
		before := w.job(id).Priority
		if c.want != "" {
			w.refused(c.by, &UpdateJob{Ref: Ref{Job: id}, Patch: c.patch}, c.want)
			continue
		}
		w.ok(c.by, &UpdateJob{Ref: Ref{Job: id}, Patch: c.patch})
		want := map[string]uint32{"priority": 77, "hold": 0, "nice": before - 5}
		if p, ok := want[name]; !ok {
			want[name] = before
		} else if p == 0 && w.job(id).Wait != WaitHeldUser {
			t.Errorf("%s: reason %s", name, w.job(id).Wait)
		}
		if got := w.job(id).Priority; got != want[name] {
			t.Errorf("%s: priority %d, want %d", name, got, want[name])
		}
	}
}

// TestUpdateInDrained: a job whose partition has been closed can still be changed, but not moved into one.
func TestUpdateInDrained(t *testing.T) {
	w := ranked(t, nil)
	id := w.submit(nil)
	cfg := *w.s.config
	cfg.Partitions = slices.Clone(cfg.Partitions)
	cfg.Partitions[0].State, cfg.Partitions[1].State = PartitionDrain, PartitionInactive
	w.ok(root, &Configure{Config: &cfg})
	text := "x"
	w.ok(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Comment: &text}})
	w.refused(alice, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Partitions: []string{"wide"}}}, ErrPartitionDown)
}

// TestUpdateEnd sets the end of a running job: its limit follows; over a pending one nothing is known.
func TestUpdateEnd(t *testing.T) {
	w := newWorld(t, 1)
	id, waits := w.submit(func(s *JobSpec) { s.Limit = time.Hour }), w.submit(nil)
	end := func(d time.Duration) *UpdateJob {
		at := w.now.Add(d)
		return &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{End: &at}}
	}
	w.run(id, 0, "n0")
	w.pass(10 * time.Minute)
	w.ok(alice, end(20*time.Minute))
	want := w.now.Add(20 * time.Minute)
	if got := w.job(id).EndLimit(w.s.config); !got.Equal(want) {
		t.Errorf("ends at %v, want %v", got, want)
	}
	w.refused(alice, end(time.Hour), ErrAccess)
	w.ok(root, end(time.Hour))
	w.refused(alice, end(-2*time.Minute), ErrBeginTime)
	w.refused(root, &UpdateJob{Ref: Ref{Job: waits}, Patch: Patch{End: &want}}, ErrNotRunning)
}

// TestUpdateArray: of an array with running tasks those that wait are changed; of one that only runs nothing.
func TestUpdateArray(t *testing.T) {
	w := newWorld(t, 1)
	id := w.submit(func(s *JobSpec) { s.Array = &ArraySpec{Tasks: NewIDSet(1, 2)} })
	name := "low"
	w.ok(root, &ChangeAccounts{Changes: []Change{{QOS: &QOS{Name: name, UsageFactor: 1}}}})
	one := w.start(id, 1, 0, "n0")
	w.ok(root, &UpdateJob{Ref: Ref{Job: id}, Patch: Patch{Comment: &name, Stdout: &name}})
	if run, rest := w.job(one).Spec, w.job(id).Spec; one == id || run.Stdout == name || rest.Stdout != name {
		t.Errorf("the running task %d has %q, the others %q", one, run.Stdout, rest.Stdout)
	}
}

// TestSubmitKey makes a submission twice, as a caller does who lost the answer.
func TestSubmitKey(t *testing.T) {
	w := newWorld(t, 1)
	submit := func(by Identity, key string) JobID {
		t.Helper()
		return w.ok(by, &Submit{
			Spec: &JobSpec{Layout: &Layout{}, Name: "job", UID: by.UID, Array: &ArraySpec{Tasks: NewIDSet(1, 2)}},
			Key:  key,
		}).Result.(JobID)
	}
	first := submit(alice, "k")
	for what, c := range map[string]struct {
		by   Identity
		key  string
		same bool
	}{
		"again": {alice, "k", true}, "another key": {alice, "l", false}, "another user": {bob, "k", false},
		"no key": {alice, "", false},
	} {
		if got := submit(c.by, c.key); (got == first) != c.same {
			t.Errorf("%s: job %d, the first was %d", what, got, first)
		}
	}
	w.start(first, 1, 0, "n0") // the array's record splits
	if got := submit(alice, "k"); got != first {
		t.Errorf("after a task began: job %d, the first was %d", got, first)
	}
	w.refused(alice, &Submit{
		Spec: &JobSpec{Layout: &Layout{}, Name: "job", UID: alice.UID}, Key: string(make([]byte, 1000)),
	}, "")
}

// TestLossIsTold loses one node of a gang: the others must hear that the job ends.
func TestLossIsTold(t *testing.T) {
	w := newWorld(t, 2)
	id := w.submit(func(s *JobSpec) { s.MinNodes = 2 })
	w.run(id, 0, "n0", "n1")
	a := w.ok(sys, &NodeDown{Nodes: []NodeName{"n1"}, Why: "gone"})
	told := false
	for _, e := range a.Events {
		told = told || e.Job != nil && e.Job.ID == id && e.Job.Phase == Ending && len(e.Job.Waiting) == 1
	}
	if !told {
		t.Errorf("nobody is told that job %d is ending: %+v", id, a.Events)
	}
}

// TestClocksGoBack: leaders and nodes whose clocks differ, or are set, do not make a job end before it began.
func TestClocksGoBack(t *testing.T) {
	w := newWorld(t, 1)
	w.pass(time.Hour)
	id := w.run(w.submit(nil), 0, "n0")
	w.pass(-10 * time.Minute)
	w.ok(root, &Suspend{Ref: Ref{Job: id}})
	w.pass(-10 * time.Minute)
	w.ok(root, &Suspend{Ref: Ref{Job: id}, Resume: true})
	w.seq["n0"]++
	step := &Step{ID: StepID{id, 0}, Started: w.now, Ended: w.now.Add(-time.Minute)}
	out := w.ok(sys, &Report{
		Node: "n0", Seq: w.seq["n0"], Updates: []Update{{Kind: StepNow, Job: id, Attempt: 1, Step: step}},
	})
	if s := out.Events[0].Step; s.Ended != s.Started {
		t.Errorf("the step ends %v before it starts", s.Started.Sub(s.Ended))
	}
	w.over(id, 0)
	if j := w.job(id); j.Ended != j.Submitted || j.SuspendTotal != 0 {
		t.Errorf("the job ran from %v to %v, suspended for %v", j.Started, j.Ended, j.SuspendTotal)
	}
	held := w.submit(func(s *JobSpec) { s.Hold = true })
	w.pass(-10 * time.Minute)
	w.ok(alice, &Cancel{Ref: Ref{Job: held}})
	w.want(held, Ended) // Check looks at its times
}

// TestTimeMin: a decision may cut the limit of a job that says how little it can do with, and of no other; requeued it
// asks for all again.
func TestTimeMin(t *testing.T) {
	for _, c := range []struct {
		least, cut time.Duration
		ok         bool
	}{
		{time.Minute, 10 * time.Minute, true}, {time.Minute, time.Minute, true},
		{time.Minute, time.Second, false}, {0, 10 * time.Minute, false},
		{time.Minute, 2 * time.Hour, false},
	} {
		s := NewState()
		do := func(cmd Command) any {
			t.Helper()
			a := s.Apply(Entry{Index: s.Index + 1, At: epoch, By: Identity{System: true}, Cmd: cmd})
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			return a.Result
		}
		cfg := DefaultConfig()
		do(&Configure{Config: &cfg})
		do(&NodeUp{
			Name:      "a",
			Inventory: Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 1000},
		})
		id := do(&Submit{Spec: &JobSpec{Layout: &Layout{}, Limit: time.Hour, LimitMin: c.least}}).(JobID)
		errs := do(&Decide{Decisions: []Decision{{Job: id, Task: TaskAny, Limit: c.cut,
			Start: &Alloc{Partition: "main", Shares: []Share{{Node: "a", CPUs: NewIDSet(0), Tasks: 1}}}}}}).([]*Error)
		j, _ := s.Job(id)
		if ok := errs[0] == nil; ok != c.ok || ok && j.Limit != c.cut {
			t.Errorf("cut to %s with at least %s: %v, limit %s", c.cut, c.least, errs[0], j.Limit)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}

// TestSilentNode: the reason of a drained node outlives its silence; one without a reason has its own, until it is
// back.
func TestSilentNode(t *testing.T) {
	w := newWorld(t, 3)
	reason := "nr"
	op := Identity{User: "alice"}
	w.ok(op, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeDrain, Reason: &reason})
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0", "n1", "n2"}, Keep: true})
	w.ok(op, &NodeSet{Nodes: []NodeName{"n2"}, Action: NodeDrain, Reason: &reason})
	want := func(name NodeName, down bool, reason, by string) {
		t.Helper()
		n, _ := w.s.Node(name)
		if n.Down != down || n.Reason != reason || n.ReasonBy != by {
			t.Errorf("%s: down %v, %q by %q, want %v, %q by %q", name, n.Down, n.Reason, n.ReasonBy, down, reason, by)
		}
	}
	want("n0", true, "nr", "alice")
	want("n1", true, notResponding, "slurm")
	want("n2", true, "nr", "alice")
	for _, name := range []NodeName{"n0", "n1", "n2"} {
		n, _ := w.s.Node(name)
		w.ok(sys, &NodeUp{Name: name, Inventory: n.Inventory, Owner: n.Owner})
	}
	want("n0", false, "nr", "alice")
	want("n1", false, "", "")
	want("n2", false, "nr", "alice")
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n0"}, Keep: true})
	w.ok(op, &NodeSet{Nodes: []NodeName{"n0"}, Action: NodeSetDown, Reason: &reason})
	n, _ := w.s.Node("n0")
	w.ok(sys, &NodeUp{Name: "n0", Inventory: n.Inventory, Owner: n.Owner})
	want("n0", true, "nr", "alice") // an operator's word stays
}

// TestLateStep: a step of the attempt before that is told of after the requeue does not count for the next one.
func TestLateStep(t *testing.T) {
	w := newWorld(t, 1)
	id := w.run(w.submit(nil), 0, "n0")
	j, _ := w.s.Job(id)
	step := &Step{ID: StepID{Job: id}, Attempt: j.Attempt, Started: w.now, Ended: w.now, Exit: ExitStatus{Code: 3}}
	w.ok(root, &Requeue{Ref: Ref{Job: id}})
	w.report("n0", id, NodeDone)
	w.want(id, Pending)
	w.seq["n0"]++
	w.ok(sys, &Report{
		Node: "n0", Seq: w.seq["n0"],
		Updates: []Update{{Kind: StepNow, Job: id, Attempt: j.Attempt, Step: step}},
	})
	if j, _ := w.s.Job(id); j.NextStep != 0 || j.Derived != (ExitStatus{}) {
		t.Errorf("next step %d, derived exit %+v", j.NextStep, j.Derived)
	}
}
