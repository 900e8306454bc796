package sched_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/explain"
)

// het submits a heterogeneous job.
func (b *testbed) het(changes ...func(*cluster.JobSpec)) cluster.JobID {
	c := &cluster.SubmitHet{}
	for _, change := range changes {
		spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "h", UID: 1, User: "u", Limit: time.Hour}
		change(spec)
		c.Specs = append(c.Specs, spec)
	}
	return b.Apply(c).(cluster.JobID)
}

// whole asks for so many empty nodes.
func wholeNodes(n int) func(*cluster.JobSpec) {
	return func(s *cluster.JobSpec) { s.MinNodes, s.MaxNodes, s.Sharing = n, n, cluster.ShareExclusive }
}

func oneCPU(s *cluster.JobSpec) { s.Tasks = 1 }

func (b *testbed) waits(id cluster.JobID, why cluster.Reason, at time.Time) {
	b.T.Helper()
	j, _ := b.S.Job(id)
	if j.Phase != cluster.Pending || j.Wait != why || !j.PlannedStart.Equal(at) {
		b.T.Errorf("job %d is in phase %d, waits for %q until %v; want %q, %v", id, j.Phase, j.Wait,
			j.PlannedStart, why, at)
	}
}

func (b *testbed) runsAt(id cluster.JobID, where string) {
	b.T.Helper()
	if got := b.Where(id); got != where {
		b.T.Errorf("job %d: %s, want %s", id, got, where)
	}
}

func TestHetStartsTogether(t *testing.T) {
	for _, responsive := range []bool{false, true} {
		b := newTestbed(t, 3)
		if responsive {
			b.UseResponsiveOrder()
		}
		first := b.Submit(wholeNodes(2))
		b.ScheduleAll()
		h := b.het(oneCPU, wholeNodes(2))
		small := b.Submit(func(s *cluster.JobSpec) { s.Tasks, s.Limit = 1, 30*time.Minute })
		var long cluster.JobID
		if !responsive { // else no planned start binds it
			long = b.Submit(func(s *cluster.JobSpec) { s.Tasks, s.Limit = 15, 10*time.Hour })
		}
		b.ScheduleAll()
		end := epoch.Add(time.Hour)
		b.waits(h, cluster.WaitResources, end)
		b.waits(h+1, cluster.WaitResources, end)
		b.runsAt(small, "n002:1:0::0")
		if !responsive { // it would delay the planned start
			b.waits(long, cluster.WaitPriority, time.Time{})
			b.Apply(&cluster.Cancel{Ref: cluster.Ref{Job: long}})
		}
		b.Now = end.Add(-time.Minute)
		b.EndJob(small)
		b.EndJob(first)
		b.ScheduleAll()
		b.runsAt(h, "n000:1:0::0")
		b.runsAt(h+1, "n001:1:0-15:0-3:0 n002:1:0-15:0-3:0")
		x, _ := b.S.Job(h)
		y, _ := b.S.Job(h + 1)
		if !x.Started.Equal(y.Started) {
			t.Errorf("components start at %v and %v", x.Started, y.Started)
		}
	}
}

func TestHetNodesOfTheirOwn(t *testing.T) {
	b := newTestbed(t, 3)
	h := b.het(oneCPU, oneCPU, func(s *cluster.JobSpec) { s.Tasks, s.NodeList = 1, []cluster.NodeName{"n000"} })
	b.ScheduleAll()
	b.runsAt(h, "n001:1:0::0")
	b.runsAt(h+1, "n002:1:0::0")
	b.runsAt(h+2, "n000:1:0::0")
	many := b.het(oneCPU, oneCPU, oneCPU, oneCPU)
	b.ScheduleAll()
	for k := range cluster.JobID(4) {
		b.waits(many+k, cluster.WaitResources, time.Time{})
	}
	after := b.Submit(oneCPU) // nobody knows when that job starts: it delays nothing
	b.ScheduleAll()
	b.runsAt(after, "n000:1:1::0")
}

// TestHetOrder: the first component may take what only the second can use; the order in which they are tried gives way.
func TestHetOrder(t *testing.T) {
	b := newTestbed(t, 2, cluster.Partition{
		Name: "half", Nodes: []cluster.NodeName{"n000"}, State: cluster.PartitionUp,
	})
	h := b.het(oneCPU, func(s *cluster.JobSpec) { s.Tasks, s.Partitions = 1, []string{"half"} })
	b.ScheduleAll()
	b.runsAt(h, "n001:1:0::0")
	b.runsAt(h+1, "n000:1:0::0")
}

