package sched_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/explain"
)

// preemptBed has the nodes n000 … and the partitions low (tier 1), mid (2) and high (3) over all of them.
func preemptBed(t testing.TB, nodes int, p cluster.PreemptConfig, change func(*cluster.Config)) *testbed {
	b := newTestbed(t, 0)
	cfg := strictOrderConfig()
	cfg.Preempt = p
	for i, name := range []string{"low", "mid", "high"} {
		cfg.Partitions = append(cfg.Partitions, cluster.Partition{
			Name: name, All: true, State: cluster.PartitionUp, PriorityTier: i + 1,
		})
	}
	if change != nil {
		change(&cfg)
	}
	b.Apply(&cluster.Configure{Config: &cfg})
	for i := range nodes {
		b.Apply(&cluster.NodeUp{Name: nodeName(i), Inventory: node(1)})
	}
	return b
}

func tiers(mode cluster.PreemptMode) cluster.PreemptConfig {
	return cluster.PreemptConfig{Type: cluster.PreemptTier, Mode: string(mode), Reorders: 1}
}

// at is a job of some whole nodes in a partition.
func at(part string, nodes int, more ...func(*cluster.JobSpec)) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) {
		wants(nodes)(s)
		s.Partitions = []string{part}
		for _, f := range more {
			f(s)
		}
	}
}

func onNode(i int) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) { s.NodeList = []cluster.NodeName{nodeName(i)} }
}

func requeues(yes bool) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) { s.Requeue = &yes }
}

func cpus(n int) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) {
		s.Sharing, s.MinNodes, s.MaxNodes, s.CPUsPerTask, s.Mem = 0, 1, 1, n, cluster.Mem{
			Per: cluster.MemPerNode, MB: 1000,
		}
	}
}

// runs submits a job, which must start, and confirms it.
func (b *testbed) runs(change func(*cluster.JobSpec)) cluster.JobID {
	b.T.Helper()
	id := b.Submit(change)
	b.ScheduleAll()
	b.confirm(id)
	return id
}

func (b *testbed) confirm(id cluster.JobID) {
	b.T.Helper()
	j, _ := b.S.Job(id)
	for _, n := range j.AllocNodes() {
		nd, _ := b.S.Node(n)
		b.Apply(&cluster.Report{
			Node: n, Seq: nd.ReportSeq + 1,
			Updates: []cluster.Update{{Kind: cluster.NodeReady, Job: id, Attempt: j.Attempt, At: b.Now}},
		})
	}
	if j, _ = b.S.Job(id); j.Phase != cluster.Running {
		b.T.Fatalf("job %d does not run: phase %d, %s", id, j.Phase, b.on(id))
	}
}

// leaving lists the jobs that end because they make room.
func (b *testbed) leaving() string {
	var out []string
	for j := range b.S.Live() {
		if j.Phase == cluster.Ending && j.EndingWhy == cluster.Preempted {
			out = append(out, fmt.Sprint(j.ID))
		}
	}
	return strings.Join(out, " ")
}

// clean reports that all that ends has ended.
func (b *testbed) clean() {
	for _, j := range slices.Collect(b.S.Live()) {
		for _, n := range j.Waiting {
			if nd, _ := b.S.Node(n); j.Phase == cluster.Ending {
				b.Apply(&cluster.Report{
					Node: n, Seq: nd.ReportSeq + 1,
					Updates: []cluster.Update{{Kind: cluster.NodeDone, Job: j.ID, Attempt: j.Attempt, At: b.Now}},
				})
			}
		}
	}
}

func (b *testbed) job(id cluster.JobID) *cluster.Job {
	j, ok := b.S.Job(id)
	if !ok {
		b.T.Fatalf("job %d is gone", id)
	}
	return j
}

