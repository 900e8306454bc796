package client

import (
	"slices"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// How a step ends here: by itself, at its limit, or with nobody left who reads it; and what is told of it then.

// dropStep forgets a step that was not started.
func (s *steps) dropStep(ls *liveStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, ls.record.ID)
	for _, id := range ls.ids {
		s.have.Drop(id)
	}
	s.queues.free(ls.record.ID.Job)
}

// stepChanged looks whether a step managed here is over. Called with mu held.
func (s *steps) stepChanged(st *step.Status) {
	ls, ok := s.live[cluster.StepID{Job: st.ID.Job, Step: st.ID.Step}]
	if !ok || !ls.endedAt.IsZero() || ls.record.Attempt != st.ID.Attempt {
		return
	}
	for _, id := range ls.ids {
		if h := s.have.Get(id); h == nil || h.State != step.Ended {
			return
		}
	}
	ls.endedAt = time.Now()
	rec := &ls.record
	rec.Ended = ls.endedAt
	var used []cluster.RankUsage
	for i, id := range ls.ids {
		for _, t := range s.have.Get(id).Tasks {
			e := t.Ending()
			if max(e.Code, e.Signal) > max(rec.Exit.Code, rec.Exit.Signal) {
				rec.Exit = e
			}
			if e != (cluster.ExitStatus{}) || t.Error != "" {
				end := cluster.TaskEnd{Rank: t.Rank, Node: id.Node, Exit: e, At: t.Ended, OOM: t.OOM, Error: t.Error}
				if end.Before(rec.Failed) {
					rec.Failed = &end
				}
			}
			used = append(used, cluster.RankUsage{Node: i, Rank: t.Rank, TaskUsage: t.Usage})
		}
	}
	rec.Usage = cluster.SumUsage(used)
	rec.Outcome, rec.CancelledBy = rec.Exit.Outcome(), ls.endedBy
	if ls.limited {
		rec.Outcome = cluster.TimedOut
	}
	if slices.ContainsFunc(ls.ids, func(id step.ID) bool { return s.have.Get(id).OOMKills > 0 }) {
		rec.Outcome, rec.Exit = cluster.OutOfMemory, cluster.OOMExit
	}
	s.tellStep(ls)
	s.queues.free(ls.record.ID.Job)
	s.drop(ls)
}

// drop forgets an ended step once its output was taken, or nobody came for it.
func (s *steps) drop(ls *liveStep) {
	if ls.endedAt.IsZero() || len(ls.takers) > 0 {
		return
	}
	if len(ls.drained) < len(ls.ids) && time.Since(ls.endedAt) < drainTime {
		return
	}
	if len(ls.drained) < len(ls.ids) {
		s.orphaned(ls)
	}
	delete(s.live, ls.record.ID)
	var here []step.ID
	for _, id := range ls.ids {
		if s.local(id.Node) {
			here = append(here, id)
			s.have.Drop(id)
		} else {
			s.parts.forgetPart(id)
		}
	}
	if len(here) > 0 {
		s.try("forget", here[0], s.cfg.Runner.Forget(here...))
	}
}

// orphaned ends an allocation that srun made for this step and that nobody will end: srun was killed.
func (s *steps) orphaned(ls *liveStep) {
	if ls.alone() {
		return
	}
	first := ls.lead
	h := s.nodes[first].jobs[ls.record.ID.Job]
	if h == nil || h.job.Attempt != ls.record.Attempt || h.job.Spec.Kind != cluster.SrunJob || h.isReported() {
		return
	}
	h.launch.to(reported)
	u := update(h, cluster.BatchOver)
	u.Exit = ls.record.Exit
	s.reports.Put(first, u)
}

// expireSteps drops ended steps whose output nobody takes, and kills those that TERM did not end;
// it tells when to look again.
func (s *steps) expireSteps(now time.Time) (again time.Time) {
	for _, ls := range s.live {
		s.drop(ls)
		if at := ls.killAt; !at.IsZero() && ls.endedAt.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.killAt = time.Time{}
				s.signalStepNow(ls, syscall.SIGKILL)
			}
		}
		if at := ls.goneAt; !at.IsZero() && ls.endedAt.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.goneAt = time.Time{}
				s.killOrphan(ls)
			}
		}
		if at := s.stepExpires(ls); !at.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.limited = true
				s.endStep(ls, cluster.TimedOut)
				again = sooner(again, ls.killAt)
			}
		}
		if !ls.endedAt.IsZero() {
			again = sooner(again, ls.endedAt.Add(drainTime))
		}
	}
	return again
}

// killOrphan kills a step whose srun has died while its script goes on.
func (s *steps) killOrphan(ls *liveStep) {
	h := s.nodes[ls.lead].jobs[ls.record.ID.Job]
	if h == nil || h.job.Phase != cluster.Running || h.isReported() {
		ls.endedBy = nil
		return
	}
	s.sayEnd(ls, cluster.Cancelled, true)
	s.signalStepNow(ls, syscall.SIGKILL)
}

// stepExpires is when a step's own time limit is over, zero: it has none, or is ending. The limit of srun's own job
// is the job's.
func (s *steps) stepExpires(ls *liveStep) time.Time {
	rec := &ls.record
	h := s.nodes[ls.lead].jobs[rec.ID.Job]
	switch {
	case rec.Limit <= 0 || ls.limited || ls.killed || !ls.endedAt.IsZero() || rec.Started.IsZero():
		return time.Time{}
	case h == nil || h.job.Phase != cluster.Running || h.job.Spec.Kind == cluster.SrunJob:
		return time.Time{}
	}
	return rec.Started.Add(rec.Limit)
}
