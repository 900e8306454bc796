package client

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/supervisor"
	"dev.muster/api"
	"dev.muster/cluster"
)

// toldRunner writes down what it is asked to signal.
type toldRunner struct {
	step.Runner
	told []string
}

func (r *toldRunner) Signal(_ step.ID, sig syscall.Signal, scope step.Scope) error {
	r.told = append(r.told, fmt.Sprint(int(sig), "/", scope))
	return nil
}

func (r *toldRunner) Say(step.ID, string, bool) error { return nil }

// TestStepExpires: at its limit a step's tasks get TERM and CONT, KillWait later all that is left gets KILL, and it
// has timed out. srun's own job has the limit itself, and a job that ends gives its steps their time.
func TestStepExpires(t *testing.T) {
	began := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		kind  cluster.Kind
		phase cluster.Phase
		limit time.Duration
		want  []string
	}{
		"in a script":    {cluster.Batch, cluster.Running, time.Minute, []string{"15/0", "18/0"}},
		"not yet":        {cluster.Batch, cluster.Running, time.Hour, nil},
		"none":           {cluster.Batch, cluster.Running, 0, nil},
		"srun's own job": {cluster.SrunJob, cluster.Running, time.Minute, nil},
		"the job ends":   {cluster.Batch, cluster.Ending, time.Minute, nil},
	} {
		run := &toldRunner{}
		cl := newClient(t, Config{Runner: run})
		id := step.ID{Job: 1, Attempt: 1, Step: 0, Node: self}
		j := &cluster.Job{
			ID: 1, Attempt: 1, Phase: c.phase,
			Spec: &cluster.JobSpec{Kind: c.kind, Layout: &cluster.Layout{}},
		}
		cl.nodes[self].jobs = map[cluster.JobID]*jobHere{1: newHere(self, j)}
		ls := &liveStep{
			record: cluster.Step{ID: cluster.StepID{Job: 1}, Attempt: 1, Started: began, Limit: c.limit},
			ids:    []step.ID{id}, lead: self,
		}
		cl.live[ls.record.ID] = ls
		cl.have.Put(id, &step.Status{ID: id, State: step.Running})
		cl.steps.expireSteps(began.Add(2 * time.Minute))
		if fmt.Sprint(run.told) != fmt.Sprint(c.want) || ls.limited != (c.want != nil) {
			t.Errorf("%s: signals %v, want %v; limited %v", name, run.told, c.want, ls.limited)
		}
		if c.want == nil {
			continue
		}
		cl.steps.expireSteps(ls.killAt.Add(time.Second))
		if last := run.told[len(run.told)-1]; last != "9/2" {
			t.Errorf("%s: at last %s, want KILL for all", name, last)
		}
	}
}

// TestChangedLimitIsKept: a daemon that comes after this one knows what a step's limit was changed to.
func TestChangedLimitIsKept(t *testing.T) {
	run := supervisor.NewTimers(func(step.Spec) (time.Duration, cluster.ExitStatus) { return time.Hour, cluster.ExitStatus{} })
	defer run.Close()
	cl := newClient(t, Config{Runner: run})
	close(cl.known)
	id := step.ID{Job: 1, Attempt: 1, Step: 0, Node: self}
	ls := &liveStep{
		record: cluster.Step{ID: cluster.StepID{Job: 1}, Limit: time.Minute}, ids: []step.ID{id},
		lead: self,
	}
	cl.live[ls.record.ID] = ls
	if err := run.Start(step.Spec{ID: id}); err != nil {
		t.Fatal(err)
	}
	root := api.Caller{Identity: cluster.Identity{UID: 0}}
	if _, err := cl.steps.updateStep(t.Context(), root, api.StepUpdate{ID: ls.record.ID, Limit: time.Hour}); err != nil {
		t.Fatal(err)
	}
	list, err := run.List()
	if err != nil {
		t.Fatal(err)
	}
	next := newClient(t, Config{Runner: run})
	next.steps.recoverStep(&list[0])
	if got := next.live[ls.record.ID]; got == nil || got.record.Limit != time.Hour {
		t.Errorf("after a restart the step is %+v, want a limit of an hour", got)
	}
}