func TestHetReasons(t *testing.T) {
	b := newTestbed(t, 3)
	h := b.het(oneCPU, oneCPU)
	b.Apply(&cluster.HoldJobs{Ref: cluster.Ref{Job: h + 1}, Hold: cluster.HeldUser})
	b.ScheduleAll()
	b.waits(h, cluster.NoReason, time.Time{})
	b.waits(h+1, cluster.WaitHeldUser, time.Time{})
	b.Apply(&cluster.HoldJobs{Ref: cluster.Ref{Job: h}, Hold: cluster.HeldUser})
	b.ScheduleAll()
	b.Apply(&cluster.HoldJobs{Ref: cluster.Ref{Job: h}})
	b.ScheduleAll()
	b.runsAt(h, "n000:1:0::0")
	if e := explain.Job(b.S.Snapshot(), b.Now, h); len(e.Causes) != 0 {
		t.Errorf("a job that runs waits for %v", e.Causes)
	}
	b.Submit(wholeNodes(1))
	b.ScheduleAll()
	w := b.het(oneCPU, wholeNodes(2))
	next := b.het(oneCPU, wholeNodes(1))
	b.ScheduleAll()
	end := epoch.Add(time.Hour)
	b.waits(w+1, cluster.WaitResources, end)
	b.waits(next, cluster.WaitPriority, time.Time{})
	f := sched.Forecast(b.S.Snapshot(), b.Now)
	for k := range cluster.JobID(2) {
		if st := f[w+k]; !st.At.Equal(end) || st.Alloc == nil {
			t.Errorf("component %d is foretold for %v on %v", k, st.At, st.Nodes())
		}
		if st := f[next+k]; !st.At.Equal(end.Add(time.Hour)) {
			t.Errorf("component %d of the next is foretold for %v on %v", k, st.At, st.Nodes())
		}
	}
	if e := explain.Job(b.S.Snapshot(), b.Now, w); !e.StartsAt.Equal(end) || len(e.Causes) == 0 {
		t.Errorf("it explains %+v", e)
	}
	starts, id, err := sched.TestHet(b.S.Snapshot(), b.Now, cluster.Identity{System: true}, []*cluster.JobSpec{
		{Layout: &cluster.Layout{}, Name: "t", UID: 1, User: "u"},
		{Layout: &cluster.Layout{}, Name: "t", UID: 1, User: "u"},
	})
	if err != nil || len(starts) != 2 || id != next+2 || starts[0].Alloc == nil {
		t.Errorf("a test says %+v %d %v", starts, id, err)
	}
}

// TestHetLimits tells of limits that keep a component, or all of them together, and what would help.
func TestHetLimits(t *testing.T) {
	const fewer0, fewer1 = "component 0 with 1 CPU a task instead of 3", "component 1 with 1 CPU a task instead of 3"
	const q0, q1, q01 = "component 0 with QOS gate instead of normal", "component 1 with QOS gate instead of normal", "components 0-1 with QOS gate instead of normal"
	for _, c := range []struct{ qos, first, second, where, cause, changes string }{
		{
			"GrpTRES=cpu=4", "u 3cpu", "u 3cpu", "waits , waits QOSGrpCpuLimit",
			"heterogeneous job 1: GrpTRES=cpu=4 of QOS normal: 0 in use, components 0-1 ask for 6; it never fits",
			fewer0 + "; " + fewer1 + "; " + q0 + "; " + q1,
		},
		{
			"GrpJobs=1", "u 3cpu", "u 3cpu", "waits , waits QOSGrpJobsLimit",
			"heterogeneous job 1: GrpJobs=1 of QOS normal: 0 jobs run now, components 0-1 ask for 2 more; it never fits",
			q0 + "; " + q1,
		},
		{"GrpTRES=cpu=17", "u 1cpu whole", "u 1cpu whole", "waits QOSGrpCpuLimit, waits ",
			"heterogeneous job 1: GrpTRES=cpu=17 of QOS normal: 0 in use, components 0-1 ask for 32; it never fits",
			"component 0 without --exclusive; component 1 without --exclusive; " + q0 + "; " + q1},
		{
			"GrpTRES=cpu=2", "u 3cpu", "u 3cpu", "waits QOSGrpCpuLimit, waits QOSGrpCpuLimit",
			"heterogeneous job 1: GrpTRES=cpu=2 of QOS normal: 0 in use, components 0-1 ask for 6; it never fits",
			"components 0-1 with 1 CPU a task instead of 3; " + q01,
		},
		{"MaxTRES=cpu=4", "u 2cpu", "u 6cpu", "waits , waits QOSMaxCpuPerJobLimit",
			"it starts together with component 1 of heterogeneous job 1, which waits: QOSMaxCpuPerJobLimit",
			"component 1 with 4 CPUs a task instead of 6; " + q1},
	} {
		r := newRuled(t, 2, "", "", "", "", c.qos, "")
		h := r.Apply(&cluster.SubmitHet{
			Specs: []*cluster.JobSpec{ruledJob(c.first), ruledJob(c.second)},
		}).(cluster.JobID)
		r.ScheduleAll()
		s := r.S.Snapshot()
		var causes, changes []string
		for _, x := range explain.Job(s, r.Now, h).Causes {
			causes = append(causes, x.Text)
		}
		for _, x := range explain.Changes(s, r.Now, h, func(p *cluster.Partition) bool { return p.Name == "main" }) {
			changes = append(changes, x.Text)
		}
		if where := r.Where(h) + ", " + r.Where(h+1); where != c.where || !slices.Contains(causes, c.cause) || strings.Join(changes, "; ") != c.changes {
			t.Errorf("%s: it %s\n%s\n%s", c.qos, where, strings.Join(causes, "\n"), strings.Join(changes, "\n"))
		}
		small := r.Submit(func(j *cluster.JobSpec) { *j = *ruledJob("u 1cpu") }) // nothing is kept for what may not start
		if r.ScheduleAll(); !strings.HasPrefix(r.Where(small), "n000") {
			t.Errorf("%s: %s", c.qos, r.Where(small))
		}
	}
}

