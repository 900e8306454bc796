package sched_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/explain"
)

// TestLicenses shares four licenses among jobs; one that waits for them holds nobody up.
func TestLicenses(t *testing.T) {
	b := eight(func(cfg *cluster.Config) {
		cfg.Licenses = []cluster.License{{Name: "matlab", Total: 4}, {Name: "ansys", Total: 1}}
	}, t)
	with := func(text string) cluster.JobID {
		return b.Submit(func(s *cluster.JobSpec) { s.Licenses = text })
	}
	first, second, third, plain := with("matlab:3"), with("matlab:2,ansys"), with("matlab"), with("")
	b.ScheduleAll()
	for id, want := range map[cluster.JobID]string{
		first: "n1 0", second: "waits Licenses", third: "n1 1", plain: "n1 2",
	} {
		if got := b.Got(id); got != want {
			t.Errorf("job %d: %s, want %s", id, got, want)
		}
	}
	if e := explain.Job(b.S.Snapshot(), b.Now, second); len(e.Causes) != 1 || e.Causes[0].Reason != cluster.WaitLicenses {
		t.Errorf("explained by %+v", e.Causes)
	}
	b.EndJob(first)
	b.ScheduleAll()
	if got := b.Got(second); got[0] != 'n' {
		t.Errorf("the second does not start: %s", got)
	}
	if used := b.S.Snapshot().LicensesUsed(); used["matlab"] != 3 || used["ansys"] != 1 {
		t.Errorf("used %v", used)
	}
	for _, text := range []string{"matlab:5", "abaqus", "matlab:x", "ansys,ansys"} {
		b.N++
		out := b.S.Apply(cluster.Entry{
			Index: b.N, At: b.Now, By: cluster.Identity{System: true},
			Cmd: &cluster.Submit{Spec: &cluster.JobSpec{Layout: &cluster.Layout{Licenses: text}}},
		})
		if out.Err == nil || out.Err.Kind != cluster.ErrLicense {
			t.Errorf("%s: %v", text, out.Err)
		}
	}
}

// TestSwitchesWait holds a job to one leaf until its wait is over, or the longest that is configured.
func TestSwitchesWait(t *testing.T) {
	for _, c := range []struct{ wait, longest, after time.Duration }{
		{0, 0, 300 * time.Second}, {time.Minute, 0, time.Minute}, {time.Hour, 0, 300 * time.Second},
		{time.Hour, 2 * time.Minute, 2 * time.Minute},
	} {
		b := eight(func(cfg *cluster.Config) { twoLeaves(cfg); cfg.MaxSwitchWait = c.longest }, t)
		b.Submit(ask(t, "--exclusive -wn1"))
		b.Submit(ask(t, "--exclusive -wn5"))
		b.ScheduleAll()
		id := b.Submit(func(s *cluster.JobSpec) { ask(t, "-N4 --switches=1")(s); s.SwitchWait = c.wait })
		began := b.Now
		for _, step := range []struct {
			at   time.Duration
			want string
		}{{0, "waits Resources"}, {c.after - time.Second, "waits Resources"}, {c.after, "n2 0 n3 0 n4 0 n6 0"}} {
			b.Now = began.Add(step.at)
			b.ScheduleAll()
			if got := b.Got(id); got != step.want {
				t.Errorf("%+v after %s: %s, want %s", c, step.at, got, step.want)
			}
		}
	}
}

