package client

import (
	"syscall"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// deliver sends the signals that users asked for since the last one.
func (j *jobs) deliver(h *jobHere) {
	for i := range h.job.Signals {
		s := &h.job.Signals[i]
		if s.Num <= h.signalled {
			continue
		}
		h.signalled = s.Num
		for id, st := range j.stepsOf(h) {
			if st.State != step.Ended {
				j.deliverTo(h, id, s)
			}
		}
	}
}

// deliverTo sends a part of a step a signal, if it is meant.
func (j *jobs) deliverTo(h *jobHere, id step.ID, s *cluster.JobSignal) {
	scope, wanted := meant(id.Step, s)
	if !wanted {
		return
	}
	ls := j.live[cluster.StepID{Job: id.Job, Step: id.Step}]
	if s.Step != cluster.AllSteps && s.Sig == 0 {
		j.steps.cancelPart(ls, id, s.UID)
		return
	}
	leads := ls != nil && ls.lead == h.node
	if leads && s.Sig == int(syscall.SIGTERM) {
		j.steps.sayEnd(ls, cluster.Cancelled, false)
	}
	j.try("signal", id, j.cfg.Runner.Signal(id, syscall.Signal(s.Sig), scope))
}

// meant reports whether a signal is for a step of its job, and for which of its processes.
func meant(number int, s *cluster.JobSignal) (scope step.Scope, wanted bool) {
	batch := number == cluster.BatchStep
	switch {
	case number == cluster.ExternStep: // what is in it ends with the job, and is told of nothing before
		return step.Leaders, false
	case s.Step != cluster.AllSteps:
		return step.Leaders, number == s.Step
	case s.Scope == cluster.SignalBatchShell:
		return step.Leaders, batch
	case s.Scope == cluster.SignalBatchFull:
		return step.All, batch
	case s.Scope == cluster.SignalFull && batch && s.Sig != int(syscall.SIGKILL):
		return step.Script, true // srun would pass the signal on to its tasks, which would have it twice
	case s.Scope == cluster.SignalFull && batch:
		return step.All, true
	case s.Scope == cluster.SignalFull:
		return step.Leaders, true
	}
	return step.Leaders, !batch
}

// warn sends the signal of --signal: to the steps, or with B: to the batch shell only.
func (j *jobs) warn(h *jobHere) {
	sig := h.job.Spec.Signal
	for id, st := range j.stepsOf(h) {
		if st.State != step.Ended && id.Step != cluster.ExternStep && (id.Step == cluster.BatchStep) == sig.BatchOnly {
			j.try("signal", id, j.cfg.Runner.Signal(id, syscall.Signal(sig.Num), step.Leaders))
		}
	}
}
