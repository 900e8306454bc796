package server

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/metrics"
	"dev.muster/api"
	"dev.muster/cluster"
)

// maxCounted bounds the users whose calls are counted apart; those of others are not shown.
const maxCounted = 4096

// stats counts what this server does. It is of the process alone: nothing of it is in the log.
type stats struct {
	mu     sync.Mutex
	since  time.Time
	jobs   api.JobCounts
	cycles api.CycleCounts
	calls  map[string]*api.CallCount
	users  map[uint32]*api.CallCount
	times  metrics.Times // since this process began
}

func newStats() *stats {
	s := &stats{}
	s.reset()
	return s
}

func (s *stats) reset() {
	s.since, s.jobs, s.cycles = time.Now(), api.JobCounts{}, api.CycleCounts{}
	s.calls, s.users = map[string]*api.CallCount{}, map[uint32]*api.CallCount{}
}

// call counts one call that is over.
func (s *stats) call(path string, uid uint32, took time.Duration) {
	if path == api.SubmitJob.Path || path == api.SubmitHet.Path {
		s.times.Submission.Observe(took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.calls[path]
	if !ok {
		c = &api.CallCount{Name: path}
		s.calls[path] = c
	}
	c.N, c.Time = c.N+1, c.Time+took
	u, ok := s.users[uid]
	if !ok {
		if len(s.users) >= maxCounted {
			return
		}
		u = &api.CallCount{UID: uid}
		s.users[uid] = u
	}
	u.N, u.Time = u.N+1, u.Time+took
}

// cycle counts a pass of the scheduler.
func (s *stats) cycle(took time.Duration, queue int, at time.Time) {
	s.times.Pass.Observe(took)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.cycles
	c.Count, c.Last, c.Max, c.Sum, c.Queue, c.Depth, c.At = c.Count+1, took, max(c.Max,
		took), c.Sum+took, queue, c.Depth+queue, at
}

// note counts what events say of jobs, if they are of this life of the server.
func (s *stats) note(events []cluster.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		j := e.Job
		switch {
		case j == nil:
		case j.Phase == cluster.Pending && j.Submitted.After(s.since) && j.Restarts == 0 &&
			j.LastEval.IsZero() && j.Held == cluster.NotHeld:
			s.jobs.Submitted++
		case j.Phase == cluster.Starting && j.Started.After(s.since):
			s.jobs.Started++
			if j.Backfilled {
				s.jobs.Backfilled++
			}
		case j.Phase == cluster.Ended && j.Ended.After(s.since):
			switch {
			case j.Outcome == cluster.Completed:
				s.jobs.Completed++
			case j.Outcome == cluster.Cancelled:
				s.jobs.Canceled++
			case j.Outcome.Failure():
				s.jobs.Failed++
			}
		}
	}
}

// showStats answers with the counts.
func (s *Server) showStats(_ context.Context, who api.Caller, q api.StatsRequest) (api.StatsResponse, error) {
	snap := s.Snapshot()
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	if q.Reset {
		if !who.Operator() && s.privilege(who) != "Administrator" {
			return api.StatsResponse{}, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
				"only operators may reset the counts")
		}
		s.stats.reset()
	}
	out := api.StatsResponse{Now: time.Now(), Since: s.stats.since, Threads: runtime.NumGoroutine(),
		Jobs: s.stats.jobs, Cycles: s.stats.cycles}
	for j := range snap.Jobs() {
		switch j.Phase {
		case cluster.Pending:
			out.Pending += max(j.Tasks.Len(), 1)
		case cluster.Running, cluster.Starting:
			out.Running++
		}
	}
	most := func(a, b api.CallCount) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	}
	for _, c := range s.stats.calls {
		out.Calls = append(out.Calls, *c)
	}
	for _, u := range s.stats.users {
		out.Users = append(out.Users, *u)
	}
	slices.SortFunc(out.Calls, most)
	slices.SortFunc(out.Users, most)
	return out, nil
}
