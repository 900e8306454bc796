package api

import (
	"io"
	"time"

	"dev.muster/cluster"
)

// Dialect is what the daemons say and run in the words of another workload manager. They know it by this alone.
type Dialect interface {
	// TaskEnv are the variables of a task.
	TaskEnv(l *cluster.Launch) []string
	// ScriptEnv is the environment of the prolog, or the epilog, of a job on a node.
	ScriptEnv(l *cluster.Launch, epilog bool) []string
	// FileName fills in the pattern of an output's or an input's name.
	FileName(pattern string, l *cluster.Launch) string
	// Greeting is what a task is told before it starts about what it is bound to, with %d for its process id; numa
	// is the machine's NUMA nodes.
	Greeting(l *cluster.Launch, cpus cluster.Binding, mem cluster.MemBinding, numa cluster.IDSet) string
	// EndNote is the line for the output of a job that is being ended; "" for none.
	EndNote(j *cluster.Job, step int, n cluster.NodeName, at time.Time) string
	// LostNote tells the user of an allocation of a node that has failed.
	LostNote(n cluster.NodeName) string
	// OOMNote is the line for the output of a step of which %d processes were killed because the job's memory was
	// used up.
	OOMNote(id cluster.StepID, n cluster.NodeName) string
	// HookProgram is what a hook runs.
	HookProgram(h *cluster.Hook, c *cluster.Config) cluster.Program
	// HookMessage is what a hook that calls a URL sends, as JSON.
	HookMessage(h *cluster.Hook, c *cluster.Config, to cluster.NotifyAddress) any
	// Verdict words why a job has ended, from its record and its steps'; "" if it ended well.
	Verdict(j *cluster.Job, steps []*cluster.Step) string
	// ServeREST answers a request of the REST interface: begin is called once, with the status and the type of what
	// is written then.
	ServeREST(q *RESTRequest, begin func(status int, mime string) io.Writer)
}
