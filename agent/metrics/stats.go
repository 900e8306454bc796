package metrics

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// maxCounted bounds the users whose calls are counted apart; those of others are not shown.
const maxCounted = 4096

// Stats counts what this server does. It is of the process alone: nothing of it is in the log.
type Stats struct {
	mu     sync.Mutex
	since  time.Time
	jobs   api.JobCounts
	cycles api.CycleCounts
	calls  map[string]*api.CallCount
	users  map[uint32]*api.CallCount
	Times  Times // since this process began
}

func NewStats() *Stats {
	s := &Stats{}
	s.Reset()
	return s
}

// Reset counts again; times go on.
func (s *Stats) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.jobs, s.cycles = time.Now(), api.JobCounts{}, api.CycleCounts{}
	s.calls, s.users = map[string]*api.CallCount{}, map[uint32]*api.CallCount{}
}

// Call counts one call that is over.
func (s *Stats) Call(path string, uid uint32, took time.Duration) {
	if path == api.SubmitJob.Path || path == api.SubmitHet.Path {
		s.Times.Submission.Observe(took)
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

// Pass counts a pass of the scheduler.
func (s *Stats) Pass(took time.Duration, queue int, at time.Time) {
	s.Times.Pass.Observe(took)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.cycles
	c.Count, c.Last, c.Max, c.Sum, c.Queue, c.Depth, c.At = c.Count+1, took, max(c.Max,
		took), c.Sum+took, queue, c.Depth+queue, at
}

// Note counts what events say of jobs, if they are of this life of the server.
func (s *Stats) Note(events []cluster.Event) {
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
				if j.Het != nil {
					s.jobs.BackfilledHet++
				}
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

// Counted is a copy of what was counted; the calls most often made come first.
func (s *Stats) Counted() (out api.StatsResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Since, out.Jobs, out.Cycles = s.since, s.jobs, s.cycles
	for _, c := range s.calls {
		out.Calls = append(out.Calls, *c)
	}
	for _, u := range s.users {
		out.Users = append(out.Users, *u)
	}
	most := func(a, b api.CallCount) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	}
	slices.SortFunc(out.Calls, most)
	slices.SortFunc(out.Users, most)
	return out
}
