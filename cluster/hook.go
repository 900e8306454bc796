package cluster

import (
	"iter"
	"slices"
	"time"
)

// Hook is something that is to be done once outside of the state: a program that the leader runs, a message that it
// sends. It stays in the state until the leader has told what came of it, so that a leader that dies leaves it to
// the next one: a hook is done once, or in that moment twice, and never not at all.
type Hook struct {
	ID   uint64   `json:"id"`
	Kind HookKind `json:"kind"`
	// Event is what a mail or call tells of.
	Event JobEvent `json:"event,omitempty"`
	// Job is the job as it was then, for a requeue before that; nil if the hook is about nodes.
	Job *Job      `json:"job,omitempty"`
	At  time.Time `json:"at"`
	// Nodes are to be switched; Jobs wait for them.
	Nodes []NodeName `json:"nodes,omitempty"`
	Jobs  []*Job     `json:"jobs,omitempty"`
	// Reservation is which one has begun or is over.
	Reservation string `json:"reservation,omitempty"`
	// Retain is what of history is to be archived and to go.
	Retain *Forgetting `json:"retain,omitempty"`
	// Trigger is the program of a trigger.
	Trigger *TriggerRun `json:"trigger,omitempty"`
	// Burst is the function that is called.
	Burst BurstCall `json:"burst,omitempty"`
	// News is what a channel is notified of.
	News *ChannelNews `json:"news,omitempty"`
	// Array sums up the tasks of the job's array, if the hook is about all of them.
	Array *ArraySum `json:"array,omitempty"`
}

// Program is what a hook runs.
type Program struct {
	Argv    []string // none: it cannot be done
	Environ []string // all of it
	// File is what the program finds in the file that the variable FileVar names, if it is not empty.
	FileVar string
	File    []byte
	// Append is a line for the file of that name, in place of a program.
	Append, Line string
}

// HookKind is what a hook consists in.
type HookKind string

// The kinds.
const (
	HookMail    HookKind = "mail"    // run the site's MailProg
	HookCall    HookKind = "call"    // send the job's event to its URL
	HookChannel HookKind = "channel" // send news to a channel of the site

	HookProlog HookKind = "prolog" // run PrologSlurmctld; the job begins when it has succeeded
	HookEpilog HookKind = "epilog" // run EpilogSlurmctld

	HookResume     HookKind = "resume"      // run ResumeProgram
	HookResumeFail HookKind = "resume_fail" // run ResumeFailProgram
	HookSuspend    HookKind = "suspend"     // run SuspendProgram

	HookResvProlog HookKind = "resv_prolog" // run ResvProlog
	HookResvEpilog HookKind = "resv_epilog" // run ResvEpilog

	// These two are no part of the state: a server does them of itself.
	HookLead   HookKind = "lead"   // run SlurmctldPrimaryOnProg
	HookFollow HookKind = "follow" // run SlurmctldPrimaryOffProg

	// HookJobComp records that a job has ended, as JobCompType says.
	HookJobComp HookKind = "job_comp"

	HookRetain HookKind = "retain" // archive old records of history, which go when it is done

	HookTrigger HookKind = "trigger" // run the program of a trigger

	HookBurst HookKind = "burst" // call a function of the script for a job's burst buffer
)

// JobEvent is what users can be told of a job, as --mail-type names it.
type JobEvent string

// The events.
const (
	EventBegin     JobEvent = "BEGIN"
	EventEnd       JobEvent = "END"
	EventFail      JobEvent = "FAIL"
	EventRequeue   JobEvent = "REQUEUE"
	EventTimeLimit JobEvent = "TIME_LIMIT"
	EventTime90    JobEvent = "TIME_LIMIT_90"
	EventTime80    JobEvent = "TIME_LIMIT_80"
	EventTime50    JobEvent = "TIME_LIMIT_50"
	EventNever     JobEvent = "INVALID_DEPEND"
	EventStageOut  JobEvent = "STAGE_OUT"
	EventHang      JobEvent = "HANG"        // for those who asked for FAIL
	EventStraggler JobEvent = "STRAGGLER"   // for those, too
	eventTasks     JobEvent = "ARRAY_TASKS" // not an event: each task of an array is told of
	eventOver      JobEvent = "OVER"        // any end of a job or task: no user asks for it
)

