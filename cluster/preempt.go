package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// PreemptType says by what a job may make others leave their nodes.
type PreemptType string

// The types, as PreemptType of slurm.conf names them behind preempt/.
const (
	PreemptNone PreemptType = ""
	PreemptTier PreemptType = "partition_prio" // by the PriorityTier of the partitions
	PreemptQOS  PreemptType = "qos"            // by the lists of the QOS
)

// PreemptMode says what becomes of a job that makes room for another.
type PreemptMode string

// The modes.
const (
	PreemptOff     PreemptMode = "OFF" // it is left alone
	PreemptCancel  PreemptMode = "CANCEL"
	PreemptRequeue PreemptMode = "REQUEUE" // or is cancelled, if it must not be requeued
	PreemptSuspend PreemptMode = "SUSPEND" // and goes on when its CPUs are free again
)

// PreemptConfig is what the configuration says of preemption (PreemptType, PreemptMode, PreemptExemptTime
// and PreemptParameters of slurm.conf).
type PreemptConfig struct {
	Type   PreemptType   `json:"type,omitempty"`
	Mode   string        `json:"mode,omitempty"`   // see ParsePreemptMode; of partitions and QOS without their own
	Exempt time.Duration `json:"exempt,omitempty"` // for so long a job runs before it may be cancelled or requeued
	// Youngest takes the job that was started last first.
	Youngest bool `json:"youngest,omitempty"`
	// Reorders is how often the choice is made again with those that were of use first.
	Reorders int `json:"reorders,omitempty"`
	// TurnLength is how long a turn of jobs on the same CPUs is (SchedulerTimeSlice); 0: 30 s.
	TurnLength time.Duration `json:"turn_length,omitempty"`
}

// preemptGang is the word of PreemptMode that has jobs on the same CPUs take turns.
const preemptGang = "GANG"

// preemptFlags are the words of PreemptMode besides the modes: GANG,
// PRIORITY (only jobs of lower priority make room) and WITHIN (jobs of the same QOS do too).
var preemptFlags = []string{preemptGang, "PRIORITY", "WITHIN"}

// ParsePreemptMode reads a PreemptMode: one mode and flags in any order, joined by commas. It returns
// the mode, OFF if none is there, and what the text has beside it. The error names the first word that is not known.
func ParsePreemptMode(text string) (mode PreemptMode, flags []string, err error) {
	mode = PreemptOff
	for w := range strings.SplitSeq(strings.ToUpper(text), ",") {
		switch m := PreemptMode(w); {
		case m == PreemptOff || m == PreemptCancel || m == PreemptRequeue || m == PreemptSuspend:
			mode = m
		case slices.Contains(preemptFlags, w):
			flags = append(flags, w)
		default:
			return PreemptOff, nil, Errorf(Invalid, "", "PreemptMode=%s: %s is not known: want OFF, CANCEL, REQUEUE or SUSPEND, and perhaps GANG, PRIORITY or WITHIN", text, w)
		}
	}
	return mode, flags, nil
}

// PreemptModeText is the mode of a partition, or the cluster's, as Slurm shows it.
func (c *Config) PreemptModeText(p *Partition) string {
	own := ""
	if p != nil {
		own = p.PreemptMode
	}
	return cmp.Or(own, c.Preempt.Mode, string(PreemptOff))
}

// Preemption is what happens to a job that makes room for another.
type Preemption struct {
	By    JobID       `json:"by"` // the record that it makes room for
	At    time.Time   `json:"at"`
	Mode  PreemptMode `json:"mode"`
	Until time.Time   `json:"until,omitzero"` // end of its grace, if it has any: until then it runs on
}

// until is the end of a grace, zero if there is none.
func (p *Preemption) until() time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.Until
}

// ends reports whether there was a grace and it is over.
func (p *Preemption) ends(now time.Time) bool { u := p.until(); return !u.IsZero() && !u.After(now) }

// sooner is the earlier of two times that are not zero.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Evictions are those that a job has caused, so that one that never comes to run does not cause them for ever.
type Evictions struct {
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
}

// Pauses between the evictions that one job causes: the first, which doubles each time, and the longest.
const (
	evictPause    = 30 * time.Second
	evictPauseMax = time.Hour
)

