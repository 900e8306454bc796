// Package lookup finds jobs by their ids as squeue writes them, among those that are and those that were.
package lookup

import (
	"cmp"
	"context"
	"iter"
	"slices"
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
func Find(ctx context.Context, hist History, sees visibility.Scope, text string) (Found, error) {
	ref, ok := Ref(text)
	n := Found{Text: text, Ref: ref}
	if !ok {
		return n, noSuchJob(text)
	}
	n.live(sees.Snap)
	if err := n.findPast(ctx, hist); err != nil {
		return n, err
	}
	if n.Job != nil && sees.Job(n.Job) {
		return n, nil
	}
	return n, n.missing(hist, sees.Snap.NextID)
}

// missing is the error of what is not found. A hidden record is as if it had never been.
func (n *Found) missing(hist History, next cluster.JobID) error {
	was := hist != nil && n.Ref.Job < next
	if n.Job == nil && was {
		return cluster.Errorf(cluster.NotFound, Gone, "job %s was, but its record is not kept any more", n.Text)
	}
	return noSuchJob(n.Text)
}

// goesOn reports whether the state has the job, and it is not over.
func (n *Found) goesOn() bool { return n.Job != nil && n.Job.Phase != cluster.Ended }

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
		n.Tasks = slices.Collect(snap.Members(n.Ref.Job))
	}
	n.Job = n.record(snap)
	n.Lives = n.Job != nil
}

// record is the record of what the id names, of an array as a whole its first; nil if the state has none.
func (n *Found) record(snap *cluster.Snapshot) *cluster.Job {
	if len(n.Tasks) > 0 {
		return n.Tasks[0]
	}
	if !n.Ref.Tasks.Empty() {
		return last(snap.Find(n.Ref))
	}
	j, ok := snap.Job(n.Ref.One())
	if !ok || !n.Ref.Names(j) {
		return nil
	}
	return j
}

func last(jobs []*cluster.Job) *cluster.Job {
	if len(jobs) == 0 {
		return nil
	}
	return jobs[len(jobs)-1]
}

// findPast adds what history knows of a job that is over.
func (n *Found) findPast(ctx context.Context, hist History) error {
	if hist == nil || n.goesOn() {
		return nil
	}
	if !hist.Whole() {
		return cluster.Errorf(cluster.Unavailable, "",
			"the history is still on its way to this server; ask another one")
	}
	apart := false
	q := acct.Query{
		Refs:   []cluster.Ref{n.Ref},
		Steps:  n.Ref.Part > 0 || !n.Lives || n.Tasks == nil,
		Latest: maxPastTasks,
	}
	q.WholeHet = &apart
	known := map[cluster.JobID]bool{}
	for _, m := range n.Tasks {
		known[m.ID] = true
	}
	for r, err := range hist.Jobs(ctx, q) {
		if err != nil {
			return err
		}
		n.past(&r, known)
	}
	return nil
}

// whole reports whether an id may name an array as a whole.
func (n *Found) whole() bool { return n.Ref.Part == 0 && n.Ref.Tasks.Empty() }

// past takes in a job that history knows; known are the tasks that the state has.
func (n *Found) past(r *acct.Record, known map[cluster.JobID]bool) {
	isTask := n.whole() && r.Job.ArrayID == n.Ref.Job
	switch {
	case known[r.Job.ID]:
	case isTask:
		n.Tasks = append(n.Tasks, r.Job)
		n.Job = cmp.Or(n.Job, r.Job)
	case !n.Lives:
		n.Job = r.Job
		n.addSteps(r)
	case n.Job.ID == r.Job.ID: // and not another attempt's number
		n.addSteps(r)
	}
}

// addSteps takes in the steps that history knows of the one job.
func (n *Found) addSteps(r *acct.Record) { n.Steps = append(r.OwnSteps(), r.Steps...) }
