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
