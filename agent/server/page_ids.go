package server

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"dev.muster/acct"
	"dev.muster/cluster"
)

// maxTaskText bounds the numbers of tasks in the id of a record that stands for several.
const maxTaskText = 24

// jobID is how squeue calls a job: an array's tasks by its id and their numbers, components by their leader's and
// their offset.
func jobID(j *cluster.Job) string {
	switch {
	case j.Het != nil:
		return fmt.Sprintf("%d+%d", j.Het.ID, j.Het.Offset)
	case j.ArrayID != 0 && !j.Tasks.Empty():
		text := j.Tasks.String()
		if len(text) > maxTaskText {
			text = text[:strings.LastIndexByte(text[:maxTaskText], ',')+1] + "…"
		}
		return fmt.Sprintf("%d_[%s]", j.ArrayID, text)
	case j.ArrayID != 0:
		return fmt.Sprintf("%d_%d", j.ArrayID, j.Task)
	}
	return strconv.Itoa(int(j.ID))
}

// jobName is how a job is called in addresses: a record that stands for several tasks is told of with its array.
func jobName(j *cluster.Job) string {
	if j.ArrayID != 0 && !j.Tasks.Empty() {
		return strconv.Itoa(int(j.ArrayID))
	}
	return jobID(j)
}

func jobPath(j *cluster.Job) string { return "/jobs/" + url.PathEscape(jobName(j)) }

// jobRef reads a job's id as squeue writes it: 56, 56_1, 61+1.
func jobRef(text string) (ref cluster.Ref, ok bool) {
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

// named is what an address of the page names: a job, or an array as a whole.
type named struct {
	text  string
	ref   cluster.Ref
	job   *cluster.Job    // of an array as a whole, one of its records
	tasks []*cluster.Job  // of an array as a whole; of those from history the latest
	lives bool            // the job has a record in the state
	steps []*cluster.Step // of a job from history
}

// maxPastTasks bounds the tasks of an array that are read from history.
const maxPastTasks = 2000

// find looks for what an address names, in the state and then in history. Only what never was, or is hidden from
// the visitor, is not found.
func (s *pages) find(ctx context.Context, sees visibility, text string) (n named, err error) {
	ref, ok := jobRef(text)
	if n.text, n.ref = text, ref; !ok {
		return n, noSuchJob(text)
	}
	n.live(sees.snap)
	if n.job == nil || n.job.Phase == cluster.Ended {
		if err := findPast(ctx, s, &n); err != nil {
			return n, err
		}
	}
	switch {
	case n.job == nil && s.hist != nil && ref.Job < sees.snap.NextID:
		return n, cluster.Errorf(cluster.NotFound, gone, "job %s was, but its record is not kept any more", text)
	case n.job == nil || !sees.job(n.job):
		return n, noSuchJob(text)
	}
	return n, nil
}

// gone is the error of what was, and is not kept any more.
const gone cluster.ErrKind = "gone"

func noSuchJob(text string) error {
	return cluster.Errorf(cluster.NotFound, "", "there is no job %s, and history has none", text)
}

// live looks for it among the records of the state.
func (n *named) live(snap *cluster.Snapshot) {
	if n.ref.Part == 0 && n.ref.Tasks.Empty() {
		for m := range snap.Members(n.ref.Job) {
			n.tasks = append(n.tasks, m)
		}
	}
	switch {
	case n.tasks != nil:
		n.job, n.lives = n.tasks[0], true
		return
	case n.ref.Tasks.Empty():
		j, ok := snap.Job(n.ref.One())
		if ok && (n.ref.Part == 0 || n.ref.Names(j)) {
			n.job, n.lives = j, true
		}
		return
	}
	for _, j := range snap.Find(n.ref) {
		n.job, n.lives = j, true
	}
}

// findPast adds what history knows.
func findPast(ctx context.Context, s *pages, n *named) error {
	if s.hist == nil {
		return nil
	}
	if !s.hist.Whole() {
		return cluster.Errorf(cluster.Unavailable, "",
			"the history is still on its way to this server; ask another one")
	}
	apart := false
	q := acct.Query{Refs: []cluster.Ref{n.ref}, Steps: n.ref.Part > 0 || !n.lives || n.tasks == nil,
		Latest: maxPastTasks}
	q.WholeHet = &apart
	known := map[cluster.JobID]bool{}
	for _, m := range n.tasks {
		known[m.ID] = true
	}
	for r, err := range s.hist.Jobs(ctx, q) {
		switch {
		case err != nil:
			return err
		case n.ref.Part == 0 && n.ref.Tasks.Empty() && r.Job.ArrayID == n.ref.Job:
			if !known[r.Job.ID] {
				n.tasks = append(n.tasks, r.Job)
			}
			if n.job == nil {
				n.job = r.Job
			}
		case n.lives && n.job.ID != r.Job.ID:
		default:
			if !n.lives {
				n.job = r.Job
			}
			n.steps = append(ownSteps(r), r.Steps...)
		}
	}
	return nil
}

// nodeWord is a node's condition in events and metrics, which called a node unknown before pages called it absent.
func nodeWord(n *cluster.Node, busy bool) string {
	if word := n.Word(busy); word != "absent" {
		return word
	}
	return "unknown"
}