// callEvents are those of a call whose job names none.
var callEvents = []string{
	string(EventBegin), string(EventEnd), string(EventFail), string(EventRequeue), string(EventNever),
}

// timeEvent is an event of a running job's clock.
type timeEvent struct {
	percent uint8 // of its time limit
	event   JobEvent
}

var timeEvents = [...]timeEvent{{50, EventTime50}, {80, EventTime80}, {90, EventTime90}}

// maxHooks bounds how many messages wait at once: what comes on top of them is not told. Programs that jobs
// depend on are not bounded; there are never more of them than jobs.
const maxHooks = 10_000

// Hooks yields what is to be done, oldest first.
func (t *tables) Hooks() iter.Seq[*Hook] { return valuesOf(t.hooks) }

// HookCount is how many hooks there are, and whether messages have to be left out.
func (t *tables) HookCount() (n int, full bool) {
	return t.hooks.Len(), t.hooks.Len() >= maxHooks
}

// wants reports whether the job's user wants to be told of an event.
func (s *JobSpec) wants(e JobEvent) (mail, call bool) {
	if e == eventOver {
		return false, false
	}
	if e == EventHang || e == EventStraggler {
		e = EventFail
	}
	mail = slices.Contains(s.MailType, string(e))
	if s.Notify != "" {
		call = mail || len(s.MailType) == 0 && slices.Contains(callEvents, string(e))
	}
	return mail, call
}

// tells reports whether anybody wants to hear of anything that happens to the job.
func (s *JobSpec) tells() bool {
	return len(s.MailType) > 0 || s.Notify != ""
}

// send makes a hook.
func (t *tx) send(e Hook) {
	keepOld(t, &t.LastHook)
	t.LastHook++
	e.ID = t.LastHook
	e.At = t.at
	putValue(t, t.hooks, e.ID, &e)
}

// announce makes the hooks that follow from a job's change.
func (t *tx) announce(old, j *Job) {
	if old == nil || j == nil {
		return
	}
	watchJob(t, old, j)
	if j.Phase == Ending && old.Preparing() {
		t.unheard = append(t.unheard, j.ID)
	}
	if hearsNothing(j) {
		t.external = append(t.external, j.ID)
	}
	over := endsNow(old, j)
	callPrograms(t, old, j, over)
	if j.Spec.tells() && !j.Follows() {
		tellUser(t, old, j, over)
	}
}

// callPrograms has the site's programs called for a job that ends.
func callPrograms(t *tx, old, j *Job, over bool) {
	ran := old.Phase > Pending && old.Phase < Ended
	if ran && j.Phase == Ended && t.config.EpilogServer != "" {
		t.send(Hook{Kind: HookEpilog, Job: j})
	}
	if over {
		t.inform(eventOver, j, nil)
	}
}

// userNews are the changes of which a job's user is told, the first that is one; over: the job has ended by it.
var userNews = [...]struct {
	is   func(old, j *Job, over bool) bool
	tell func(t *tx, old, j *Job)
}{
	{
		func(old, j *Job, _ bool) bool { return j.Phase == Running && old.Phase == Starting },
		func(t *tx, _, j *Job) { t.announceBegin(j) },
	},
	{
		func(old, j *Job, _ bool) bool { return requeuedOf(old, j) },
		func(t *tx, old, _ *Job) { t.inform(EventRequeue, old, nil) },
	},
	{
		func(_, _ *Job, over bool) bool { return over },
		func(t *tx, _, j *Job) { t.announceEnd(j) },
	},
	{
		func(old, j *Job, _ bool) bool { return timesOut(old, j) },
		func(t *tx, _, j *Job) { t.inform(EventTimeLimit, j, nil) },
	},
	{
		func(old, j *Job, _ bool) bool { return j.Phase == Pending && j.DependNever() && !old.DependNever() },
		func(t *tx, _, j *Job) { t.inform(EventNever, j, nil) },
	},
}

