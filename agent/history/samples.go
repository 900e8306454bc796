package history

import (
	"context"
	"slices"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/samples"
	"dev.muster/api"
	"dev.muster/cluster"
)

// Samples of hardware come from nodes to the server that leads; the others fetch from it what they lack.
// Each server keeps them in its own history, and the latest in memory. None is in the log.

const (
	samplesWrite = 5 * time.Second  // gathered this long, then written together
	samplesFetch = 10 * time.Second // between what a server fetches
	samplesOld   = 2 * time.Hour    // older ones are not taken
	sampleBytes  = 32 << 10         // of one
	idleBack     = 2 * time.Hour    // that a server which starts reads of its history
)

// TellSamples takes samples from a node.
func (k *Keeper) TellSamples(_ context.Context, who api.Caller, q api.SamplesRequest) (api.SamplesResponse, error) {
	snap, now := k.Snapshot(), time.Now()
	good := q.Samples[:0]
	for _, one := range q.Samples {
		if err := k.Owns(who, one.Node); err != nil {
			return api.SamplesResponse{}, err
		}
		if _, ok := snap.Node(one.Node); !ok || !plausible(&one, now) {
			continue
		}
		one.Jobs = slices.DeleteFunc(one.Jobs, func(j api.JobSample) bool {
			job, ok := snap.Job(j.Job)
			return !ok || len(j.Data) > sampleBytes || !slices.Contains(job.AllocNodes(), one.Node)
		})
		good = append(good, one)
	}
	k.Samples.Take(good)
	return api.SamplesResponse{Boot: k.Samples.Boot}, nil
}

// plausible reports whether a sample may be one of lately: nodes' clocks differ, and nodes may lie.
func plausible(one *api.NodeSample, now time.Time) bool {
	if one.Span < 1 || one.Span > 3600 || len(one.Data) > sampleBytes {
		return false
	}
	at := time.Unix(one.At, 0)
	return !at.Before(now.Add(-samplesOld)) && !at.After(now.Add(samples.HourOver))
}

// CopySamples gives another server what it lacks.
func (k *Keeper) CopySamples(_ context.Context, _ api.Caller, q api.CopyRequest) (api.CopyResponse, error) {
	return k.Samples.After(q), nil
}

// KeepSamples writes samples to history, until ctx ends, and sums them up.
func (k *Keeper) KeepSamples(ctx context.Context) {
	db, ok := k.History.(*acct.DB)
	if !ok {
		return
	}
	kept := acct.SamplesOf(db)
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.Samples.More:
		}
		select {
		case <-ctx.Done(): // what is left is written all the same
		case <-time.After(samplesWrite):
		}
		list, hours := k.Samples.Unwritten(time.Now())
		err := kept.Add(context.WithoutCancel(ctx), list)
		for _, hour := range hours {
			if err == nil && ctx.Err() == nil {
				err = sumUp(ctx, kept, hour)
			}
		}
		if err != nil && ctx.Err() == nil {
			k.Slog.Warn("samples of hardware could not be kept", "err", err)
		}
	}
}

// sumUp ends an hour.
func sumUp(ctx context.Context, kept acct.Samples, hour time.Time) error {
	if err := kept.Hour(ctx, hour, time.Now()); err != nil {
		return err
	}
	for after := cluster.JobID(0); ; {
		var err error
		if after, err = kept.Thin(ctx, time.Now(), after); err != nil || after == 0 {
			return err
		}
	}
}

// FetchSamples gets from the server that leads what this one was not told, until ctx ends.
func (k *Keeper) FetchSamples(ctx context.Context) {
	if k.Peer == nil {
		return
	}
	var from string
	var q api.CopyRequest
	tick := time.NewTicker(samplesFetch)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.Samples.Prune(k.Snapshot())
		addr, self := k.Log.Leader()
		if addr == "" || self {
			continue
		}
		if addr != from {
			from, q = addr, api.CopyRequest{}
		}
		for more := true; more; {
			call, cancel := context.WithTimeout(ctx, samplesFetch)
			r, err := api.Call(call, k.Peer(addr), api.CopySamples, q)
			cancel()
			if err != nil {
				k.Slog.Debug("samples could not be fetched", "from", addr, "err", err)
				break
			}
			k.Samples.Take(r.Samples)
			q, more = api.CopyRequest{Boot: r.Boot, After: r.After}, r.More
		}
	}
}

// RecallIdle reads of history what a server that has started was told before.
func (k *Keeper) RecallIdle(ctx context.Context) {
	db := k.CaughtUp(ctx)
	if db == nil {
		return
	}
	now := time.Now()
	for j := range k.Snapshot().Live() {
		if j.Phase != cluster.Running || !holdsGPUs(j.Alloc) {
			continue
		}
		list, err := acct.SamplesOf(db).Job(ctx, j.ID, "", now.Add(-idleBack), now)
		if err != nil {
			return
		}
		k.Samples.Recall(j.ID, list)
	}
}

func holdsGPUs(a *cluster.Alloc) bool {
	return a != nil && slices.ContainsFunc(a.Shares, func(sh cluster.Share) bool { return !sh.GPUs.Empty() })
}
