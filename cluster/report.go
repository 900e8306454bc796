package cluster

import (
	"cmp"
	"slices"
	"time"
)

// UpdateKind says what a node tells of a job.
type UpdateKind string

// The kinds of update.
const (
	// NodeReady: the node has the job's attempt and is prepared to run it.
	NodeReady UpdateKind = "ready"
	// LaunchFailed: the node could not begin; the job goes elsewhere. With Fault it is no fault of the
	// job's: the node is drained.
	LaunchFailed UpdateKind = "launch_failed"
	// BatchOver: the batch script ended (or could not be run, with Error).
	BatchOver UpdateKind = "batch_over"
	// NodeDone: nothing of the job is left on the node.
	NodeDone UpdateKind = "done"
	// StepNow: a step began or ended.
	StepNow UpdateKind = "step"
	// JobLost: the node should be running the attempt but knows nothing of it (it was rebooted).
	JobLost UpdateKind = "lost"
)

// Final reports whether nothing of an attempt is begun on a node after such news.
func (k UpdateKind) Final() bool {
	return k == NodeDone || k == BatchOver || k == JobLost || k == LaunchFailed
}

// Update is one thing that happened to a job on a node.
type Update struct {
	Kind    UpdateKind `json:"kind"`
	Job     JobID      `json:"job"`
	Attempt int        `json:"attempt"`
	At      time.Time  `json:"at"`
	Exit    ExitStatus `json:"exit,omitzero"`
	OOM     bool       `json:"oom,omitempty"`
	Error   string     `json:"error,omitempty"`
	Fault   bool       `json:"fault,omitempty"`
	Usage   Usage      `json:"usage,omitzero"`
	Step    *Step      `json:"step,omitempty"`
}

// Report carries what happened on a node since its last report. Seq counts up; a report seen
// before changes nothing. Late news of an old attempt changes nothing either.
type Report struct {
	Node    NodeName `json:"node"`
	Seq     uint64   `json:"seq"`
	Updates []Update `json:"updates"`
}

func (*Report) kind() string { return "report" }

func (c *Report) apply(t *tx) (any, error) {
	node, ok := t.nodes.Get(c.Node)
	if !ok {
		return nil, Errorf(NotFound, ErrNodeName, "node %s does not exist", c.Node)
	}
	if c.Seq <= node.ReportSeq {
		return nil, nil
	}
	n := *node
	n.ReportSeq = c.Seq
	n.LastBusy = t.at
	n.confirmsAgain()
	t.putNode(&n)
	t.updates(c.Node, c.Updates)
	return nil, nil
}

// updates takes a node's news of attempts that go on; late news of old ones changes nothing.
func (t *tx) updates(node NodeName, news []Update) {
	for _, u := range news {
		j, ok := t.jobs.Get(u.Job)
		if !ok || j.Attempt != u.Attempt {
			continue
		}
		if u.Kind == StepNow {
			t.stepNow(j, u)
			continue
		}
		if j.holds() {
			t.update(j, node, u)
		}
	}
}

func (t *tx) update(old *Job, node NodeName, u Update) {
	n := *old
	switch u.Kind {
	case NodeReady:
		if n.Phase != Starting {
			return
		}
		n.Waiting = without(n.Waiting, node)
		switch {
		case len(n.Waiting) > 0:
			t.putJob(&n)
			return // no news: on which all nodes of the job would ask for their work, for each of them
		case n.Het != nil:
			t.confirmed(&n)
		default:
			goOn(&n, t.at)
		}
	case BatchOver:
		t.batchOver(&n, u)
	case LaunchFailed:
		if n.Phase == Ending {
			return // it ends for a better reason already
		}
		t.takeBack(&n, []NodeName{node}, u.Error)
		if u.Fault {
			why := launchFailed + u.Error
			if u.Error == PrologError {
				why = u.Error
				n.RequeueHold = !t.config.NoPrologHold
				n.RequeueAfter = n.Spec.Kind == Batch
			}
			t.drain(node, why)
		}
	case JobLost:
		if n.Phase == Ending {
			t.doneOn(&n, node)
			return
		}
		t.lost(&n, node)
		return
	case NodeDone:
		if n.Phase != Ending && !n.leaves(node) {
			return
		}
		if t.doneOn(&n, node); u.Fault {
			t.drain(node, u.Error)
		}
		return
	}
	t.putJob(&n)
	t.tell(&n)
	if n.Phase == Ending && old.Phase != Ending {
		t.endRest(&n)
	}
}

