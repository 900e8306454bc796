package look

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// LogOptions are those of muster logs.
type LogOptions struct {
	Follow bool
	Errors bool  // standard error, where the job has a file of its own for that
	Lines  int   // only the last; negative: all
	Last   int64 // only so many bytes at the end; 0: all
	Job    string
	// Step is the number of one of srun's, or "batch" for the script; empty: the script, or step 0 if a task is named
	// or there is none. Task is one of its tasks, if it is not negative.
	Step string
	Task int
}

// Pace of muster logs.
const (
	logRetry = time.Second      // after a node did not answer
	logAway  = 30 * time.Second // how long one that is followed may not answer
	logWait  = 10 * time.Second // for a job to start, at a time
	logPart  = 64 << 10         // bytes of an answer, at most (api.TailRequest)
)

// jobLog is the output of a job's script, or of a task of a step, read through the servers from the node that writes
// it.
type jobLog struct {
	sys  *front.Sys
	opt  LogOptions
	ref  cluster.Ref
	job  *cluster.Job
	at   int64 // offset of what is shown next
	step *stepLog
}

// Logs prints what a job's script has written, and with Follow what it writes until it ends (muster logs).
func Logs(sys *front.Sys, opt LogOptions) int {
	t, ok := front.ParseTarget(opt.Job)
	if !ok {
		return sys.Fail("%q is no job: want an id such as 17, 17_3, 17+1 or 17.0", opt.Job)
	}
	l := &jobLog{sys: sys, opt: opt, ref: t.Ref}
	if opt.Step == "" && t.Step != nil {
		l.opt.Step = strconv.Itoa(*t.Step)
	}
	if err := l.show(); err != nil {
		return sys.Failed(err)
	}
	return 0
}

func (l *jobLog) show() error {
	if err := l.started(); err != nil {
		return err
	}
	if err := l.choose(); err != nil {
		return err
	}
	switch {
	case l.opt.Last > 0:
		end, err := l.ask(nil, false)
		if err != nil {
			return err
		}
		l.at = max(end.End-l.opt.Last, 0)
	case l.opt.Lines >= 0:
		if err := l.seek(); err != nil {
			return err
		}
	}
	for {
		part, err := l.read(false)
		if err != nil {
			return err
		}
		if len(part.Bytes) == 0 {
			break
		}
		if err := l.print(part); err != nil {
			return err
		}
	}
	if l.opt.Follow {
		return l.follow()
	}
	return nil
}

// started finds the job; one that waits is waited for where it is to be followed.
func (l *jobLog) started() error {
	told := false
	for {
		if err := l.find(); err != nil {
			return err
		}
		j := l.job
		if j.Phase >= cluster.Running {
			return nil
		}
		why := show.JobRow{Job: j, View: &show.View{Sys: l.sys, Now: l.sys.Now()}}
		if !l.opt.Follow {
			return fmt.Errorf("job %s is pending %s and has no output yet; -f waits for it",
				l.opt.Job, why.NodesOrReason())
		}
		if !told {
			fmt.Fprintf(l.sys.Stderr, "muster: job %s waits %s\n", l.opt.Job, why.NodesOrReason())
			told = true
		}
		_, err := front.Call(l.sys, api.WaitJob,
			api.WaitRequest{Job: j.ID, Phase: cluster.Running, Timeout: logWait})
		if err != nil {
			return err
		}
	}
}

// find asks for the job in the queue, then in history.
func (l *jobLog) find() error {
	jobs, err := show.ListJobs(l.sys, api.JobQuery{Refs: []cluster.Ref{l.ref}})
	list := jobs.Jobs
	if front.IsKind(err, cluster.ErrJobID) || err == nil && len(list) == 0 {
		past, perr := front.History(l.sys, api.HistoryQuery{Refs: []cluster.Ref{l.ref}})
		if err = perr; err != nil {
			return err
		}
		for _, rec := range past.Records {
			list = append(list, rec.Job)
		}
	}
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return fmt.Errorf("no such job: %s", l.opt.Job)
	case len(list) > 1:
		return fmt.Errorf("job %s has %d tasks or components: say of which, such as %[1]s_0 or %[1]s+0",
			l.opt.Job, len(list))
	}
	l.job = list[0]
	return nil
}

// seek goes to where the last lines begin that are to be shown.
func (l *jobLog) seek() error {
	end, err := l.ask(nil, false)
	if err != nil {
		return err
	}
	for window := int64(logPart); ; window *= 4 {
		l.at = max(end.End-window, 0)
		text, err := l.until(end.End)
		if err != nil {
			return err
		}
		begin := lastLines(text, l.opt.Lines)
		if begin > 0 || l.at == 0 {
			l.at += int64(begin)
			return nil
		}
	}
}

// until reads from where the log stands to an offset, and leaves it there.
func (l *jobLog) until(end int64) ([]byte, error) {
	var text []byte
	for begin := l.at; begin+int64(len(text)) < end; {
		from := begin + int64(len(text))
		part, err := l.ask(&from, false)
		if err != nil || len(part.Bytes) == 0 || part.Start != from {
			return text, err
		}
		text = append(text, part.Bytes...)
	}
	return text, nil
}

