package watches

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// GPUs that somebody has and nobody uses.

// findIdle lists the jobs all of whose GPUs are idle, in partitions that have a rule for that.
func findIdle(w *Watcher, snap *cluster.Snapshot, now time.Time) (out []finding) {
	for _, one := range w.Samples.Idle(snap, 0, now) {
		if one.Rule != "" && one.Idle == one.GPUs {
			out = append(out, finding{
				job:  one.Job,
				deal: func(ctx context.Context) error { return w.dealIdle(ctx, &one) },
			})
		}
	}
	return out
}

// idlePrefix begins what is said of a job by a rule.
const idlePrefix = "IdleGPU="

// idleRow words what a rule does.
type idleRow struct {
	rule cluster.IdleRule
	text string
}

var idleWill = [...]idleRow{
	{cluster.IdleNotify, "leave them to others if it needs them no more"},
	{cluster.IdleRequeue, "it goes back into the queue"},
	{cluster.IdleCancel, "it is cancelled"},
}

// dealIdle does what a partition's rule says with a job, and tells its user why: in its output, and in its record.
func (w *Watcher) dealIdle(ctx context.Context, one *api.IdleJob) error {
	j, rule := one.Job, one.Rule
	if rule == cluster.IdleNotify && strings.HasPrefix(j.SystemComment, idlePrefix) {
		return nil // a former leader has told it
	}
	if rule == cluster.IdleRequeue && !j.MayRequeue() {
		rule = cluster.IdleCancel // as preemption does
	}
	k := slices.IndexFunc(idleWill[:], func(row idleRow) bool { return row.rule == rule })
	will := idleWill[k].text
	text := fmt.Sprintf("%s%s of partition %s: %d of %d GPUs below %d %% since %s; %s", idlePrefix, one.Rule,
		j.Alloc.Partition, one.Idle, one.GPUs, cluster.IdleGPUPercent, one.Since.Format("2006-01-02T15:04:05"), will)
	w.Log.Info("GPUs are idle", "job", j.ID, "user", j.Spec.User, "gpus", one.Idle, "since", one.Since,
		"rule", one.Rule)
	record := cluster.JobRecord{ID: j.ID, Submitted: j.Submitted, UID: j.Spec.UID}
	note := &cluster.AmendJobs{Jobs: []cluster.JobRecord{record}, Amendment: cluster.Amendment{SystemComment: &text}}
	if _, err := w.Server.Propose(ctx, note); err != nil {
		w.Log.Warn("why a job is idle could not be noted", "job", j.ID, "err", err)
	}
	w.Server.TellJob(ctx, j.ID, "muster: "+text)
	return w.endIdle(ctx, j.ID, rule)
}

// endIdle requeues or cancels a job, if its rule says so.
func (w *Watcher) endIdle(ctx context.Context, id cluster.JobID, rule cluster.IdleRule) (err error) {
	ref := cluster.Ref{Job: id}
	switch rule {
	case cluster.IdleRequeue:
		_, err = w.Server.Propose(ctx, &cluster.Requeue{Ref: ref})
	case cluster.IdleCancel:
		_, err = w.Server.Propose(ctx, &cluster.Cancel{Ref: ref})
	}
	return err
}
