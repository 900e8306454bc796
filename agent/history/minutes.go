package history

import (
	"context"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/samples"
	"dev.muster/api"
	"dev.muster/cluster"
)

// pastEvery is between samples of what the cluster is.
const pastEvery = time.Minute

// CaughtUp is the history of this server once its state has caught up with the log; nil: it keeps none, or ctx is over.
func (k *Keeper) CaughtUp(ctx context.Context) *acct.DB {
	db, _ := k.History.(*acct.DB)
	select {
	case <-k.Current:
		return db
	case <-ctx.Done():
		return nil
	}
}

// Past makes a past of a cluster that has none, in the history of its only server.
type Past func(context.Context, *acct.DB, *cluster.Snapshot) error

// MakePast has a past made; nil: none is wanted.
func (k *Keeper) MakePast(ctx context.Context, past Past) {
	if past == nil {
		return
	}
	db := k.CaughtUp(ctx)
	if db == nil {
		return
	}
	if err := past(ctx, db, k.Snapshot()); err != nil && ctx.Err() == nil {
		k.Slog.Warn("no past could be made for the demonstration", "err", err)
	}
}

// KeepPast keeps a sample a minute of this server's own state, until ctx ends.
func (k *Keeper) KeepPast(ctx context.Context) {
	db := k.CaughtUp(ctx)
	if db == nil {
		return
	}
	var before api.JobCounts
	for {
		counted := k.Counted()
		m := samples.Measure(k.Snapshot())
		m.Count(counted, before)
		before = counted
		if err := acct.PastOf(db).Add(ctx, time.Now(), m.List()); err != nil && ctx.Err() == nil {
			k.Slog.Warn("a sample of the past could not be kept", "err", err)
		}
		select {
		case <-time.After(time.Until(time.Now().Truncate(pastEvery).Add(pastEvery))):
		case <-ctx.Done():
			return
		}
	}
}