// Next is when the job may cause the next eviction; zero if at once.
func (e Evictions) Next() time.Time {
	if e.Count == 0 {
		return time.Time{}
	}
	pause := evictPause
	for i := 1; i < e.Count && pause < evictPauseMax; i++ {
		pause *= 2
	}
	return e.Last.Add(min(pause, evictPauseMax))
}

// preemptYield is for how long a job that made room lets the other go first.
const preemptYield = 2 * time.Minute

// Yields reports whether a job that made room for another still waits for that one to start.
func (t *tables) Yields(v *Job, now time.Time) bool {
	if v.Preempt == nil || !now.Before(v.Preempt.At.Add(preemptYield)) {
		return false
	}
	j, ok := t.jobs.Get(v.Preempt.By)
	return ok && j.ID != v.ID && j.Phase == Pending && j.Held == NotHeld && j.Evicted.Count > 0
}

// PreemptEligible is when a job that runs may be cancelled or requeued for another at the earliest.
func (t *tables) PreemptEligible(v *Job) time.Time {
	exempt := t.config.Preempt.Exempt
	if q, ok := t.qos.Get(v.Spec.QOS); ok && q.PreemptExempt > 0 {
		exempt = q.PreemptExempt
	}
	return v.Started.Add(exempt)
}

// PreemptRank is a running job's importance among those that might make room: its QOS's priority or
// its partition's tier.
func (t *tables) PreemptRank(v *Job) int {
	rank := 0
	if t.config.Preempt.Type == PreemptQOS {
		if q, ok := t.qos.Get(v.Spec.QOS); ok {
			rank = q.Priority
		}
	} else if p, ok := t.Partition(v.Alloc.Partition); ok {
		rank = p.PriorityTier
	}
	return min(rank, maxPreemptRank)
}

const maxPreemptRank = 65535

// Preempts tells what a job that would run in a partition may do to another one: PreemptOff if nothing.
func (t *tables) Preempts(j *Job, part *Partition, v *Job, now time.Time) PreemptMode {
	if v.Phase < Starting || v.Phase > Suspended || v.Alloc == nil || !v.Preempt.until().IsZero() || v.ID == j.ID {
		return PreemptOff
	}
	own, _ := t.Partition(v.Alloc.Partition)
	mode, flags := t.preemptMode(v, own)
	if mode == PreemptOff || !t.outranks(j, part, v, own, flags) {
		return PreemptOff
	}
	switch {
	case mode == PreemptSuspend && (!v.suspendable() || v.Het != nil): // its other components would run on
		return PreemptOff
	case mode != PreemptSuspend && t.PreemptEligible(v).After(now):
		return PreemptOff
	case mode == PreemptRequeue && (v.Spec.Kind != Batch || v.Spec.Requeue != nil && !*v.Spec.Requeue):
		return PreemptCancel
	}
	return mode
}

// outranks reports whether a job comes before one that runs, by the type of preemption that is in force.
func (t *tables) outranks(j *Job, part *Partition, v *Job, own *Partition, flags []string) bool {
	switch t.config.Preempt.Type {
	case PreemptTier:
		return own != nil && part.PriorityTier > own.PriorityTier
	case PreemptQOS:
		if slices.Contains(flags, "PRIORITY") && j.Priority <= v.Priority {
			return false
		}
		if j.Spec.QOS == v.Spec.QOS {
			return slices.Contains(flags, "WITHIN") && j.Priority > v.Priority
		}
		q, ok := t.qos.Get(j.Spec.QOS)
		return ok && slices.Contains(q.Preempt, v.Spec.QOS)
	}
	return false
}

// ComesBefore reports whether a job may take the place of another in one of its partitions, whatever
// that one does now.
func (t *tables) ComesBefore(j, v *Job) bool {
	own, _ := t.Partition(v.Alloc.Partition)
	_, flags := t.preemptMode(v, own)
	return slices.ContainsFunc(j.Spec.Partitions, func(name string) bool {
		p, ok := t.Partition(name)
		return ok && t.outranks(j, p, v, own, flags)
	})
}

