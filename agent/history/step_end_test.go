package history

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// A job that is over has no step that still runs, though a node has not told the step's end yet.
func TestStepsAreOverWithTheirJob(t *testing.T) {
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := &cluster.Job{
		ID: 1, Phase: cluster.Ended, Outcome: cluster.Failed, Ended: end, Exit: cluster.ExitStatus{Code: 3},
	}
	running := &cluster.Step{ID: cluster.StepID{Job: 1, Step: 0}}
	shell := &cluster.Step{ID: cluster.StepID{Job: 1, Step: cluster.InteractiveStep}}
	done := &cluster.Step{ID: cluster.StepID{Job: 1, Step: 1}, Ended: end.Add(-time.Minute), Outcome: cluster.Completed}
	out := overWith(j, []*cluster.Step{running, shell, done})
	if !out[0].Ended.Equal(end) || out[0].Outcome != cluster.Failed || out[0].Exit.Code != 0 {
		t.Errorf("the running step: %+v", out[0])
	}
	if out[1].Exit.Code != 3 || out[2] != done {
		t.Errorf("%+v %+v", out[1], out[2])
	}
	if !running.Ended.IsZero() {
		t.Error("the record itself has changed")
	}
	j.Phase = cluster.Running
	if out := overWith(j, []*cluster.Step{running}); !out[0].Ended.IsZero() {
		t.Error("a running job's step is over")
	}
}
