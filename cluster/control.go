package cluster

import (
	"cmp"
	"slices"
	"time"

	"dev.muster/cluster/federation"
)

// Ref names a job, some tasks of an array, or (with the array's id and no tasks) all of it.
//
// The leader of a heterogeneous job stands for all of it; with a part, that component alone.
type Ref struct {
	Job   JobID `json:"job"`
	Tasks IDSet `json:"tasks,omitzero"`
	Part  int   `json:"part,omitempty"` // one more than the component's offset
}

// maxSignals bounds the signals kept for delivery in one record.
const maxSignals = 32

// Find lists the records a reference speaks of, without splitting any.
func (t *tables) Find(r Ref) []*Job {
	var out []*Job
	for m := range t.Members(r.Job) {
		if r.takes(m) {
			out = append(out, m)
		}
	}
	if out != nil || !r.Tasks.Empty() {
		return out
	}
	j, ok := t.jobs.Get(r.Job)
	alone := ok && (j.Het == nil || j.Follows())
	switch {
	case !ok, alone && r.Part > 0:
		return nil
	case alone:
		return []*Job{j}
	}
	out = t.Components(j)
	if r.Part > 0 {
		out = slices.DeleteFunc(out, func(o *Job) bool { return o.Het.Offset != r.Part-1 })
	}
	return out
}

// takes reports whether some of a record's tasks are meant.
func (r Ref) takes(j *Job) bool {
	return r.Tasks.Empty() || r.Tasks.Has(j.Task) || !j.Tasks.Intersect(r.Tasks).Empty()
}

// records resolves a reference, checks that the caller may act, and splits array records of
// which only some tasks are meant.
func (t *tx) records(r Ref) ([]*Job, error) { return t.recordsOf(r, ErrAccess) }

// recordsOf is records with the kind of error for jobs of others: hold and update say that the user is wrong.
func (t *tx) recordsOf(r Ref, owner ErrKind) ([]*Job, error) {
	found := t.Find(r)
	if len(found) == 0 {
		return nil, Errorf(NotFound, ErrJobID, "job %d does not exist", r.Job)
	}
	var out []*Job
	for _, j := range found {
		if t.by.UID != j.Spec.UID && !t.by.Operator() && !t.Coordinates(t.by.User, j.Spec.Account) {
			return nil, Errorf(Denied, owner, "job %d belongs to user %d", j.ID, j.Spec.UID)
		}
		if j.Tasks.Empty() || r.Tasks.Empty() || r.Tasks.Contains(j.Tasks) {
			out = append(out, j)
			continue
		}
		out = append(out, t.split(j.ID, j.Tasks.Intersect(r.Tasks))...)
	}
	return out, nil
}

// split makes tasks of an array record records of their own with fresh ids; the last task that remains keeps the
// array's.
func (t *tx) split(id JobID, tasks IDSet) (out []*Job) {
	rest, _ := t.jobs.Get(id)
	left := *rest
	if left.Tasks = rest.Tasks.Minus(tasks); !left.Tasks.Empty() {
		t.putJob(&left)
		t.tell(&left)
	}
	for task := range tasks.All() {
		one := *rest
		one.Task = task
		one.Tasks = IDSet{}
		if task != tasks.Max() || !left.Tasks.Empty() {
			one.ID = t.allotID()
			for _, h := range []BlobHash{one.Spec.Script, one.Spec.Env} {
				_ = t.refBlob(h, 1) // the array's own record holds it, so it is there
			}
		}
		t.putJob(&one)
		out = append(out, &one)
	}
	return out
}

// Cancel ends jobs, or sends a signal to running ones. Result: []JobID of the jobs it touched.
type Cancel struct {
	Ref   Ref         `json:"ref"`
	Sig   int         `json:"sig,omitempty"`   // 0: end the job
	Scope SignalScope `json:"scope,omitempty"` // for Sig
	Step  *int        `json:"step,omitempty"`  // only this step; Sig 0 ends it
	// Cron confirms that all runs of a job of a crontab are meant.
	Cron bool `json:"cron,omitempty"`
	// Sibling: the job is not to run at that cluster of the federation, and nothing else.
	Sibling federation.ID `json:"sibling,omitempty"`
	// Hurry: nothing of its burst buffer is staged out.
	Hurry bool `json:"hurry,omitempty"`
	// PendingOnly and such filters are applied by the handler, on its snapshot.
}

