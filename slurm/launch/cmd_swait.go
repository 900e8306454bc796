package launch

import (
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/submit"
)

// waitLine is what a command line of swait asks for.
type waitLine struct {
	timeout time.Duration // 0: indefinitely
	quiet   bool
}

// waitOption is one of swait's.
type waitOption = opt.Option[waitLine]

// SwaitOptions are the options of swait.
var SwaitOptions = []waitOption{
	{Long: "quiet", Short: 'Q', On: opt.Swait, Help: "nothing but errors",
		Set: func(o *waitLine, _ string) error { o.quiet = true; return nil }},
	{Long: "timeout", Arg: opt.Required, On: opt.Swait, Meta: "seconds", Help: "wait no longer; 0: until the end",
		Set: setWaitTime},
	{Long: "verbose", Short: 'v', On: opt.Swait, Help: "more messages",
		Set: func(*waitLine, string) error { return nil }},
	{Long: "version", Short: 'V', On: opt.Swait, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Swait, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Swait, Group: opt.HelpGroup, Help: "print a short help"},
}

func setWaitTime(o *waitLine, v string) error {
	n, ok := opt.Number(v)
	if !ok {
		return opt.Errorf(waitFailed, "error: --timeout: invalid value '%s' (must be a non-negative integer)", v)
	}
	o.timeout = time.Duration(n) * time.Second
	return nil
}

// Exit codes of swait.
const (
	waitLate   = 1
	waitFailed = 2
)

// Swait waits until no step of a job runs, but for the one that it is in.
func Swait(s *front.Sys, argv []string) int {
	var o waitLine
	rest, code := front.ParseQuery(s, opt.Swait, SwaitOptions, &o, argv)
	if code >= 0 {
		return min(2*code, waitFailed)
	}
	fail := func(format string, args ...any) int {
		s.Say("error: "+format, args...)
		return waitFailed
	}
	switch {
	case o.quiet && s.Verbose > 0:
		return fail("--verbose (-v) and --quiet (-Q) are mutually exclusive")
	case len(rest) > 1:
		return fail("too many positional arguments (expected at most one job id)")
	}
	own := s.Getenv("SLURM_JOB_ID")
	word := own
	if len(rest) == 1 {
		word = rest[0]
	}
	if word == "" {
		return fail("no job id given and SLURM_JOB_SLUID/SLURM_JOB_ID are not set")
	}
	id, ok := jobNamed(s, word)
	if !ok {
		return fail("%s: cannot parse job id", word)
	}
	but := -1
	if n, ok := opt.Number(s.Getenv("SLURM_STEP_ID")); ok && own == front.UintText(uint32(id)) {
		but = n
	}
	w := &stepWait{sys: s, job: id, but: but}
	if o.timeout > 0 {
		w.until = time.Now().Add(o.timeout)
	}
	for {
		switch over, err := w.once(); {
		case err != nil:
			text, _ := front.ErrorText(err)
			return fail("cannot load JobId=%d: %s", id, text)
		case over:
			return 0
		case w.left() <= 0:
			s.Say("error: timed out after %d seconds", int(o.timeout/time.Second))
			return waitLate
		}
	}
}

// jobNamed reads a job, or a task of an array.
func jobNamed(s *front.Sys, word string) (cluster.JobID, bool) {
	text, task, array := strings.Cut(word, "_")
	n, ok := opt.Number(text)
	if !ok || !array {
		return cluster.JobID(n), ok
	}
	k, ok := opt.Number(task)
	if !ok {
		return 0, false
	}
	ref := cluster.Ref{Job: cluster.JobID(n), Tasks: cluster.NewIDSet(k)}
	resp, err := front.Call(s, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{ref}})
	if err != nil || len(resp.Jobs) != 1 {
		return cluster.JobID(n), true // the job itself is told to be unknown
	}
	return resp.Jobs[0].ID, true
}

// stepWait is a wait for the steps of a job.
type stepWait struct {
	sys   *front.Sys
	job   cluster.JobID
	but   int // the step that swait runs in; -1: none
	until time.Time
	heard bool // the job's first node has answered: it will again
}

// waitAgain is how soon a daemon is asked again that does not answer.
const waitAgain = 200 * time.Millisecond

// left is for how long to wait still.
func (w *stepWait) left() time.Duration {
	if w.until.IsZero() {
		return submit.WaitHold
	}
	return time.Until(w.until)
}

// once waits for a step that runs; over: there is none.
func (w *stepWait) once() (over bool, err error) {
	resp, err := front.Call(w.sys, api.MeasureSteps, api.MeasureRequest{Job: w.job, Step: cluster.AllSteps})
	switch {
	case front.IsKind(err, cluster.ErrFinished):
		return true, nil
	case w.heard && (front.IsUnreachable(err) || isAway(err)):
		time.Sleep(waitAgain)
		return false, nil
	case err != nil:
		return false, err
	}
	w.heard = true
	for i := range resp.Steps {
		id := resp.Steps[i].Step.ID
		if id.Step < 0 || id.Step == w.but {
			continue
		}
		w.sys.Tell(front.Told, "waiting for step %d.%d", id.Job, id.Step)
		_, _ = front.Call(w.sys, api.WaitStep, api.StepWait{ID: id, Timeout: w.left()}) // else it is asked for again
		return false, nil
	}
	return true, nil
}
