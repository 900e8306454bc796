package history

import (
	"context"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/lookup"
	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
)

// samplesShown bounds one answer.
const samplesShown = 100_000

// ShowSamples reads samples of a job or a node.
func (k *Keeper) ShowSamples(ctx context.Context, who api.Caller, q api.SamplesQuery) (api.SamplesAnswer, error) {
	var out api.SamplesAnswer
	db, ok := k.History.(*acct.DB)
	if !ok {
		return out, cluster.Errorf(cluster.Unavailable, "", "this server keeps no history")
	}
	if q.Until.IsZero() {
		q.Until = time.Now()
	}
	read := k.jobSamples
	if q.Job == "" {
		read = k.nodeSamples
	}
	list, err := read(ctx, who, &q, &out, acct.SamplesOf(db))
	if err != nil {
		return out, err
	}
	if len(list) > samplesShown {
		list, out.More = list[:samplesShown], true
	}
	for i := range list {
		one := &list[i]
		out.Samples = append(out.Samples, api.NodeSample{
			Node: one.Node, At: one.At.Unix(), Span: int(one.Span / time.Second), Data: one.Data,
		})
	}
	return out, nil
}

// nodeSamples reads those of a node.
func (k *Keeper) nodeSamples(ctx context.Context, who api.Caller, q *api.SamplesQuery, _ *api.SamplesAnswer,
	kept acct.Samples) ([]acct.Hardware, error) {
	snap := k.Snapshot()
	if err := visibility.Of(snap, who).Nodes(); err != nil {
		return nil, err
	}
	if _, ok := snap.Node(q.Node); !ok {
		return nil, cluster.Errorf(cluster.NotFound, cluster.ErrNodeName, "there is no node %s", q.Node)
	}
	return kept.Node(ctx, q.Node, q.Since, q.Until)
}

// jobSamples reads those of a job, which it finds by its written id.
func (k *Keeper) jobSamples(ctx context.Context, who api.Caller, q *api.SamplesQuery, out *api.SamplesAnswer,
	kept acct.Samples) ([]acct.Hardware, error) {
	found, err := lookup.Find(ctx, k.History, visibility.Of(k.Snapshot(), who), q.Job)
	if err != nil {
		return nil, err
	}
	if found.Job == nil {
		return nil, cluster.Errorf(cluster.Invalid, cluster.ErrJobID, "name one task of array %s", q.Job)
	}
	out.Job = found.Job
	return kept.Job(ctx, found.Job.ID, q.Node, q.Since, q.Until)
}
