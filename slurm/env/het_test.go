package env

import (
	"slices"
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestHetAllocation: a heterogeneous allocation tells of tasks in all where some were asked for: else each step
// says how many.
func TestHetAllocation(t *testing.T) {
	part := func(tasks int, mem cluster.Mem) *cluster.Job {
		return &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{Tasks: tasks, Mem: mem}},
			Alloc: &cluster.Alloc{
				Shares: []cluster.Share{{Node: "n1", CPUs: cluster.RangeIDSet(0, 3), Tasks: max(tasks, 1)}},
			}}
	}
	for name, c := range map[string]struct {
		first, second int
		want          []string
	}{
		"none": {0, 0, nil},
		"both": {2, 3, []string{"SLURM_NTASKS=5", "SLURM_NTASKS_HET_GROUP_0=2", "SLURM_NTASKS_HET_GROUP_1=3"}},
		"one":  {0, 3, []string{"SLURM_NTASKS=3", "SLURM_NTASKS_HET_GROUP_1=3"}},
	} {
		perCPU := cluster.Mem{Per: cluster.MemPerCPU, MB: 10}
		lead, other := part(c.first, perCPU), part(c.second, cluster.Mem{})
		lead.Het = &cluster.HetPart{Size: 2}
		got := HetAllocation(&cluster.Launch{Job: lead, Sisters: []*cluster.Job{other}, Config: &cluster.Config{}})
		counts := slices.DeleteFunc(slices.Clone(got), func(v string) bool {
			return !strings.HasPrefix(v, "SLURM_NTASKS") || strings.Contains(v, "PACK")
		})
		if slices.Sort(counts); !slices.Equal(counts, c.want) {
			t.Errorf("%s: %v, want %v", name, counts, c.want)
		}
		first := slices.Contains(got, "SLURM_MEM_PER_CPU_HET_GROUP_0=10")
		second := slices.Contains(got, "SLURM_MEM_PER_CPU_HET_GROUP_1=10")
		if !first || second {
			t.Errorf("%s: memory of the components: %v", name, got)
		}
	}
}
