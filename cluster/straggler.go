package cluster

import (
	"slices"
	"time"
)

// StragglerAction says what becomes of a job of which one GPU is slower than the others (--straggler).
type StragglerAction string

// The actions. In each case but StragglerOff the node's failure score rises, and muster why names the GPU.
const (
	StragglerDefault StragglerAction = ""       // nothing else
	StragglerOff     StragglerAction = "off"    // do not look
	StragglerReport  StragglerAction = "report" // note it in the job's record and output, and notify its user
	StragglerSwap    StragglerAction = "swap"   // also replace the node by a spare; without one, only report
)

// stragglerActions are the words that users may say.
var stragglerActions = [...]StragglerAction{StragglerOff, StragglerReport, StragglerSwap}

// checkStraggler refuses an action that is not known.
func (s *JobSpec) checkStraggler() error {
	asked := s.Survives().Straggler
	if asked == StragglerDefault || slices.Contains(stragglerActions[:], asked) {
		return nil
	}
	return Errorf(Invalid, "", "--straggler=%s: want off, report or swap", asked)
}

// Straggler is the last slow GPU of a job that was found.
type Straggler struct {
	At      time.Time       `json:"at"`
	Attempt int             `json:"attempt"`
	Node    NodeName        `json:"node"`
	Text    string          `json:"text"`             // the evidence
	Action  StragglerAction `json:"action,omitempty"` // what was done about it
	Swaps   Budget          `json:"swaps,omitzero"`
}

// Budget counts actions within a day.
type Budget struct {
	Since time.Time `json:"since,omitzero"` // when the day began
	Used  int       `json:"used,omitempty"`
}

// budgetTime is after what time a budget is full again.
const budgetTime = 24 * time.Hour

// left returns the budget as it is now, and whether there is anything left of it.
func (b Budget) left(most int, now time.Time) (Budget, bool) {
	if now.Sub(b.Since) >= budgetTime {
		b = Budget{Since: now}
	}
	return b, b.Used < most
}

// stragglerAgain is how long after a slow GPU the same attempt may be found to have another one.
const stragglerAgain = time.Hour

// SlowLately reports whether the present attempt was found to have a slow GPU, and that was dealt with.
func SlowLately(j *Job, now time.Time) bool {
	slow := Survived(j).Slow
	return slow != nil && slow.Attempt == j.Attempt && now.Sub(slow.At) < stragglerAgain
}

// Note is what is said of a slow GPU in one line.
func (s *Straggler) Note() string {
	text := "STRAGGLER: " + s.Text
	if s.Action == StragglerSwap {
		text += "; a spare has taken the place of its node"
	}
	return text
}

// StragglerFound says that a GPU of a job is slower than the others, and acts as the job's rule says: once an hour for
// each attempt.
type StragglerFound struct {
	Job     JobID    `json:"job"`
	Attempt int      `json:"attempt"`
	Node    NodeName `json:"node"`
	Text    string   `json:"text" text:"1024"`
}

func (*StragglerFound) kind() string { return "straggler" }

// apply returns the StragglerAction that was taken, or StragglerOff if the job was dealt with or does not run there.
func (c *StragglerFound) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "only the leader finds slow GPUs")
	}
	j, ok := t.jobs.Get(c.Job)
	if !ok || j.Phase != Running || j.Attempt != c.Attempt || SlowLately(j, t.at) {
		return StragglerOff, nil
	}
	rule := j.Spec.Survives().Straggler
	if _, there := j.Share(c.Node); !there || rule == StragglerOff {
		return StragglerOff, nil
	}
	known := Survived(j)
	slow := &Straggler{At: t.at, Attempt: j.Attempt, Node: c.Node, Text: plainLine(c.Text), Action: rule}
	if known.Slow != nil {
		slow.Swaps = known.Slow.Swaps
	}
	t.blame([]NodeName{c.Node}, troubleSlow)
	n := *j
	if rule == StragglerSwap {
		slow.Action = StragglerReport
		budget, left := slow.Swaps.left(maxHangActions, t.at)
		if _, err := swapIf(t, &n, c.Node, left); err == nil {
			slow.Action = StragglerSwap
			budget.Used++
		}
		slow.Swaps = budget
	}
	known.Slow = slow
	n.Survival = &known
	if rule != StragglerDefault {
		n.SystemComment = slow.Note()
	}
	t.putJob(&n)
	t.tell(&n)
	if rule != StragglerDefault {
		t.inform(EventStraggler, &n, nil)
	}
	return slow.Action, nil
}

// swapIf replaces a slow node of a job by a spare, if that is allowed; n is a copy.
func swapIf(t *tx, n *Job, node NodeName, allowed bool) (NodeName, error) {
	if !allowed {
		return "", Errorf(Conflict, ErrBusy, "job %d has had %d swaps within %v", n.ID, maxHangActions, budgetTime)
	}
	return swapNode(t, n, node, "one of its GPUs was slow")
}
