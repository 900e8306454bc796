package client

import (
	"slices"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// forgetfulRunner forgets steps, and does nothing else.
type forgetfulRunner struct{ step.Runner }

func (forgetfulRunner) Forget(...step.ID) error { return nil }

// TestScriptOfEndedJob: how the script of a job ended that was cancelled is told together with that the node is clean,
// once, and not where it had been reported before.
func TestScriptOfEndedJob(t *testing.T) {
	for name, c := range map[string]struct {
		before phase
		want   []cluster.UpdateKind
	}{
		"cancelled":      {confirmed, []cluster.UpdateKind{cluster.StepNow, cluster.NodeDone}},
		"after its end":  {reported, []cluster.UpdateKind{cluster.NodeDone}},
		"before a start": {arrived, []cluster.UpdateKind{cluster.StepNow, cluster.NodeDone}},
	} {
		t.Run(name, func(t *testing.T) {
			h := here(cluster.Ending, self)
			h.launch = c.before
			cl := readyClient(t, Config{Runner: forgetfulRunner{}}, h)
			for id, st := range batchStep(step.Ended) {
				killed := cluster.ExitStatus{Signal: 15}
				st.Tasks = []step.TaskStatus{{Started: now, Ended: now.Add(time.Second), Exit: killed}}
				cl.have.Put(id, st)
			}
			cl.jobs.perform(cl.nodes[self], action{kind: finished, job: h}, now)
			var told []cluster.UpdateKind
			for _, r := range cl.reports.Pending() {
				for _, u := range r.Updates {
					told = append(told, u.Kind)
				}
			}
			if !slices.Equal(told, c.want) || !h.isOver() {
				t.Errorf("told %v, want %v", told, c.want)
			}
		})
	}
}