// TestWhoLeaves: on four nodes some jobs run, numbered from 1 in order; then a job comes. Who leaves for it?
func TestWhoLeaves(t *testing.T) {
	part := func(i int, set func(*cluster.Partition)) func(*cluster.Config) {
		return func(c *cluster.Config) { set(&c.Partitions[i]) }
	}
	strict, young := tiers(cluster.PreemptCancel), tiers(cluster.PreemptCancel)
	strict.Reorders, young.Youngest = 0, true
	exempt := tiers(cluster.PreemptRequeue)
	exempt.Exempt = time.Hour
	type jobs []func(*cluster.JobSpec)
	for _, c := range []struct {
		name   string
		p      cluster.PreemptConfig
		change func(*cluster.Config)
		run    jobs
		comes  func(*cluster.JobSpec)
		want   string
	}{
		{"none is configured", cluster.PreemptConfig{}, nil, jobs{at("low", 4)}, at("high", 1), ""},
		{"cancel", tiers(cluster.PreemptCancel), nil, jobs{at("low", 4)}, at("high", 1), "1"},
		{"requeue", tiers(cluster.PreemptRequeue), nil, jobs{at("low", 4)}, at("high", 1), "1"},
		{"off", tiers(cluster.PreemptOff), nil, jobs{at("low", 4)}, at("high", 1), ""},
		{
			"off for the partition alone", tiers(cluster.PreemptCancel),
			part(1, func(p *cluster.Partition) { p.PreemptMode = "OFF" }), jobs{at("low", 4)},
			at("high", 1), "",
		},
		{
			"on for the partition alone", tiers(cluster.PreemptOff),
			part(1, func(p *cluster.Partition) { p.PreemptMode = "CANCEL" }), jobs{at("low", 4)},
			at("high", 1), "1",
		},
		{"not one of the same tier", tiers(cluster.PreemptCancel), nil, jobs{at("high", 4)}, at("high", 1), ""},
		{"not one of a higher tier", tiers(cluster.PreemptCancel), nil, jobs{at("high", 4)}, at("low", 1), ""},
		{"nobody while nodes are free", tiers(cluster.PreemptCancel), nil, jobs{at("low", 3)}, at("high", 1), ""},
		{
			"nobody if it would not help", tiers(cluster.PreemptCancel), nil,
			jobs{at("low", 2), at("high", 2)}, at("high", 3), "",
		},
		{
			"the lowest tier first", tiers(cluster.PreemptCancel), nil, jobs{at("mid", 2), at("low", 2)},
			at("high", 2), "2",
		},
		{"then the smallest", tiers(cluster.PreemptCancel), nil, jobs{at("low", 3), at("low", 1)}, at("high", 1), "2"},
		{
			"then the oldest", tiers(cluster.PreemptCancel), nil,
			jobs{at("low", 1), at("low", 1), at("low", 2)}, at("high", 1), "1",
		},
		{
			"the youngest first", young, nil, jobs{at("low", 1), at("low", 1), at("low", 1), at("mid", 1)},
			at("high", 1), "4",
		},
		{"those elsewhere are spared", tiers(cluster.PreemptCancel), nil,
			jobs{at("low", 1, onNode(0)), at("low", 1, onNode(1)), at("low", 1, onNode(2)), at("low", 1, onNode(3))},
			at("high", 1, onNode(2)), "3"},
		{
			"the useful ones are tried first, once more", tiers(cluster.PreemptCancel), nil,
			jobs{at("low", 1), at("low", 1), at("low", 2)}, at("high", 3), "1 3",
		},
		{
			"not with a strict order", strict, nil, jobs{at("low", 1), at("low", 1), at("low", 2)},
			at("high", 3), "1 2 3",
		},
		{
			"with a part of a node", tiers(cluster.PreemptCancel), nil,
			jobs{at("high", 3), at("low", 1, cpus(10)), at("low", 1, cpus(4))}, at("high", 1, cpus(8)), "2",
		},
		{"exempt", exempt, nil, jobs{at("low", 4)}, at("high", 1), ""},
		{
			"several, as far as it takes", tiers(cluster.PreemptRequeue), nil,
			jobs{at("low", 1), at("low", 1), at("low", 1), at("low", 1)}, at("high", 2), "1 2",
		},
		{
			"not beyond the partition's limit on nodes", tiers(cluster.PreemptCancel),
			func(c *cluster.Config) { c.Partitions[3].MaxNodes = 1 }, jobs{at("low", 4)}, at("high", 2), "",
		},
		{
			"not beyond a user's limit", tiers(cluster.PreemptCancel),
			func(c *cluster.Config) { c.Partitions[3].MaxCPUsPerUser = 16 }, jobs{at("low", 4)},
			at("high", 2), "",
		},
		{"licences are not freed", tiers(cluster.PreemptCancel),
			func(c *cluster.Config) { c.Licenses, _ = cluster.ParseLicenses("tool:1") },
			jobs{at("low", 4, func(s *cluster.JobSpec) { s.Licenses = "tool" })},
			at("high", 1, func(s *cluster.JobSpec) { s.Licenses = "tool" }), ""},
	} {
		b := preemptBed(t, 4, c.p, c.change)
		for _, f := range c.run {
			b.Now = b.Now.Add(time.Second)
			b.runs(f)
		}
		b.Now = b.Now.Add(time.Minute)
		b.Submit(c.comes)
		b.ScheduleAll()
		if got := b.leaving(); got != c.want {
			t.Errorf("%s: %q leave, want %q", c.name, got, c.want)
		}
	}
}

