package server

import (
	"context"
	"slices"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched"
)

// submitHet takes a heterogeneous job.
func (s *Server) submitHet(ctx context.Context, who api.Caller, q api.HetRequest) (api.SubmitResponse, error) {
	var none api.SubmitResponse
	if len(q.Script) > cluster.MaxScriptBytes {
		return none, cluster.Errorf(cluster.Invalid, cluster.ErrTooBig,
			"the script has %d bytes, more than %d", len(q.Script), cluster.MaxScriptBytes)
	}
	if err := unfiltered(s, q.Filtered); err != nil {
		return none, err
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
	asked := slices.Clone(q.Specs)
	c, done, err := s.completeHet(ctx, snap, who, &q)
	if err != nil {
		return none, err
	}
	var cmds []cluster.Command
	c.Specs[0].Script, c.Specs[0].Env = putBlob(snap, &cmds, q.Script), putBlob(snap, &cmds, q.Env)
	values, index, err := s.propose(ctx, done.by, append(cmds, c)...)
	if err != nil {
		return none, saying(err, done.said)
	}
	id := values[len(values)-1].(cluster.JobID)
	s.slog.Info("heterogeneous job submitted", "job", id, "user", c.Specs[0].User, "components", len(c.Specs))
	out := api.SubmitResponse{Job: id, Index: index, Said: done.said}
	for k, spec := range c.Specs {
		out.Ignored = append(out.Ignored, ignored(&asked[k], spec)...)
	}
	return out, nil
}

// completeHet fills in who the components run as, and refuses what can never run. The site's script sees each of them;
// the first has the job's script.
func (s *Server) completeHet(ctx context.Context, snap *cluster.Snapshot, who api.Caller, q *api.HetRequest) (
	*cluster.SubmitHet, completed, error,
) {
	c, all := &cluster.SubmitHet{Key: q.Key}, completed{by: who.Identity}
	for k, spec := range q.Specs {
		if spec.Cron != nil {
			return nil, all, cluster.Errorf(cluster.Invalid, "",
				"component %d is to run again and again: jobs of one component alone do, by scrontab", k)
		}
		one := api.SubmitRequest{Spec: spec, Script: q.Script, Env: q.Env}
		done, err := s.complete(ctx, who, &one, k)
		if all.said = append(all.said, done.said...); err != nil {
			return nil, all, err
		}
		if k == 0 {
			q.Script, q.Env = one.Script, one.Env
		}
		all.by.Admin = all.by.Admin || done.by.Admin
		c.Specs = append(c.Specs, &done.spec)
	}
	admitted, err := cluster.AdmitHet(snap, all.by, c.Specs)
	if err != nil {
		return nil, all, saying(err, all.said)
	}
	for k := range admitted {
		if bad := s.feasible(snap, &admitted[k]); bad != nil {
			return nil, all, saying(bad, all.said)
		}
	}
	return c, all, nil
}

// testHet tells when a heterogeneous job would start if it were submitted now.
func (s *Server) testHet(ctx context.Context, who api.Caller, q api.HetRequest) (api.TestResponse, error) {
	var out api.TestResponse
	if err := unfiltered(s, q.Filtered); err != nil {
		return out, err
	}
	snap := s.Snapshot()
	asked := slices.Clone(q.Specs)
	c, done, err := s.completeHet(ctx, snap, who, &q)
	if err != nil {
		return out, err
	}
	out.Said = done.said
	leave, err := s.fore.asking.Wait(ctx, who.UID, placesOfUser)
	if err != nil {
		return out, err
	}
	defer leave()
	s.fore.mu.Lock()
	defer s.fore.mu.Unlock()
	starts, lead, err := sched.TestHet(snap, time.Now(), done.by, c.Specs)
	if err != nil {
		return out, err
	}
	out.Job = lead
	for k, st := range starts {
		out.Ignored = append(out.Ignored, ignored(&asked[k], c.Specs[k])...)
		if st.Alloc == nil {
			return out, cluster.Errorf(cluster.Unavailable, cluster.ErrNodeConfig,
				"component %d cannot start in the foreseeable future: it would wait for %s", k, st.Why)
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
