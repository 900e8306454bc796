package slurm

import (
	"io"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/env"
	"dev.muster/slurm/rest"
	"dev.muster/slurm/show"
)

// Dialect is Slurm's, as the daemons speak it.
type Dialect struct{}

// TaskEnv are the variables of a task.
func (Dialect) TaskEnv(l *cluster.Launch) []string { return env.Environ(l) }

// ScriptEnv is the environment of the prolog, or the epilog, of a job on a node.
func (Dialect) ScriptEnv(l *cluster.Launch, epilog bool) []string { return env.Scripts(l, epilog) }

// FileName fills in the pattern of an output's or an input's name.
func (Dialect) FileName(pattern string, l *cluster.Launch) string { return env.FileName(pattern, l) }

// Greeting is what --cpu-bind=verbose and --mem-bind=verbose say.
func (Dialect) Greeting(l *cluster.Launch, cpus cluster.Binding, mem cluster.MemBinding, numa cluster.IDSet) string {
	return env.Greeting(l, cpus, mem, numa)
}

// EndNote is slurmstepd's line about why a job ends.
func (Dialect) EndNote(j *cluster.Job, step int, n cluster.NodeName, at time.Time) string {
	return env.EndNote(j, step, n, at)
}

// LostNote is what salloc says of a node that has failed.
func (Dialect) LostNote(n cluster.NodeName) string { return "error: Node failure on " + string(n) }

// OOMNote is slurmstepd's line about processes that were killed for want of memory.
func (Dialect) OOMNote(id cluster.StepID, n cluster.NodeName) string { return env.OOMNote(id, n) }

// Verdict words why a job has ended.
func (Dialect) Verdict(j *cluster.Job, steps []*cluster.Step) string {
	return show.VerdictText(j, steps)
}

// ServeREST answers as slurmrestd does.
func (Dialect) ServeREST(q *api.RESTRequest, begin func(status int, mime string) io.Writer) {
	rest.Answer(q, begin)
}