// The nodes of those that leave are kept: nobody of the pass or a later one takes them, nobody else leaves for the
// job, and it starts when they are clean; the one that was requeued waits for it.
func TestPreemptorStarts(t *testing.T) {
	b := preemptBed(t, 2, tiers(cluster.PreemptRequeue), nil)
	first, second := b.runs(at("low", 1)), b.runs(at("low", 1))
	comes, behind := b.Submit(at("high", 1)), b.Submit(at("mid", 1, requeues(false)))
	b.ScheduleAll()
	if got := b.leaving(); got != fmt.Sprint(first, " ", second) {
		t.Fatalf("%q leave: each job that comes needs a node", got)
	}
	b.clean()
	b.ScheduleAll()
	b.wantOn(comes, "n000")
	b.wantOn(behind, "n001")
	if j := b.job(first); j.Phase != cluster.Pending || j.Restarts != 1 || j.Preempt.By != comes {
		t.Errorf("the first: phase %d, restarts %d, %+v", j.Phase, j.Restarts, j.Preempt)
	}
	if j := b.job(comes); j.Evicted.Count != 1 {
		t.Errorf("it made others leave %d times", j.Evicted.Count)
	}
	b.EndJob(comes)
	b.ScheduleAll()
	b.wantOn(first, "n000")
}

// A job that forbids it is cancelled instead of requeued.
func TestNotRequeued(t *testing.T) {
	b := preemptBed(t, 1, tiers(cluster.PreemptRequeue), nil)
	v := b.runs(at("low", 1, requeues(false)))
	b.Submit(at("high", 1))
	b.ScheduleAll()
	b.clean()
	if j := b.job(v); j.Phase != cluster.Ended || j.Outcome != cluster.Preempted {
		t.Errorf("phase %d, outcome %d", j.Phase, j.Outcome)
	}
}

// A job with grace runs on until it is over; meanwhile no other job leaves.
func TestGrace(t *testing.T) {
	b := preemptBed(t, 2, tiers(cluster.PreemptRequeue),
		func(c *cluster.Config) { c.Partitions[1].GraceTime = time.Minute })
	v := b.runs(at("low", 1))
	b.runs(at("low", 1))
	comes := b.Submit(at("high", 1))
	b.ScheduleAll()
	j := b.job(v)
	if j.Phase != cluster.Running || !j.Preempt.Until.Equal(b.Now.Add(time.Minute)) || len(j.Signals) != 2 || j.Signals[0].Sig != 18 || j.Signals[1].Sig != 15 {
		t.Fatalf("in its grace: phase %d, %+v, signals %+v", j.Phase, j.Preempt, j.Signals)
	}
	b.Now = b.Now.Add(59 * time.Second)
	b.ScheduleAll()
	if due := cluster.Due(b.S.Snapshot(), b.Now); len(due) != 0 || b.leaving() != "" {
		t.Fatalf("before its end: due %v, leaving %q", due, b.leaving())
	}
	b.Now = b.Now.Add(time.Second)
	for _, c := range cluster.Due(b.S.Snapshot(), b.Now) {
		b.Apply(c)
	}
	if got := b.leaving(); got != fmt.Sprint(v) {
		t.Fatalf("at its end %q leave", got)
	}
	b.clean()
	b.ScheduleAll()
	if j := b.job(comes); j.Phase != cluster.Starting {
		t.Errorf("phase %d: %s", j.Phase, b.on(comes))
	}
}

