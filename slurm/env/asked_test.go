package env

import (
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestAskedVariables: what a batch script is told of its layout. The values are Slurm's.
func TestAskedVariables(t *testing.T) {
	plane := func(n int) func(*cluster.JobSpec) {
		return func(s *cluster.JobSpec) { s.Distribution, s.PlaneSize = "plane=2", n }
	}
	dist := func(v string) func(*cluster.JobSpec) { return func(s *cluster.JobSpec) { s.Distribution = v } }
	for _, c := range []struct {
		name string
		cpus []int // of each node
		set  func(*cluster.JobSpec)
		want string // with SLURM_TASKS_PER_NODE last
	}{
		{
			"a plane and its size", []int{1}, plane(2),
			"SLURM_DISTRIBUTION=plane SLURM_DIST_PLANESIZE=2 SLURM_TASKS_PER_NODE=1",
		},
		{"small letters", []int{1}, dist("Block,NoPack"), "SLURM_DISTRIBUTION=block,nopack SLURM_TASKS_PER_NODE=1"},
		{"the default of nodes", []int{1}, dist("*,Pack"), "SLURM_DISTRIBUTION=block,pack SLURM_TASKS_PER_NODE=1"},
		{"of nodes alone", []int{1}, dist("*:block"), "SLURM_DISTRIBUTION=block:block SLURM_TASKS_PER_NODE=1"},
		{"the default alone", []int{1}, dist("*"), "SLURM_DISTRIBUTION=block SLURM_TASKS_PER_NODE=1"},
		{
			"no number of tasks: as many as the CPUs are for", []int{8, 8}, func(s *cluster.JobSpec) {},
			"SLURM_TASKS_PER_NODE=8(x2)",
		},
		{
			"of so many CPUs each", []int{16}, func(s *cluster.JobSpec) { s.CPUsPerTask = 3 },
			"SLURM_CPUS_PER_TASK=3 SLURM_TASKS_PER_NODE=5",
		},
		{
			"one thread of each core", []int{8, 8}, func(s *cluster.JobSpec) { s.ThreadsPerCore = 1 },
			"SLURM_THREADS_PER_CORE=1 SLURM_TASKS_PER_NODE=4(x2)",
		},
		{
			"a number of tasks", []int{8}, func(s *cluster.JobSpec) { s.Tasks = 2 },
			"SLURM_TASKS_PER_NODE=1 SLURM_NTASKS=2 SLURM_NPROCS=2",
		},
	} {
		spec := &cluster.JobSpec{Layout: &cluster.Layout{}}
		c.set(spec)
		j := &cluster.Job{Spec: spec, Alloc: &cluster.Alloc{}}
		for range c.cpus {
			j.Alloc.Shares = append(j.Alloc.Shares, cluster.Share{Tasks: 1, CPUs: cluster.RangeIDSet(0, c.cpus[0]-1)})
		}
		var e list
		e.asked(spec)
		e.tasks(j, usedCPUs(&cluster.Launch{
			Job: j, Config: &cluster.Config{Consumables: cluster.Consumables{CoreAlloc: true}},
			Inventory: &cluster.Inventory{ThreadsPerCore: 2},
		}))
		if got := strings.Join(e, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestHandedOn: what a script or a shell of salloc hands on to its steps, of what its job asked for; and what srun's
// own allocation does not. The values are Slurm's.
func TestHandedOn(t *testing.T) {
	full := func(k cluster.Kind) *cluster.JobSpec {
		return &cluster.JobSpec{
			Kind: k,
			Layout: &cluster.Layout{
				AcctgFreq: "task=4", CPUFreq: "Low-High:Performance", MemBind: "v,local,sort", Distribution: "arbitrary",
				NodeList: []cluster.NodeName{"n1", "n2"}, Hint: "compute_bound", GPUBind: "closest",
				PerTask: []cluster.GRES{{Name: "gpu", Count: 1}}, Network: "sn_all", Profile: "Task",
			},
		}
	}
	shared := "SLURM_GPUS_PER_TASK=1 SLURM_GPU_BIND=closest SLURM_HINT=compute_bound SLURM_PROFILE=Task " +
		"SLURM_ACCTG_FREQ=task=4 SLURM_CPU_FREQ_REQ=Low-High:Performance " +
		"SLURM_MEM_BIND=verbose,sort,local SLURM_MEM_BIND_SORT=sort SLURM_MEM_BIND_VERBOSE=verbose "
	arbitrary := "SLURM_ARBITRARY_NODELIST=n[1-2]"
	for _, c := range []struct {
		spec *cluster.JobSpec
		want string
	}{
		{full(cluster.Batch), shared + arbitrary},
		{full(cluster.Allocation), shared + "SLURM_NETWORK=sn_all " + arbitrary},
		{&cluster.JobSpec{Layout: &cluster.Layout{MemBind: "prefer,map_mem:0,1"}},
			"SLURM_MEM_BIND=prefer,map_mem:0,1 SLURM_MEM_BIND_VERBOSE=quiet"},
	} {
		var e list
		e.asked(c.spec)
		e.ofSteps(c.spec)
		got := strings.TrimPrefix(strings.Join(e, " "), "SLURM_DISTRIBUTION=arbitrary ")
		if got != c.want {
			t.Errorf("kind %d:\n got %s\nwant %s", c.spec.Kind, got, c.want)
		}
	}
	var e list
	e.asked(full(cluster.SrunJob))
	if got := strings.Join(e, " "); got != "SLURM_DISTRIBUTION=arbitrary" {
		t.Errorf("srun's own allocation: %s", got)
	}
}

// TestBoundMemory: what a task is told of --mem-bind, also of one that binds nothing.
func TestBoundMemory(t *testing.T) {
	for asked, want := range map[string]string{
		"":     "",
		"sort": "SLURM_MEM_BIND_VERBOSE=quiet SLURM_MEM_BIND_SORT=sort SLURM_MEM_BIND=quiet SLURM_MEM_BIND_LIST= SLURM_MEM_BIND_TYPE=",
		"v":    "SLURM_MEM_BIND_VERBOSE=verbose SLURM_MEM_BIND=verbose SLURM_MEM_BIND_LIST= SLURM_MEM_BIND_TYPE=",
		"map_mem:0": "SLURM_MEM_BIND_VERBOSE=quiet SLURM_MEM_BIND=quiet,map_mem:0 SLURM_MEM_BIND_LIST=0 " +
			"SLURM_MEM_BIND_TYPE=map_mem:",
	} {
		var e list
		e.memBinding(cluster.BindMem(asked))
		if got := strings.Join(e, " "); got != want {
			t.Errorf("%q: %s, want %s", asked, got, want)
		}
	}
}
