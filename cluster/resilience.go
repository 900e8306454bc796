package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Resilience is what a job asks for against faults, and how it saves its work.
type Resilience struct {
	// Hang is the job's own rule for the case that it makes no progress (--hang); see ParseHangRule. Empty: that of
	// its partition.
	Hang string `json:"hang,omitempty"`
	// CheckpointFile changes whenever the job has saved a checkpoint (--checkpoint-file).
	CheckpointFile string `json:"checkpoint_file,omitempty" text:"4096"`
	// SavesOnSignal: the signal of --signal has the job save a checkpoint (--checkpoint-signal), so it comes before
	// a preemption, too.
	SavesOnSignal bool `json:"saves_on_signal,omitempty"`
	// Chain: at its time limit the job goes back into the queue, if it has saved a checkpoint since it began (--chain).
	Chain bool `json:"chain,omitempty"`
	// Spares is how many of the job's nodes stand by for others that fail (--spare).
	Spares int `json:"spares,omitempty"`
	// Restart says what starts again when a spare takes the place of a node (--spare-restart).
	Restart SpareRestart `json:"restart,omitempty" text:"16"`
	// Straggler says what becomes of the job when one of its GPUs is slower than the others (--straggler).
	Straggler StragglerAction `json:"straggler,omitempty" text:"16"`
	// Expedite: when a node fails, the job starts again before all others, on the nodes that it has left
	// (--requeue=expedite).
	Expedite bool `json:"expedite,omitempty"`
}

// Survives is what a job asks for against faults; zero: nothing.
func (s *JobSpec) Survives() Resilience {
	if s.Resilience == nil {
		return Resilience{}
	}
	return *s.Resilience
}

// Survival is what is known of a job's checkpoints and hangs, in all its attempts. It is replaced, never changed.
type Survival struct {
	Saved *Checkpoint `json:"saved,omitempty"` // the last
	Hung  *Hang       `json:"hung,omitempty"`  // the last
	Slow  *Straggler  `json:"slow,omitempty"`  // the last slow GPU
	// Expedited: it waits before all others, since a node failed under it.
	Expedited bool `json:"expedited,omitempty"`
}

// Expedited reports whether a job waits before all others.
func Expedited(j *Job) bool { return j.Survival != nil && j.Survival.Expedited }

// expedite notes whether a job waits before all others; n is a copy.
func expedite(n *Job, yes bool) {
	if Expedited(n) == yes {
		return
	}
	known := Survived(n)
	known.Expedited = yes
	n.Survival = &known
}

// Survived is what is known of a job's checkpoints and hangs; zero: it had none.
func Survived(j *Job) Survival {
	if j.Survival == nil {
		return Survival{}
	}
	return *j.Survival
}

// HangAction says what becomes of a job that hangs.
type HangAction string

// The actions. HangReport and all after it report, too.
const (
	HangDefault HangAction = ""        // report what is certain, and nothing else
	HangOff     HangAction = "off"     // do not look
	HangReport  HangAction = "report"  // note it in the job's record and output, and notify its user
	HangStack   HangAction = "stack"   // write the stacks of its tasks into its output
	HangSignal  HangAction = "signal"  // send the signal of --signal, or SIGTERM
	HangSwap    HangAction = "swap"    // replace the node of the rank that is behind by a spare, or else as HangRequeue
	HangRequeue HangAction = "requeue" // put the job back into the queue
)

// hangActions are the words that users may say.
var hangActions = [...]HangAction{HangOff, HangReport, HangStack, HangSignal, HangSwap,
	HangRequeue}

// HangAfter is how long a job shows no sign of progress before it hangs, unless its rule says otherwise; MinHangAfter
// is the shortest time that a rule may say.
const (
	HangAfter    = 10 * time.Minute
	MinHangAfter = time.Minute
)

// maxHangActions bounds how often a job is acted upon because it hangs, within a day; then it is only reported.
const maxHangActions = 3

// HangRule says when a job hangs, and what becomes of it then.
type HangRule struct {
	Action HangAction
	After  time.Duration
}