func (*Cancel) kind() string { return "cancel" }

func (c *Cancel) apply(t *tx) (any, error) {
	jobs, err := t.records(c.Ref)
	if err != nil || c.Sibling != 0 {
		return dropSibling(t, c, jobs, err)
	}
	whole := onlyWhole(jobs, c.Ref, func(j *Job) bool {
		return c.Sig == 0 && c.Step == nil && j.Phase <= Starting
	})
	if err := cmp.Or(whole, unconfirmed(t, c, jobs[0])); err != nil {
		return nil, err
	}
	if c.Step != nil { // not every component need have a part in it
		if with := t.having(jobs, *c.Step); len(with) > 0 {
			jobs = with
		} else {
			jobs = jobs[:1]
		}
	}
	var done []JobID
	for _, j := range jobs {
		if j, _ = t.jobs.Get(j.ID); cancelStaging(t, c, j) {
			done = append(done, j.ID)
			continue
		}
		if j.Phase == Ended || j.Phase == Ending && c.Sig == 0 && !j.RequeueAfter {
			continue
		}
		n := *j
		if c.Sig == 0 && c.Step == nil {
			hurried(c, &n)
			cancelOne(t, &n)
		} else if err := t.addSignal(&n, c); err != nil {
			return nil, err
		}
		t.putJob(&n)
		tellEnd(t, &n)
		done = append(done, n.ID)
	}
	if len(done) == 0 {
		return nil, Errorf(Conflict, ErrFinished, "job %d has ended already", c.Ref.Job)
	}
	return done, nil
}

// tellEnd tells of a job that was to end, and may have ended by that.
func tellEnd(t *tx, j *Job) {
	if j.Phase == Ended {
		t.ended(j)
		return
	}
	t.tell(j)
}

// cancelOne ends a job, which is a copy, or has the cluster end it that holds it.
func cancelOne(t *tx, n *Job) {
	uid := t.by.UID
	if heldElsewhere(n) {
		part := n.Fed.Part
		part.Cancelled = &uid
		*n = *withPart(n, part)
		return
	}
	t.end(n, Cancelled, n.Wait)
	n.CancelledBy = &uid
	n.RequeueAfter = false
}

// having lists those of the jobs that have a step of this number.
func (t *tables) having(jobs []*Job, step int) (out []*Job) {
	for _, j := range jobs {
		if _, ok := t.Step(StepID{j.ID, step}); ok {
			out = append(out, j)
		}
	}
	return out
}

func (t *tx) addSignal(n *Job, c *Cancel) error {
	if !n.holds() {
		return Errorf(Conflict, ErrPending, "job %d is pending and cannot be signalled", n.ID)
	}
	sig := JobSignal{
		Num:   1,
		Sig:   c.Sig,
		Scope: c.Scope,
		Step:  AllSteps,
		UID:   t.by.UID,
	}
	if c.Step != nil {
		if _, ok := t.Step(StepID{n.ID, *c.Step}); !ok {
			return Errorf(NotFound, ErrJobID, "job %d has no step %d", n.ID, *c.Step)
		}
		sig.Step = *c.Step
	}
	if k := len(n.Signals); k > 0 {
		sig.Num = n.Signals[k-1].Num + 1
	}
	n.Signals = append(slices.Clone(n.Signals), sig)
	if c.Step == nil && (c.Sig == sigStop || c.Sig == sigCont) {
		n.Stopped = c.Sig == sigStop
	}
	if len(n.Signals) > maxSignals {
		n.Signals = n.Signals[len(n.Signals)-maxSignals:]
	}
	return nil
}

