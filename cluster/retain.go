package cluster

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// How long history is kept. The leader looks at the clock and makes a hook: to write what is too old into files,
// if the site wants that, which comes first. When the hook is done, an event tells every server's history up to
// where its records go, so that all of them, and one that comes late and copies another's, forget the same.

// RecordKind is a kind of records of history that have an age of their own.
type RecordKind string

// The kinds. Usage is what reports sum up: of nodes, reservations and of jobs whose own records may be gone. Events
// tell why a node was down or drained and who said so, reservations for whom they were; how long goes with the
// usage.
const (
	EventRecords RecordKind = "event"
	JobRecords   RecordKind = "job"
	ResvRecords  RecordKind = "resv"
	StepRecords  RecordKind = "step"
	TxnRecords   RecordKind = "txn" // changes of the books
	UsageRecords RecordKind = "usage"
)

// RecordKinds lists them.
func RecordKinds() []RecordKind {
	return []RecordKind{EventRecords, JobRecords, ResvRecords, StepRecords, TxnRecords, UsageRecords}
}

// AgeUnit is what an age counts, and at whose beginnings records go.
type AgeUnit string

// The units. Days and months begin in UTC: all servers must agree on them.
const (
	AgeHours  AgeUnit = "hours"
	AgeDays   AgeUnit = "days"
	AgeMonths AgeUnit = "months"
)

// Age is how old records become.
type Age struct {
	N    int     `json:"n"`
	Unit AgeUnit `json:"unit"`
}

// maxAge bounds the number of an age.
const maxAge = 10_000

