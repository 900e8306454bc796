package cluster

import (
	"slices"
	"time"
)

// Burst buffers (burst_buffer/lua). A job that asks for one has functions of the site's script run: before it may
// start, when it has its nodes, after its end, and to clean up. Each run is a hook of the leader's; what follows from
// its end is said by burstSteps. A job stages in as soon as nothing else but nodes keeps it from starting: the
// scheduler says so by WaitBurst. Whatever ends the job in between, what was set up is torn down.

// BurstState is where a job's buffer stands, in Slurm's words.
type BurstState string

// The states.
const (
	BurstPending    BurstState = "pending"
	BurstStagingIn  BurstState = "staging-in"
	BurstStagedIn   BurstState = "staged-in"
	BurstPreRun     BurstState = "pre-run"
	BurstRunning    BurstState = "running"
	BurstPostRun    BurstState = "post-run"
	BurstStagingOut BurstState = "staging-out"
	BurstTeardown   BurstState = "teardown"
	BurstComplete   BurstState = "complete"
)

// BurstCall is what is called of the script.
type BurstCall string

// The calls of a job's life.
const (
	CallSetup    BurstCall = "setup"
	CallDataIn   BurstCall = "data_in"
	CallPreRun   BurstCall = "pre_run"
	CallPostRun  BurstCall = "post_run"
	CallDataOut  BurstCall = "data_out"
	CallTeardown BurstCall = "job_teardown"
)

// burstStep is what a job does while a function runs, and what follows when that has succeeded, or failed.
type burstStep struct {
	call   BurstCall
	during BurstState
	next   BurstCall  // what is called then,
	after  BurstState // or where the buffer stands
	failed BurstState
}

var burstSteps = [...]burstStep{
	{CallSetup, BurstStagingIn, CallDataIn, "", BurstStagingIn},
	{CallDataIn, BurstStagingIn, "", BurstStagedIn, BurstStagingIn},
	{CallPreRun, BurstPreRun, "", BurstRunning, BurstPreRun},
	{CallPostRun, BurstPostRun, CallDataOut, "", BurstStagingOut},
	{CallDataOut, BurstStagingOut, CallTeardown, "", BurstStagingOut},
	{CallTeardown, BurstTeardown, "", BurstComplete, BurstTeardown},
}

// Bounds of what is kept of buffers.
const (
	maxTeardowns = 3  // until a buffer that cannot be torn down is given up, as in Slurm
	maxStaged    = 10 // tasks of an array that stage in, or have, at a time, as in Slurm
)

// Burst is where a job with a buffer stands. It is replaced, never changed.
type Burst struct {
	State BurstState `json:"state"`
	// Hook is the number of the one that runs a function of the script; 0: none does.
	Hook uint64 `json:"hook,omitempty"`
	// Made is when setup was called.
	Made time.Time `json:"made,omitzero"`
	// Out: the job has ended, and what it has left is not staged out yet.
	Out bool `json:"out,omitempty"`
	// Hurry: when the job ends nothing is staged out.
	Hurry bool `json:"hurry,omitempty"`
	// Why is what a function said that failed; Fails counts the failures of the teardown.
	Why   string `json:"why,omitempty"`
	Fails int    `json:"fails,omitempty"`
	// Env are variables for the job's programs.
	Env []string `json:"env,omitempty"`
}

// BurstConfig is burst_buffer.conf, with what is called when nothing is said there.
type BurstConfig struct {
	Directive  string        `json:"directive"` // of lines in scripts, without #
	Allow      []string      `json:"allow,omitempty"`
	Deny       []string      `json:"deny,omitempty"`
	StageIn    time.Duration `json:"stage_in"`
	StageOut   time.Duration `json:"stage_out"`
	Validate   time.Duration `json:"validate"`
	Other      time.Duration `json:"other"`
	Poll       time.Duration `json:"poll"`
	Tasks      int           `json:"tasks,omitempty"`       // of an array that stage in at a time; 0: maxStaged
	TearFailed bool          `json:"tear_failed,omitempty"` // what could not be staged is torn down
}

// burstAsked is the buffer of a job that is submitted, nil if it asks for none.
func burstAsked(t *tx, j *Job, spec *JobSpec) (*Burst, error) {
	switch {
	case spec.BurstBuffer == "" || t.config.Burst == nil:
		return nil, nil
	case j.Het != nil:
		return nil, Errorf(Invalid, ErrBurst,
			"a component of a heterogeneous job cannot have a burst buffer: submit it as a job of its own")
	}
	return &Burst{State: BurstPending}, nil
}

// burstAgain is the buffer of a job that goes back into the queue: it stages in again, once what it had is torn down.
func burstAgain(n *Job) *Burst {
	if n.Burst == nil {
		return nil
	}
	b := *n.Burst
	b.Out = false
	b.Env = nil
	b.Hurry = false
	if b.State == BurstComplete {
		b = Burst{State: BurstPending}
	}
	return &b
}