// preemptMode is the mode of a job that runs, and the flags beside it.
func (t *tables) preemptMode(v *Job, own *Partition) (PreemptMode, []string) {
	text := t.config.PreemptModeText(own)
	if q, ok := t.qos.Get(v.Spec.QOS); ok && t.config.Preempt.Type == PreemptQOS {
		text = cmp.Or(q.PreemptMode, text)
	}
	mode, flags, _ := ParsePreemptMode(text) // OFF if it says nothing that is known
	return mode, flags
}

// grace is how long a job may go on after it was told to make room.
func (t *tables) grace(v *Job) time.Duration {
	if t.config.Preempt.Type == PreemptQOS {
		if q, ok := t.qos.Get(v.Spec.QOS); ok {
			return q.GraceTime
		}
		return 0
	}
	if p, ok := t.Partition(v.Alloc.Partition); ok {
		return p.GraceTime
	}
	return 0
}

// preempt carries out a decision that makes jobs leave. All of it is judged again: if only one of
// them may stay now, nothing happens.
func (t *tx) preempt(d Decision) error {
	j, ok := t.jobs.Get(d.Job)
	if !ok || j.Phase != Pending {
		return Errorf(Conflict, ErrJobID, "job %d is not pending", d.Job)
	}
	if _, why := t.Ready(j, t.at); why != NoReason {
		return Errorf(Conflict, ErrBusy, "job %d is not ready: %s", d.Job, why)
	}
	if next := j.Evicted.Next(); next.After(t.at) {
		return Errorf(Conflict, ErrBusy, "job %d made others leave %d times and may again from %s on", d.Job, j.Evicted.Count, next.Format(time.DateTime))
	}
	part, ok := t.Partition(d.Partition)
	if !ok || !slices.Contains(j.Spec.Partitions, d.Partition) {
		return Errorf(Conflict, ErrPartition, "job %d does not ask for partition %s", d.Job, d.Partition)
	}
	var left []*Job
	for _, id := range d.Evict {
		v, ok := t.jobs.Get(id)
		if !ok {
			return Errorf(Conflict, ErrJobID, "job %d does not exist", id)
		}
		if slices.ContainsFunc(left, func(o *Job) bool { return o.partnerOf(v) }) {
			continue // it left with another component
		}
		mode := t.Preempts(j, part, v, t.at)
		if mode == PreemptOff {
			return Errorf(Conflict, ErrBusy, "job %d need not make room for job %d", id, d.Job)
		}
		t.leave(v, d.Job, mode)
		left = append(left, v)
	}
	t.wait(d)
	j, _ = t.jobs.Get(d.Job)
	n := *j
	n.Evicted = Evictions{n.Evicted.Count + 1, t.at}
	t.putJob(&n)
	return nil
}

// leave makes one job leave, or tells it to when it has grace.
func (t *tx) leave(v *Job, by JobID, mode PreemptMode) {
	n := *v
	n.Preempt = &Preemption{By: by, At: t.since(n.Started), Mode: mode}
	switch grace := t.grace(v); {
	case mode == PreemptSuspend:
		t.suspend(&n)
	case grace > 0 && n.Phase == Running:
		n.Preempt.Until = n.Preempt.At.Add(grace)
		for _, sig := range []int{sigCont, sigTerm} {
			_ = t.addSignal(&n, &Cancel{Sig: sig}) // it holds nodes, so it can be signalled
		}
	default:
		t.preempted(&n)
	}
	t.putJob(&n)
	t.tell(&n)
	if n.Phase == Ending {
		t.endRest(&n)
	}
}

// preempted ends a job's attempt because it makes room.
func (t *tx) preempted(n *Job) {
	t.end(n, Preempted, NoReason)
	n.RequeueAfter, n.RequeueHold, n.SpecialExit = n.Preempt.Mode == PreemptRequeue, false, false
}

// goOn resumes a job that was suspended to make room.
func (t *tx) goOn(id JobID) error {
	v, ok := t.jobs.Get(id)
	if !ok || v.Phase != Suspended || v.Preempt == nil || v.Preempt.Mode != PreemptSuspend {
		return Errorf(Conflict, ErrNotSuspended, "job %d is not suspended to make room", id)
	}
	n := *v
	if err := t.resume(&n); err != nil {
		return err
	}
	t.putJob(&n)
	t.tell(&n)
	return nil
}