// end takes a job from wherever it is towards its end: at once when it holds nothing, else by
// telling its nodes. It changes n, which must be a copy.
func (t *tx) end(n *Job, how Outcome, why Reason) {
	n.EndReason = why
	switch n.Phase {
	case Pending:
		n.Phase, n.Outcome, n.Ended, n.Waiting = Ended, how, t.since(n.Submitted), nil
		burstOver(t, n)
	case Starting, Running, Suspended:
		if n.Phase == Suspended {
			n.paused(n.SuspendedAt, t.since(n.SuspendedAt))
		}
		n.Phase, n.EndingWhy, n.EndingAt, n.Waiting = Ending, how, t.since(n.since()), n.AllocNodes()
		freeSpares(t, n)
	case Ending:
		n.EndingWhy = how
	}
}

// ended does what follows from a job's final end: history, dependents, array bookkeeping.
func (t *tx) ended(n *Job) {
	t.tell(n)
	t.endSteps(n)
	t.usedResv(n)
	t.wakeDependents(n)
	if n.Spec.Cron != nil {
		cronOver(t, n)
	}
	if n.Het != nil && t.hetOver(n) {
		t.touch(t.Components(n)...) // now their clocks start
	}
}

// endSteps closes the records of steps that nobody reported the end of.
func (t *tx) endSteps(n *Job) {
	for _, s := range slices.Collect(t.Steps(n.ID)) {
		c := *s
		c.Ended = later(n.Ended, c.Started)
		c.Outcome = Cancelled
		t.events = append(t.events, Event{Step: &c})
		dropItem(t, t.steps, s)
	}
}

// Finish ends an allocation whose command is over. Result: nil.
type Finish struct {
	Job  JobID      `json:"job"`
	Exit ExitStatus `json:"exit,omitzero"`
}

func (*Finish) kind() string { return "finish" }

func (c *Finish) apply(t *tx) (any, error) {
	jobs, err := t.records(Ref{Job: c.Job})
	if err != nil {
		return nil, err
	}
	n := *jobs[0]
	if !n.holds() || n.Phase == Ending {
		return nil, Errorf(Conflict, ErrFinished, "job %d is over", n.ID)
	}
	how := Completed
	why := NoReason
	switch c.Exit {
	case ExitStatus{}:
	case OOMExit:
		how = OutOfMemory
		why = EndOutOfMemory
	default:
		how = Failed
		why = EndNonZeroExit
	}
	n.Exit = c.Exit
	t.end(&n, how, why)
	t.putJob(&n)
	t.tell(&n)
	t.endRest(&n)
	return nil, nil
}

// living resolves a reference like recordsOf and leaves the ended records out; it is an error if
// nothing is left.
func (t *tx) living(r Ref) ([]*Job, error) {
	jobs, err := t.recordsOf(r, ErrUser)
	if err != nil {
		return nil, err
	}
	first := jobs[0].ID
	jobs = slices.DeleteFunc(jobs, func(j *Job) bool { return j.Phase == Ended })
	if len(jobs) == 0 {
		return nil, Errorf(Conflict, ErrEnded, "job %d has ended", first)
	}
	return jobs, nil
}

// HoldJobs holds pending jobs, or with NotHeld releases them.
type HoldJobs struct {
	Ref  Ref  `json:"ref"`
	Hold Hold `json:"hold"`
}

func (*HoldJobs) kind() string { return "hold" }

func (c *HoldJobs) apply(t *tx) (any, error) {
	jobs, err := t.living(c.Ref)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if c.Hold == NotHeld && j.Held == HeldAdmin && !t.by.Operator() {
			return nil, Errorf(Denied, ErrAccess, "job %d is held by an administrator", j.ID)
		}
		n := *j
		t.setHold(&n, c.Hold)
		if n.Phase == Pending && c.Hold == NotHeld {
			if n.Eligible.Before(t.at) && len(n.Depends.Terms) == 0 {
				n.Eligible = t.at
			}
			releaseBurst(t, &n)
			n.Wait = t.waitOf(&n)
			n.Avoid = nil
			t.accrue(&n)
		}
		t.putJob(&n)
		t.tell(&n)
	}
	return nil, nil
}

// Requeue puts running or ended batch jobs back into the queue under the same id.
type Requeue struct {
	Ref         Ref  `json:"ref"`
	Hold        bool `json:"hold,omitempty"`
	SpecialExit bool `json:"special_exit,omitempty"`
}

func (*Requeue) kind() string { return "requeue" }