// burstWait is why a job that could start otherwise does not yet. Of an array some tasks stage in, or have, at a time.
func burstWait(t *tables, j *Job) Reason {
	switch {
	case j.Burst == nil:
		return NoReason
	case j.Burst.State == BurstStagedIn:
		return NoReason
	case j.Burst.State == BurstPending && !j.Tasks.Empty() && roomToStage(t, j.ArrayID) <= 0:
		return WaitStageIn
	case j.Burst.State == BurstPending:
		return WaitBurst
	case j.Burst.State == BurstStagingIn:
		return WaitStageIn
	}
	return WaitBurstOperation
}

// roomToStage is how many more tasks of an array may stage in now. Those that failed to do not count.
func roomToStage(t *tables, array JobID) int {
	most := maxStaged
	if b := t.config.Burst; b != nil && b.Tasks > 0 {
		most = b.Tasks
	}
	for m := range t.Members(array) {
		if m.Burst == nil || m.Phase != Pending || m.Held != NotHeld {
			continue
		}
		if m.Burst.State == BurstStagingIn || m.Burst.State == BurstStagedIn {
			most--
		}
	}
	return most
}

// BurstOpen reports whether something of a job's buffer is still to be done.
func BurstOpen(j *Job) bool {
	return j.Burst != nil && j.Burst.State != BurstPending && j.Burst.State != BurstComplete
}

// StagesOut reports whether a job is over, but for what it leaves behind.
func StagesOut(j *Job) bool {
	return j.Phase == Ended && j.Burst != nil && j.Burst.Out
}

// stagesFor reports whether a term of j waits for its parents to have staged out.
func stagesFor(j *Job, d Depend) bool {
	if d.Type == After || d.Type == SingletonOf {
		return false
	}
	return d.Type == AfterBurst || j.Burst != nil
}

// stageIn begins to stage a job in, or tasks of an array, which become records of their own.
func stageIn(t *tx, j *Job) {
	list := []*Job{j}
	if !j.Tasks.Empty() {
		free := *j
		free.Burst = nil
		tasks, _ := t.Ready(&free, t.at)
		var first []int
		for task := range tasks.All() {
			if len(first) >= roomToStage(t.tables, j.ArrayID) {
				break
			}
			first = append(first, task)
		}
		list = t.split(j.ID, NewIDSet(first...))
	}
	for _, one := range list {
		n := *one
		b := Burst{State: BurstPending, Made: t.at}
		n.Burst = &b
		n.Wait = WaitStageIn
		n.WaitNote = ""
		n.PlannedStart = time.Time{}
		n.PlannedNodes = nil
		n.LastEval = t.at
		callBurst(t, &n, CallSetup)
		t.putJob(&n)
	}
}

// callBurst has the leader call a function for a job, which is a copy that the caller puts. One that runs for it is
// stopped.
func callBurst(t *tx, n *Job, call BurstCall) {
	b := *n.Burst
	dropBurstHook(t, &b)
	for _, s := range burstSteps {
		if s.call == call {
			b.State = s.during
		}
	}
	n.Burst = &b
	t.send(Hook{Kind: HookBurst, Job: n, Burst: call})
	b.Hook = t.LastHook
}

// dropBurstHook forgets the hook that runs for a buffer: the leader stops it.
func dropBurstHook(t *tx, b *Burst) {
	h, ok := t.hooks.Get(b.Hook)
	if b.Hook = 0; !ok {
		return
	}
	dropValue(t, t.hooks, h.ID)
}

// burstOver goes on with the buffer of a job that has just ended, or goes back into the queue. The job is a copy.
func burstOver(t *tx, n *Job) {
	if n.Burst == nil {
		return
	}
	b := *n.Burst
	n.Burst = &b
	switch {
	case b.State == BurstPending:
		b.State = BurstComplete
	case b.State == BurstComplete || b.State == BurstTeardown:
	case b.State == BurstRunning && !b.Hurry:
		b.Out = true
		callBurst(t, n, CallPostRun)
	default:
		callBurst(t, n, CallTeardown)
	}
}

// hurryBurst ends the staging out of a job that is over, and reports whether there was any.
func hurryBurst(t *tx, j *Job) bool {
	if j.Phase != Ended || !BurstOpen(j) {
		return false
	}
	if j.Burst.State == BurstTeardown {
		return true
	}
	n := *j
	callBurst(t, &n, CallTeardown)
	t.putJob(&n)
	return true
}