func (t *tx) batchOver(n *Job, u Update) {
	n.Exit = u.Exit
	if n.Phase == Ending {
		return
	}
	how := Completed
	why := NoReason
	switch {
	case u.OOM:
		how = OutOfMemory
		why = EndOutOfMemory
		n.Exit = OOMExit
	case u.Error != "":
		how = Failed
		why = EndLaunchFailure
		n.WaitNote = u.Error
	case u.Exit.Code != 0 || u.Exit.Signal != 0:
		how = Failed
		why = EndNonZeroExit
	}
	if how == Failed {
		t.suspected(n)
	}
	if how == Failed && u.Exit.Signal == 0 && u.Error == "" {
		hold := t.config.RequeueExitHold.Has(u.Exit.Code)
		n.RequeueAfter = hold || t.config.RequeueExit.Has(u.Exit.Code)
		n.RequeueHold = hold
		n.SpecialExit = hold
	}
	t.end(n, how, why)
	n.EndingAt = later(cmp.Or(u.At, t.at), n.since())
}

// doneOn frees the job's share on a node that is clean, and if it ends, ends it when all are.
func (t *tx) doneOn(n *Job, node NodeName) {
	if !slices.Contains(n.Waiting, node) && !n.leaves(node) {
		return
	}
	if !n.Alloc.Keeps || n.leaves(node) {
		t.take(n, node)
	}
	n.Waiting = without(n.Waiting, node)
	n.Shrunk = n.Shrunk.without(node)
	if n.Phase != Ending || len(n.Waiting)+len(n.Leaving()) > 0 {
		t.putJob(n)
		return
	}
	if n.Alloc.Keeps {
		t.take(n, partNodes(n)...)
	}
	n.Phase = Ended
	n.Outcome = n.EndingWhy
	n.Ended = t.since(n.EndingAt)
	t.charge(n)
	t.refund(n)
	n.RequeueAfter = n.RequeueAfter || recurs(n)
	burstOver(t, n)
	t.putJob(n)
	if n.RequeueAfter {
		t.tell(n)
		t.endSteps(n)
		c := *n
		t.requeued(&c)
		return
	}
	t.ended(n)
}

// mayAgain reports whether a job goes back into the queue when the platform has ended it.
func mayAgain(j *Job) bool {
	again := j.Spec.Survives().Expedite || j.Spec.Requeue != nil && *j.Spec.Requeue
	return j.Spec.Kind == Batch && again
}

// whyLost words why a job cannot go on on a node.
func (t *tx) whyLost(node NodeName) string {
	n, ok := t.nodes.Get(node)
	switch {
	case !ok:
		return "the node was deleted"
	case n.Down && n.Reason != "":
		return "the node went down: " + n.Reason
	case n.Down:
		return "the node went down"
	}
	return "the node lost the job's processes"
}

// lost deals with a job one of whose nodes is gone.
func (t *tx) lost(n *Job, node NodeName) {
	if isSpare(n, node) {
		dropSpare(t, n, node)
		return
	}
	requeue := mayAgain(n)
	if n.leaves(node) {
		t.doneOn(n, node)
		return
	}
	if outlives(t, n, node) {
		goOnWithout(t, n, node, t.whyLost(node))
		c := *n
		t.doneOn(&c, node)
		return
	}
	lives := n.Phase != Ending
	if lives {
		n.RequeueAfter = requeue
		keepNodes(n)
		n.blamed(Blame{Node: node, Text: t.whyLost(node)})
		t.end(n, NodeFailed, EndNodeDown)
	}
	t.putJob(n)
	c := *n // n is in the table now and must not change
	t.doneOn(&c, node)
	if c.Phase == Ending {
		t.tell(&c) // its other nodes must hear of it
	}
	if lives {
		t.endRest(n)
	}
}

func (t *tx) stepNow(j *Job, u Update) {
	s := u.Step
	if s == nil || s.ID.Job != j.ID {
		return
	}
	if s.Ended.IsZero() {
		if j.holds() {
			putItem(t, t.steps, s)
		}
	} else {
		dropItem(t, t.steps, s)
		c := *s
		c.Ended = later(c.Ended, c.Started)
		s = &c
	}
	late := j.Phase == Pending // of the attempt before: the next one counts again
	if !late && (s.ID.Step >= j.NextStep || worse(s.Exit, j.Derived) && s.ID.Step >= 0) {
		n := *j
		n.NextStep = max(n.NextStep, s.ID.Step+1)
		if s.ID.Step >= 0 && worse(s.Exit, n.Derived) {
			n.Derived = s.Exit
		}
		t.putJob(&n)
	}
	t.events = append(t.events, Event{Step: s})
}

func worse(a, b ExitStatus) bool {
	return max(a.Code, a.Signal) > max(b.Code, b.Signal)
}

func without(names []NodeName, n NodeName) []NodeName {
	return slices.DeleteFunc(slices.Clone(names), func(x NodeName) bool { return x == n })
}