// tellUser tells a job's user of its change, who has asked for that.
func tellUser(t *tx, old, j *Job, over bool) {
	for _, news := range userNews {
		if news.is(old, j, over) {
			news.tell(t, old, j)
			return
		}
	}
}

// timesOut reports whether a job is told to end by this change, for its time limit.
func timesOut(old, j *Job) bool {
	return j.Phase == Ending && j.EndingWhy == TimedOut && old.EndingWhy != TimedOut
}

// endsNow reports whether a job ends by this change, or a run of a crontab's.
func endsNow(old, j *Job) bool {
	return j.Phase == Ended && old.Phase != Ended && !goesOn(j)
}

// goesOn reports whether what ends is not the end of a job or of a run of a crontab's.
func goesOn(j *Job) bool {
	return j.RequeueAfter && !recurs(j)
}

// requeuedOf reports whether a job waits again for another reason than that its next run is to come.
func requeuedOf(old, j *Job) bool {
	return j.Phase == Pending && old.Phase > Pending && j.Spec.Cron == nil
}

// asWhole reports whether the job is a task of an array that is told of as a whole.
func (j *Job) asWhole() bool {
	return j.ArrayID != 0 && !slices.Contains(j.Spec.MailType, string(eventTasks))
}

// announceBegin tells that a job begins: of an array its first task, unless each is to be told of.
func (t *tx) announceBegin(j *Job) {
	if !j.asWhole() {
		t.inform(EventBegin, j, nil)
		return
	}
	if g := t.Gone(j.ArrayID); g != nil && g.Begun {
		return
	}
	for m := range t.Members(j.ArrayID) {
		if m.ID != j.ID && m.Attempt > 0 && m.Phase != Starting {
			return
		}
	}
	t.inform(EventBegin, j, &ArraySum{})
}

// announceEnd tells that a job has ended: of an array its last task, unless each is to be told of.
func (t *tx) announceEnd(j *Job) {
	event := func(ok bool) JobEvent {
		if ok {
			return EventEnd
		}
		return EventFail
	}
	if !j.asWhole() {
		t.inform(event(j.Outcome.well()), j, nil)
		return
	}
	if !t.TasksOver(j.ArrayID) {
		return
	}
	sum := sumFrom(j)
	ok := true
	first := j
	if g := t.Gone(j.ArrayID); g != nil {
		sum = g.Sum
		ok = !g.Unwell
	}
	for m := range t.Members(j.ArrayID) {
		if m.ID == j.ArrayID {
			first = m
		}
		ok = ok && m.Outcome.well()
		sum.add(m)
	}
	t.inform(event(ok), first, &sum)
}

// jobChannels are the ways in which an event of a job is reported.
var jobChannels = [...]struct {
	kind  HookKind
	wants func(c *Config, s *JobSpec, e JobEvent) bool
}{
	{HookMail, func(c *Config, s *JobSpec, e JobEvent) bool {
		mail, _ := s.wants(e)
		return mail && c.MailProg != ""
	}},
	{HookCall, func(_ *Config, s *JobSpec, e JobEvent) bool {
		_, call := s.wants(e)
		return call
	}},
	{HookJobComp, func(c *Config, _ *JobSpec, e JobEvent) bool { return e == eventOver && c.JobComp.Kind != "" }},
}

// inform makes the hooks of an event, for those who want to hear of it.
func (t *tx) inform(e JobEvent, j *Job, array *ArraySum) {
	if _, full := t.HookCount(); full {
		return
	}
	for i := range jobChannels {
		if way := &jobChannels[i]; way.wants(t.config, j.Spec, e) {
			t.send(Hook{Kind: way.kind, Event: e, Job: j, Array: array})
		}
	}
	notifySite(t, e, j)
}

// nextNotice is when the job's user is to be told next how much of its time is over; zero if never.
func (j *Job) nextNotice(c *Config) time.Time {
	if e := j.nextTold(); e != nil && !j.EndLimit(c).IsZero() {
		return j.Begun().Add(j.SuspendTotal + j.Limit/100*time.Duration(e.percent))
	}
	return time.Time{}
}