// ParseHangRule reads ACTION[,after=TIME], TIME in minutes or with a unit (90s, 10m, 1h). The empty text is the rule
// HangDefault.
func ParseHangRule(text string) (HangRule, error) {
	rule := HangRule{After: HangAfter}
	if text == "" {
		return rule, nil
	}
	word, rest, more := strings.Cut(text, ",")
	rule.Action = HangAction(strings.ToLower(word))
	if !slices.Contains(hangActions[:], rule.Action) {
		return HangRule{}, Errorf(Invalid, "", "hang rule %q: %q is no action: want off, report, stack, signal, "+
			"swap or requeue, and perhaps ,after=TIME", text, word)
	}
	if !more {
		return rule, nil
	}
	var ok bool
	if rule.After, ok = parseAfter(rest); !ok {
		return HangRule{}, Errorf(Invalid, "", "hang rule %q: %q: want after=TIME, in minutes or with a unit "+
			"(90s, 10m, 1h), at least %v", text, rest, MinHangAfter)
	}
	return rule, nil
}

// parseAfter reads after=TIME.
func parseAfter(text string) (after time.Duration, ok bool) {
	value, ok := strings.CutPrefix(text, "after=")
	if !ok {
		return 0, false
	}
	if minutes, err := strconv.Atoi(value); err == nil && minutes < maxCount {
		value = strconv.Itoa(minutes) + "m"
	}
	after, err := time.ParseDuration(value)
	return after, err == nil && after >= MinHangAfter
}

// HangRuleOf returns the rule that counts for a job: its own, or that of its partition.
func HangRuleOf(s *Snapshot, j *Job) HangRule { return hangRuleOf(&s.tables, j) }

func hangRuleOf(t *tables, j *Job) HangRule {
	text := j.Spec.Survives().Hang
	if text == "" && j.Alloc != nil {
		if p, ok := t.Partition(j.Alloc.Partition); ok {
			text = p.Hang
		}
	}
	rule, _ := ParseHangRule(text) // both were checked when they were set
	return rule
}

// checkResilience refuses what no job can ask for.
func (s *JobSpec) checkResilience() error {
	asked := s.Survives()
	if _, err := ParseHangRule(asked.Hang); err != nil {
		return err
	}
	if asked.SavesOnSignal && s.Signal.Num == 0 {
		return Errorf(Invalid, "", "the job is to save a checkpoint on a signal but names none: "+
			"give --checkpoint-signal=SIGNAL[@SECONDS]")
	}
	if asked.Chain && s.Kind != Batch {
		return Errorf(Invalid, ErrBatchOnly, "--chain is for batch jobs: only those can go back into the queue")
	}
	return firstError(s.checkStraggler(), s.checkSpares())
}

