// Package watches acts on what nodes measure: the server that leads compares the samples of jobs with the rules of
// users and partitions, and does what those say. A watch is a row of a table: what it observes, and what it does. Start
// with Run.
package watches

import (
	"context"
	"log/slog"
	"sync"

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

	all  sync.WaitGroup
	mu   sync.Mutex
	busy map[uint32]int // jobs that are dealt with, by user
}

// dealsOfUser bounds the jobs of one user that are dealt with at once: to tell a job something may wait for its nodes
// and for its user's files.
const dealsOfUser = 4

// begin deals with a job of a user beside what else there is, and reports false where that has to wait: a job that
// still shows it at the next look is found again.
func (w *Watcher) begin(uid uint32, deal func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[uid] >= dealsOfUser {
		return false
	}
	if w.busy == nil {
		w.busy = map[uint32]int{}
	}
	w.busy[uid]++
	w.all.Go(func() { // ends with the term
		defer w.end(uid)
		deal()
	})
	return true
}

// end ends what begin began.
func (w *Watcher) end(uid uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[uid]--; w.busy[uid] == 0 {
		delete(w.busy, uid)
	}
}

// finding is a job about which something is to be done, once for each of its attempts that the server hears of.
type finding struct {
	job  *cluster.Job
	deal func(ctx context.Context) error
}
