package control

import (
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// TestCancelledSteps: a step that is named is cancelled, not its job, whatever else selects that.
func TestCancelledSteps(t *testing.T) {
	five := 5
	j := &cluster.Job{ID: 7, Task: cluster.TaskAny}
	task := &cluster.Job{ID: 9, ArrayID: 8, Task: 2}
	named := []front.Target{
		{Ref: cluster.Ref{Job: 7}, Step: &five},
		{Ref: cluster.Ref{Job: 8, Tasks: cluster.NewIDSet(2)}, Step: &five},
	}
	for name, c := range map[string]struct {
		job   *cluster.Job
		named []front.Target
		steps int
	}{
		"by a filter alone":     {j, nil, 0},
		"its step":              {j, named, 1},
		"a step of a task":      {task, named, 1},
		"of another task":       {&cluster.Job{ID: 10, ArrayID: 8, Task: 3}, named, 0},
		"the job itself, named": {j, []front.Target{{Ref: cluster.Ref{Job: 7}}}, 0},
	} {
		got := targetsOf(c.job, c.named)
		if len(got) != 1 || (got[0].Step != nil) != (c.steps == 1) || got[0].Ref.Job != c.job.ID {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
