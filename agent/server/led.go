package server

import (
	"context"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
)

// ledJob tells a client of a job that one of its nodes has led, or took part in, and of a step of that: of what runs
// and of what has ended, for as long as history has it.
func (s *Server) ledJob(ctx context.Context, who api.Caller, q api.LedQuery) (out api.LedResponse, err error) {
	snap := s.Snapshot()
	j, ok := snap.Job(q.Job)
	if ok && q.Step != nil {
		out.Step, _ = snap.Step(cluster.StepID{Job: q.Job, Step: *q.Step})
	}
	if out.Job = j; !ok || q.Step != nil && out.Step == nil {
		if out, err = pastLed(ctx, s, q, j); err != nil {
			return out, err
		}
	}
	if err := mayKnow(s, who, q, out.Job); err != nil {
		return api.LedResponse{}, err
	}
	return out, nil
}

// pastLed finds in history what is asked for. The job of the state, if there is one, is newer than that of history.
func pastLed(ctx context.Context, s *Server, q api.LedQuery, j *cluster.Job) (out api.LedResponse, err error) {
	if s.hist == nil || !s.hist.Whole() {
		return out, api.ErrElsewhere
	}
	if err := s.hist.Flush(ctx); err != nil {
		return out, err
	}
	out.Job = j
	query := acct.Query{Refs: []cluster.Ref{{Job: q.Job}}, Steps: q.Step != nil}
	for r, err := range s.hist.Jobs(ctx, query) {
		if err != nil {
			return out, err
		}
		if r.Job.ID != q.Job {
			continue
		}
		if out.Job == nil {
			out.Job = r.Job
		}
		for _, st := range r.Steps {
			if q.Step != nil && st.ID.Step == *q.Step {
				out.Step = st
			}
		}
	}
	if (out.Job == nil || q.Step != nil && out.Step == nil) && !s.Leads() {
		return out, api.ErrElsewhere // a follower may know less
	}
	return out, nil
}

// mayKnow refuses a caller whose nodes have nothing to do with a job.
func mayKnow(s *Server, who api.Caller, q api.LedQuery, j *cluster.Job) error {
	if j == nil || j.Alloc == nil || len(j.Alloc.Shares) == 0 {
		return cluster.Errorf(cluster.NotFound, cluster.ErrJobID, "job %d has run nowhere, or is forgotten", q.Job)
	}
	node := j.Alloc.Shares[0].Node
	for _, sh := range j.Alloc.Shares {
		if sh.Node == q.Node {
			node = q.Node
		}
	}
	return s.owns(who, node)
}
