package look

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

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
	past, err := front.Call(l.sys, api.ListHistory, api.HistoryQuery{Refs: []cluster.Ref{{Job: l.job.ID}}, Steps: true})
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
