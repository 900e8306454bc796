package cluster

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Traces of jobs, nodes and reservations in history, for reports. All times are whole Unix seconds: a job's run
// begins at the second in which it started and lasts as many whole seconds as history shows for it, so that
// sums over any spans that follow each other add up to what sacct shows.

// Span is a time from one second to another, which is no part of it.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"` // or Endless
}

// Endless is the end of what goes on.
const Endless = 1 << 40

// Within is how many seconds of the span lie in another one.
func (s Span) Within(o Span) int64 { return max(min(s.To, o.To)-max(s.From, o.From), 0) }

// UsageClass is what runs have in common that reports sum up.
type UsageClass struct {
	Account     string   `json:"account,omitempty"`
	User        string   `json:"user,omitempty"`
	UID         uint32   `json:"uid"`
	GID         uint32   `json:"gid"`
	Partition   string   `json:"partition,omitempty"`
	WCKey       string   `json:"wckey,omitempty"`
	QOS         string   `json:"qos,omitempty"`
	Reservation string   `json:"reservation,omitempty"`
	TRES        []Amount `json:"tres"` // what one run holds, billing among it: whole numbers
	// Outcome is how the attempt ended, and Cause a failure's.
	Outcome Outcome `json:"outcome,omitempty"`
	Cause   Reason  `json:"cause,omitempty"`
	// Refunded: nobody is charged for it, since the platform ended it.
	Refunded bool `json:"refunded,omitempty"`
}

// Footprint is what the record of one attempt of a job leaves.
type Footprint struct {
	Class UsageClass
	Runs  []Span // pauses are left out; none: it never started
	Wait  Span   // eligible and not started; empty: never
	Waits int64  // for how many CPUs it waited
}

// Footprint works it out.
func (j *Job) Footprint() (f Footprint) {
	if j.Imported != nil {
		return importedFootprint(j)
	}
	if !j.Eligible.IsZero() {
		f.Wait = Span{j.Eligible.Unix(), Endless}
		switch {
		case !j.Started.IsZero():
			f.Wait.To = j.Started.Unix()
		case j.Phase == Ended:
			f.Wait.To = j.Ended.Unix()
		case j.Held != NotHeld:
			f.Wait.To = f.Wait.From
		}
		f.Wait.To = max(f.Wait.To, f.Wait.From)
		n := j.Spec.Asks()
		f.Waits = int64(n.CPUs) * int64(max(j.Tasks.Len(), 1))
	}
	if j.Started.IsZero() || j.Alloc == nil {
		return f
	}
	f.Class = UsageClass{
		Account:     j.Spec.Account,
		User:        j.Spec.User,
		UID:         j.Spec.UID,
		GID:         j.Spec.GID,
		Partition:   j.Alloc.Partition,
		WCKey:       strings.TrimPrefix(j.Spec.WCKey, WCKeyDefault),
		QOS:         j.Spec.QOS,
		Reservation: j.Alloc.Reservation,
		TRES:        j.Given(),
	}
	if j.Phase == Ended {
		f.Class.Outcome = j.Outcome
		f.Class.Refunded = j.Refunded
		if j.Outcome == NodeFailed {
			f.Class.Cause = j.EndReason
		}
	}
	f.Runs = runsOf(j)
	return f
}

// Given lists what an allocated job was given, with what that is billed, in whole numbers.
func (j *Job) Given() []Amount {
	list := j.Amounts(nil, nil)
	billing := amountOf(list, "cpu")
	if j.Alloc.Billing != nil {
		billing = math.Floor(*j.Alloc.Billing)
	}
	return append(list, Amount{"billing", billing})
}

// runsOf returns the times in which a job ran: as many whole seconds in all as its run time has.
func runsOf(j *Job) (out []Span) {
	var done time.Duration // how long it had run when the next piece begins
	begin := j.Started
	piece := func(ran time.Duration) {
		secs := int64(ran/time.Second) - int64(done/time.Second)
		if secs > 0 {
			out = append(out, Span{begin.Unix(), begin.Unix() + secs})
		}
		done = ran
	}
	for _, p := range j.Pauses {
		piece(done + max(p.From.Sub(begin), 0))
		begin = p.To
	}
	switch {
	case j.Phase == Ended:
		piece(j.RunTime(j.Ended))
	case j.Phase == Suspended:
		piece(j.RunTime(j.SuspendedAt))
	default:
		out = append(out, Span{begin.Unix(), Endless})
	}
	if out == nil { // less than a second
		out = append(out, Span{j.Started.Unix(), j.Started.Unix()})
	}
	return out
}

