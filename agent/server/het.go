package server

import (
	"context"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched"
)

// submitHet takes a heterogeneous job.
func (s *Server) submitHet(ctx context.Context, who api.Caller, q api.HetRequest) (api.SubmitResponse, error) {
	var none api.SubmitResponse
	if len(q.Script) > cluster.MaxScriptBytes {
		return none, cluster.Errorf(cluster.Invalid, cluster.ErrTooBig, "the script has %d bytes, more than %d", len(q.Script), cluster.MaxScriptBytes)
	}
	if len(q.Specs) > 0 {
		if made, ok := s.submitted(who, q.Specs[0].UID, q.Key); ok {
			return made, nil
		}
	}
	if err := s.settled(); err != nil {
		return none, err
	}
	snap := s.Snapshot()
	c, err := s.completeHet(snap, who, q)
	if err != nil {
		return none, err
	}
	var cmds []cluster.Command
	c.Specs[0].Script, c.Specs[0].Env = putBlob(snap, &cmds, q.Script), putBlob(snap, &cmds, q.Env)
	values, index, err := s.propose(ctx, who.Identity, append(cmds, c)...)
	if err != nil {
		return none, err
	}
	id := values[len(values)-1].(cluster.JobID)
	s.slog.Info("heterogeneous job submitted", "job", id, "user", c.Specs[0].User, "components", len(c.Specs))
	out := api.SubmitResponse{Job: id, Index: index}
	for k, spec := range c.Specs {
		out.Ignored = append(out.Ignored, ignored(&q.Specs[k], spec)...)
	}
	return out, nil
}

// completeHet fills in who the components run as, and refuses what can never run.
func (s *Server) completeHet(snap *cluster.Snapshot, who api.Caller, q api.HetRequest) (*cluster.SubmitHet, error) {
	c := &cluster.SubmitHet{Key: q.Key}
	for _, spec := range q.Specs {
		one, err := s.complete(who, spec)
		if err != nil {
			return nil, err
		}
		c.Specs = append(c.Specs, &one)
	}
	admitted, err := cluster.AdmitHet(snap, who.Identity, c.Specs)
	if err != nil {
		return nil, err
	}
	for k := range admitted {
		if bad := s.feasible(snap, &admitted[k]); bad != nil {
			return nil, bad
		}
	}
	return c, nil
}

// testHet tells when a heterogeneous job would start if it were submitted now.
func (s *Server) testHet(_ context.Context, who api.Caller, q api.HetRequest) (api.TestResponse, error) {
	var out api.TestResponse
	snap := s.Snapshot()
	c, err := s.completeHet(snap, who, q)
	if err != nil {
		return out, err
	}
	s.foreMu.Lock()
	defer s.foreMu.Unlock()
	starts, lead, err := sched.TestHet(snap, time.Now(), who.Identity, c.Specs)
	if err != nil {
		return out, err
	}
	out.Job = lead
	for k, st := range starts {
		out.Ignored = append(out.Ignored, ignored(&q.Specs[k], c.Specs[k])...)
		if st.Alloc == nil {
			return out, cluster.Errorf(cluster.Unavailable, cluster.ErrNodeConfig, "component %d can not start in the foreseeable future: it would wait for %s", k, st.Why)
		}
		if k == 0 {
			out.StartsAt, out.Partition = st.At, st.Alloc.Partition
		}
		out.Nodes = append(out.Nodes, st.Nodes()...)
		for _, sh := range st.Alloc.Shares {
			out.CPUs += sh.CPUs.Len()
		}
	}
	return out, nil
}
