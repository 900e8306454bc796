package cluster

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// Launch is one task about to be started on a node, with everything that the dialect needs to
// compute its environment and file names. Step is nil for a batch script.
type Launch struct {
	Job       *Job
	Sisters   []*Job // the other components of a heterogeneous job, for its script
	Config    *Config
	Inventory *Inventory // of this node
	Node      NodeName
	NodeID    int // index of the node in the step (job for a batch script)
	Step      *Step
	Spec      *StepSpec
	Rank      int
	LocalRank int
	Ranks     [][]int    // ranks of every node of the step, by NodeID
	GPUs      GPUBinding // devices the task may use
	Fenced    bool       // the job's programs see no devices but its own, and number these from 0
	Daemon    string     // address for clients inside the job
	Own       BlobText   // what the user brings: NAME=value, separated by NULs
}

// ShareHere is the job's share on the launch's node.
func (l *Launch) ShareHere() Share { s, _ := l.Job.Share(l.Node); return s }

// A launch is all or nothing: a job's nodes confirm it, and only when all have does its script begin. If
// one cannot, or does not in time, the allocation is undone: the job goes back into the queue and stays
// off that node.

// maxLaunches is how many nodes may fail to launch a job. Then it is held: it may be the job.
const maxLaunches = 3

// Reasons of nodes that are drained because of a launch.
const (
	launchUnconfirmed = "Launch not confirmed" // until the node reports again
	launchFailed      = "Launch failed: "
)

// Reasons of nodes whose prolog or epilog failed.
const (
	PrologError = "Prolog error"
	EpilogError = "Epilog error"
)

// LaunchLimit is until when the job's nodes must have confirmed it, zero if it is not about to begin.
func (j *Job) LaunchLimit(c *Config) time.Time {
	if j.Phase != Starting || c.LaunchTimeout == 0 || len(j.Waiting) == 0 || Configuring(j) || // it may wait for other components
		c.Prolog != "" && c.PrologTimeout == 0 {
		return time.Time{}
	}
	limit := c.LaunchTimeout
	if c.Prolog != "" {
		limit += c.PrologTimeout
	}
	return j.Begun().Add(limit)
}

// Unconfirmed yields the jobs that all nodes should have confirmed by now.
func (t *tables) Unconfirmed(now time.Time) iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		t.timers.Scan(func(k timerKey) bool {
			if k.at.After(now) {
				return false
			}
			j, _ := t.jobs.Get(k.id)
			limit := j.LaunchLimit(t.config)
			return limit.IsZero() || limit.After(now) || yield(j)
		})
	}
}

// takeBack takes a job's launch back because of some nodes.
func (t *tx) takeBack(n *Job, nodes []NodeName, why string) {
	n.Avoid = slices.Clone(n.Avoid)
	t.blame(nodes, troubleNotStarted)
	for _, name := range nodes {
		n.Avoid = append(n.Avoid, Avoided{name, why})
	}
	enough := len(n.Avoid) >= min(maxLaunches, t.NodeCount())
	n.RequeueAfter = n.Spec.Kind == Batch || !enough
	n.RequeueHold = enough
	for _, name := range nodes {
		n.blamed(Blame{Node: name, Text: "could not launch it: " + why})
	}
	t.end(n, NodeFailed, EndLaunchFailure)
	n.WaitNote = why
}

// unconfirmed undoes a launch that is late. The nodes that have not confirmed it are not waited for any
// more: should they hear of it yet, they will hear too that it is over.
func (t *tx) unconfirmed(n *Job) {
	if limit := n.LaunchLimit(t.config); limit.IsZero() || limit.After(t.at) {
		return
	}
	silent := n.Waiting
	t.takeBack(n, silent, fmt.Sprintf("not confirmed within %v", t.config.LaunchTimeout))
	t.putJob(n)
	t.tell(n)
	t.endRest(n)
	for _, name := range silent {
		t.drain(name, launchUnconfirmed)
		j, _ := t.jobs.Get(n.ID)
		c := *j
		t.doneOn(&c, name)
	}
}

// drain keeps new jobs off a node, unless it is drained already.
func (t *tx) drain(name NodeName, why string) {
	old, ok := t.nodes.Get(name)
	if !ok || old.Drain {
		return
	}
	n := *old
	n.Drain = true
	n.Reason = why
	n.ReasonBy = "slurm"
	n.ReasonUID = 0
	n.ReasonAt = t.at
	t.putNode(&n)
	t.events = append(t.events, Event{Node: &n})
}

// IsUnconfirmed reports whether jobs are kept off the node for a launch that it did not confirm.
func (n *Node) IsUnconfirmed() bool {
	return n.Drain && n.ReasonBy == "slurm" && n.Reason == launchUnconfirmed
}

// confirmsAgain undrains a node that was drained only for its silence.
func (n *Node) confirmsAgain() {
	if n.IsUnconfirmed() {
		n.Drain = false
		n.Reason = ""
		n.ReasonBy = ""
	}
}
