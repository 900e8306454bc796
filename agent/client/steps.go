package client

import (
	"syscall"
	"time"

	"dev.muster/agent/outbox"
	"dev.muster/agent/step"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// steps are those of jobs that are led here: this client's node is the first of the job.
type steps struct {
	*tables
	reports *outbox.Reports
	parts   *parts
	build   *builder
}

// drainTime is how long an ended step's output waits for a client that is away.
const drainTime = 30 * time.Second

// describe answers with a step and which ranks run where. Called with mu held.
func (s *steps) describe(ls *liveStep) api.StepResponse {
	out := api.StepResponse{Step: ls.record, Defaults: s.config.Srun, KillWait: s.config.KillWait}
	if h := s.nodes[ls.lead].jobs[ls.record.ID.Job]; h != nil {
		out.Again = h.job.Spec.StepsAgain()
	}
	for i, ranks := range ls.ranks() {
		out.Nodes = append(out.Nodes, api.StepNode{Node: ls.ids[i].Node, Ranks: ranks})
	}
	return out
}

// recoverStep brings back a step that ran before this daemon started. Called with mu held.
func (s *steps) recoverStep(st *step.Status) {
	if len(st.Note) == 0 {
		return
	}
	var n note
	if wire.Unmarshal(st.Note, &n) != nil {
		return
	}
	if err := s.ports.HoldAll(&n.Record); err != nil {
		s.slog.Warn("ports of a step that runs are not held for it", "job", st.ID.Job, "step", st.ID.Step, "err", err)
	}
	if _, known := s.live[n.Record.ID]; known {
		return
	}
	if n.Lead == "" {
		n.Lead = n.IDs[0].Node // a note of an older muster, whose steps were of one client
	}
	if !s.local(n.Lead) {
		return // another client leads it
	}
	for _, id := range n.IDs {
		if !s.local(id.Node) {
			s.have.Put(id, &step.Status{ID: id, State: step.Running}) // until its client tells
		}
	}
	s.live[n.Record.ID] = &liveStep{
		record: n.Record, spec: n.Spec, ids: n.IDs, lead: n.Lead, key: n.Key,
		drained: map[cluster.NodeName]bool{},
	}
}

// keepRecord has the parts here carry what a step's record is now, for a daemon that comes after this one. Called
// with mu held.
func (s *steps) keepRecord(ls *liveStep) {
	memo, err := ls.memo()
	if err != nil {
		s.slog.Error("a step's record was not kept", "job", ls.record.ID.Job, "step", ls.record.ID.Step, "err", err)
		return
	}
	for _, id := range ls.ids {
		if s.local(id.Node) {
			s.try("record", id, s.cfg.Runner.SetNote(id, memo))
		}
	}
}

// tellStep reports a step's start or end. Called with mu held.
func (s *steps) tellStep(ls *liveStep) {
	ls.told = true
	if ls.alone() {
		return
	}
	rec := ls.record
	s.reports.Put(ls.lead, cluster.Update{
		Kind: cluster.StepNow, Job: rec.ID.Job, Attempt: rec.Attempt, At: time.Now(), Step: &rec,
	})
}

// signalStepNow sends a signal to a step's tasks, KILL to every process. Called with mu held.
func (s *steps) signalStepNow(ls *liveStep, sig syscall.Signal) {
	ls.killed = ls.killed || sig == syscall.SIGKILL || sig == syscall.SIGTERM
	scope := step.Leaders
	if sig == syscall.SIGKILL {
		scope = step.All
	}
	for _, id := range ls.ids {
		if h := s.have.Get(id); h != nil && h.State != step.Ended {
			s.parts.signalPart(id, sig, scope)
		}
	}
}

// endStep has a step's tasks end in their own way, and kills them KillWait later. Called with mu held.
func (s *steps) endStep(ls *liveStep, why cluster.Outcome) {
	s.sayEnd(ls, why, true)
	s.signalStepNow(ls, syscall.SIGTERM)
	s.signalStepNow(ls, syscall.SIGCONT)
	ls.killAt = time.Now().Add(s.config.KillWait)
}

// sayEnd writes the line about a step's end into its output; a signal that may be its end is told of, too. Called
// with mu held.
func (s *steps) sayEnd(ls *liveStep, why cluster.Outcome, ends bool) {
	first := ls.ids[0]
	h := s.nodes[ls.lead].jobs[ls.record.ID.Job]
	if st := s.have.Get(first); h == nil || st == nil || st.State == step.Ended {
		return
	}
	ended := *h.job
	ended.EndingWhy = why
	s.parts.sayPart(first, s.cfg.EndNote(&ended, first.Step, first.Node, time.Now()), ends)
}

// cancelPart ends a part of one step because a user has asked for its end.
func (s *steps) cancelPart(ls *liveStep, id step.ID, uid uint32) {
	if ls != nil && ls.endedBy == nil {
		ls.endedBy = &uid
		s.sayEnd(ls, cluster.Cancelled, true)
	}
	s.try("kill", id, s.cfg.Runner.Signal(id, syscall.SIGKILL, step.All))
}
