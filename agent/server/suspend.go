package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// beginWait is how long a job that is shown as running is waited for until its nodes have confirmed it.
const beginWait = 5 * time.Second

// suspendJob suspends jobs, or has them go on. A job that has its nodes runs for whoever looks, and can be suspended
// once they have confirmed it: that is waited for.
func suspendJob(s *Server) func(context.Context, api.Caller, cluster.Suspend) (api.WriteResponse, error) {
	suspend := plainWrite[cluster.Suspend](s, api.SuspendJob)
	return func(ctx context.Context, who api.Caller, c cluster.Suspend) (api.WriteResponse, error) {
		late := time.NewTimer(beginWait)
		defer late.Stop()
		for {
			moved := s.wakeups.await(topicAny)
			out, err := suspend(ctx, who, c)
			var e *cluster.Error
			if !errors.As(err, &e) || e.Kind != cluster.ErrNotRunning || !begins(s.Snapshot(), c.Ref) {
				return out, err
			}
			select {
			case <-moved:
			case <-late.C:
				return out, err
			case <-ctx.Done():
				return out, err
			}
		}
	}
}

// begins reports whether one of the jobs that are meant is not confirmed yet.
func begins(s *cluster.Snapshot, ref cluster.Ref) bool {
	return slices.ContainsFunc(s.Find(ref), func(j *cluster.Job) bool { return j.Phase == cluster.Starting })
}
