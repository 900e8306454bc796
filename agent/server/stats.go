package server

import (
	"context"
	"runtime"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// showStats answers with the counts.
func (s *Server) showStats(_ context.Context, who api.Caller, q api.StatsRequest) (api.StatsResponse, error) {
	snap := s.Snapshot()
	if q.Reset {
		if !who.Operator() && s.privilege(who) != "Administrator" {
			return api.StatsResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
				"only operators may reset the counts")
		}
		s.stats.Reset()
	}
	out := s.stats.Counted()
	out.Now, out.Threads = time.Now(), runtime.NumGoroutine()
	for j := range snap.Jobs() {
		switch j.Phase {
		case cluster.Pending:
			out.Pending += max(j.Tasks.Len(), 1)
		case cluster.Running, cluster.Starting:
			out.Running++
		}
	}
	return out, nil
}