// NodeSpan is a time in which a node stayed as it was.
type NodeSpan struct {
	Node   NodeName `json:"node"`
	From   int64    `json:"from"`
	To     int64    `json:"to,omitempty"` // 0: it still is
	Down   bool     `json:"down,omitempty"`
	Drain  bool     `json:"drain,omitempty"`
	Off    bool     `json:"off,omitempty"` // it is meant to be away: a cloud node that is not there
	Lost   bool     `json:"lost,omitempty"`
	Idle   bool     `json:"idle,omitempty"` // it has no jobs; of a drained node alone
	Reason string   `json:"reason,omitempty"`
	By     string   `json:"by,omitempty"`
	ByUID  uint32   `json:"by_uid,omitempty"`
	TRES   []Amount `json:"tres"`
	// Forgotten says that the event's record is gone (PurgeEventAfter): why and by whom, but for how long.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Span is how the node of an event is from then on.
func (e *Event) Span() NodeSpan {
	n := e.Node
	s := NodeSpan{
		Node:  n.Name,
		From:  e.At.Unix(),
		Drain: n.Drain,
		Lost:  !n.Up,
		TRES:  n.Amounts(),
	}
	s.Off = (n.Expected != "" || n.Power != nil) && !n.Up && !n.Down
	s.Down = n.Down || !n.Up && !s.Off
	if s.Event() {
		s.Reason = n.Reason
		s.By = n.ReasonBy
		s.ByUID = n.ReasonUID
		s.Idle = e.Idle
	}
	return s
}

// Out reports whether the node gave nothing to jobs: it was down, or drained and empty.
func (s *NodeSpan) Out() bool {
	return s.Down || s.Drain && s.Idle
}

// Event reports whether the span is one that operators look for: the node was down or drained.
func (s *NodeSpan) Event() bool { return s.Down || s.Drain }

// SameEvent reports whether the event of one span goes on in another: a drained node that becomes empty.
func (s *NodeSpan) SameEvent(o *NodeSpan) bool {
	return s.Event() == o.Event() && s.Down == o.Down && s.Reason == o.Reason
}

// Same reports whether nothing that reports show has changed between two spans.
func (s *NodeSpan) Same(o *NodeSpan) bool {
	return s.conditions() == o.conditions() && s.Reason == o.Reason && slices.Equal(s.TRES, o.TRES)
}

func (s *NodeSpan) conditions() [5]bool { return [...]bool{s.Down, s.Drain, s.Off, s.Lost, s.Idle} }

// Time is the span's time.
func (s *NodeSpan) Time() Span {
	if s.To == 0 {
		return Span{s.From, Endless}
	}
	return Span{s.From, s.To}
}

// Amounts lists what a node has; billing is its CPUs.
func (n *Node) Amounts() []Amount {
	inv := &n.Inventory
	out := []Amount{
		{"cpu", float64(inv.CPUs)}, {"mem", float64(inv.MemMB)}, {"node", 1},
		{"billing", float64(inv.CPUs)},
	}
	types := map[string]int64{}
	for i := range inv.GPUs {
		types[inv.GPUs[i].Type]++
	}
	if len(inv.GPUs) > 0 {
		out = append(out, Amount{"gres/gpu", float64(len(inv.GPUs))})
	}
	for _, name := range sortedNames(types) {
		if name != "" {
			out = append(out, Amount{"gres/gpu:" + name, float64(types[name])})
		}
	}
	return out
}

// ResvSpan is one time of a reservation.
type ResvSpan struct {
	ID       int64      `json:"id"`
	Name     string     `json:"name"`
	From     int64      `json:"from"`
	To       int64      `json:"to"`
	Nodes    []NodeName `json:"nodes"`
	Flags    ResvFlags  `json:"flags,omitempty"`
	Users    []string   `json:"users,omitempty"`
	Accounts []string   `json:"accounts,omitempty"`
	// UsersNot and AccountsNot say that it was for everybody but those.
	UsersNot    bool     `json:"users_not,omitempty"`
	AccountsNot bool     `json:"accounts_not,omitempty"`
	TRES        []Amount `json:"tres"` // what its nodes have
	Used        []Amount `json:"used"` // by its jobs, TRES-seconds; filled in for a report
	// Forgotten says that the record is gone (PurgeResvAfter): where and for whom it was, but for how much and how
	// long.
	Forgotten bool `json:"forgotten,omitempty"`
}
