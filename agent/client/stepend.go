package client

import (
	"slices"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// How a step ends here: by itself, at its limit, or with nobody left who reads it; and what is told of it then.

// dropStep forgets a step that was not started.
func (c *Client) dropStep(ls *liveStep) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.steps, ls.record.ID)
	for _, id := range ls.ids {
		c.have.Drop(id)
	}
	c.free()
}

func (c *Client) free() {
	close(c.freed)
	c.freed = make(chan struct{})
}

// tellStep reports a step's start or end. Called with mu held.
func (c *Client) tellStep(ls *liveStep) {
	ls.told = true
	if ls.alone() {
		return
	}
	rec := ls.record
	c.reports.put(ls.lead, cluster.Update{
		Kind: cluster.StepNow, Job: rec.ID.Job, Attempt: rec.Attempt, At: time.Now(), Step: &rec,
	})
}

// stepChanged looks whether a step managed here is over. Called with mu held.
func (c *Client) stepChanged(st *step.Status) {
	ls, ok := c.steps[cluster.StepID{Job: st.ID.Job, Step: st.ID.Step}]
	if !ok || !ls.endedAt.IsZero() || ls.record.Attempt != st.ID.Attempt {
		return
	}
	for _, id := range ls.ids {
		if h := c.have.Get(id); h == nil || h.State != step.Ended {
			return
		}
	}
	ls.endedAt = time.Now()
	rec := &ls.record
	rec.Ended = ls.endedAt
	var used []cluster.RankUsage
	for i, id := range ls.ids {
		for _, t := range c.have.Get(id).Tasks {
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
	if slices.ContainsFunc(ls.ids, func(id step.ID) bool { return c.have.Get(id).OOMKills > 0 }) {
		rec.Outcome, rec.Exit = cluster.OutOfMemory, cluster.OOMExit
	}
	c.tellStep(ls)
	c.free()
	c.drop(ls)
}

// drop forgets an ended step once its output was taken, or nobody came for it.
func (c *Client) drop(ls *liveStep) {
	if ls.endedAt.IsZero() || len(ls.takers) > 0 {
		return
	}
	if len(ls.drained) < len(ls.ids) && time.Since(ls.endedAt) < drainTime {
		return
	}
	if len(ls.drained) < len(ls.ids) {
		c.orphaned(ls)
	}
	delete(c.steps, ls.record.ID)
	var here []step.ID
	for _, id := range ls.ids {
		if c.local(id.Node) {
			here = append(here, id)
			c.have.Drop(id)
		} else {
			c.forgetPart(id)
		}
	}
	if len(here) > 0 {
		c.try("forget", here[0], c.cfg.Runner.Forget(here...))
	}
}

// orphaned ends an allocation that srun made for this step and that nobody will end: srun was killed.
func (c *Client) orphaned(ls *liveStep) {
	if ls.alone() {
		return
	}
	first := ls.lead
	h := c.nodes[first].jobs[ls.record.ID.Job]
	if h == nil || h.job.Attempt != ls.record.Attempt || h.job.Spec.Kind != cluster.SrunJob || h.isReported() {
		return
	}
	h.launch.to(reported)
	u := c.update(h, cluster.BatchOver)
	u.Exit = ls.record.Exit
	c.reports.put(first, u)
}

// expireSteps drops ended steps whose output nobody takes, and kills those that TERM did not end;
// it tells when to look again.
func (c *Client) expireSteps(now time.Time) (again time.Time) {
	for _, ls := range c.steps {
		c.drop(ls)
		if at := ls.killAt; !at.IsZero() && ls.endedAt.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.killAt = time.Time{}
				c.signalStepNow(ls, syscall.SIGKILL)
			}
		}
		if at := ls.goneAt; !at.IsZero() && ls.endedAt.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.goneAt = time.Time{}
				c.killOrphan(ls)
			}
		}
		if at := c.stepExpires(ls); !at.IsZero() {
			if at.After(now) {
				again = sooner(again, at)
			} else {
				ls.limited = true
				c.endStep(ls, cluster.TimedOut)
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
func (c *Client) killOrphan(ls *liveStep) {
	h := c.nodes[ls.lead].jobs[ls.record.ID.Job]
	if h == nil || h.job.Phase != cluster.Running || h.isReported() {
		ls.endedBy = nil
		return
	}
	c.sayEnd(ls, cluster.Cancelled, true)
	c.signalStepNow(ls, syscall.SIGKILL)
}

// stepExpires is when a step's own time limit is over, zero: it has none, or is ending. The limit of srun's own job
// is the job's.
func (c *Client) stepExpires(ls *liveStep) time.Time {
	rec := &ls.record
	h := c.nodes[ls.lead].jobs[rec.ID.Job]
	switch {
	case rec.Limit <= 0 || ls.limited || ls.killed || !ls.endedAt.IsZero() || rec.Started.IsZero():
		return time.Time{}
	case h == nil || h.job.Phase != cluster.Running || h.job.Spec.Kind == cluster.SrunJob:
		return time.Time{}
	}
	return rec.Started.Add(rec.Limit)
}

// keepRecord has the parts here carry what a step's record is now, for a daemon that comes after this one. Called
// with mu held.
func (c *Client) keepRecord(ls *liveStep) {
	memo, err := ls.memo()
	if err != nil {
		c.slog.Error("a step's record was not kept", "job", ls.record.ID.Job, "step", ls.record.ID.Step, "err", err)
		return
	}
	for _, id := range ls.ids {
		if c.local(id.Node) {
			c.try("record", id, c.cfg.Runner.SetNote(id, memo))
		}
	}
}

// recoverStep brings back a step that ran before this daemon started. Called with mu held.
func (c *Client) recoverStep(st *step.Status) {
	if len(st.Note) == 0 {
		return
	}
	var n note
	if wire.Unmarshal(st.Note, &n) != nil {
		return
	}
	if _, known := c.steps[n.Record.ID]; known {
		return
	}
	if n.Lead == "" {
		n.Lead = n.IDs[0].Node // a note of an older muster, whose steps were of one client
	}
	if !c.local(n.Lead) {
		return // another client leads it
	}
	for _, id := range n.IDs {
		if !c.local(id.Node) {
			c.have.Put(id, &step.Status{ID: id, State: step.Running}) // until its client tells
		}
	}
	c.steps[n.Record.ID] = &liveStep{
		record: n.Record, spec: n.Spec, ids: n.IDs, lead: n.Lead, key: n.Key,
		drained: map[cluster.NodeName]bool{},
	}
}
