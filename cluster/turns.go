package cluster

import (
	"cmp"
	"slices"
	"time"
)

// Jobs that are on each other's CPUs take turns there, where PreemptMode has GANG: those of one turn run, the
// others are stopped. Turns end everywhere at once, so that a job of several nodes gets its turn on all of them.

// Turn is how a job shares the time of its CPUs.
type Turn struct {
	Since time.Time `json:"since"`           // when it began to run, or to wait
	Waits bool      `json:"waits,omitempty"` // it is stopped until it is its turn
}

// defaultTurn is the length of a turn where the configuration has none.
const defaultTurn = 30 * time.Second

// TurnLength is how long a turn is.
func (c *Config) TurnLength() time.Duration { return cmp.Or(c.Preempt.TurnLength, defaultTurn) }

// AwaitsTurn reports whether the job is stopped because others have their turn. It keeps its CPUs.
func (j *Job) AwaitsTurn() bool {
	return j.Turn != nil && j.Turn.Waits
}

// TakeTurns has jobs that share CPUs stop and go on as it is their turn.
type TakeTurns struct{}

func (*TakeTurns) kind() string { return "take_turns" }

func (c *TakeTurns) apply(t *tx) (any, error) {
	stop, run := t.turns(t.at)
	for _, j := range stop {
		n := *j
		n.pause(t.since(n.Started))
		n.Turn = &Turn{Since: n.SuspendedAt, Waits: true}
		t.putJob(&n)
		t.tell(&n)
	}
	for _, j := range run {
		n := *j
		n.unpause(t.since(n.SuspendedAt))
		n.Turn = &Turn{Since: t.since(j.SuspendedAt)}
		t.putJob(&n)
		t.tell(&n)
	}
	return nil, nil
}

// takesTurns reports whether a job shares the time of its CPUs.
func (t *tables) takesTurns(j *Job) bool {
	if j.Alloc == nil || j.Alloc.Over == 0 || j.Het != nil || !j.suspendable() {
		return false
	}
	p, _ := t.Partition(j.Alloc.Partition)
	_, flags, _ := ParsePreemptMode(t.config.PreemptModeText(p))
	return slices.Contains(flags, preemptGang)
}

// turnOf numbers the turns of all time.
func (t *tables) turnOf(at time.Time) int64 { return at.UnixNano() / int64(t.config.TurnLength()) }

// turns lists the jobs that are to stop and to go on. First come those whose turn it is, then those that wait, the
// longest first, then those whose turn is over; a job runs if none before it has one of its CPUs.
func (t *tables) turns(now time.Time) (stop, run []*Job) {
	const (
		inTurn = iota
		waits
		over
	)
	type player struct {
		*Job
		rank  int
		since time.Time
	}
	var all []player
	for j := range t.Live() {
		if !t.takesTurns(j) {
			if j.AwaitsTurn() && j.Phase == Suspended { // turns are not taken any more
				run = append(run, j)
			}
			continue
		}
		p := player{j, inTurn, j.Started}
		if j.Turn != nil {
			p.since = j.Turn.Since
		}
		if j.Phase == Suspended {
			p.rank = waits
		} else if t.turnOf(now) > t.turnOf(p.since) {
			p.rank = over
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b player) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.since.Compare(b.since), cmp.Compare(a.ID, b.ID))
	})
	taken := map[NodeName]IDSet{}
	for _, p := range all {
		shares := p.Alloc.Parts()
		free := !slices.ContainsFunc(shares, func(sh Share) bool { return !taken[sh.Node].Intersect(sh.CPUs).Empty() })
		if free {
			for _, sh := range shares {
				taken[sh.Node] = taken[sh.Node].Union(sh.CPUs)
			}
		}
		switch {
		case free && p.Phase == Suspended:
			run = append(run, p.Job)
		case !free && p.Phase == Running:
			stop = append(stop, p.Job)
		}
	}
	return stop, run
}

// gangs reports whether jobs may have to take turns: several may be on one CPU somewhere.
func (t *tables) gangs() bool {
	c := t.config
	for i := range c.Partitions {
		p := &c.Partitions[i]
		if _, flags, _ := ParsePreemptMode(c.PreemptModeText(p)); p.Oversubscribes() && slices.Contains(flags, preemptGang) {
			return true
		}
	}
	return false
}

// turnsDue is what the clock demands of jobs that share CPUs.
func (t *tables) turnsDue(now time.Time) Command {
	if !t.gangs() {
		return nil
	}
	if stop, run := t.turns(now); len(stop)+len(run) == 0 {
		return nil
	}
	return &TakeTurns{}
}

// nextTurn is when the turns that run at now are over; zero if nobody waits for that.
func (t *tables) nextTurn(now time.Time) time.Time {
	if t.gangs() {
		for j := range t.Live() {
			if j.Phase == Suspended && j.AwaitsTurn() {
				return time.Unix(0, (t.turnOf(now)+1)*int64(t.config.TurnLength())).UTC()
			}
		}
	}
	return time.Time{}
}