// cancelStaging is Cancel for a job that has ended: with hurry nothing more is staged out. It reports whether there is
// anything that goes on.
func cancelStaging(t *tx, c *Cancel, j *Job) bool {
	if c.Sig != 0 || c.Step != nil {
		return false
	}
	return c.Hurry && hurryBurst(t, j) || StagesOut(j)
}

// hurried notes before a job's end that nothing of it is to be staged out.
func hurried(c *Cancel, n *Job) {
	if c.Hurry && n.Burst != nil {
		b := *n.Burst
		b.Hurry, n.Burst = true, &b
	}
}

// releaseBurst has a job stage in again that is released after a function has failed for it: what may be there of its
// buffer is torn down first. The job is a copy.
func releaseBurst(t *tx, n *Job) {
	if n.Burst == nil || n.Burst.Why == "" {
		return
	}
	b := *n.Burst
	b.Why, n.Burst = "", &b
	if b.State == BurstStagingIn {
		callBurst(t, n, CallTeardown)
	}
}

// burstDone goes on with a job whose function has ended.
func burstDone(t *tx, h *Hook, end HookEnd) {
	j, ok := t.jobs.Get(h.Job.ID)
	if !ok || j.Burst == nil || j.Burst.Hook != h.ID {
		return
	}
	n := *j
	b := *j.Burst
	b.Hook, n.Burst = 0, &b
	i := slices.IndexFunc(burstSteps[:], func(s burstStep) bool { return s.call == h.Burst })
	if i < 0 {
		return
	}
	step := burstSteps[i]
	if end.Failed != "" {
		b.State = step.failed
		burstFailed(t, &n, &b, h.Burst, end.Failed)
		return
	}
	switch {
	case step.next != "":
		b.Out = b.Out && step.next != CallTeardown
		callBurst(t, &n, step.next)
	case step.after == BurstComplete:
		tornDown(&n, &b)
	default:
		b.State = step.after
	}
	if h.Burst == CallPreRun {
		b.Env = end.Env
		if j.Preparing() {
			p := *j.Prelude
			p.Burst = false
			n.Prelude = p.past(t.since(j.Started))
		}
	}
	putStaged(t, j, &n)
}

// putStaged puts a job whose buffer has gone on, and wakes those that waited for it to stage out.
func putStaged(t *tx, old, n *Job) {
	t.putJob(n)
	t.tell(n)
	if StagesOut(old) && !StagesOut(n) {
		t.inform(EventStageOut, n, nil)
		t.wakeDependents(n)
	}
}

// tornDown is the end of a buffer. A job that is in the queue again gets another one.
func tornDown(n *Job, b *Burst) {
	if b.State, b.Out, b.Fails, b.Env = BurstComplete, false, 0, nil; n.Phase != Ended {
		b.State = BurstPending
		b.Made = time.Time{}
	}
}

// burstFailed says what follows from a function's failure. b is the copy's buffer.
func burstFailed(t *tx, n *Job, b *Burst, call BurstCall, why string) {
	old, _ := t.jobs.Get(n.ID)
	b.Why = burstSays(call, why)
	n.SystemComment = b.Why
	switch call {
	case CallSetup, CallDataIn:
		t.setHold(n, HeldAdmin)
		if t.config.Burst.tears() {
			callBurst(t, n, CallTeardown)
		}
	case CallPreRun:
		preRunFailed(t, n, b)
		return
	case CallPostRun, CallDataOut:
		if t.config.Burst.tears() {
			callBurst(t, n, CallTeardown)
		}
	case CallTeardown:
		if b.Fails++; b.Fails < maxTeardowns {
			callBurst(t, n, CallTeardown)
		} else {
			tornDown(n, b)
		}
	}
	putStaged(t, old, n)
}

// tears reports whether what could not be staged is torn down at once.
func (c *BurstConfig) tears() bool {
	return c != nil && c.TearFailed
}

// preRunFailed takes a job's start back: it is held, and what it had is torn down.
func preRunFailed(t *tx, n *Job, b *Burst) {
	if !n.Preparing() { // it ends anyway
		t.putJob(n)
		return
	}
	n.blamed(Blame{Text: b.Why})
	b.Why = PreRunError
	if n.RequeueAfter = n.Spec.Kind == Batch; n.RequeueAfter {
		n.RequeueHold = true
		n.Held = HeldAdmin
	}
	n.Prelude = &Prelude{} // no node has heard of it
	t.end(n, Cancelled, EndLaunchFailure)
	t.putJob(n)
	t.tell(n)
}

// PreRunError is why a job is held whose pre_run has failed, as in Slurm.
const PreRunError = "Burst buffer pre_run error"

// burstSays words a function's failure as Slurm does.
func burstSays(call BurstCall, why string) string {
	name := "slurm_bb_" + string(call)
	if call == CallTeardown {
		name = "teardown"
	}
	return "burst_buffer/lua: " + name + ": " + why
}
