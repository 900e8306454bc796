package show

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// Verdict is why a job has ended that did not end well: whose doing it was, what is known of it, and the node that
// has to do with it. All are empty for a job that lives, or has ended well.
type Verdict struct {
	Kind string // platform, memory, limit, program, user, policy
	Text string
	Node cluster.NodeName
}

// VerdictText words why a job has ended: KIND: TEXT, "" if it lives or ended well.
func VerdictText(j *cluster.Job, steps []*cluster.Step) string { return VerdictOf(j, steps).String() }

// String is KIND: TEXT, "" for the zero value.
func (v Verdict) String() string {
	if v.Kind == "" {
		return ""
	}
	return v.Kind + ": " + v.Text
}

// VerdictOf judges a job by its record and those of its steps.
func VerdictOf(j *cluster.Job, steps []*cluster.Step) Verdict {
	how := j.Outcome
	if j.Phase != cluster.Ended {
		return Verdict{}
	}
	if b := j.Blame; b != nil && !b.Maybe && how != cluster.Completed {
		return Verdict{"platform", about(b), b.Node}
	}
	switch how {
	case cluster.OutOfMemory:
		return outOfMemory(j, steps)
	case cluster.TimedOut:
		return Verdict{Kind: "limit", Text: fmt.Sprintf("its time limit of %s was over", format.Duration(j.Limit))}
	case cluster.DeadlineMissed:
		return Verdict{Kind: "limit", Text: "its deadline was over"}
	case cluster.Cancelled:
		return cancelled(j)
	case cluster.Preempted:
		v := Verdict{Kind: "policy", Text: "it made room for a job of higher rank"}
		if p := j.Preempt; p != nil {
			v.Text = fmt.Sprintf("it made room for job %d", p.By)
		}
		return v
	case cluster.Failed:
		return failed(j, steps)
	}
	if how.Lost() {
		return Verdict{Kind: "platform", Text: cmp.Or(j.WaitNote, "one of its nodes failed")}
	}
	return Verdict{}
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

func outOfMemory(j *cluster.Job, steps []*cluster.Step) Verdict {
	v := Verdict{Kind: "memory", Text: "the job's memory was used up"}
	if j.Alloc != nil && len(j.Alloc.Shares) > 0 {
		v.Node = j.Alloc.Shares[0].Node
	}
	if s := firstFailure(steps); s != nil && s.Outcome == cluster.OutOfMemory {
		v.Node = s.Failed.Node
		v.Text = fmt.Sprintf("the job's memory was used up in step %d", s.ID.Step)
	}
	if sh, ok := j.Share(v.Node); ok && sh.MemMB > 0 {
		v.Text += fmt.Sprintf(" on %s, where it had %d MB", v.Node, sh.MemMB)
	}
	return v
}

func cancelled(j *cluster.Job) Verdict {
	switch {
	case j.EndReason == cluster.WaitDependencyNever:
		return Verdict{Kind: "policy", Text: "its dependency cannot be satisfied any more"}
	case j.CancelledBy == nil:
		return Verdict{Kind: "user", Text: strings.TrimSpace("it was cancelled " + j.WaitNote)}
	}
	name := fmt.Sprint("uid ", *j.CancelledBy)
	if u, ok := front.UserByID(*j.CancelledBy); ok {
		name = u.Name
	}
	return Verdict{Kind: "user", Text: "it was cancelled by " + name}
}

// failed is for jobs whose program ended with an error, or could not be started.
func failed(j *cluster.Job, steps []*cluster.Step) Verdict {
	v := Verdict{Kind: "program"}
	switch s := firstFailure(steps); {
	case s != nil && s.Failed.Error != "":
		v.Node = s.Failed.Node
		v.Text = fmt.Sprintf("task %d of step %d could not be started on %s: %s", s.Failed.Rank, s.ID.Step,
			s.Failed.Node, s.Failed.Error)
	case s != nil:
		v.Node = s.Failed.Node
		v.Text = fmt.Sprintf("task %d of step %d failed first, on %s, with %s", s.Failed.Rank, s.ID.Step,
			s.Failed.Node, endText(s.Failed.Exit))
	case j.EndReason == cluster.EndLaunchFailure:
		v.Text = "it could not be started: " + j.WaitNote
	case j.EndReason == cluster.EndBadConstraints:
		v.Kind, v.Text = "user", "it was refused when it was submitted: no nodes can ever run what it asked for"
	default:
		v.Text = "its script ended with " + endText(j.Exit)
	}
	if b := j.Blame; b != nil { // noted meanwhile
		v.Text += "; this was seen then: " + about(b)
		v.Node = cmp.Or(v.Node, b.Node)
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
