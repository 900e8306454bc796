package slurm

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// verdict is why a job has ended that did not end well: whose doing it was, what is known of it, and the node that has to do
// with it. All are empty for a job that lives, or has ended well.
type verdict struct {
	kind string // platform, memory, limit, program, user, policy
	text string
	node cluster.NodeName
}

// Verdict words why a job has ended: KIND: TEXT, "" if it lives or ended well.
func Verdict(j *cluster.Job, steps []*cluster.Step) string { return verdictOf(j, steps).String() }

func (v verdict) String() string {
	if v.kind == "" {
		return ""
	}
	return v.kind + ": " + v.text
}

// verdictOf judges a job by its record and those of its steps.
func verdictOf(j *cluster.Job, steps []*cluster.Step) verdict {
	how := j.Outcome
	if j.Phase != cluster.Ended {
		return verdict{}
	}
	if b := j.Blame; b != nil && !b.Maybe && how != cluster.Completed {
		return verdict{"platform", about(b), b.Node}
	}
	switch how {
	case cluster.OutOfMemory:
		return outOfMemory(j, steps)
	case cluster.TimedOut:
		return verdict{kind: "limit", text: fmt.Sprintf("its time limit of %s was over", format.Duration(j.Limit))}
	case cluster.DeadlineMissed:
		return verdict{kind: "limit", text: "its deadline was over"}
	case cluster.Cancelled:
		return cancelled(j)
	case cluster.Preempted:
		v := verdict{kind: "policy", text: "it made room for a job of higher rank"}
		if p := j.Preempt; p != nil {
			v.text = fmt.Sprintf("it made room for job %d", p.By)
		}
		return v
	case cluster.NodeFailed, cluster.BootFailed:
		return verdict{kind: "platform", text: cmp.Or(j.WaitNote, "one of its nodes failed")}
	case cluster.Failed:
		return failed(j, steps)
	}
	return verdict{}
}

func about(b *cluster.Blame) string {
	if b.Node == "" {
		return b.Text
	}
	return string(b.Node) + ": " + b.Text
}

// firstFailure is the step, and its task, that failed first.
func firstFailure(steps []*cluster.Step) (first *cluster.Step) {
	for _, s := range steps {
		if s.Failed != nil && s.ID.Step >= 0 && (first == nil || s.Failed.Before(first.Failed)) {
			first = s
		}
	}
	return first
}

func outOfMemory(j *cluster.Job, steps []*cluster.Step) verdict {
	v := verdict{kind: "memory", text: "the job's memory was used up"}
	if j.Alloc != nil && len(j.Alloc.Shares) > 0 {
		v.node = j.Alloc.Shares[0].Node
	}
	if s := firstFailure(steps); s != nil && s.Outcome == cluster.OutOfMemory {
		v.node = s.Failed.Node
		v.text = fmt.Sprintf("the job's memory was used up in step %d", s.ID.Step)
	}
	if sh, ok := j.Share(v.node); ok && sh.MemMB > 0 {
		v.text += fmt.Sprintf(" on %s, where it had %d MB", v.node, sh.MemMB)
	}
	return v
}

func cancelled(j *cluster.Job) verdict {
	switch {
	case j.EndReason == cluster.WaitDependencyNever:
		return verdict{kind: "policy", text: "its dependency can not be satisfied any more"}
	case j.CancelledBy == nil:
		return verdict{kind: "user", text: strings.TrimSpace("it was cancelled " + j.WaitNote)}
	}
	name := fmt.Sprint("uid ", *j.CancelledBy)
	if u, ok := front.UserByID(*j.CancelledBy); ok {
		name = u.Name
	}
	return verdict{kind: "user", text: "it was cancelled by " + name}
}

// failed is for jobs whose program ended with an error, or could not be started.
func failed(j *cluster.Job, steps []*cluster.Step) verdict {
	v := verdict{kind: "program"}
	switch s := firstFailure(steps); {
	case s != nil && s.Failed.Error != "":
		v.node, v.text = s.Failed.Node, fmt.Sprintf("task %d of step %d could not be started on %s: %s", s.Failed.Rank, s.ID.Step, s.Failed.Node, s.Failed.Error)
	case s != nil:
		v.node, v.text = s.Failed.Node, fmt.Sprintf("task %d of step %d failed first, on %s, with %s", s.Failed.Rank, s.ID.Step, s.Failed.Node, endText(s.Failed.Exit))
	case j.EndReason == cluster.EndLaunchFailure:
		v.text = "it could not be started: " + j.WaitNote
	case j.EndReason == cluster.EndBadConstraints:
		v.kind, v.text = "user", "it was refused when it was submitted: no nodes can ever run what it asked for"
	default:
		v.text = "its script ended with " + endText(j.Exit)
	}
	if b := j.Blame; b != nil { // noted meanwhile
		v.text += "; this was seen then: " + about(b)
		v.node = cmp.Or(v.node, b.Node)
	}
	return v
}

// endText words how a program ended.
func endText(e cluster.ExitStatus) string {
	if e.Signal != 0 {
		return fmt.Sprintf("signal %d (%s)", e.Signal, syscall.Signal(e.Signal))
	}
	return fmt.Sprintf("exit code %d", e.Code)
}