func (c *Requeue) apply(t *tx) (any, error) {
	jobs, err := t.records(c.Ref)
	if err != nil {
		return nil, err
	}
	if jobs[0].Follows() {
		return nil, Errorf(Invalid, ErrHetLeader, "job %d is not the leader of heterogeneous job %d",
			jobs[0].ID, jobs[0].Het.ID)
	}
	for _, j := range jobs {
		switch {
		case j.Spec.Kind != Batch:
			return nil, Errorf(Invalid, ErrBatchOnly, "job %d is not a batch job", j.ID)
		case j.Phase == Pending:
			if err := c.waiting(t, j, jobs); err != nil {
				return nil, err
			}
			continue
		case !j.MayRequeue():
			return nil, Errorf(Denied, ErrDisabled, "job %d was submitted with --no-requeue", j.ID)
		}
		n := *j
		n.RequeueAfter = true
		n.RequeueHold = c.Hold
		n.SpecialExit = c.SpecialExit
		if n.Phase == Ended {
			t.requeued(&n)
		} else {
			t.end(&n, Requeued, NoReason)
			t.putJob(&n)
			t.tell(&n)
		}
	}
	return nil, nil
}

// waiting does what can be done to one of the jobs that waits: it is held, or its next run is left out.
func (c *Requeue) waiting(t *tx, j *Job, jobs []*Job) error {
	n := *j
	switch {
	case c.Hold:
		t.setHold(&n, HeldUser)
		t.putJob(&n)
	case len(jobs) > 1 && (j.Het == nil || jobs[0].Phase != Pending): // the rest of an array
	case j.Spec.Cron != nil:
		waitsForTime(t, &n, later(j.Spec.Begin, t.at))
		t.evaluate(&n)
		t.putJob(&n)
		t.tell(&n)
	default:
		return Errorf(Conflict, ErrPending, "job %d is pending already", j.ID)
	}
	return nil
}

// requeued brings a job whose attempt is over back to Pending. History has the old attempt.
func (t *tx) requeued(n *Job) {
	hold := n.RequeueHold
	special := n.SpecialExit
	held := n.Held
	expedited := n.Alloc != nil && n.Alloc.Keeps
	key := n.Key
	delay := t.config.RequeueDelay
	if n.WaitNote == ServerPrologError {
		delay = max(delay, prologPause)
	}
	if expedited {
		delay = 0
	}
	heldWhy := WaitRequeueHeld
	var avoid []Avoided
	if n.EndReason == EndLaunchFailure {
		heldWhy = WaitLaunchFailedHeld
		avoid = n.Avoid
	}
	restarts := n.Restarts + 1
	if recurs(n) {
		waitsForTime(t, n, t.at)
		if n.Outcome != Requeued {
			restarts--
		}
	}
	hetOver := n.Phase == Ended && n.Het != nil && t.hetOver(n)
	*n = Job{
		ID:        n.ID,
		Key:       key,
		Spec:      withFewerSpares(n.Spec),
		ArrayID:   n.ArrayID,
		Task:      n.Task,
		Tasks:     n.Tasks,
		Het:       n.Het,
		Attempt:   n.Attempt,
		Restarts:  restarts,
		Avoid:     avoid,
		Submitted: t.at,
		Limit:     t.TimeLimit(n.Spec),
		Waiting:   n.AllocNodes(),
		NextStep:  0,
		Assoc:     n.Assoc,
		Preempt:   n.Preempt,
		Evicted:   n.Evicted,
		Rarely:    Rarely{Fed: fedAgain(n), Burst: burstAgain(n), Survival: n.Survival},
	}
	expedite(n, expedited)
	if n.Preempt != nil { // the grace was that of the attempt
		p := *n.Preempt
		p.Until, n.Preempt = time.Time{}, &p
	}
	t.evaluate(n)
	t.rank(n)
	if delay > 0 {
		n.Eligible = later(n.Eligible, t.at.Add(delay))
		n.Wait = WaitBegin
	}
	switch {
	case hold:
		n.Held = max(HeldUser, held)
		n.Wait = heldWhy
		n.SpecialExit = special
		n.Priority = 0
	case held != NotHeld: // while it ran
		n.Held = held
		n.Wait = WaitHeldUser
		if held == HeldAdmin {
			n.Wait = WaitHeldAdmin
		}
		n.Priority = 0
	}
	t.putJob(n)
	t.tell(n)
	if hetOver { // the clocks of its other components stop
		t.touch(t.Components(n)...)
	}
}