// TestHetDenied refuses what the components together can never keep where a QOS denies that, and what they are too
// many for. Slurm 22.05 refuses the same, without the name of the limit, but those on jobs that run.
func TestHetDenied(t *testing.T) {
	const none = ""
	for _, c := range []struct{ limits, flags, first, second, hint string }{
		{
			"GrpTRES=cpu=4", "DenyOnLimit", "u 3cpu", "u 3cpu",
			"QOSGrpCpuLimit: GrpTRES=cpu=4 of QOS normal, the components together ask for 6",
		},
		{"GrpTRES=cpu=4", "DenyOnLimit", "u 5cpu", "u 3cpu", "QOSGrpCpuLimit"},
		{"GrpTRES=cpu=6", "DenyOnLimit", "u 3cpu", "u 3cpu", none},
		{"GrpTRES=cpu=4", "", "u 3cpu", "u 3cpu", none},
		{
			"GrpTRES=mem=300", "DenyOnLimit", "u 200mb", "u 200mb",
			"QOSGrpMemLimit: GrpTRES=mem=300 of QOS normal, the components together ask for 400",
		},
		{
			"GrpTRES=gres/gpu=3", "DenyOnLimit", "u 2gpu", "u 2gpu",
			"QOSGrpGRES: GrpTRES=gres/gpu=3 of QOS normal, the components together ask for 4",
		},
		{
			"MaxTRES=node=1", "DenyOnLimit", "u", "u",
			"QOSMaxNodePerJobLimit: MaxTRES=node=1 of QOS normal, the components together ask for 2",
		},
		{
			"MaxTRESPerUser=cpu=4", "DenyOnLimit", "u 3cpu", "u 3cpu",
			"QOSMaxCpuPerUserLimit: MaxTRESPerUser=cpu=4 of QOS normal for user u, the components together ask for 6",
		},
		{
			"MaxTRESPerAccount=cpu=4", "DenyOnLimit", "u 3cpu", "u 3cpu",
			"MaxCpuPerAccount: MaxTRESPerAccount=cpu=4 of QOS normal for account team, the components together ask for 6",
		},
		{
			"MaxTRESMins=cpu=100", "DenyOnLimit", "u 60min", "u 60min",
			"QOSMaxCpuMinutesPerJobLimit: MaxTRESMins=cpu=100 of QOS normal, the components together ask for 120",
		},
		{"MaxTRESMins=cpu=100", "DenyOnLimit", "u 60min", "u 30min", none},
		{
			"GrpTRESRunMins=cpu=100", "DenyOnLimit", "u 60min", "u 60min",
			"QOSGrpCPURunMinutesLimit: GrpTRESRunMins=cpu=100 of QOS normal, the components together ask for 120",
		},
		{
			"GrpTRESMins=cpu=100", "DenyOnLimit", "u 60min", "u 60min",
			"QOSGrpCPUMinutesLimit: GrpTRESMins=cpu=100 of QOS normal, the components together ask for 120",
		},
		{
			"GrpTRES=cpu=4", "DenyOnLimit", "u 3cpu", "u 3cpu strict",
			"QOSGrpCpuLimit: GrpTRES=cpu=4 of QOS normal, the components together ask for 6",
		},
		{"GrpWall=5400", "DenyOnLimit", "u 60min", "u 60min", none}, // each is held to these alone
		{"MaxWall=5400", "DenyOnLimit", "u 60min", "u 60min", none},
		{"MaxTRESPerNode=cpu=4", "DenyOnLimit", "u 3cpu", "u 3cpu", none},
		{"MinTRES=cpu=2", "DenyOnLimit", "u 1cpu", "u 1cpu", "QOSMinCpuNotSatisfied"},
		{
			"GrpJobs=1", "DenyOnLimit", "u", "u",
			"QOSGrpJobsLimit: GrpJobs=1 of QOS normal, the components together ask for 2",
		},
		{
			"MaxJobsPerUser=1", "DenyOnLimit", "u", "u",
			"QOSMaxJobsPerUserLimit: MaxJobsPerUser=1 of QOS normal for user u, the components together ask for 2",
		},
		{"GrpJobs=0", "DenyOnLimit", "u", "u", none},
		{"GrpJobs=1", "", "u", "u", none},
		{"GrpSubmitJobs=1", "", "u", "u", "QOSGrpSubmitJobsLimit"},
		{"MaxSubmitJobsPerUser=1", "", "u", "u", "QOSMaxSubmitJobPerUserLimit"},
		{"MaxSubmitJobsPerAccount=1", "", "u", "u", "MaxSubmitJobsPerAccount"},
	} {
		r := newRuled(t, 2, "", "", "", "", c.limits, "", strings.Fields(c.flags)...)
		r.N++
		out := r.S.Apply(cluster.Entry{
			Index: r.N, At: r.Now, By: cluster.Identity{System: true},
			Cmd: &cluster.SubmitHet{Specs: []*cluster.JobSpec{ruledJob(c.first), ruledJob(c.second)}},
		})
		if c.hint == none != (out.Err == nil) || out.Err != nil && (out.Err.Kind != cluster.ErrPolicy || out.Err.Hint != c.hint) {
			t.Errorf("%s %s (%s : %s): %v, want %s", c.limits, c.flags, c.first, c.second, out.Err, c.hint)
		}
		if out.Err != nil && r.S.JobCount() > 0 {
			t.Errorf("%s: %d jobs are left of what was refused", c.limits, r.S.JobCount())
		}
	}
}

