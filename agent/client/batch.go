package client

import (
	"context"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// launch starts batch scripts.
func (j *jobs) launch(ctx context.Context, hs []*jobHere) {
	var specs []step.Spec
	var jobs []*jobHere
	for _, h := range hs {
		spec, err := j.build.batchSpec(ctx, h)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			j.launchFailed(h, err)
			continue
		}
		specs, jobs = append(specs, spec), append(jobs, h)
	}
	if len(specs) == 0 {
		return
	}
	if err := j.cfg.Runner.Start(specs...); err != nil {
		for _, h := range jobs {
			j.launchFailed(h, err)
		}
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, h := range jobs {
		if j.have.Get(specs[i].ID) == nil {
			j.have.Put(specs[i].ID, &step.Status{ID: specs[i].ID, State: step.Starting})
		}
		if h.launch != launching {
			continue // it has ended already, and that was reported
		}
		h.launch.to(confirmed)
		if h.job.Phase == cluster.Starting {
			j.reports.Put(h.node, update(h, cluster.NodeReady))
		}
	}
	j.poke()
}

func (j *jobs) launchFailed(h *jobHere, err error) {
	j.slog.Error("a batch script could not be started", "job", h.job.ID, "node", h.node, "err", err)
	j.mu.Lock()
	defer j.mu.Unlock()
	h.launch.to(reported)
	u := update(h, cluster.LaunchFailed)
	u.Error = err.Error()
	j.reports.Put(h.node, u)
}

// launchFailedSignal is Slurm's code of a failed launch.
const launchFailedSignal = 53

// batchOver reports how the batch script ended; a job of one node with nothing else left is
// done with the same report.
func (j *jobs) batchOver(n *node, h *jobHere) {
	id := h.part(cluster.BatchStep)
	st := j.have.Get(id)
	u := update(h, cluster.BatchOver)
	if len(st.Tasks) > 0 {
		t := st.Tasks[0]
		if t.Lost { // how it ended, nobody knows: as if the node had been lost
			h.launch.to(clean)
			j.reports.Put(n.name, update(h, cluster.JobLost))
			j.forget(h)
			return
		}
		u.Exit, u.Usage, u.OOM = t.Exit, st.Usage, t.OOM || st.OOMKills > 0
		if !t.Ended.IsZero() {
			u.At = t.Ended
		}
		if t.Error != "" {
			u.Error = t.Error
			u.Exit = cluster.ExitStatus{Signal: launchFailedSignal}
			if t.NotRun() {
				u.Exit = cluster.ExitStatus{Code: int(min(t.Errno, 255))}
			}
			j.slog.Warn("a batch script could not be run", "job", h.job.ID, "node", h.node, "err", t.Error)
		}
		if t.Fault {
			h.launch.to(reported)
			u.Kind, u.Fault = cluster.LaunchFailed, true
			j.reports.Put(n.name, u)
			return
		}
	}
	h.launch.to(reported)
	us := []cluster.Update{
		u, {Kind: cluster.StepNow, Job: u.Job, Attempt: u.Attempt, At: u.At, Step: j.batchRecord(h, u)},
	}
	alive := 0
	for _, o := range j.stepsOf(h) {
		if o.State != step.Ended {
			alive++
		}
	}
	if len(h.job.Alloc.Shares) == 1 && alive == 0 && j.config.Epilog == "" && !j.mustSweep(h) {
		h.launch.to(clean)
		us = append(us, update(h, cluster.NodeDone))
	}
	j.reports.Put(n.name, us...)
	if h.isOver() {
		j.forget(h) // only now: a crash in between must not lose the exit status
	}
}

// batchEnd is the record of a script that ended because its job was ended.
func (j *jobs) batchEnd(h *jobHere) (u cluster.Update, ok bool) {
	st := j.have.Get(h.part(cluster.BatchStep))
	if st == nil || st.State != step.Ended || h.isReported() || len(st.Tasks) == 0 || st.Tasks[0].Started.IsZero() {
		return u, false
	}
	u = update(h, cluster.StepNow)
	u.Exit, u.Usage, u.OOM = st.Tasks[0].Exit, st.Usage, st.OOMKills > 0
	u.Step = j.batchRecord(h, u)
	return u, true
}

// batchRecord is the history's record of the batch script.
func (j *jobs) batchRecord(h *jobHere, u cluster.Update) *cluster.Step {
	job := h.job
	s := &cluster.Step{ID: cluster.StepID{Job: job.ID, Step: cluster.BatchStep}, Attempt: job.Attempt, Name: "batch",
		UID: job.Spec.UID, User: job.Spec.User, Shares: job.Alloc.Shares[:1], Tasks: 1,
		Started: job.Started, Ended: u.At,
		Exit: u.Exit, Usage: u.Usage, Outcome: u.Exit.Outcome()}
	if st := j.have.Get(h.part(cluster.BatchStep)); st != nil && len(st.Tasks) > 0 {
		s.Usage = cluster.SumUsage([]cluster.RankUsage{{TaskUsage: st.Tasks[0].Usage}})
	}
	if u.OOM {
		s.Exit, s.Outcome = cluster.OOMExit, cluster.OutOfMemory
	}
	return s
}