// TestOrderOfNodes is what the configuration makes of the order in which nodes are taken.
func TestOrderOfNodes(t *testing.T) {
	busy := func(b *testbed) {
		b.Submit(ask(t, "-n4 -wn1"))
		b.Submit(ask(t, "-n2 -wn2"))
		b.Submit(ask(t, "-n6 -wn3"))
		for i := 4; i <= 8; i++ {
			b.Submit(ask(t, "-n8 -w"+string(numbered(i))))
		}
	}
	apart := func(b *testbed) { b.Submit(ask(t, "--exclusive -wn3")); b.Submit(ask(t, "--exclusive -wn5")) }
	for _, c := range []struct {
		name      string
		cfg       func(*cluster.Config)
		before    func(*testbed)
		ask, want string
	}{
		{"least loaded", func(c *cluster.Config) { c.LLN = true }, busy, "-N2", "n1 2 n2 1"},
		{"least loaded, by partition", func(c *cluster.Config) { c.Partitions[0].LLN = true }, busy, "-N1", "n2 1"},
		{"a job of one CPU at the end", func(c *cluster.Config) { c.SerialAtEnd = true }, nil, "-n1", "n8 0"},
		{"a larger one not", func(c *cluster.Config) { c.SerialAtEnd = true }, nil, "-n2", "n1 0,8"},
		{"the shortest run that suffices", nil, apart, "-N1", "n4 0"},
		{"the shortest run of two", nil, apart, "-N2", "n1 0 n2 0"},
		{"else the largest run first", nil, apart, "-N4", "n4 0 n6 0 n7 0 n8 0"},
		{"contiguous", nil, apart, "-N3 --contiguous", "n6 0 n7 0 n8 0"},
		{"contiguous, and there is no such run", nil, apart, "-N4 --contiguous", "waits Resources"},
		{"contiguous with a name", nil, nil, "-N3 --contiguous -wn5", "n3 0 n4 0 n5 0"},
		{
			"a socket is filled where that is the default", func(c *cluster.Config) { c.DistBlock = true },
			nil, "-n3", "n1 0-2",
		},
	} {
		b := eight(c.cfg, t)
		if c.before != nil {
			c.before(b)
		}
		b.ScheduleAll()
		id := b.Submit(ask(t, c.ask))
		b.ScheduleAll()
		if got := b.Got(id); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestSpecializedCores keeps cores and memory of nodes from jobs.
func TestSpecializedCores(t *testing.T) {
	inv := machine()
	inv.SpecCPUs, inv.SpecMemMB = inv.LastCores(3), 4000
	if got := inv.SpecCPUs.String(); got != "7,14-15" {
		t.Errorf("the last three cores are %s", got)
	}
	for line, want := range map[string]string{
		"-N1 -n13":        "n1 0-6,8-13",
		"-N1 --exclusive": "n1 0-6,8-13/0-7",
		"-n14":            "n1 0-6,8-13 n2 0",
	} {
		b := namedBed(t, nil, inv, inv)
		id := b.Submit(ask(t, line))
		b.ScheduleAll()
		if got := b.Got(id); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	b := namedBed(t, nil, inv)
	id := b.Submit(func(s *cluster.JobSpec) { s.Mem = cluster.Mem{Per: cluster.MemPerNode} })
	more := b.Submit(func(s *cluster.JobSpec) { s.Mem = cluster.Mem{Per: cluster.MemPerNode, MB: 1} })
	b.ScheduleAll()
	if j, _ := b.S.Job(id); j.Alloc == nil || j.Alloc.Shares[0].MemMB != 60000 || b.Got(more)[0] != 'w' {
		t.Errorf("all memory: %s, beside it: %s", b.Got(id), b.Got(more))
	}
}

// TestWholeNodesMemory: memory per CPU or GPU is that of all the node's, and a node that has less is no node for the
// job. The figures are Slurm's.
func TestWholeNodesMemory(t *testing.T) {
	plain, keeps := machine(), machine()
	keeps.SpecCPUs, keeps.SpecMemMB = keeps.LastCores(2), 1000
	cpu, gpu := cluster.MemPerCPU, cluster.MemPerGPU
	for _, c := range []struct {
		node cluster.Inventory
		ask  string
		per  cluster.MemPer
		mb   cluster.MemMB
		want cluster.MemMB // 0: refused
	}{
		{plain, "--exclusive", cpu, 4000, 64000}, {plain, "--exclusive", cpu, 4001, 0},
		{plain, "--exclusive -c16", cpu, 4001, 0}, {plain, "--exclusive", cluster.MemPerNode, 0, 64000},
		{plain, "-n1", cpu, 4001, 4001}, {plain, "-n1", cpu, 64001, 0}, {plain, "-S1", cpu, 4266, 63990},
		{plain, "-S1", cpu, 4267, 0},
		{keeps, "--exclusive", cpu, 4500, 63000}, {keeps, "--exclusive", cpu, 4501, 0},
		{plain, "--exclusive --gpus=1", gpu, 8000, 64000}, {plain, "--exclusive --gpus=1", gpu, 8001, 0},
		{plain, "--gpus=1", gpu, 8001, 8001},
	} {
		b := namedBed(t, nil, c.node)
		id := b.Submit(func(s *cluster.JobSpec) { ask(t, c.ask)(s); s.Mem = cluster.Mem{Per: c.per, MB: c.mb} })
		j, _ := b.S.Job(id)
		err := new(sched.Judge).Feasible(b.S.Snapshot(), j.Spec, b.Now)
		b.ScheduleAll()
		got := cluster.MemMB(0)
		if j, _ = b.S.Job(id); j.Alloc != nil {
			got = j.Alloc.Shares[0].MemMB
		}
		if (err == nil) != (got > 0) {
			t.Errorf("%s with %d MB per %v: feasible: %v, but it got %d MB", c.ask, c.mb, c.per, err, got)
		}
		if got != c.want {
			t.Errorf("%s with %d MB per %v: got %d MB, want %d", c.ask, c.mb, c.per, got, c.want)
		}
	}
}

// TestFirstShortageIsNamed: what no node of the partition has is named. The words and their order are Slurm's.
func TestFirstShortageIsNamed(t *testing.T) {
	b := namedBed(t, nil, machine())
	for _, c := range []struct {
		set  func(*cluster.JobSpec)
		want string
	}{
		{
			func(s *cluster.JobSpec) { s.SocketsPerNode = 3 },
			"Socket, core and/or thread specification can not be satisfied",
		},
		{
			func(s *cluster.JobSpec) { s.CoresPerSocket = 9 },
			"Socket, core and/or thread specification can not be satisfied",
		},
		{func(s *cluster.JobSpec) { s.TmpMB = 1 << 30 }, "Temporary disk specification can not be satisfied"},
		{func(s *cluster.JobSpec) { s.CPUsPerTask, s.TmpMB = 40, 1<<30 }, "CPU count per node can not be satisfied"},
		{
			func(s *cluster.JobSpec) { s.TasksPerNode, s.CPUsPerTask, s.Tasks = 8, 4, 0 },
			"CPU count per node can not be satisfied",
		},
		{
			func(s *cluster.JobSpec) { s.TasksPerNode, s.CPUsPerTask, s.Tasks = 4, 5, 4 },
			"CPU count per node can not be satisfied",
		},
		{func(s *cluster.JobSpec) { s.TasksPerNode, s.Tasks = 17, 17 }, "CPU count per node can not be satisfied"},
		{
			func(s *cluster.JobSpec) { s.LimitMin, s.Limit = 48*time.Hour, 72*time.Hour },
			"a least time limit of 48h0m0s is above that of partition main, 24h0m0s: give a shorter --time-min",
		},
		{
			func(s *cluster.JobSpec) { s.Mem = cluster.Mem{Per: cluster.MemPerNode, MB: 65000} },
			"Memory specification can not be satisfied",
		},
	} {
		id := b.Submit(c.set)
		j, _ := b.S.Job(id)
		snap := b.S.Snapshot()
		if j.Spec.LimitMin > 0 {
			cfg := *snap.Config()
			cfg.Partitions = slices.Clone(cfg.Partitions)
			cfg.Partitions[0].MaxTime = 24 * time.Hour
			b.Apply(&cluster.Configure{Config: &cfg})
			snap = b.S.Snapshot()
		}
		err := new(sched.Judge).Feasible(snap, j.Spec, b.Now)
		if err == nil || cmp.Or(err.Hint, err.Message) != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestCPUsOfAllGPUs: --exclusive gives all GPUs of a node, and --cpus-per-gpu counts for each of them: what comes to
// more CPUs than the node has is refused, in Slurm too.
func TestCPUsOfAllGPUs(t *testing.T) {
	b := namedBed(t, nil, machine())
	for _, c := range []struct {
		each    int
		sharing cluster.Sharing
		runs    bool
	}{
		{3, cluster.ShareExclusive, false}, {2, cluster.ShareExclusive, true},
		{3, cluster.ShareDefault, true}, {3, cluster.ShareUser, true},
	} {
		id := b.Submit(func(s *cluster.JobSpec) {
			s.Sharing, s.CPUsPerGPU, s.PerJob = c.sharing, c.each, []cluster.GRES{{Name: "gpu", Count: 1}}
		})
		j, _ := b.S.Job(id)
		if err := new(sched.Judge).Feasible(b.S.Snapshot(), j.Spec, b.Now); (err == nil) != c.runs {
			t.Errorf("%d CPUs for each GPU, sharing %v: %v", c.each, c.sharing, err)
		}
	}
}

// TestNodeKeeps keeps weight, features and what jobs may not have when a client registers that does
// not know of them; a new configuration changes them.
func TestNodeKeeps(t *testing.T) {
	cfg := strictOrderConfig()
	said := machine("fast")
	said.Weight, said.SpecCPUs = 7, said.LastCores(1)
	cfg.Declared = []cluster.Node{{Name: "n1", Inventory: said}}
	b := namedBed(t, func(c *cluster.Config) { *c = cfg })
	found := machine()
	found.Features, found.Weight, found.GPUs[0].Cores = nil, 0, cluster.IDSet{}
	b.Apply(&cluster.NodeUp{Name: "n1", Inventory: found})
	n, _ := b.S.Node("n1")
	if inv := n.Inventory; inv.Weight != 7 || len(inv.Features) != 1 || inv.SpecCPUs.String() != "15" || inv.GPUs[0].Cores.String() != "0-7" {
		t.Errorf("after it has registered: %+v", inv)
	}
	said.Weight, said.Features = 3, []string{"slow"}
	cfg.Declared = []cluster.Node{{Name: "n1", Inventory: said}}
	b.Apply(&cluster.Configure{Config: &cfg})
	if n, _ = b.S.Node("n1"); n.Inventory.Weight != 3 || n.Inventory.Features[0] != "slow" || !n.Up {
		t.Errorf("after a new configuration: %+v", n)
	}
}

// TestTasksShareCores counts cores where tasks do not share them.
func TestTasksShareCores(t *testing.T) {
	for line, want := range map[string]string{
		"-n3":                          "n1 0-1,16-17",
		"-n3 --ntasks-per-core=1":      "n1 0-3,16-17",
		"-n2 -c2 --hint=nomultithread": "n1 0-7",
		"-n17 --hint=compute_bound":    "n1 0-31 n2 0-1",
		"-n4 -c2":                      "n1 0-7",
	} {
		inv := node(2)
		inv.GPUs = nil
		b := namedBed(t, nil, inv, inv)
		id := b.Submit(ask(t, line))
		b.ScheduleAll()
		if got := b.Got(id); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// TestExclusiveUser keeps nodes with a job of --exclusive=user for that user, in one cycle and later.
func TestExclusiveUser(t *testing.T) {
	b := namedBed(t, nil, machine(), machine(), machine())
	by := func(uid uint32, how cluster.Sharing) cluster.JobID {
		return b.Submit(func(s *cluster.JobSpec) { s.UID, s.Sharing = uid, how })
	}
	const shared, own = cluster.ShareDefault, cluster.ShareUser
	for round, jobs := range [][]struct {
		uid  uint32
		how  cluster.Sharing
		want string
	}{
		{
			{1, shared, "n1 0"}, {2, own, "n2 0"}, {1, shared, "n1 1"}, {2, shared, "n1 2"},
			{3, own, "n3 0"}, {4, own, "waits Resources"},
		},
		{{2, own, "n2 1"}, {1, own, "waits Priority"}, {3, shared, "n1 3"}, {2, shared, "n1 4"}},
	} {
		var ids []cluster.JobID
		for _, j := range jobs {
			ids = append(ids, by(j.uid, j.how))
		}
		b.ScheduleAll()
		for k, j := range jobs {
			if got := b.Got(ids[k]); got != j.want {
				t.Errorf("round %d, job %d of user %d: %s, want %s", round, k, j.uid, got, j.want)
			}
		}
	}
}

// TestTopoOptional: where switches matter only to jobs that ask, others go on nodes that no switch joins.
func TestTopoOptional(t *testing.T) {
	apart := func(optional bool) func(*cluster.Config) {
		return func(cfg *cluster.Config) {
			cfg.TopoOptional = optional
			cfg.Topology = []cluster.Switch{{Name: "leaf1", Nodes: names(1, 4)}, {Name: "leaf2", Nodes: names(5, 8)}}
		}
	}
	for _, c := range []struct {
		optional  bool
		ask, want string
	}{
		{
			false, "-N5",
			"waits Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
		},
		{true, "-N5", "n1 0 n2 0 n3 0 n4 0 n5 0"}, {true, "-N3 --switches=1", "n5 0 n6 0 n7 0"},
		{true, "-N3", "n2 0 n3 0 n4 0"},
	} {
		b := eight(apart(c.optional), t)
		if c.ask != "-N5" {
			b.Submit(ask(t, "--exclusive -wn1"))
			if c.ask != "-N3" {
				b.Submit(ask(t, "--exclusive -wn2"))
			}
			b.ScheduleAll()
		}
		id := b.Submit(ask(t, c.ask))
		b.ScheduleAll()
		if got := b.Got(id); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestJobsLeaveCores has jobs say themselves what they leave of their nodes, in place of what these keep. The figures
// are Slurm's.
func TestJobsLeaveCores(t *testing.T) {
	last, first := machine(), machine()
	last.SpecCPUs, first.SpecCPUs = last.LastCores(2), cluster.RangeIDSet(0, 1)
	threads := machine()
	threads.CoresPerSocket, threads.ThreadsPerCore, threads.GPUs = 4, 2, nil
	for _, c := range []struct {
		node cluster.Inventory
		ask  string
		want string // charged, usable, memory at 1000 MB a CPU
	}{
		{last, "-S0", "0-6,8-14 0-15 16000"}, {last, "-S1", "0-6,8-14 0-6,8-15 15000"},
		{last, "-S2", "0-6,8-14 0-6,8-14 14000"},
		{last, "-S3", "0-6,8-14 0-6,8-13 13000"}, {last, "-S15", "0-6,8-14 0 1000"},
		{last, "-S16", "waits"}, {last, "-S1 -n16 -N1", "waits"},
		{last, "-S1 -n15 -N1", "0-6,8-14 0-6,8-15 15000"},
		{last, "-S99999", "waits"}, {last, "-S0 -c16", "0-6,8-14 0-15 16000"},
		{last, "-S0 --mincpus=15", "0-6,8-14 0-15 16000"},
		{first, "-S0", "2-15 0-15 16000"}, {first, "-S1", "2-15 1-15 15000"},
		{first, "-S3", "2-15 2-14 13000"}, {first, "--thread-spec=1", "2-15 1-15 15000"},
		{machine(), "-S4", "0-15 0-5,8-13 12000"}, {machine(), "--thread-spec=3", "0-15 0-6,8-13 13000"},
		{machine(), "--thread-spec=16", "waits"},
		{threads, "-S3", "0-15 0-5,8-11 10000"}, {threads, "-S8", "waits"},
		{threads, "--thread-spec=3", "0-15 0-6,8-13 13000"}, {threads, "-S0", "0-15 0-15 16000"},
	} {
		b := namedBed(t, nil, c.node)
		id := b.Submit(func(s *cluster.JobSpec) {
			ask(t, c.ask)(s)
			s.Mem = cluster.Mem{
				Per: cluster.MemPerCPU, MB: 1000,
			}
		})
		other := b.Submit(func(s *cluster.JobSpec) { s.Priority = nil })
		b.ScheduleAll()
		got := "waits"
		if j, _ := b.S.Job(id); j.Alloc != nil {
			sh := j.Alloc.Shares[0]
			got = fmt.Sprintf("%s %s %d", sh.CPUs, sh.Usable, sh.MemMB)
			if o, _ := b.S.Job(other); o.Alloc != nil {
				t.Errorf("%s: another job is beside it", c.ask)
			}
		}
		if got != c.want {
			t.Errorf("%s with %s kept: %s, want %s", c.ask, c.node.SpecCPUs, got, c.want)
		}
	}
}