// ParseAge reads 12, 12months, 30days or 48hours; without a unit it is months. ok is false for what is none of them.
func ParseAge(text string) (a Age, ok bool) {
	digits := strings.TrimRight(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz")
	word := strings.ToLower(text[len(digits):])
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > maxAge {
		return Age{}, false
	}
	for _, u := range []AgeUnit{AgeHours, AgeDays, AgeMonths} {
		if word == string(u) || word == strings.TrimSuffix(string(u), "s") || word == "" && u == AgeMonths {
			return Age{n, u}, true
		}
	}
	return Age{}, false
}

// begin is when the hour, day or month that a time is in began, and the one n after it.
func (a Age) begin(t time.Time, n int) time.Time {
	y, m, d := t.UTC().Date()
	switch a.Unit {
	case AgeHours:
		return t.UTC().Truncate(time.Hour).Add(time.Duration(n) * time.Hour)
	case AgeDays:
		return time.Date(y, m, d+n, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
}

// RetainRule is how long records of a kind are kept.
type RetainRule struct {
	Kind RecordKind `json:"kind"`
	Age  Age        `json:"age"`
	// Archive has what goes written into files before.
	Archive bool `json:"archive,omitempty"`
}

// Retention is how long history is kept; without a rule a kind is kept indefinitely.
type Retention struct {
	Rules []RetainRule `json:"rules,omitempty"`
	// Dir is the folder for archives on the server that leads.
	Dir string `json:"dir,omitempty"`
	// Script is run there in place of writing archives (ArchiveScript).
	Script string `json:"script,omitempty"`
}

// Cutoff is up to where records of a kind go: those that ended before.
type Cutoff struct {
	Kind    RecordKind `json:"kind"`
	Before  int64      `json:"before"` // Unix seconds
	Archive bool       `json:"archive,omitempty"`
}

// Forgetting is what a hook about old records does.
type Forgetting struct {
	Cutoffs []Cutoff `json:"cutoffs"`
	Dir     string   `json:"dir,omitempty"`
	Script  string   `json:"script,omitempty"`
}

// Retained is how far history was forgotten.
type Retained struct {
	Cutoffs []Cutoff `json:"cutoffs,omitempty"`
	// Hook is the one under way, 0 for none; Tried is when the last one was made, and Failed why it failed, if it
	// did.
	Hook   uint64    `json:"errand,omitempty"`
	Tried  time.Time `json:"tried,omitzero"`
	Failed string    `json:"failed,omitempty"`
}

// retainRetry is how long a failed hook about old records waits for another try.
const retainRetry = time.Hour

// cutoff is up to where records of a kind went.
func (r *Retained) cutoff(k RecordKind) int64 {
	for _, c := range r.Cutoffs {
		if c.Kind == k {
			return c.Before
		}
	}
	return 0
}

// UsageSince is the Unix second before which no sums of use are kept, 0 if all are.
func (r *Retained) UsageSince() int64 { return r.cutoff(UsageRecords) }

// overdue lists what rules want to go at a time and has not gone.
func (r *Retained) overdue(rules []RetainRule, now time.Time) (out []Cutoff) {
	for _, rule := range rules {
		if before := rule.Age.begin(now, -rule.Age.N).Unix(); before > r.cutoff(rule.Kind) {
			out = append(out, Cutoff{rule.Kind, before, rule.Archive})
		}
	}
	return out
}

// retainDue is what the clock alone demands of history, and when it is to be looked at next; zero if never.
func (t *tables) retainDue(now time.Time) (c Command, next time.Time) {
	rules := t.config.Retention.Rules
	for _, rule := range rules {
		if at := rule.Age.begin(now, 1); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	r := &t.Retained
	if r.Hook != 0 || r.overdue(rules, now) == nil {
		return nil, next
	}
	if again := r.Tried.Add(retainRetry); r.Failed != "" && again.After(now) {
		return nil, again
	}
	return &Retain{}, next
}

// Retain has old records of history archived and forgotten: by the configuration, or once by rules of its own, for
// which only what the configuration left is considered.
type Retain struct {
	Retention
}

func (*Retain) kind() string { return "retain" }

func (c *Retain) apply(t *tx) (any, error) {
	if err := firstError(
		refuseIf(!t.keepsBooks(t.by),
			Denied, ErrAccess, "only operators may archive history"),
		refuseIf(c.Script != "" && !t.by.Operator(),
			Denied, ErrAccess,
			"only operators may name a script that a server runs: have it set as ArchiveScript"),
		refuseIf(c.Dir != "" && !t.by.Operator(),
			Denied, ErrAccess,
			"only operators may name a folder that a server writes to as root: have it set as ArchiveDir"),
		refuseIf(t.Retained.Hook != 0,
			Conflict, ErrNoChange, "history is being archived already"),
	); err != nil {
		return nil, err
	}
	rules := c.Rules
	dir := c.Dir
	if rules == nil {
		rules = t.config.Retention.Rules
	}
	if dir == "" {
		dir = t.config.Retention.Dir
	}
	script := c.Script
	if script == "" && c.Dir == "" {
		script = t.config.Retention.Script
	}
	for _, r := range rules {
		if !slices.Contains(RecordKinds(), r.Kind) || r.Age.N < 1 || r.Age.N > maxAge {
			return nil, Errorf(Invalid, ErrNoChange, "records of kind %q cannot be kept for %d %s", r.Kind,
				r.Age.N, r.Age.Unit)
		}
	}
	cutoffs := t.Retained.overdue(rules, t.at)
	if cutoffs == nil {
		return uint64(0), nil
	}
	t.send(Hook{Kind: HookRetain, Retain: &Forgetting{Cutoffs: cutoffs, Dir: dir, Script: script}})
	t.setRetained(Retained{Cutoffs: t.Retained.Cutoffs, Hook: t.LastHook, Tried: t.at})
	return t.LastHook, nil
}

func (t *tx) setRetained(r Retained) {
	keepOld(t, &t.Retained)
	t.Retained = r
}

// retained ends a hook about old records: if all was archived they go.
func (t *tx) retained(e *Hook, failed string) {
	r := Retained{Cutoffs: slices.Clone(t.Retained.Cutoffs), Tried: t.Retained.Tried, Failed: failed}
	if failed == "" {
		for _, c := range e.Retain.Cutoffs {
			r.Cutoffs = slices.DeleteFunc(r.Cutoffs, func(o Cutoff) bool { return o.Kind == c.Kind })
			r.Cutoffs = append(r.Cutoffs, c)
		}
		t.events = append(t.events, Event{Forget: e.Retain.Cutoffs})
	}
	t.setRetained(r)
}

// Archived is a record of history as a file has it: one of these.
type Archived struct {
	Job *Job `json:"job,omitempty"`
	// Seq is the job's place in history.
	Seq    int64        `json:"seq,omitempty"`
	Step   *Step        `json:"step,omitempty"`
	Event  *NodeSpan    `json:"event,omitempty"`
	Resv   *ResvSpan    `json:"resv,omitempty"`
	Change *Transaction `json:"change,omitempty"`
	// Amend is no record, and in no file: it waits with those that come back while the past is on its way.
	Amend *AmendedJob `json:"amend,omitempty"`
}

// archivedRows are what an archived record may be of, one of them.
var archivedRows = [...]struct {
	kind  RecordKind
	is    func(*Archived) bool
	whole func(*Archived) bool         // it is a record of something that is over
	over  func(*Archived, Cutoff) bool // a cutoff takes it
	began func(*Archived) time.Time
}{
	{
		JobRecords,
		func(a *Archived) bool { return a.Job != nil },
		func(a *Archived) bool { return a.Job.Spec != nil && a.Job.ID != 0 && a.Job.Phase == Ended && a.Seq > 0 },
		func(a *Archived, c Cutoff) bool { return a.Job.Ended.Before(time.Unix(c.Before, 0)) },
		func(a *Archived) time.Time { return a.Job.Submitted },
	},
	{
		StepRecords,
		func(a *Archived) bool { return a.Step != nil },
		func(a *Archived) bool { return a.Step.ID.Job != 0 },
		func(a *Archived, c Cutoff) bool { return a.Step.Started.Before(time.Unix(c.Before, 0)) },
		func(a *Archived) time.Time { return a.Step.Started },
	},
	{
		EventRecords,
		func(a *Archived) bool { return a.Event != nil },
		func(a *Archived) bool { return a.Event.Node != "" && a.Event.To > 0 },
		func(a *Archived, c Cutoff) bool { return a.Event.To < c.Before },
		func(a *Archived) time.Time { return time.Unix(a.Event.From, 0) },
	},
	{
		ResvRecords,
		func(a *Archived) bool { return a.Resv != nil },
		func(a *Archived) bool { return a.Resv.Name != "" },
		func(a *Archived, c Cutoff) bool { return a.Resv.To < c.Before },
		func(a *Archived) time.Time { return time.Unix(a.Resv.From, 0) },
	},
	{
		TxnRecords,
		func(a *Archived) bool { return a.Change != nil },
		func(*Archived) bool { return true },
		func(a *Archived, c Cutoff) bool { return a.Change.At.Before(time.Unix(c.Before, 0)) },
		func(a *Archived) time.Time { return a.Change.At },
	},
}

// check reports whether it is a record of something that is over.
func (a *Archived) check() bool {
	for i := range archivedRows {
		if row := &archivedRows[i]; row.is(a) {
			return row.whole(a)
		}
	}
	return false
}

// Over reports whether a cutoff takes the record.
func (a *Archived) Over(c Cutoff) bool {
	for i := range archivedRows {
		if row := &archivedRows[i]; row.kind == c.Kind {
			return row.is(a) && row.over(a, c)
		}
	}
	return false
}

// Began is when what the record is about began: a job when it was submitted.
func (a *Archived) Began() time.Time {
	for i := range archivedRows {
		if row := &archivedRows[i]; row.is(a) {
			return row.began(a)
		}
	}
	return time.Time{}
}

// LoadHistory puts archived records back into history. The next time that records of their age go they go again.
type LoadHistory struct {
	Records []Archived `json:"records" text:"-"`
}

// MaxLoaded bounds the records of one LoadHistory.
const MaxLoaded = 500

func (*LoadHistory) kind() string { return "load_history" }

func (c *LoadHistory) apply(t *tx) (any, error) {
	if err := firstError(
		refuseIf(!t.keepsBooks(t.by),
			Denied, ErrAccess, "only operators may load archived history"),
		refuseIf(len(c.Records) == 0 || len(c.Records) > MaxLoaded,
			Invalid, ErrNoChange, "%d records at once: between 1 and %d can be loaded",
			len(c.Records), MaxLoaded),
	); err != nil {
		return nil, err
	}
	for i := range c.Records {
		if !c.Records[i].check() {
			return nil, Errorf(Invalid, ErrNoChange,
				"record %d is not one of history: of a job, step, event or reservation that is over, or a change of accounts",
				i+1)
		}
	}
	t.events = append(t.events, Event{Load: c.Records})
	return nil, nil
}
