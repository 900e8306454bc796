package launch

import (
	"bytes"
	"strings"
	"testing"

	"dev.muster/api"
	"dev.muster/api/stream"
	"dev.muster/cluster"
	"dev.muster/pmi"
	"dev.muster/slurm/front"
	"dev.muster/slurm/submit"
)

// TestAbortAndExit: whether a task's abort or its bad exit comes first, the user is told once that
// the step is aborted.
func TestAbortAndExit(t *testing.T) {
	code := stream.AppendExit(nil, stream.TaskExit{Code: 5})
	exit := nodeEvent{frame: stream.Frame{Kind: stream.Exit, Task: 1, Data: code}}
	abort := nodeEvent{aborted: &pmi.Aborted{Rank: 1, Code: 5}}
	for name, events := range map[string][]nodeEvent{
		"abort first": {abort, exit},
		"exit first":  {exit, abort},
		"twice":       {exit, abort, abort},
	} {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			bad := true
			run := &stepRun{
				sys:     &front.Sys{Stderr: &errs},
				req:     &submit.Request{},
				first0:  []int{0},
				running: cluster.NewIDSet(0, 1),
			}
			run.req.Step.KillOnBadExit = &bad
			run.resp.Nodes = []api.StepNode{{Node: "n1", Ranks: []int{0, 1}}}
			for _, e := range events {
				run.event(e)
			}
			if n := strings.Count(errs.String(), "Job step aborted"); n != 1 {
				t.Errorf("told %d times:\n%s", n, errs.String())
			}
		})
	}
}

// TestOOMKillStep: a task that was killed for want of memory ends the whole step where that is asked for.
func TestOOMKillStep(t *testing.T) {
	code := stream.AppendExit(nil, stream.TaskExit{Signal: 9, OOM: true})
	for _, asked := range []bool{false, true} {
		var errs bytes.Buffer
		run := &stepRun{
			sys:     &front.Sys{Stderr: &errs},
			req:     &submit.Request{},
			first0:  []int{0},
			running: cluster.NewIDSet(0, 1),
		}
		run.req.Way.OOMKillStep = asked
		run.resp.Nodes = []api.StepNode{{Node: "n1", Ranks: []int{0, 1}}}
		run.event(nodeEvent{frame: stream.Frame{Kind: stream.Exit, Task: 1, Data: code}})
		if run.killed != asked || strings.Contains(errs.String(), "Terminating StepId") != asked {
			t.Errorf("asked %v: killed %v\n%s", asked, run.killed, errs.String())
		}
	}
}
