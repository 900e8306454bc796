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
	// CheckpointGrace is how long a job may go on after the signal on which it saves a checkpoint (checkpoint_grace),
	// at most; 0: 2 minutes, negative: not at all.
	CheckpointGrace time.Duration `json:"checkpoint_grace,omitempty"`
	// LeastLost takes, among jobs of the same importance, those first that lose the least work (least_lost_work).
	LeastLost bool `json:"least_lost,omitempty"`
	// SuspendGrace is how long a job that is to be suspended goes on after SIGTSTP (suspend_grace_time); 0: 2 s,
	// negative: not at all.
	SuspendGrace time.Duration `json:"suspend_grace,omitempty"`
}

// suspendGrace is that of Slurm where nothing else is configured.
const suspendGrace = 2 * time.Second

// StopsAfter is how long the tasks of a job that is to be suspended go on after they were told.
func (p *PreemptConfig) StopsAfter() time.Duration {
	return max(cmp.Or(p.SuspendGrace, suspendGrace), 0)
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
			return PreemptOff, nil, Errorf(Invalid, "",
				"PreemptMode=%s: %s is not known: want OFF, CANCEL, REQUEUE or SUSPEND, and perhaps GANG, PRIORITY or WITHIN",
				text, w)
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
func (p *Preemption) ends(now time.Time) bool { return hasCome(p.until(), now) }

// hasCome reports whether a moment has come; zero never does.
func hasCome(at, now time.Time) bool {
	return !at.IsZero() && !at.After(now)
}

// Evictions are those that a job has caused, so that one that never comes to run does not cause them indefinitely.
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

// preemptYield is for how long a job that made room, and left or was suspended, lets the other go first.
const preemptYield = 2 * time.Minute

// Yields reports whether a job that made room for another still waits for that one to start.
func (t *tables) Yields(v *Job, now time.Time) bool {
	if v.Preempt == nil || !now.Before(later(v.Preempt.At, v.Submitted).Add(preemptYield)) { // ends with its submission
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

// Whole are the records that leave with one that runs: it alone, or all components of a heterogeneous job that run.
func (t *tables) Whole(v *Job) []*Job {
	if v.Het == nil {
		return []*Job{v}
	}
	return slices.DeleteFunc(t.Components(v), func(o *Job) bool { return !o.occupies() })
}

// occupies reports whether a job has nodes and was not told to end.
func (j *Job) occupies() bool {
	return j.Phase >= Starting && j.Phase <= Suspended && j.Alloc != nil
}

// mildest are the modes in the order in which one of them stands for all components of a heterogeneous job.
var mildest = []PreemptMode{PreemptSuspend, PreemptRequeue, PreemptCancel}

// Preempts tells what a job that would run in a partition, and in a reservation if it has one, may do to another one:
// PreemptOff if nothing. A heterogeneous job leaves as a whole, if each of its components may be made to, in the
// mildest of their modes.
func (t *tables) Preempts(j *Job, part *Partition, own *Reservation, v *Job, now time.Time) PreemptMode {
	if v.ID == j.ID || v.partnerOf(j) || !v.occupies() || !v.Preempt.until().IsZero() {
		return PreemptOff
	}
	all := t.Whole(v)
	over := t.overlapping(all, own)
	best := len(mildest)
	for _, o := range all {
		mode := t.preempts(j, part, o, now)
		if over {
			mode = t.swept(o)
		}
		k := slices.Index(mildest, mode)
		if k < 0 {
			return PreemptOff
		}
		best = min(best, k)
	}
	switch mode := mildest[best]; {
	case mode == PreemptSuspend && slices.ContainsFunc(all, func(o *Job) bool { return !o.suspendable() }):
		return PreemptOff // it is suspended, and goes on, as a whole
	case mode == PreemptRequeue && slices.ContainsFunc(all, func(o *Job) bool { return !o.MayRequeue() }):
		return PreemptCancel
	default:
		return mode
	}
}

// MayRequeue reports whether a job that made room may come back.
func (j *Job) MayRequeue() bool {
	return j.Spec.Kind == Batch && (j.Spec.Requeue == nil || *j.Spec.Requeue)
}

// preempts judges one record.
func (t *tables) preempts(j *Job, part *Partition, v *Job, now time.Time) PreemptMode {
	own, _ := t.Partition(v.Alloc.Partition)
	mode, flags := t.preemptMode(v, own)
	switch {
	case mode == PreemptOff || !t.outranks(j, part, v, own, flags):
		return PreemptOff
	case mode == PreemptSuspend && !v.suspendable():
		return PreemptOff
	case mode != PreemptSuspend && t.PreemptEligible(v).After(now):
		return PreemptOff
	}
	return mode
}

// swept is the mode of a job that has what is of a reservation until it is wanted: whether jobs preempt each other
// or not, it leaves.
func (t *tables) swept(v *Job) PreemptMode {
	own, _ := t.Partition(v.Alloc.Partition)
	if mode, _ := t.preemptMode(v, own); mode == PreemptCancel {
		return mode
	}
	return PreemptRequeue
}

// overlapping reports whether one of the records has what is of a reservation only until a job of that one wants it.
func (t *tables) overlapping(all []*Job, r *Reservation) bool {
	return r != nil && r.MaxStartDelay > 0 && slices.ContainsFunc(all, func(v *Job) bool { return t.overlaps(v, r) })
}

func (t *tables) overlaps(v *Job, r *Reservation) bool {
	return v.Spec.Signal.Reservation && !v.in(r.Name) && t.holdsOf(r, v.Alloc.Shares, false)
}

// outranks reports whether a job comes before one that runs, by the type of preemption that is active.
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

// preempt carries out a decision that makes jobs leave, for a job or for all components of a heterogeneous one. All
// of it is judged again: if only one of them may stay now, nothing happens.
func (t *tx) preempt(d Decision) error {
	all, err := t.together(d)
	if err != nil {
		return err
	}
	j, _ := t.jobs.Get(d.Job)
	if next := j.Evicted.Next(); next.After(t.at) {
		return Errorf(Conflict, ErrBusy, "job %d made others leave %d times and may again from %s on",
			d.Job, j.Evicted.Count, next.Format(time.DateTime))
	}
	var left []*Job
	for _, one := range all {
		if left, err = t.vacate(one, d.Job, left); err != nil {
			return err
		}
	}
	for _, one := range all {
		t.wait(one)
	}
	j, _ = t.jobs.Get(d.Job)
	n := *j
	n.Evicted = Evictions{n.Evicted.Count + 1, t.at}
	t.putJob(&n)
	return nil
}

// vacate makes those leave that a decision names, for a record that must be ready, and adds them to those that have
// left.
func (t *tx) vacate(d Decision, by JobID, left []*Job) ([]*Job, error) {
	j, ok := t.jobs.Get(d.Job)
	if !ok || j.Phase != Pending {
		return nil, Errorf(Conflict, ErrJobID, "job %d is not pending", d.Job)
	}
	if _, why := t.Ready(j, t.at); why != NoReason {
		return nil, Errorf(Conflict, ErrBusy, "job %d is not ready: %s", d.Job, why)
	}
	part, ok := t.Partition(d.Partition)
	if !ok || !slices.Contains(j.Spec.Partitions, d.Partition) {
		return nil, Errorf(Conflict, ErrPartition, "job %d does not ask for partition %s", d.Job, d.Partition)
	}
	own, err := t.entered(j, d.Reservation)
	if err != nil {
		return nil, err
	}
	for _, id := range d.Evict {
		v, ok := t.jobs.Get(id)
		if !ok {
			return nil, Errorf(Conflict, ErrJobID, "job %d does not exist", id)
		}
		if slices.ContainsFunc(left, func(o *Job) bool {
			return o.ID == id || o.partnerOf(v)
		}) {
			continue // it left with another component
		}
		mode := t.Preempts(j, part, own, v, t.at)
		if mode == PreemptOff {
			return nil, Errorf(Conflict, ErrBusy, "job %d need not make room for job %d", id, d.Job)
		}
		t.leave(v, by, own, mode)
		left = append(left, v)
	}
	return left, nil
}

// leave makes one job leave with all its components, or tells them to when there is grace: for all the longest of any.
func (t *tx) leave(v *Job, by JobID, own *Reservation, mode PreemptMode) {
	all := t.Whole(v)
	over := t.overlapping(all, own)
	grace := time.Duration(0)
	for _, o := range all {
		switch {
		case !over:
			grace = max(grace, t.grace(o), t.config.Preempt.graceToSave(o.Spec))
		case t.overlaps(o, own):
			grace = max(grace, o.Spec.Signal.Before)
		}
	}
	if mode != PreemptSuspend && (grace == 0 || slices.ContainsFunc(all, func(o *Job) bool { return o.Phase != Running })) {
		all = []*Job{v} // the others end with it
	}
	for _, o := range all {
		n := *o
		n.Preempt = &Preemption{By: by, At: t.since(n.Started), Mode: mode}
		switch {
		case mode == PreemptSuspend:
			t.suspend(&n)
		case grace > 0 && n.Phase == Running:
			t.warn(&n, grace, over || n.Spec.Survives().SavesOnSignal)
		default:
			t.preempted(&n)
		}
		t.putJob(&n)
		t.tell(&n)
		if n.Phase == Ending {
			t.endRest(&n)
		}
	}
}

// warn tells a job that holds nodes when it must leave them; if asked for by the signal that it asked for (--signal,
// --checkpoint-signal).
func (t *tx) warn(n *Job, grace time.Duration, asked bool) {
	n.Preempt.Until = n.Preempt.At.Add(grace)
	warning := Cancel{Sig: sigTerm}
	if s := n.Spec.Signal; asked && s.Num != 0 {
		warning.Sig = s.Num
		if s.BatchOnly {
			warning.Scope = SignalBatchShell
		}
	}
	for _, c := range []*Cancel{{Sig: sigCont}, &warning} {
		_ = t.addSignal(n, c) // it holds nodes, so it can be signalled
	}
}

// preempted ends a job's attempt because it makes room.
func (t *tx) preempted(n *Job) {
	t.end(n, Preempted, NoReason)
	n.RequeueAfter = n.Preempt.Mode == PreemptRequeue
	n.RequeueHold = false
	n.SpecialExit = false
}

// goOn resumes a job that was suspended to make room, a heterogeneous one with all its components.
func (t *tx) goOn(id JobID) error {
	v, ok := t.jobs.Get(id)
	if !ok {
		return Errorf(Conflict, ErrJobID, "job %d does not exist", id)
	}
	all := t.Whole(v)
	if len(all) == 0 || slices.ContainsFunc(all, func(o *Job) bool { return !o.asleep() }) {
		return Errorf(Conflict, ErrNotSuspended, "job %d is not suspended to make room", id)
	}
	for _, o := range all {
		n := *o
		if err := t.resume(&n); err != nil {
			return err
		}
		t.putJob(&n)
		t.tell(&n)
	}
	return nil
}

// asleep reports whether a job was suspended to make room.
func (j *Job) asleep() bool {
	return j.Phase == Suspended && j.Preempt != nil && j.Preempt.Mode == PreemptSuspend
}
