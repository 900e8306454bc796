package history

import (
	"context"
	"slices"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
)

// ShowUsage sums history up, on this server if its history is whole.
func (k *Keeper) ShowUsage(ctx context.Context, who api.Caller, q api.UsageRequest) (api.UsageResponse, error) {
	snap, err := k.After(ctx, q.After)
	if err != nil {
		return api.UsageResponse{}, err
	}
	if !k.Whole() {
		return api.UsageResponse{}, api.ErrElsewhere
	}
	lag, err := k.settle(ctx)
	if err != nil {
		return api.UsageResponse{}, err
	}
	out := api.UsageResponse{Now: time.Now(), Cluster: snap.Config().ClusterName, KeptSince: snap.Retained.UsageSince()}
	out.Lag = lag
	sees := visibility.Of(snap, who)
	if q.NodeSpans {
		if err := sees.Events(); err != nil {
			return api.UsageResponse{}, err
		}
	}
	err = fillUsage(ctx, k.History, &q, &out)
	out.Rows = sees.OnlyOwn(out.Rows)
	out.Reservations = slices.DeleteFunc(out.Reservations, func(r cluster.ResvSpan) bool { return !sees.Span(&r) })
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

// ListChanges answers with who changed the books. Where PrivateData hides users or usage, operators alone may know.
func (k *Keeper) ListChanges(ctx context.Context, who api.Caller, q api.ChangesQuery) (api.ChangesResponse, error) {
	sees := visibility.Of(k.Committed(), who)
	if sees.Hides(cluster.PrivateUsers) || sees.Hides(cluster.PrivateUsage) {
		return api.ChangesResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"changes of accounts are shown to operators only (PrivateData)")
	}
	if !k.Whole() {
		return api.ChangesResponse{}, api.ErrElsewhere
	}
	lag, err := k.settle(ctx)
	if err != nil {
		return api.ChangesResponse{}, err
	}
	list, err := k.Changes(ctx, q.Time)
	return api.ChangesResponse{Changes: list, Lag: lag}, err
}
