package client

import (
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Steps that put files on the nodes of a job for sbcast, or fetch some from there for sgather: one task on
// each node, of muster's own program and as the job's user. They take nothing from other steps, have numbers
// of their own, and the servers do not hear of them. For srun --bcast the same program runs beside the tasks,
// which begin once it says so.

// castTime is how long tasks wait for their program to arrive.
const castTime = 24 * time.Hour

// alone reports whether the step is nothing but files that are put on nodes.
func (ls *liveStep) alone() bool { return ls.record.ID.IsCast() }

// competes reports whether it is a step of the job that may hold what others want.
func (ls *liveStep) competes(job cluster.JobID) bool { return ls.record.ID.Job == job && !ls.alone() }

// placeAny makes a step of either kind. Called with mu held.
func placeAny(c *Client, h *jobHere, spec *cluster.StepSpec) (*liveStep, *api.Error) {
	if spec.Cast != nil && spec.Cast.Alone {
		return placeCast(c, h, spec)
	}
	return c.place(h, spec)
}

// placeCast makes the step that puts files on nodes. Called with mu held.
func placeCast(c *Client, h *jobHere, spec *cluster.StepSpec) (*liveStep, *api.Error) {
	live := 0
	number := max(cluster.FirstCast, h.nextCast)
	for id := range c.steps {
		if id.Job != h.job.ID {
			continue
		}
		live++
		if id.IsCast() {
			number = max(number, id.Step+1)
		}
	}
	if live >= maxStepsHere {
		return nil, cluster.Errorf(cluster.Conflict, cluster.ErrBusy, "job %d has %d live steps", h.job.ID, live)
	}
	shares, err := cluster.PlaceCast(h.job, spec.Cast)
	if err != nil {
		return nil, err
	}
	h.nextCast = number + 1
	return newStep(c, h, spec, number, shares), nil
}

// castTask is what a node runs of a step that puts files on nodes.
func castTask(c *Client, ls *liveStep, l *cluster.Launch) step.Task {
	led := step.IO{Kind: step.Stream}
	env := c.environ(l, ls.spec.Env)
	return step.Task{Rank: l.Rank, Argv: c.cfg.Program.Cast, Env: env, Stdin: led, Stdout: led, Stderr: led}
}

// precede has the tasks of a step wait until their program has arrived. A process manager of MPI follows
// in the same process.
func (p *Config) precede(out *step.Spec, cast *cluster.Cast) error {
	if cast == nil || cast.Alone {
		return nil
	}
	if p.Program.Cast == nil {
		return cluster.Errorf(cluster.Invalid, "", "this node can not take programs (--bcast)")
	}
	if out.Server == nil {
		out.Server = &step.Server{}
	}
	argv := append(p.Program.Cast[:len(p.Program.Cast):len(p.Program.Cast)], "then")
	out.Server.Argv, out.Server.Wait = append(argv, out.Server.Argv...), castTime
	return nil
}

// sent is what a task runs whose program was put on its node, and the variables that it needs.
func sent(s *cluster.StepSpec, t *step.Task, id step.ID) {
	if s.Cast == nil || s.Cast.Program == "" || len(t.Argv) == 0 {
		return
	}
	file := cluster.CastPath(s.Cast.Program, cluster.StepID{Job: id.Job, Step: id.Step}, id.Node)
	t.Argv = append([]string{file}, t.Argv[1:]...)
	if s.Cast.Libs {
		t.Env = append(t.Env, libraries(s.Env, file+"_libs"))
	}
}

// libraries is where the loader looks for libraries: in dir first.
func libraries(env cluster.BlobText, dir string) string {
	const name = "LD_LIBRARY_PATH="
	for v := range strings.SplitSeq(string(env), "\x00") {
		if old, ok := strings.CutPrefix(v, name); ok && old != "" {
			dir += ":" + old
		}
	}
	return name + dir
}

// signalCast ends a step that puts files on nodes: it takes away what is not complete. Called with mu held.
func signalCast(c *Client, ls *liveStep, q api.StepSignal) {
	if !q.Kill && !q.Gone && !q.Term {
		c.signalStepNow(ls, syscall.Signal(q.Sig))
		return
	}
	c.signalStepNow(ls, syscall.SIGTERM)
	ls.killAt = time.Now().Add(c.config.KillWait)
	c.poke()
}
