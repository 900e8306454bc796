package server

import (
	"context"
	"slices"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// showUsage sums history up, on this server if its history is whole.
func (s *Server) showUsage(ctx context.Context, who api.Caller, q api.UsageRequest) (api.UsageResponse, error) {
	snap, err := s.waitAfter(ctx, q.After)
	if err != nil {
		return api.UsageResponse{}, err
	}
	if !s.hist.Whole() {
		return api.UsageResponse{}, ErrElsewhere
	}
	if err := s.hist.Flush(ctx); err != nil {
		return api.UsageResponse{}, err
	}
	out := api.UsageResponse{Now: time.Now(), Cluster: snap.Config().ClusterName, KeptSince: snap.Retained.UsageSince()}
	err = fillUsage(ctx, s.hist, &q, &out)
	sees := visibilityOf(snap, who)
	out.Rows = sees.onlyOwn(out.Rows)
	out.Reservations = slices.DeleteFunc(out.Reservations, func(r cluster.ResvSpan) bool { return !sees.span(&r) })
	return out, err
}

// fillUsage gets what a request asks for, as far as records are kept: where they are gone there is no idle time either.
func fillUsage(ctx context.Context, h History, q *api.UsageRequest, out *api.UsageResponse) (err error) {
	const hour = 3600
	asked := q.Time.To
	q.Time.From = max(q.Time.From-q.Time.From%hour, (out.KeptSince+hour-1)/hour*hour)
	q.Time.To = min(q.Time.To, out.Now.Unix())
	if q.Ahead {
		if out.Reservations, err = h.Reservations(ctx, cluster.Span{From: q.Time.From, To: asked}); err != nil {
			return err
		}
	}
	if q.Time.To <= q.Time.From {
		return nil
	}
	if q.Time.From < 0 {
		return cluster.Errorf(cluster.Invalid, "", "history begins in 1970")
	}
	if out.Rows, err = h.Usage(ctx, q.UsageQuery); err != nil {
		return err
	}
	if q.Utilization {
		if out.Utilization, err = h.Utilization(ctx, q.Time); err != nil {
			return err
		}
	}
	if q.Reservations {
		if out.Reservations, err = h.Reservations(ctx, q.Time); err != nil {
			return err
		}
	}
	if q.NodeSpans {
		out.Nodes, err = h.NodeSpans(ctx, q.Time)
	}
	return err
}