// Checkpoint is the last state that a job has saved, from which it can go on.
type Checkpoint struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`        // in which it was saved
	Count   int       `json:"count"`          // how many were saved in all attempts
	Path    string    `json:"path,omitempty"` // as the job has named it
}

// checkpointGap is how far apart the checkpoints of a job are noted at least.
const checkpointGap = 5 * time.Second

// CheckpointDone says that a running job has saved a checkpoint. A job that was told to make room has no reason to go
// on then, and leaves.
type CheckpointDone struct {
	Job  JobID  `json:"job"`
	Path string `json:"path,omitempty" text:"4096"`
}

func (*CheckpointDone) kind() string { return "checkpoint" }

func (c *CheckpointDone) apply(t *tx) (any, error) {
	if len(c.Path) > maxPath {
		return nil, Errorf(Invalid, ErrTooBig, "the name of a checkpoint has %d bytes, more than %d",
			len(c.Path), maxPath)
	}
	jobs, err := t.records(Ref{Job: c.Job})
	if err != nil {
		return nil, err
	}
	j := jobs[0]
	if len(jobs) > 1 || j.Phase != Running {
		return nil, Errorf(Conflict, ErrPending, "job %d does not run: only a running job saves checkpoints", c.Job)
	}
	leaves := !j.Preempt.until().IsZero()
	known := Survived(j)
	old := cmp.Or(known.Saved, &Checkpoint{})
	if !leaves && t.at.Sub(old.At) < checkpointGap {
		return nil, nil
	}
	n := *j
	known.Saved = &Checkpoint{At: t.at, Attempt: n.Attempt, Count: old.Count + 1, Path: c.Path}
	n.Survival = &known
	if leaves {
		t.preempted(&n)
	}
	t.putJob(&n)
	t.tell(&n)
	if n.Phase == Ending {
		t.endRest(&n)
	}
	return nil, nil
}

// maxPath bounds the name of a checkpoint, in bytes.
const maxPath = 4096

// savedSince reports whether the present attempt of a job has saved a checkpoint.
func savedSince(j *Job) bool {
	saved := Survived(j).Saved
	return saved != nil && saved.Attempt == j.Attempt
}

// chains reports whether a job goes on in another attempt when its time limit is over.
func chains(j *Job) bool { return j.Spec.Survives().Chain && j.MayRequeue() && savedSince(j) }

// LostWork is what would be lost if a running job ended now: the time since it began or has last saved a checkpoint,
// times its nodes.
func LostWork(j *Job, now time.Time) time.Duration {
	since := j.Started
	if savedSince(j) {
		since = later(since, Survived(j).Saved.At)
	}
	return max(now.Sub(since), 0) * time.Duration(max(len(j.Alloc.Shares), 1))
}

// checkpointGrace is how long a job that saves a checkpoint on a signal may go on after it, at most, where nothing else
// is configured.
const checkpointGrace = 2 * time.Minute

// graceToSave is how long a job goes on after the signal on which it saves a checkpoint.
func (p *PreemptConfig) graceToSave(s *JobSpec) time.Duration {
	if !s.Survives().SavesOnSignal {
		return 0
	}
	return max(min(s.Signal.Before, cmp.Or(p.CheckpointGrace, checkpointGrace)), 0)
}

// Hang is what was found of a job that makes no progress.
type Hang struct {
	At      time.Time  `json:"at"`
	Attempt int        `json:"attempt"`
	Kind    HangKind   `json:"kind"`
	Text    string     `json:"text"`             // the evidence
	Action  HangAction `json:"action,omitempty"` // what was done about it
	Acted   int        `json:"acted,omitempty"`  // how often the job was acted upon within a day, in all attempts
	Since   time.Time  `json:"since,omitzero"`   // when that day began
}

// HangKind says by what a hang was found.
type HangKind string

// The kinds.
const (
	HangRAS   HangKind = "ras"   // NCCL's RAS names ranks that are missing
	HangStep  HangKind = "step"  // the job reports its progress, and has not for long
	HangSpin  HangKind = "spin"  // all GPUs are busy with little power, and nothing is written
	HangQuiet HangKind = "quiet" // GPUs and CPUs are idle, and nothing is written
)

// Certain reports whether a job that shows this hangs, as far as anybody can tell from outside. An uncertain hang is
// reported only if the job or its partition has a rule.
func (k HangKind) Certain() bool { return k == HangRAS || k == HangStep }

// maxEvidence bounds the text of a hang, in bytes.
const maxEvidence = 1024

// HangFound says that a job hangs, and acts as its rule says: once an hour for each attempt.
type HangFound struct {
	Job     JobID    `json:"job"`
	Attempt int      `json:"attempt"`
	Kind    HangKind `json:"by"`
	Text    string   `json:"text" text:"1024"`
	// Node is where the rank runs that is behind; empty: not known.
	Node NodeName `json:"node,omitempty"`
}

func (*HangFound) kind() string { return "hang" }

// apply returns the HangAction that was taken, or HangDefault if the job does not hang any more or was dealt with.
func (c *HangFound) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "only the leader finds jobs that hang")
	}
	j, ok := t.jobs.Get(c.Job)
	if !ok || j.Phase != Running || j.Attempt != c.Attempt || HungLately(j, t.at) {
		return HangDefault, nil
	}
	rule := hangRuleOf(t.tables, j)
	if rule.Action == HangOff || rule.Action == HangDefault && !c.Kind.Certain() {
		return HangDefault, nil
	}
	known := Survived(j)
	hung := &Hang{At: t.at, Attempt: j.Attempt, Kind: c.Kind, Text: plainLine(c.Text), Action: HangReport}
	budget := Budget{}
	if known.Hung != nil {
		budget = Budget{Since: known.Hung.Since, Used: known.Hung.Acted}
	}
	n := *j
	budget, left := budget.left(maxHangActions, t.at)
	if left {
		hung.Action = actOnHang(t, &n, rule.Action, c.Node)
	}
	if hung.Action != HangReport {
		budget.Used++
	}
	hung.Since = budget.Since
	hung.Acted = budget.Used
	known.Hung = hung
	n.Survival = &known
	n.SystemComment = hung.Note()
	t.putJob(&n)
	t.tell(&n)
	t.inform(EventHang, &n, nil)
	return hung.Action, nil
}

// plainLine is a text on one line and of at most maxEvidence bytes: parts of it may be a job's own words.
func plainLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, cutText(text, maxEvidence))
}

// actOnHang does what a rule says about a job that hangs, and returns what it did: perhaps only a report.
func actOnHang(t *tx, n *Job, action HangAction, node NodeName) HangAction {
	if action == HangSwap {
		if _, err := swapNode(t, n, node, "its ranks made no progress"); err == nil {
			return HangSwap
		}
		action = HangRequeue
	}
	switch {
	case action == HangRequeue && n.Spec.Kind == Batch && n.MayRequeue() && n.Het == nil:
		n.RequeueAfter = true
		keepNodes(n)
		t.end(n, Requeued, NoReason)
	case action == HangSignal:
		signalOwn(t, n)
	case action != HangStack: // which the leader has the nodes do
		return HangReport
	}
	return action
}

// hangAgain is how long after a hang the same attempt may be found to hang once more.
const hangAgain = time.Hour

// HungLately reports whether the present attempt was found to hang, and that was dealt with.
func HungLately(j *Job, now time.Time) bool {
	hung := Survived(j).Hung
	return hung != nil && hung.Attempt == j.Attempt && now.Sub(hung.At) < hangAgain
}

// hangDone words what was done about a hang.
var hangDone = [...]struct {
	action HangAction
	text   string
}{
	{HangReport, "it was only reported"},
	{HangStack, "the stacks of its tasks are in its output"},
	{HangSignal, "it was sent a signal"},
	{HangSwap, "a spare has taken the place of its node"},
	{HangRequeue, "it went back into the queue"},
}

// Note is what is said of a hang in one line.
func (h *Hang) Note() string {
	for i := range hangDone {
		if hangDone[i].action == h.Action {
			return "HANG: " + h.Text + "; " + hangDone[i].text
		}
	}
	return "HANG: " + h.Text
}

// Ports on which the processes of jobs answer for NCCL's RAS: below those that the kernel gives to whoever asks.
const (
	rasHost  = "127.0.0.1:"
	rasPort  = 28_100
	rasPorts = 3_900
)

// RASAddr is the address of NCCL_RAS_ADDR for a job: the processes of one job share it on each node, those of others
// have another one.
func RASAddr(j *Job) string {
	id := j.ID
	if j.Het != nil {
		id = j.Het.ID
	}
	return rasHost + strconv.Itoa(rasPort+int(id%rasPorts))
}

// IsRASAddr reports whether an address is one that RASAddr gives.
func IsRASAddr(addr string) bool {
	text, ok := strings.CutPrefix(addr, rasHost)
	port, err := strconv.Atoi(text)
	return ok && err == nil && port >= rasPort && port < rasPort+rasPorts
}

// signalOwn sends a job that runs the signal of --signal, or SIGTERM.
func signalOwn(t *tx, n *Job) {
	sig := &Cancel{Sig: cmp.Or(n.Spec.Signal.Num, sigTerm)}
	if n.Spec.Signal.BatchOnly {
		sig.Scope = SignalBatchShell
	}
	_ = t.addSignal(n, sig) // it runs, so it can be signaled
}