// nextTold is the event of its clock that a running job's user is to be told of next, or nil.
func (j *Job) nextTold() *timeEvent {
	if j.Phase != Running || len(j.Spec.MailType) == 0 {
		return nil
	}
	for i := range timeEvents {
		if mail, call := j.Spec.wants(timeEvents[i].event); (mail || call) && timeEvents[i].percent > j.Noticed {
			return &timeEvents[i]
		}
	}
	return nil
}

// Remind tells users of running jobs how much of their time is over.
type Remind struct {
	Jobs []JobID `json:"jobs"`
}

func (*Remind) kind() string { return "remind" }

func (c *Remind) apply(t *tx) (any, error) {
	for _, id := range c.Jobs {
		j, ok := t.jobs.Get(id)
		if !ok || j.Phase != Running {
			continue
		}
		n := *j
		for hasCome(n.nextNotice(t.config), t.at) {
			e := n.nextTold()
			n.Noticed = e.percent
			t.inform(e.event, j, nil)
		}
		if n.Noticed != j.Noticed {
			t.putJob(&n)
		}
	}
	return nil, nil
}

// HookEnd is what came of a hook.
type HookEnd struct {
	ID uint64 `json:"id"`
	// Failed says why it could not be done, or that its program failed; empty if all is well.
	Failed string `json:"failed,omitempty"`
	// Env are the variables that the script gives the job.
	Env []string `json:"env,omitempty"`
}

// HooksDone tells what came of hooks.
type HooksDone struct {
	Ends []HookEnd `json:"ends"`
}

func (*HooksDone) kind() string { return "errands_done" }

func (c *HooksDone) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "the leader runs hooks")
	}
	for _, end := range c.Ends {
		e, ok := t.hooks.Get(end.ID)
		if !ok {
			continue
		}
		dropValue(t, t.hooks, e.ID)
		switch {
		case e.Kind == HookProlog:
			t.prepared(e, end.Failed)
		case e.Kind == HookBurst:
			burstDone(t, e, end)
		case e.Kind == HookRetain:
			t.retained(e, end.Failed)
		case e.Kind == HookResume && end.Failed != "":
			for _, name := range e.Nodes {
				t.notCome(name, resumeFailed+": "+end.Failed)
			}
		}
	}
	return nil, nil
}

// Prelude is what a job waits for before its nodes hear of it.
type Prelude struct {
	Prolog bool       `json:"prolog,omitempty"` // PrologSlurmctld has not ended
	Nodes  []NodeName `json:"nodes,omitempty"`  // those that are not there yet: they are being switched on
	Over   time.Time  `json:"over,omitzero"`    // zero: not yet
	// Burst: the script has not prepared the job's burst buffer.
	Burst bool `json:"burst,omitempty"`
	// Fetch: then its nodes, which hear of it, get its image.
	Fetch bool `json:"fetch,omitempty"`
}

func (p *Prelude) waits() bool {
	return p != nil && p.Over.IsZero() && !p.fetches()
}

// Preparing reports whether the job's nodes do not hear of it yet.
func (j *Job) Preparing() bool {
	return j.Phase == Starting && j.Prelude.waits()
}

// prepared goes on with a job whose PrologSlurmctld has ended, or takes the job's start back.
func (t *tx) prepared(e *Hook, failed string) {
	j, ok := t.jobs.Get(e.Job.ID)
	if !ok || j.Attempt != e.Job.Attempt || !j.Preparing() {
		return
	}
	n := *j
	p := *j.Prelude
	p.Prolog = false
	n.Prelude = p.past(t.since(j.Started))
	if failed != "" {
		n.RequeueAfter = n.Spec.Kind == Batch
		n.Prelude = &Prelude{} // no node has heard of it
		n.blamed(Blame{Text: ServerPrologError + ": " + failed})
		t.end(&n, Cancelled, EndLaunchFailure)
		n.WaitNote = ServerPrologError
	}
	t.putJob(&n)
	t.tell(&n)
	if failed != "" {
		t.endRest(&n)
	}
}

// ServerPrologError is the note of a job whose PrologSlurmctld failed; prologPause is how long it waits then, as in
// Slurm.
const (
	ServerPrologError = "PrologSlurmctld failed"
	prologPause       = 2 * time.Minute
)
