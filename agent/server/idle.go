package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/api"
	"dev.muster/cluster"
)

// GPUs that somebody has and nobody uses. Every server follows what samples tell; the one that leads holds
// the rules of partitions.

const (
	idleEvery = 2 * time.Second // between looks
	idleTold  = 5 * time.Second // for a job to be told
)

// listIdle answers for who may see the jobs.
func listIdle(s *Server) func(context.Context, api.Caller, api.IdleQuery) (api.IdleAnswer, error) {
	return func(_ context.Context, who api.Caller, q api.IdleQuery) (api.IdleAnswer, error) {
		snap, now := s.Snapshot(), time.Now()
		sees := visibility.Of(snap, who)
		list := s.hist.Samples.Idle(snap, q.For, now)
		return api.IdleAnswer{
			Now: now, Jobs: slices.DeleteFunc(list, func(j api.IdleJob) bool { return !sees.Job(j.Job) }),
		}, nil
	}
}

// enforceIdle holds the rules of partitions, for one term.
func enforceIdle(term context.Context, s *Server) {
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	tried := map[cluster.JobID]int{} // the attempt that was dealt with
	for {
		select {
		case <-term.Done():
			return
		case <-tick.C:
		}
		snap := s.committed()
		if !slices.ContainsFunc(snap.Config().Partitions, func(p cluster.Partition) bool { return p.IdleGPU != "" }) {
			continue
		}
		for _, one := range s.hist.Samples.Idle(snap, 0, time.Now()) {
			if one.Rule == "" || one.Idle < one.GPUs || tried[one.Job.ID] == one.Job.Attempt+1 {
				continue
			}
			tried[one.Job.ID] = one.Job.Attempt + 1
			if err := dealIdle(term, s, &one); err != nil && term.Err() == nil {
				s.slog.Warn("a rule for idle GPUs could not be held", "job", one.Job.ID, "rule", one.Rule, "err", err)
			}
		}
	}
}

// idlePrefix begins what is said of a job by a rule.
const idlePrefix = "IdleGPU="

// dealIdle does what a partition's rule says with a job, and tells its user why: in its output, and in its record.
func dealIdle(ctx context.Context, s *Server, one *api.IdleJob) error {
	j, rule := one.Job, one.Rule
	if rule == cluster.IdleNotify && strings.HasPrefix(j.SystemComment, idlePrefix) {
		return nil // a former leader has told it
	}
	if rule == cluster.IdleRequeue && (j.Spec.Kind != cluster.Batch || j.Spec.Requeue != nil && !*j.Spec.Requeue) {
		rule = cluster.IdleCancel // as preemption does
	}
	will := map[cluster.IdleRule]string{cluster.IdleNotify: "leave them to others if it needs them no more",
		cluster.IdleRequeue: "it goes back into the queue", cluster.IdleCancel: "it is cancelled"}[rule]
	text := fmt.Sprintf("%s%s of partition %s: %d of %d GPUs below %d %% since %s; %s", idlePrefix, one.Rule, j.Alloc.Partition, one.Idle,
		one.GPUs, cluster.IdleGPUPercent, one.Since.Format("2006-01-02T15:04:05"), will)
	s.slog.Info("GPUs are idle", "job", j.ID, "user", j.Spec.User, "gpus", one.Idle, "since", one.Since,
		"rule", one.Rule)
	by := cluster.Identity{System: true}
	cmds := []cluster.Command{&cluster.AmendJobs{Jobs: []cluster.JobRecord{
		{ID: j.ID, Submitted: j.Submitted, UID: j.Spec.UID},
	},
		Amendment: cluster.Amendment{SystemComment: &text}}}
	if _, _, err := s.propose(ctx, by, cmds...); err != nil {
		s.slog.Warn("why a job is idle could not be noted", "job", j.ID, "err", err)
	}
	tellJob(ctx, s, j.ID, "muster: "+text)
	ref := cluster.Ref{Job: j.ID}
	var err error
	switch rule {
	case cluster.IdleRequeue:
		_, _, err = s.propose(ctx, by, &cluster.Requeue{Ref: ref})
	case cluster.IdleCancel:
		_, _, err = s.propose(ctx, by, &cluster.Cancel{Ref: ref})
	}
	return err
}

// tellJob writes a line into a job's output, if somebody takes it.
func tellJob(ctx context.Context, s *Server, job cluster.JobID, text string) {
	call := s.inName.Load()
	if call == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, idleTold)
	defer cancel()
	root := api.Caller{Identity: cluster.Identity{User: "root", Admin: true}}
	_, err := api.CallAs(ctx, *call, root, api.NotifyJob, api.NotifyRequest{Job: job, Text: text})
	if err != nil {
		s.slog.Warn("a job could not be told that its GPUs are idle", "job", job, "err", err)
	}
}