// lastLines is the offset at which the last n lines of a text begin, 0 if it has no more.
func lastLines(text []byte, n int) int {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for range n {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			return 0
		}
	}
	if n == 0 {
		return len(text)
	}
	return at + 1
}

// read asks for what is next, and waits some seconds for it.
func (l *jobLog) read(wait bool) (api.TailResponse, error) {
	at := l.at
	return l.ask(&at, wait)
}

// ask asks for what follows an offset, or for the end, until there is an answer, as long as a node may be away or
// busy.
func (l *jobLog) ask(from *int64, wait bool) (api.TailResponse, error) {
	q := api.TailRequest{Job: l.job.ID, Errors: l.opt.Errors, Raw: true, From: from, Hold: wait}
	if st := l.step; st != nil {
		q.Step, q.Task, q.Node = &st.number, st.task, st.node
	}
	for until := l.sys.Now().Add(logAway); ; time.Sleep(logRetry) {
		part, err := front.Call(l.sys, api.TailOutput, q)
		var e *api.Error
		passes := errors.Is(err, api.ErrUnreachable) || errors.As(err, &e) && e.Code == cluster.Unavailable ||
			errors.Is(err, context.DeadlineExceeded)
		if err == nil || !passes || l.sys.Now().After(until) {
			return part, err
		}
	}
}

// print shows a part. One that begins elsewhere is of a file that was begun again.
func (l *jobLog) print(part api.TailResponse) error {
	if part.Start != l.at {
		fmt.Fprintf(l.sys.Stderr, "muster: %s was begun again\n", part.File)
	}
	l.at = part.End
	_, err := l.sys.Stdout.Write(part.Bytes)
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// follow shows what is written until the job has ended and all is read.
func (l *jobLog) follow() error {
	for over := false; ; {
		part, err := l.read(!over)
		if err != nil {
			return err
		}
		if len(part.Bytes) > 0 {
			if err := l.print(part); err != nil {
				return err
			}
			continue
		}
		if over {
			return nil
		}
		if over, err = l.over(); err != nil {
			return err
		}
	}
}

// over looks whether nothing more will be written.
func (l *jobLog) over() (bool, error) {
	if err := l.find(); err != nil {
		return false, err
	}
	if l.job.Phase == cluster.Ended {
		return true, nil
	}
	if l.step != nil {
		return l.step.over(l)
	}
	return false, l.started() // it was put back into the queue
}

// stepLog is a task of a step whose output is read, and the node that reads it.
type stepLog struct {
	number, task int
	node         cluster.NodeName
}

// choose finds the step and the task that are meant, unless it is the script.
func (l *jobLog) choose() error {
	name := l.opt.Step
	if name == "batch" || name == "" && l.job.RunsScript() && l.opt.Task < 0 {
		return nil
	}
	step, err := strconv.ParseUint(cmp.Or(name, "0"), 10, 31)
	if err != nil {
		return fmt.Errorf("%q is no step: want its number, or batch", name)
	}
	number := int(step)
	st, err := l.findStep(number)
	for l.opt.Follow && errors.Is(err, errNoStep) && l.job.Phase != cluster.Ended {
		time.Sleep(logRetry)
		if err = l.find(); err == nil {
			st, err = l.findStep(number)
		}
	}
	if err != nil {
		return err
	}
	node, task, err := st.Writes(l.job, l.opt.Task, l.opt.Errors)
	l.step = &stepLog{number, task, node}
	return err
}

// errNoStep is why a step is waited for where it is to be followed.
var errNoStep = errors.New("no such step")

// steps are those of srun that the job has had in its latest attempt.
func (l *jobLog) steps() (list []*cluster.Step, err error) {
	past, err := front.History(l.sys, api.HistoryQuery{Refs: []cluster.Ref{{Job: l.job.ID}}, Steps: true})
	for _, rec := range past.Records {
		list = append(list, rec.Steps...)
	}
	return slices.DeleteFunc(list, func(s *cluster.Step) bool {
		return s.ID.Step < 0 || s.ID.Job != l.job.ID || s.Attempt != l.job.Attempt
	}), err
}

func (l *jobLog) findStep(number int) (*cluster.Step, error) {
	list, err := l.steps()
	if i := slices.IndexFunc(list, func(s *cluster.Step) bool { return s.ID.Step == number }); i >= 0 {
		return list[i], nil
	}
	had := make([]string, len(list))
	for i, st := range list {
		had[i] = strconv.Itoa(st.ID.Step)
	}
	all := cmp.Or(strings.Join(had, ", "), "none of srun")
	return nil, cmp.Or(err, fmt.Errorf("%w: job %s has %s", errNoStep, l.opt.Job, all))
}

// over reports whether the step has ended.
func (st *stepLog) over(l *jobLog) (bool, error) {
	s, err := l.findStep(st.number)
	if err != nil {
		return false, err
	}
	return !s.Ended.IsZero(), nil
}
