// Package watches acts on what nodes measure: the server that leads compares the samples of jobs with the rules of
// users and partitions, and does what those say. A watch is a row of a table: what it observes, and what it does. Start
// with Run.
package watches

import (
	"context"
	"log/slog"

	"dev.muster/agent/samples"
	"dev.muster/cluster"
)

// Server is the server that leads.
type Server interface {
	// Committed is the state as far as the log has brought it about.
	Committed() *cluster.Snapshot
	// Propose has commands of the leader itself written to the log, and returns what came of each.
	Propose(ctx context.Context, cmds ...cluster.Command) ([]any, error)
	// TellJob writes a line into a job's output, if somebody takes it.
	TellJob(ctx context.Context, id cluster.JobID, text string)
	// TellStacks has the nodes of a job write the stacks of its tasks into its output.
	TellStacks(ctx context.Context, id cluster.JobID)
}

// Watcher holds the rules, for one term.
type Watcher struct {
	Server  Server
	Samples *samples.Store
	Log     *slog.Logger
}

// finding is a job about which something is to be done, once for each of its attempts that the server hears of.
type finding struct {
	job  *cluster.Job
	deal func(ctx context.Context) error
}
