package sched

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// overlapping is two nodes of 16 CPUs on two sockets in partition main, and in partition cpu, whose jobs may have only
// some of their CPUs.
func overlapping(t *testing.T, limits cluster.PartitionLimits) *testbed {
	return namedBed(t, func(cfg *cluster.Config) {
		cfg.Partitions = append(cfg.Partitions, cluster.Partition{
			Name: "cpu", All: true, State: cluster.PartitionUp, PartitionLimits: limits,
		})
	}, machine(), machine())
}

// TestCPULimits is what Slurm 26.05 does with MaxCPUsPerNode and MaxCPUsPerSocket: they bound what all jobs of the
// partition have together, and what can never be within them is refused.
func TestCPULimits(t *testing.T) {
	never := "waits " + string(cluster.WaitNodesDown)
	perNode := cluster.PartitionLimits{MaxCPUsPerNode: 4}
	perSocket := cluster.PartitionLimits{MaxCPUsPerSocket: 2}
	for name, c := range map[string]struct {
		limits cluster.PartitionLimits
		asks   []string // one after the other
		want   []string
	}{
		"one job within":         {perNode, []string{"-pcpu -n4 -N1"}, []string{"n1 0-1,8-9"}},
		"over all nodes":         {perNode, []string{"-pcpu -n8"}, []string{"n1 0-1,8-9 n2 0-1,8-9"}},
		"one job beyond":         {perNode, []string{"-pcpu -n5 -N1"}, []string{never}},
		"a task beyond":          {perNode, []string{"-pcpu -c5"}, []string{never}},
		"a whole node":           {perNode, []string{"-pcpu -N1 --exclusive"}, []string{never}},
		"all jobs count":         {perNode, []string{"-pcpu -n8", "-pcpu -n1"}, []string{"n1 0-1,8-9 n2 0-1,8-9", "waits Resources"}},
		"what is left":           {perNode, []string{"-pcpu -c3", "-pcpu -c3", "-pcpu -n2"}, []string{"n1 0-2", "n2 0-2", "n1 3 n2 3"}},
		"others do not count":    {perNode, []string{"-pcpu -n4", "-N1 -n12"}, []string{"n1 0-1,8-9", "n1 2-7,10-15"}},
		"nor others' CPUs":       {perNode, []string{"-N1 -n12", "-pcpu -n4"}, []string{"n1 0-5,8-13", "n1 6-7,14-15"}},
		"sockets":                {perSocket, []string{"-pcpu -n4 -N1"}, []string{"n1 0-1,8-9"}},
		"sockets, a task beyond": {perSocket, []string{"-pcpu -n5 -N1"}, []string{never}},
		"sockets, all jobs": {
			perSocket, []string{"-pcpu -n8", "-pcpu -n1"}, []string{"n1 0-1,8-9 n2 0-1,8-9", "waits Resources"},
		},
		"GPUs": {perNode, []string{"-pcpu -n4 --gpus-per-node=2"}, []string{"n1 0-1,8-9/0-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := overlapping(t, c.limits)
			for i, what := range c.asks {
				id := b.Submit(ask(t, what))
				b.ScheduleAll()
				if got := b.Got(id); got != c.want[i] {
					t.Errorf("%s: %s, want %s", what, got, c.want[i])
				}
			}
		})
	}
}

// TestCPULimitPlanned: a job that waits for the limit is planned to start when another job of its partition ends, not
// sooner, and jobs that would still run then do not take its place.
func TestCPULimitPlanned(t *testing.T) {
	b := overlapping(t, cluster.PartitionLimits{MaxCPUsPerNode: 4})
	first := b.Submit(ask(t, "-pcpu -n8"))
	b.ScheduleAll()
	second := b.Submit(ask(t, "-pcpu -n8"))
	long := b.Submit(func(s *cluster.JobSpec) {
		ask(t, "-pcpu -n1")(s)
		s.Limit = 3 * time.Hour
	})
	b.ScheduleAll()
	if j, _ := b.S.Job(second); j.Wait != cluster.WaitResources || !j.PlannedStart.Equal(epoch.Add(time.Hour)) {
		t.Errorf("job 2 waits for %q until %v, want Resources and one hour", j.Wait, j.PlannedStart)
	}
	b.EndJob(first)
	b.ScheduleAll()
	for id, want := range map[cluster.JobID]string{second: "n1 0-1,8-9 n2 0-1,8-9", long: "waits Resources"} {
		if got := b.Got(id); got != want {
			t.Errorf("job %d: %s, want %s", id, got, want)
		}
	}
}
