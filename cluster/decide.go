package cluster

import (
	"slices"
	"time"
)

// Decision is what the scheduler found for one pending record: start it (or one of its tasks),
// or why it waits, and perhaps who is to make room for it. Or that a job that was suspended to make room goes on.
type Decision struct {
	Job        JobID  `json:"job"`
	Task       int    `json:"task"`            // which task of an array record to start, else TaskAny
	Start      *Alloc `json:"start,omitempty"` // nil: wait
	Backfilled bool   `json:"backfilled,omitempty"`
	// Limit is the time limit that a job that may do with less (--time-min) gets; 0: its own.
	Limit time.Duration `json:"limit,omitempty"`
	Wait  Reason        `json:"wait,omitempty"`
	Note  string        `json:"note,omitempty"`
	// StartsAt and Nodes are the planned start, zero if none is known.
	StartsAt time.Time  `json:"starts_at,omitzero"`
	Nodes    []NodeName `json:"nodes,omitempty"`
	// Evict are jobs that make room for it now, so that it can start in Partition, and in Reservation if that is named.
	Evict       []JobID `json:"evict,omitempty"`
	Partition   string  `json:"partition,omitempty"`
	Reservation string  `json:"reservation,omitempty"`
	Resume      bool    `json:"resume,omitempty"`
	// With is the same for the other components of a heterogeneous job, by offset: all of it starts or nothing
	// does, and others leave for all of it.
	With []Decision `json:"with,omitempty"`
}

// evicts reports whether jobs are to leave.
func (d *Decision) evicts() bool {
	return len(d.Evict) > 0 || slices.ContainsFunc(d.With, func(o Decision) bool { return len(o.Evict) > 0 })
}

// Decide carries one cycle's decisions. Each is checked alone against the present state.
// Result: []*Error, one a decision, nil where it was taken.
type Decide struct {
	Decisions []Decision `json:"decisions"`
}

func (*Decide) kind() string { return "decide" }

func (c *Decide) apply(t *tx) (any, error) {
	out := make([]*Error, len(c.Decisions))
	for i, d := range c.Decisions {
		out[i] = alone(t, func() error { return decide(t, d) })
	}
	return out, nil
}

// decide carries one decision.
func decide(t *tx, d Decision) error {
	switch {
	case d.Resume:
		return t.goOn(d.Job)
	case d.Start != nil && asks(t, d):
		return nil
	case d.Start != nil:
		return t.start(d)
	case d.evicts():
		return t.preempt(d)
	}
	t.wait(d)
	return nil
}

// alone does one of several things: where it cannot be done it changes nothing, and the others are not concerned.
func alone(t *tx, do func() error) *Error {
	mark := len(t.undo)
	told := len(t.events)
	err := do()
	if err == nil {
		return nil
	}
	for _, f := range slices.Backward(t.undo[mark:]) {
		f()
	}
	t.undo = t.undo[:mark]
	t.events = t.events[:told]
	e, ok := err.(*Error)
	if !ok {
		e = Errorf(Internal, "", "%v", err)
	}
	return e
}

func (t *tx) start(d Decision) error {
	all, err := t.together(d)
	if err != nil {
		return err
	}
	if len(all) > 1 {
		return t.startSet(all)
	}
	return t.startOne(d)
}

// startOne starts one record: a job, a task of an array or a component of a heterogeneous job.
func (t *tx) startOne(d Decision) error {
	j, ok := t.jobs.Get(d.Job)
	if !ok || j.Phase != Pending {
		return Errorf(Conflict, ErrJobID, "job %d is not pending", d.Job)
	}
	tasks, why := t.Ready(j, t.at)
	if why != NoReason {
		return Errorf(Conflict, ErrBusy, "job %d is not ready: %s", d.Job, why)
	}
	if len(d.Start.Shares) == 0 {
		return Errorf(Internal, "", "job %d was given no node", d.Job)
	}
	if j, err := j.cut(d.Limit); err != nil {
		return err
	} else if err := t.mayHave(j, &d); err != nil {
		return err
	}
	if !j.Tasks.Empty() {
		if !tasks.Has(d.Task) {
			return Errorf(Conflict, ErrBusy, "task %d of job %d is not ready", d.Task, d.Job)
		}
		if l := j.Spec.Array.Limit; l > 0 && t.RunningTasks(j.ArrayID) >= l {
			return Errorf(Conflict, ErrBusy, "array %d runs %d tasks, its limit", j.ArrayID, l)
		}
		j = t.split(j.ID, NewIDSet(d.Task))[0]
		if rest, ok := t.jobs.Get(d.Job); ok && rest.ID != j.ID && rest.Evicted.Count > 0 { // they were for this task
			left := *rest
			left.Evicted = Evictions{}
			t.putJob(&left)
		}
	}
	if j.Spec.Licenses != "" && !t.LicensesFree(j, t.at, t.LicensesUsed()) {
		return Errorf(Conflict, ErrBusy, "job %d wants licenses %s that others hold", d.Job, j.Spec.Licenses)
	}
	j, _ = j.cut(d.Limit)
	limits := t.Meter(t.at)
	limits.plain = true
	if why := limits.Blocked(j, d.Start.Partition, d.Start); why != NoReason {
		return Errorf(Conflict, ErrPolicy, "job %d is held back by limit %s", j.ID, why)
	}
	fed, err := begins(t, j, d.Start)
	if err != nil {
		return err
	}
	n := *j
	n.Fed = fed
	alloc := *d.Start
	setSpares(j.Spec, &alloc)
	billing := t.BillingOf(alloc.Partition, (&Job{Spec: j.Spec, Alloc: &alloc}).Amounts(t.config, nil))
	alloc.Billing = &billing
	n.Alloc = &alloc
	n.Attempt = t.nextAttempt(j)
	n.Started = t.since(j.Submitted)
	n.Backfilled = d.Backfilled
	n.LastEval = t.at
	n.Contain = hasExternStep(t.Config(), n.Spec)
	n.Stopped = false
	n.Wait = NoReason
	n.WaitNote = ""
	n.PlannedStart = time.Time{}
	n.PlannedNodes = nil
	n.Depends = Depends{}
	n.Waiting = n.AllocNodes()
	n.Preempt = nil
	n.Turn = nil
	expedite(&n, false)
	if err := t.move(&n, Starting); err != nil {
		return err
	}
	if err := t.give(&n); err != nil {
		return err
	}
	n.Noticed, n.Prelude = 0, preludeOf(t, &n)
	beginPrelude(t, &n)
	t.putJob(&n)
	t.tell(&n)
	t.wakeDependents(&n)
	return nil
}