// TestHetOverrun: the figures of a limit on what runs are those of the whole job, told of each component once, with
// when there is room; those of a limit for each job are the component's.
func TestHetOverrun(t *testing.T) {
	for _, c := range []struct{ limits, first, second, reason, want string }{
		{
			"qos: GrpTRES=cpu=8", "u 3cpu", "u 4cpu", "QOSGrpCpuLimit",
			"GrpTRES=cpu=8 of QOS normal: 2 in use, components 0-1 ask for 7; there is room at 2026-03-01 09:00:00 when job 1 is over",
		},
		{
			"team: GrpTRES=cpu=8", "u 3cpu", "u 9cpu", "AssocGrpCpuLimit",
			"GrpTRES=cpu=8 of account team: 2 in use, components 0-1 ask for 12; it never fits",
		},
		{
			"qos: GrpTRES=gres/gpu=1", "u 2gpu", "u", "QOSGrpGRES",
			"GrpTRES=gres/gpu=1 of QOS normal: 0 in use, component 0 asks for 2; it never fits",
		},
		{
			"user: MaxJobs=2", "u", "u", "AssocMaxJobsLimit",
			"MaxJobs=2 of user u in account team: 1 job runs now, components 0-1 ask for 2 more; there is room at 2026-03-01 09:00:00 when job 1 is over",
		},
		{
			"team: GrpTRESRunMins=cpu=200", "u 60min", "u 60min", "AssocGrpCPURunMinutesLimit",
			"GrpTRESRunMins=cpu=200 of account team: what runs has 120 minutes left, components 0-1 ask for 120 minutes",
		},
		{
			"gate: GrpTRES=cpu=2", "u 3cpu strict", "u 4cpu", "QOSGrpCpuLimit",
			"GrpTRES=cpu=2 of QOS gate: 0 in use, component 0 asks for 3; it never fits",
		},
	} {
		b := rules(t, c.limits)
		b.add("u 2cpu")
		b.ScheduleAll()
		lead := b.addHet(c.first + ":" + c.second)
		b.ScheduleAll()
		for k := range cluster.JobID(2) {
			var got []string
			for _, x := range explain.Job(b.S.Snapshot(), b.Now, lead+k).Causes {
				if string(x.Reason) == c.reason {
					got = append(got, x.Text)
				}
			}
			if want := "heterogeneous job 2: " + c.want; len(got) != 1 || got[0] != want {
				t.Errorf("%s (%s : %s), component %d: got %q\nwant %s", c.limits, c.first, c.second, k, got, want)
			}
		}
	}
}
