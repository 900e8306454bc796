// Package lookup finds jobs by their ids as squeue writes them, among those that are and those that were.
package lookup

import (
	"cmp"
	"context"
	"iter"
	"strconv"
	"strings"

	"dev.muster/acct"
	"dev.muster/agent/visibility"
	"dev.muster/cluster"
)

// Ref reads a job's id as squeue writes it: 56, 56_1, 61+1.
func Ref(text string) (ref cluster.Ref, ok bool) {
	id, task, array := strings.Cut(text, "_")
	if !array {
		id, task, _ = strings.Cut(text, "+")
	}
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil || n == 0 {
		return ref, false
	}
	if ref.Job = cluster.JobID(n); id == text {
		return ref, true
	}
	k, err := strconv.ParseUint(task, 10, 31)
	switch {
	case err != nil:
		return ref, false
	case array:
		ref.Tasks = cluster.NewIDSet(int(k))
	case k >= cluster.MaxHetSize:
		return ref, false
	default:
		ref.Part = int(k) + 1
	}
	return ref, true
}

// History is where jobs of the past are read.
type History interface {
	Jobs(context.Context, acct.Query) iter.Seq2[acct.Record, error]
	Whole() bool
}

// Found is what an id names: a job, or an array as a whole.
type Found struct {
	Text  string
	Ref   cluster.Ref
	Job   *cluster.Job    // of an array as a whole, one of its records
	Tasks []*cluster.Job  // of an array as a whole; of those from history the latest
	Lives bool            // the job has a record in the state
	Steps []*cluster.Step // of a job from history
}

// maxPastTasks bounds the tasks of an array that are read from history.
const maxPastTasks = 2000

// Find looks for what an id names, in the state and then in history. Only what never was, or is hidden from
// the visitor, is not found.
func Find(ctx context.Context, hist History, sees visibility.Scope, text string) (n Found, err error) {
	ref, ok := Ref(text)
	if n.Text, n.Ref = text, ref; !ok {
		return n, noSuchJob(text)
	}
	n.live(sees.Snap)
	if n.Job == nil || n.Job.Phase == cluster.Ended {
		if err := findPast(ctx, hist, &n); err != nil {
			return n, err
		}
	}
	switch {
	case n.Job == nil && hist != nil && ref.Job < sees.Snap.NextID:
		return n, cluster.Errorf(cluster.NotFound, Gone, "job %s was, but its record is not kept any more", text)
	case n.Job == nil || !sees.Job(n.Job):
		return n, noSuchJob(text)
	}
	return n, nil
}

// Living is what an id names in the state alone.
func Living(snap *cluster.Snapshot, text string) (n Found) {
	n.Text = text
	n.Ref, _ = Ref(text)
	n.live(snap)
	return n
}

// Gone is the error of what was, and is not kept any more.
const Gone cluster.ErrKind = "gone"

func noSuchJob(text string) error {
	return cluster.Errorf(cluster.NotFound, "", "there is no job %s, and history has none", text)
}

// live looks for it among the records of the state.
func (n *Found) live(snap *cluster.Snapshot) {
	if n.whole() {
		for m := range snap.Members(n.Ref.Job) {
			n.Tasks = append(n.Tasks, m)
		}
	}
	switch {
	case n.Tasks != nil:
		n.Job, n.Lives = n.Tasks[0], true
		return
	case n.Ref.Tasks.Empty():
		j, ok := snap.Job(n.Ref.One())
		if ok && (n.Ref.Part == 0 || n.Ref.Names(j)) {
			n.Job, n.Lives = j, true
		}
		return
	}
	for _, j := range snap.Find(n.Ref) {
		n.Job, n.Lives = j, true
	}
}

// findPast adds what history knows.
func findPast(ctx context.Context, hist History, n *Found) error {
	if hist == nil {
		return nil
	}
	if !hist.Whole() {
		return cluster.Errorf(cluster.Unavailable, "",
			"the history is still on its way to this server; ask another one")
	}
	apart := false
	q := acct.Query{Refs: []cluster.Ref{n.Ref}, Steps: n.Ref.Part > 0 || !n.Lives || n.Tasks == nil,
		Latest: maxPastTasks}
	q.WholeHet = &apart
	known := map[cluster.JobID]bool{}
	for _, m := range n.Tasks {
		known[m.ID] = true
	}
	for r, err := range hist.Jobs(ctx, q) {
		switch {
		case err != nil:
			return err
		case n.whole() && r.Job.ArrayID == n.Ref.Job:
			if !known[r.Job.ID] {
				n.Tasks = append(n.Tasks, r.Job)
			}
			n.Job = cmp.Or(n.Job, r.Job)
		case n.Lives && n.Job.ID != r.Job.ID: // another attempt's number
		default:
			n.past(&r)
		}
	}
	return nil
}

// whole reports whether an id may name an array as a whole.
func (n *Found) whole() bool { return n.Ref.Part == 0 && n.Ref.Tasks.Empty() }

// past takes in what history knows of the one job.
func (n *Found) past(r *acct.Record) {
	if !n.Lives {
		n.Job = r.Job
	}
	n.Steps = append(r.OwnSteps(), r.Steps...)
}