// cut is the job with a shorter time limit, if it may do with that; 0 leaves its own.
func (j *Job) cut(to time.Duration) (*Job, error) {
	if to == 0 {
		return j, nil
	}
	if least := j.Spec.LimitMin; least == 0 || to < least || to > j.Limit {
		return nil, Errorf(Conflict, ErrTimeLimit,
			"job %d cannot get a time limit of %s: it asks for %s, and at least %s", j.ID, to, j.Limit,
			least)
	}
	short := *j
	short.Limit = to
	return &short, nil
}

func (t *tx) wait(d Decision) {
	j, ok := t.jobs.Get(d.Job)
	if !ok || j.Phase != Pending || j.Held != NotHeld {
		return
	}
	if d.Wait == WaitBurst {
		if burstWait(t.tables, j) == WaitBurst {
			stageIn(t, j)
		}
		return
	}
	n := *j
	n.Wait = d.Wait
	n.WaitNote = d.Note
	n.PlannedStart = d.StartsAt
	n.PlannedNodes = d.Nodes
	n.LastEval = t.at
	t.putJob(&n)
}

// Expire ends what the clock alone ends: jobs past their time limit or deadline, jobs whose dependency
// can never be satisfied where that is to cancel them, and launches that were not confirmed in time.
type Expire struct {
	Jobs []JobID `json:"jobs"`
	Why  Reason  `json:"why"`
}

func (*Expire) kind() string { return "expire" }

func (c *Expire) apply(t *tx) (any, error) {
	for _, id := range c.Jobs {
		j, ok := t.jobs.Get(id)
		if !ok || j.Phase >= Ending {
			continue
		}
		if c.Why == EndLaunchFailure {
			n := *j
			t.unconfirmed(&n)
			continue
		}
		if c.holds(t, j) {
			expire(t, j, c.Why)
		}
	}
	return nil, nil
}

// expiryRows are the reasons for which jobs end by the clock that may have passed when it is applied.
var expiryRows = [...]struct {
	why   Reason
	holds func(t *tx, j *Job) bool
}{
	{EndTimeLimit, func(t *tx, j *Job) bool {
		return hasCome(j.EndLimit(t.config), t.at) && j.Phase != Suspended && !Configuring(j)
	}},
	{EndPreempted, func(t *tx, j *Job) bool { return j.Preempt.ends(t.at) }},
	{EndDeadline, func(t *tx, j *Job) bool { return hasCome(j.deadline(), t.at) }},
	{WaitDependencyNever, func(_ *tx, j *Job) bool { return j.Phase == Pending && j.DependNever() }},
}

// holds reports whether the reason for which the job is to end is still one.
func (c *Expire) holds(t *tx, j *Job) bool {
	for _, row := range expiryRows {
		if row.why == c.Why {
			return row.holds(t, j)
		}
	}
	return true
}

// expire ends a job that the clock ends.
func expire(t *tx, j *Job, why Reason) {
	n := *j
	switch why {
	case EndTimeLimit:
		n.RequeueAfter = chains(&n)
		t.end(&n, TimedOut, EndTimeLimit)
	case EndPreempted:
		t.preempted(&n)
	case EndDeadline:
		t.end(&n, DeadlineMissed, EndDeadline)
	default:
		t.end(&n, Cancelled, why)
	}
	t.putJob(&n)
	tellEnd(t, &n)
	alone := why == EndTimeLimit && n.Follows() // a component has a time limit of its own
	if !alone || j.Phase == Starting {
		t.endRest(&n)
	}
}

// Purge drops ended jobs and stored texts that nobody refers to from live state; history keeps the jobs.
type Purge struct {
	Jobs  []JobID    `json:"jobs,omitempty"`
	Blobs []BlobHash `json:"blobs,omitempty"`
}

func (*Purge) kind() string { return "purge" }

func (c *Purge) apply(t *tx) (any, error) {
	t.forgetKeys()
	forgetSessions(t)
	for _, id := range c.Jobs {
		j, ok := t.jobs.Get(id)
		if !ok || j.Phase != Ended || BurstOpen(j) {
			continue
		}
		t.keepKey(j)
		for _, h := range []BlobHash{j.Spec.Script, j.Spec.Env} {
			if err := t.refBlob(h, -1); err != nil {
				return nil, err
			}
		}
		t.purge(j)
		dropTriggers(t, id)
		t.events = append(t.events, Event{Purged: id})
	}
	for _, h := range c.Blobs {
		if b, ok := t.blobs.Get(h); ok && b.Refs == 0 {
			t.deleteBlob(b)
		}
	}
	return nil, nil
}

// maxPurge bounds one Purge or Expire.
const maxPurge = 4096