// A suspended job goes on by itself when nobody of a higher tier has its CPUs or waits for them.
func TestSuspended(t *testing.T) {
	b := preemptBed(t, 1, tiers(cluster.PreemptSuspend), nil)
	v := b.runs(at("low", 1, cpus(16)))
	comes := b.Submit(at("high", 1, cpus(16)))
	later := b.Submit(at("low", 1, cpus(16)))
	b.ScheduleAll()
	b.confirm(comes)
	if j := b.job(v); j.Phase != cluster.Suspended {
		t.Fatalf("phase %d", j.Phase)
	}
	next := b.Submit(at("high", 1, cpus(16)))
	b.EndJob(comes)
	b.ScheduleAll()
	b.confirm(next)
	if j := b.job(v); j.Phase != cluster.Suspended {
		t.Errorf("it goes on before a job of a higher tier: phase %d", j.Phase)
	}
	b.EndJob(next)
	b.ScheduleAll()
	if j := b.job(v); j.Phase != cluster.Running || j.Preempt != nil {
		t.Errorf("phase %d, %+v: want it to go on", j.Phase, j.Preempt)
	}
	b.wantOn(later, string(cluster.WaitResources))
}

// A job that is requeued again and again cannot make others leave each time.
func TestEvictionsPause(t *testing.T) {
	b := preemptBed(t, 1, tiers(cluster.PreemptRequeue), nil)
	v := b.runs(at("low", 1))
	comes := b.Submit(at("high", 1))
	crash := func() {
		b.ScheduleAll()
		b.clean()
		b.ScheduleAll()
		if j := b.job(comes); j.Phase != cluster.Starting {
			t.Fatalf("phase %d: %s", j.Phase, b.on(comes))
		}
		b.Apply(&cluster.HoldJobs{Ref: cluster.Ref{Job: comes}, Hold: cluster.NotHeld})
		b.Apply(&cluster.Requeue{Ref: cluster.Ref{Job: comes}, Hold: true})
		b.clean()
		b.ScheduleAll()
		b.confirm(v)
		b.Apply(&cluster.HoldJobs{Ref: cluster.Ref{Job: comes}, Hold: cluster.NotHeld})
		b.ScheduleAll()
	}
	for _, pause := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		crash()
		if got := b.leaving(); got != "" {
			t.Fatalf("%s leave at once", got)
		}
		e, told := explain.Job(b.S.Snapshot(), b.Now, comes), false
		for _, c := range e.Causes {
			told = told || strings.Contains(c.Text, "it may again from "+b.Now.Add(pause).Format(time.DateTime))
		}
		if !told {
			t.Errorf("nothing is said of the pause of %v: %+v", pause, e.Causes)
		}
		b.Now = b.Now.Add(pause - time.Second)
		if b.ScheduleAll(); b.leaving() != "" {
			t.Fatalf("%s leave before %v are over", b.leaving(), pause)
		}
		b.Now = b.Now.Add(time.Second)
	}
}