// Suspend stops running jobs and frees their CPUs, or with Resume continues them.
type Suspend struct {
	Ref    Ref  `json:"ref"`
	Resume bool `json:"resume,omitempty"`
}

func (*Suspend) kind() string { return "suspend" }

func (c *Suspend) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrAccess, "only operators may suspend or resume jobs")
	}
	jobs, err := t.records(c.Ref)
	if err != nil {
		return nil, err
	}
	if err := onlyWhole(jobs, c.Ref, func(*Job) bool { return true }); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		n := *j
		may := n.suspendable()
		if c.Resume {
			may = n.suspended()
		}
		if others := len(jobs) > 1 && (j.Het == nil || j.Follows()); others && !may {
			continue // another task of the array is meant
		}
		if err := c.one(t, &n, may); err != nil {
			return nil, err
		}
		t.putJob(&n)
		t.tell(&n)
	}
	return nil, nil
}

// one stops a job, which is a copy, or has it go on, if it may.
func (c *Suspend) one(t *tx, n *Job, may bool) error {
	switch {
	case n.Phase == Pending:
		return Errorf(Conflict, ErrPending, "job %d is pending, and has nothing to stop", n.ID)
	case n.Phase == Ended:
		return Errorf(Conflict, ErrFinished, "job %d has ended", n.ID)
	case c.Resume && !may:
		return Errorf(Conflict, ErrNotSuspended, "job %d is not suspended", n.ID)
	case c.Resume:
		return t.resume(n)
	case !may:
		return Errorf(Conflict, ErrNotRunning, "job %d is not running", n.ID)
	}
	t.suspend(n)
	return nil
}

// suspend stops a job and frees its CPUs; one that waits for its turn is stopped already.
func (t *tx) suspend(n *Job) {
	for _, sh := range append(slices.Clip(n.Alloc.Parts()), n.Leaving()...) {
		l := *t.Load(sh.Node)
		l.TakeBack(sh.CPUs)
		t.putLoad(&l)
	}
	n.Shrunk = n.Shrunk.withoutCPUs()
	if n.Phase != Suspended {
		n.pause(t.since(n.Started))
	}
	n.Turn = nil
}

// suspendable reports whether the job runs, or will when it is its turn.
func (j *Job) suspendable() bool {
	return j.Phase == Running || j.Phase == Suspended && j.AwaitsTurn()
}

// suspended reports whether the job was suspended, other than to take turns.
func (j *Job) suspended() bool {
	return j.Phase == Suspended && !j.AwaitsTurn()
}

// pause stops a job that runs.
func (j *Job) pause(at time.Time) {
	j.Phase = Suspended
	j.SuspendedAt = at
	j.PreSuspend = j.RunTime(at)
}

// unpause has it go on.
func (j *Job) unpause(at time.Time) {
	j.paused(j.SuspendedAt, at)
	j.Phase = Running
	j.SuspendedAt = time.Time{}
}

func (t *tx) resume(n *Job) error {
	for _, sh := range n.Alloc.Parts() {
		l := *t.Load(sh.Node)
		if !l.Taken(n.Alloc.Over).Intersect(sh.CPUs).Empty() {
			return Errorf(Conflict, ErrBusy, "CPUs of job %d on node %s are in use", n.ID, sh.Node)
		}
		l.Give(sh.CPUs, n.Alloc.Over > 0)
		t.putLoad(&l)
	}
	n.unpause(t.since(n.SuspendedAt))
	if n.Preempt.until().IsZero() {
		n.Preempt = nil
	}
	return nil
}

// RunTime is how long the job has run, without suspensions.
func (j *Job) RunTime(now time.Time) time.Duration {
	if j.Started.IsZero() {
		return 0
	}
	end := now
	if j.Phase == Ended {
		end = j.Ended
	}
	if j.Phase == Suspended {
		end = j.SuspendedAt
	}
	return max(end.Sub(j.Started)-j.SuspendTotal, 0)
}
