package show

import (
	"testing"

	"dev.muster/cluster"
)

// TestStepTRES: a step's resources in the order of Slurm 26.05; its script has none of its own.
func TestStepTRES(t *testing.T) {
	shares := []cluster.Share{{Node: "a", CPUs: cluster.NewIDSet(0, 1), GPUs: cluster.NewIDSet(0), MemMB: 50, Tasks: 2}}
	job := JobRow{Job: &cluster.Job{Alloc: &cluster.Alloc{Shares: shares, Types: map[string]int64{"h100": 1}},
		Spec: &cluster.JobSpec{}}, View: &View{}}
	for step, want := range map[int]string{
		0: "cpu=2,gres/gpu:h100=1,gres/gpu=1,mem=50M,node=1", cluster.BatchStep: "",
	} {
		s := &StepRow{Step: &cluster.Step{ID: cluster.StepID{Job: 1, Step: step}, Shares: shares, Tasks: 2}, Job: job}
		if got := s.tres(); got != want {
			t.Errorf("step %d: %q, want %q", step, got, want)
		}
	}
}
