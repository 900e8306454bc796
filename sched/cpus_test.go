package sched

import (
	"fmt"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// threaded is a node as in the reference with threads: 2 sockets of 4 cores of 2 threads, 8 GPUs, half of them at
// each socket.
func threaded() cluster.Inventory {
	inv := machine()
	inv.CoresPerSocket, inv.ThreadsPerCore = 4, 2
	return inv
}

// TestCPUsAsUnits is what Slurm 22.05 gives with CR_CPU: the lowest cores, whatever -m says, and no core to two jobs.
// It shows both threads of the last core, of which the job is charged for one.
func TestCPUsAsUnits(t *testing.T) {
	byCPU := func(cfg *cluster.Config) { cfg.CoreAlloc = false }
	for _, c := range []struct {
		make      cluster.Inventory
		ask, want string
	}{
		{machine(), "-n4", "n1 0-3"},
		{machine(), "-n4 -mcyclic", "n1 0-3"},
		{machine(), "-n3 -c3", "n1 0-8"},
		{machine(), "-n4 --ntasks-per-socket=2", "n1 0-1,8-9"},
		{machine(), "-n4 --gpus=5", "n1 0-3/0-4"},
		{machine(), "-n2 --gpus-per-task=3", "n1 0,8/0-2,4-6"},
		{machine(), "-n5 --gpus-per-task=1", "n1 0-3,8/0-4"},
		{machine(), "-n3 --gpus-per-task=2", "n1 0-1,8/0-5"},
		{threaded(), "-n1", "n1 0"},
		{threaded(), "-n3", "n1 0-2"},
		{threaded(), "-n9", "n1 0-8"},
		{threaded(), "-n2 --threads-per-core=1", "n1 0,2"},
		{threaded(), "-n2 --ntasks-per-core=1", "n1 0,2"},
		{threaded(), "-n8 --threads-per-core=1", "n1 0,2,4,6,8,10,12,14"},
		{threaded(), "-n9 --threads-per-core=1", "n1 0,2,4,6,8,10,12,14 n2 0"},
		{threaded(), "--exclusive -n2", "n1 0-15/0-7"},
	} {
		b := namedBed(t, byCPU, c.make, c.make)
		id := b.Submit(ask(t, c.ask))
		b.ScheduleAll()
		if got := b.Got(id); got != c.want {
			t.Errorf("%-24s %s\nwant %20s%s", c.ask, got, "", c.want)
		}
	}
	b := namedBed(t, byCPU, threaded())
	for _, want := range []string{"n1 0", "n1 2-3", "n1 4-6,8-15", "waits Resources"} {
		id := b.Submit(ask(t, map[string]string{"n1 0": "-n1", "n1 2-3": "-n2", "n1 4-6,8-15": "-n11"}[want]))
		if b.ScheduleAll(); b.Got(id) != want {
			t.Errorf("one after the other: %s, want %s", b.Got(id), want)
		}
	}
}

// TestOneSocketThatFits: CPUs that are not taken of the sockets in turn are of the socket that has just enough of
// them, else of that with most free and then of the other. The cases are Slurm's, under CR_CPU and of -m block:block
// under CR_Core.
func TestOneSocketThatFits(t *testing.T) {
	for _, cores := range []bool{false, true} {
		dist := map[bool]string{true: " -mblock:block"}[cores]
		for _, c := range []struct{ busy, ask, want string }{
			{"0-2", "-n2", "n1 3-4"}, {"0-2", "-n5", "n1 3-7"}, {"0-2", "-n6", "n1 8-13"},
			{"0-2", "-n9", "n1 3,8-15"}, {"0-2", "-n13", "n1 3-15"},
			{"8-10", "-n2", "n1 11-12"}, {"8-10", "-n5", "n1 11-15"}, {"8-10", "-n6", "n1 0-5"},
			{"8-10", "-n9", "n1 0-7,11"}, {"8-10", "-c5", "n1 11-15"},
		} {
			b := namedBed(t, func(cfg *cluster.Config) { cfg.CoreAlloc = cores }, machine())
			first := cluster.JobID(0)
			if c.busy == "8-10" { // the first socket was full then
				first = b.Submit(ask(t, "-n8"+dist))
				b.ScheduleAll()
			}
			b.Submit(ask(t, "-n3"+dist))
			if b.ScheduleAll(); first > 0 {
				b.EndJob(first)
			}
			id := b.Submit(ask(t, c.ask+dist))
			b.ScheduleAll()
			if got := b.Got(id); got != c.want {
				t.Errorf("%s%s beside %s: %s, want %s", c.ask, dist, c.busy, got, c.want)
			}
		}
	}
}

// TestTasksBesideTheirGPUs: where one socket does not have all, each task's GPUs are of its own, as in Slurm 22.05.
func TestTasksBesideTheirGPUs(t *testing.T) {
	for ask1, want := range map[string]string{
		"-n2 --gpus-per-task=3":     "n1 0,8/0-2,4-6",
		"-n5 --gpus-per-task=1":     "n1 0-2,8-9/0-2,4-5",
		"-n3 --gpus-per-task=2":     "n1 0-1,8/0-5",
		"-n4 --gpus-per-task=2":     "n1 0-1,8-9/0-7",
		"-n4 --gpus-per-task=1":     "n1 0-3/0-3",
		"-n2 -c3 --gpus-per-task=3": "n1 0-2,8-10/0-2,4-6",
		"-n2 -c9 --gpus-per-task=3": "n1 0-8/0-2 n2 0-8/0-2",
	} {
		b := namedBed(t, nil, machine(), machine())
		id := b.Submit(ask(t, ask1))
		b.ScheduleAll()
		if got := b.Got(id); got != want {
			t.Errorf("%-24s %s\nwant %20s%s", ask1, got, "", want)
		}
	}
}

// TestMemoryOfUsedThreads: of cores of which a job uses one thread only that one counts for --mem-per-cpu, as in
// Slurm 22.05.
func TestMemoryOfUsedThreads(t *testing.T) {
	for _, c := range []struct {
		ask  string
		mb   cluster.MemMB // per CPU
		want string
		mem  cluster.MemMB // on the first node
	}{
		{"-n2 --threads-per-core=1", 9000, "n1 0-1,8-9", 18000},
		{"-n8 --threads-per-core=1", 8000, "n1 0-15", 64000},
		{"-n9 --hint=nomultithread", 5000, "n1 0-15 n2 0-1", 40000},
		{"-n2 --ntasks-per-core=1", 2000, "n1 0-1,8-9", 8000},
		{"-n3 -c3 --ntasks-per-core=1", 2000, "n1 0-11", 24000},
		{"--exclusive --threads-per-core=1", 5000, "n1 0-15/0-7", 40000},
		{"-n2", 2000, "n1 0-1", 4000},
	} {
		b := namedBed(t, func(cfg *cluster.Config) { cfg.MemAlloc = true }, threaded(), threaded())
		id := b.Submit(func(s *cluster.JobSpec) {
			ask(t, c.ask)(s)
			s.Mem = cluster.Mem{Per: cluster.MemPerCPU, MB: c.mb}
		})
		b.ScheduleAll()
		if j, _ := b.S.Job(id); b.Got(id) != c.want || j.Alloc.Shares[0].MemMB != c.mem {
			t.Errorf("%s: %s, want %s with %d MB: %+v", c.ask, b.Got(id), c.want, c.mem, j.Alloc)
		}
	}
}

// TestGPUsOnFewNodes: GPUs of a job or of its tasks come from one node if it has them, else from few, as in Slurm
// 22.05 (which begins with the lower socket of n3, and does not look for one node that has CPUs for all tasks).
func TestGPUsOnFewNodes(t *testing.T) {
	for _, c := range [][2]string{
		{"--gpus=1", "n1 9/6"},
		{"--gpus=3", "n2 8/4-6"},
		{"--gpus=5", "n3 8/2,4-7"},
		{"--gpus=8", "n4 0/0-7"},
		{"--gpus=9", "n3 8/2,4-7 n4 0/0-3"},
		{"--gpus=12", "n3 8/2-7 n4 0/0-5"},
		{"--gpus=16", "n2 8/4-7 n3 8/2-7 n4 0/0-5"},
		{"-n4 --gpus=5", "n3 2-3,8-9/2,4-7"},
		{"-n8 --gpus=8", "n4 0-3,8-11/0-7"},
		{"-n4 --gpus-per-task=1", "n2 8-11/4-7"},
		{"-n8 --gpus-per-task=1", "n4 0-3,8-11/0-7"},
		{"-n6 --gpus-per-task=2", "n3 2,8-9/2-7 n4 0-1,8/0-5"},
		{"-N1-4 --gpus=3", "n2 8/4-6"},
		{"-N2-4 --gpus=9", "n3 8/2,4-7 n4 0/0-3"},
		{"-N2 --gpus=4", "n1 9/6 n2 8/4-6"},
		{"-N2 --gpus-per-node=3", "n2 8/4-6 n3 8/4-6"},
		{"-N1-4 --gpus-per-node=2 -n4", "n1 9/6-7 n2 8/4-5 n3 8/4-5 n4 0/0-1"},
	} {
		b := namedBed(t, nil, machine(), machine(), machine(), machine())
		for _, before := range []string{"-n2 --gpus=6 -wn1", "-n2 --gpus=4 -wn2", "-n2 --gpus=2 -wn3"} {
			b.Submit(ask(t, before))
		}
		b.ScheduleAll()
		id := b.Submit(ask(t, c[0]))
		b.ScheduleAll()
		if got := b.Got(id); got != c[1] {
			t.Errorf("%-24s %s\nwant %20s%s", c[0], got, "", c[1])
		}
	}
}

// TestDistributionsApart: jobs that differ only in that one says -m block:cyclic are not one shape where blocks are
// the default.
func TestDistributionsApart(t *testing.T) {
	b := namedBed(t, func(cfg *cluster.Config) { cfg.DistBlock = true }, machine(), machine())
	first, second := b.Submit(ask(t, "-n4 -wn1")), b.Submit(ask(t, "-n4 -wn1 -mblock:cyclic"))
	b.ScheduleAll()
	if a, c := b.Got(first), b.Got(second); a != "n1 0-3" || c != "n1 4-5,8-9" {
		t.Errorf("blocks by default: %s, and said to be cyclic: %s", a, c)
	}
}

// TestTasksFillCores: of cores that a job gets as a whole no thread is left idle that another node needs a core for,
// as in Slurm 22.05.
func TestTasksFillCores(t *testing.T) {
	for ask1, want := range map[string]string{
		"-N2 -n2":                       "1 1",
		"-N2 -n3":                       "2 1",
		"-N3 -n4":                       "2 1 1",
		"-N2 -n5":                       "3 2",
		"-N2 -n12":                      "10 2",
		"-n17":                          "15 2",
		"-N3 -n33":                      "16 15 2",
		"-N2-4 -n6":                     "2 2 1 1",
		"-N2 -n12 --threads-per-core=1": "8 4",
		"-N2 -n3 -c3":                   "2 1",
	} {
		b := namedBed(t, nil, threaded(), threaded(), threaded(), threaded())
		id := b.Submit(ask(t, ask1))
		b.ScheduleAll()
		j, _ := b.S.Job(id)
		var got []string
		for _, sh := range j.Alloc.Shares {
			got = append(got, fmt.Sprint(sh.Tasks))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: tasks %v, want %s", ask1, got, want)
		}
	}
}
