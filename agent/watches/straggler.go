package watches

import (
	"context"
	"time"

	"dev.muster/agent/samples"
	"dev.muster/cluster"
)

// Jobs of which one GPU is slower than the others.

// findSlow lists the jobs whose samples show a slow GPU.
func findSlow(w *Watcher, snap *cluster.Snapshot, now time.Time) (out []finding) {
	for _, one := range w.Samples.Slow(snap, now) {
		rule := one.Job.Spec.Survives().Straggler
		if rule == cluster.StragglerOff || cluster.SlowLately(one.Job, now) {
			continue
		}
		out = append(out, finding{
			job:  one.Job,
			deal: func(ctx context.Context) error { return w.dealSlow(ctx, &one) },
		})
	}
	return out
}

// dealSlow has a slow GPU noted and acted upon, and tells the job what was done if its rule says so.
func (w *Watcher) dealSlow(ctx context.Context, one *samples.Slow) error {
	c := &cluster.StragglerFound{Job: one.Job.ID, Attempt: one.Job.Attempt, Node: one.Node, Text: one.Text}
	values, err := w.Server.Propose(ctx, c)
	if err != nil {
		return err
	}
	action, _ := values[0].(cluster.StragglerAction)
	if action == cluster.StragglerReport || action == cluster.StragglerSwap {
		slow := cluster.Straggler{Text: c.Text, Action: action}
		w.Server.TellJob(ctx, c.Job, "muster: "+slow.Note())
	}
	return nil
}