// TestWhoLeavesQOS: one node, one job of a QOS, and another comes.
func TestWhoLeavesQOS(t *testing.T) {
	for _, c := range []struct {
		name, mode, own string // of the cluster, and of the QOS low
		runs, comes     string
		nice            int // of the one that comes
		want            string
	}{
		{"in the list", "CANCEL", "", "low", "high", 0, "1"},
		{"not in the list", "CANCEL", "", "high", "low", 0, ""},
		{"the same", "CANCEL", "", "low", "low", -10, ""},
		{"its own mode", "CANCEL", "OFF", "low", "high", 0, ""},
		{"its own mode alone", "OFF", "REQUEUE", "low", "high", 0, "1"},
		{"within", "CANCEL,WITHIN", "", "low", "low", -10, "1"},
		{"within, but of no higher priority", "CANCEL,WITHIN", "", "low", "low", 10, ""},
		{"by priority", "PRIORITY,CANCEL", "", "low", "high", 10, ""},
		{"by priority that is higher", "PRIORITY,CANCEL", "", "low", "high", -10, "1"},
	} {
		b := preemptBed(t, 1, cluster.PreemptConfig{Type: cluster.PreemptQOS, Mode: c.mode, Reorders: 1}, nil)
		b.Apply(&cluster.ChangeAccounts{Changes: []cluster.Change{{
			QOS: &cluster.QOS{Name: "low", UsageFactor: 1, PreemptMode: c.own},
		},
			{QOS: &cluster.QOS{Name: "high", UsageFactor: 1, Preempt: []string{"low"}}}}})
		of := func(name string, nice int) func(*cluster.JobSpec) {
			return at("main", 1, func(s *cluster.JobSpec) { s.QOS, s.Nice = name, nice })
		}
		b.runs(of(c.runs, 0))
		id := b.Submit(of(c.comes, c.nice))
		b.ScheduleAll()
		if got := b.leaving(); got != c.want {
			t.Errorf("%s: %q leave, want %q (priorities %d and %d)", c.name, got, c.want, b.job(1).Priority,
				b.job(id).Priority)
		}
	}
}

// With preemption by QOS the job that made room may be ahead in the queue: it lets the other go first.
func TestYields(t *testing.T) {
	b := preemptBed(t, 1, cluster.PreemptConfig{Type: cluster.PreemptQOS, Mode: "REQUEUE", Reorders: 1}, nil)
	b.Apply(&cluster.ChangeAccounts{
		Changes: []cluster.Change{
			{QOS: &cluster.QOS{Name: "low", UsageFactor: 1}},
			{QOS: &cluster.QOS{Name: "high", UsageFactor: 1, Preempt: []string{"low"}}},
		},
	})
	v := b.runs(at("main", 1, func(s *cluster.JobSpec) { s.QOS = "low" }))
	comes := b.Submit(at("main", 1, func(s *cluster.JobSpec) { s.QOS, s.Nice = "high", 100 }))
	b.ScheduleAll()
	b.clean()
	b.ScheduleAll()
	b.wantOn(comes, "n000")
	b.wantOn(v, string(cluster.WaitResources))
}

// Nobody leaves nodes that are reserved for others, and nobody for a job that its reservation lets start elsewhere
// only.
func TestPreemptReserved(t *testing.T) {
	b := preemptBed(t, 2, tiers(cluster.PreemptCancel), nil)
	first, second := b.runs(at("low", 1)), b.runs(at("low", 1))
	b.reserve("r", time.Minute, time.Hour, 1, func(r *cluster.Reservation) { r.Flags = cluster.ResvIgnoreJobs }) // n000
	b.Submit(at("high", 2))
	b.ScheduleAll()
	if got := b.leaving(); got != "" {
		t.Errorf("%s leave for a job that would run into a reservation", got)
	}
	b.Submit(at("high", 1))
	b.ScheduleAll()
	if got := b.leaving(); got != fmt.Sprint(second) {
		t.Errorf("%q leave, want the one that is not on the reserved node of job %d", got, first)
	}
}

// The tasks of an array are not held up by the pause: each starts, so it was of use.
func TestPreemptArray(t *testing.T) {
	b := preemptBed(t, 2, tiers(cluster.PreemptCancel), nil)
	b.runs(at("low", 1))
	b.runs(at("low", 1))
	b.Submit(at("high", 1, func(s *cluster.JobSpec) { s.Array = &cluster.ArraySpec{Tasks: cluster.RangeIDSet(0, 1)} }))
	for range 2 {
		b.ScheduleAll()
		b.clean()
	}
	b.ScheduleAll()
	n := 0
	for j := range b.S.Live() {
		if j.Phase == cluster.Starting {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d tasks start, want 2", n)
	}
}
