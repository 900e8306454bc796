package server

import (
	"context"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
)

// sampleRoutes registers what is told and asked of samples.
func sampleRoutes(s *Server, m *api.Mux) {
	handle(s, m, api.TellSamples, tellSamples(s))
	api.Handle(m, api.CopySamples, copySamples(s))
	handle(s, m, api.ShowSamples, showSamples(s))
	handle(s, m, api.ListIdle, listIdle(s))
}

// samplesShown bounds one answer.
const samplesShown = 100_000

// showSamples reads samples of a job or a node from this server's history.
func showSamples(s *Server) func(context.Context, api.Caller, api.SamplesQuery) (api.SamplesAnswer, error) {
	return func(ctx context.Context, who api.Caller, q api.SamplesQuery) (out api.SamplesAnswer, err error) {
		snap := s.Snapshot()
		sees := visibilityOf(snap, who)
		db, ok := s.hist.(*acct.DB)
		if !ok {
			return out, cluster.Errorf(cluster.Unavailable, "", "this server keeps no history")
		}
		to := q.Until
		if to.IsZero() {
			to = time.Now()
		}
		var list []acct.Hardware
		if q.Job == "" {
			if err := sees.nodes(); err != nil {
				return out, err
			}
			if _, ok := snap.Node(q.Node); !ok {
				return out, cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "there is no node %s", q.Node)
			}
			list, err = acct.SamplesOf(db).Node(ctx, q.Node, q.Since, to)
		} else {
			var n named
			if n, err = (&pages{hist: s.hist}).find(ctx, sees, q.Job); err != nil {
				return out, err
			}
			if n.job == nil {
				return out, cluster.Errorf(cluster.Invalid, cluster.ErrJobID, "name one task of array %s", q.Job)
			}
			out.Job = n.job
			list, err = acct.SamplesOf(db).Job(ctx, n.job.ID, q.Node, q.Since, to)
		}
		if err != nil {
			return out, err
		}
		if len(list) > samplesShown {
			list, out.More = list[:samplesShown], true
		}
		for i := range list {
			out.Samples = append(out.Samples, api.NodeSample{Node: list[i].Node, At: list[i].At.Unix(),
				Span: int(list[i].Span / time.Second), Data: list[i].Data})
		}
		return out, nil
	}
}
