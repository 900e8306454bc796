package show

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestVerdict: each end that is not a good one has its cause in words, and the node that has to do with it.
func TestVerdict(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	root := uint32(0)
	job := func(how cluster.Outcome, change func(*cluster.Job)) *cluster.Job {
		j := &cluster.Job{ID: 7, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}, Phase: cluster.Ended,
			Outcome: how, Limit: time.Hour,
			Alloc: &cluster.Alloc{Shares: []cluster.Share{{Node: "n1", MemMB: 100}, {Node: "n2", MemMB: 200}}}}
		if change != nil {
			change(j)
		}
		return j
	}
	step := func(n, rank int, node cluster.NodeName, after time.Duration, change func(*cluster.Step)) *cluster.Step {
		s := &cluster.Step{
			ID:     cluster.StepID{Job: 7, Step: n},
			Failed: &cluster.TaskEnd{Rank: rank, Node: node, At: at.Add(after), Exit: cluster.ExitStatus{Code: 1}},
		}
		if change != nil {
			change(s)
		}
		return s
	}
	xid := &cluster.Blame{Node: "n2", Part: "GPU-1", Text: "GPU 0: XID 79, fell off the bus"}
	for name, c := range map[string]struct {
		j     *cluster.Job
		steps []*cluster.Step
		want  string
		node  cluster.NodeName
	}{
		"well": {job(cluster.Completed, nil), nil, "", ""},
		"lives": {
			&cluster.Job{Phase: cluster.Running, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}, nil,
			"", "",
		},
		"gpu": {
			job(cluster.NodeFailed, func(j *cluster.Job) { j.Blame = xid }), nil,
			"platform: n2: GPU 0: XID 79, fell off the bus", "n2",
		},
		"requeued": {
			job(cluster.Requeued, func(j *cluster.Job) { j.Blame = xid }), nil,
			"platform: n2: GPU 0: XID 79, fell off the bus", "n2",
		},
		"script": {
			job(cluster.Failed, func(j *cluster.Job) { j.Exit.Code = 3 }), nil,
			"program: its script ended with exit code 3", "",
		},
		"refused": {job(cluster.Failed, func(j *cluster.Job) {
			j.Exit.Code = 1
			j.EndReason = cluster.EndBadConstraints
		}),
			nil,
			"user: it was refused when it was submitted: no nodes can ever run what it asked for", ""},
		"signal": {
			job(cluster.Failed, func(j *cluster.Job) { j.Exit.Signal = 11 }), nil,
			"program: its script ended with signal 11 (segmentation fault)", "",
		},
		"rank": {
			job(cluster.Failed, nil),
			[]*cluster.Step{step(0, 5, "n2", time.Second, nil), step(1, 0, "n1", time.Minute, nil)},
			"program: task 5 of step 0 failed first, on n2, with exit code 1", "n2",
		},
		"not begun": {
			job(cluster.Failed, nil),
			[]*cluster.Step{step(0, 1, "n2", 0, func(s *cluster.Step) { s.Failed.Error = "no such file" })},
			"program: task 1 of step 0 could not be started on n2: no such file", "n2",
		},
		"perhaps": {job(cluster.Failed, func(j *cluster.Job) {
			j.Exit.Code = 1
			j.Blame = &cluster.Blame{Node: "n2", Text: "GPU 0: XID 31", Maybe: true}
		}), nil,
			"program: its script ended with exit code 1; this was seen then: n2: GPU 0: XID 31", "n2"},
		"memory": {
			job(cluster.OutOfMemory, nil), nil,
			"memory: the job's memory was used up on n1, where it had 100 MB", "n1",
		},
		"memory of 2": {
			job(cluster.OutOfMemory, nil),
			[]*cluster.Step{step(3, 1, "n2", 0, func(s *cluster.Step) { s.Outcome = cluster.OutOfMemory })},
			"memory: the job's memory was used up in step 3 on n2, where it had 200 MB", "n2",
		},
		"time": {job(cluster.TimedOut, nil), nil, "limit: its time limit of 1:00:00 was over", ""},
		"cancelled": {
			job(cluster.Cancelled, func(j *cluster.Job) { j.CancelledBy = &root }), nil,
			"user: it was cancelled by root", "",
		},
		"never": {
			job(cluster.Cancelled, func(j *cluster.Job) { j.EndReason = cluster.WaitDependencyNever }), nil,
			"policy: its dependency cannot be satisfied any more", "",
		},
		"preempted": {
			job(cluster.Preempted, func(j *cluster.Job) { j.Preempt = &cluster.Preemption{By: 9} }), nil,
			"policy: it made room for job 9", "",
		},
	} {
		if v := VerdictOf(c.j, c.steps); v.String() != c.want || v.Node != c.node {
			t.Errorf("%s: %q of %q, want %q of %q", name, v, v.Node, c.want, c.node)
		}
	}
}
