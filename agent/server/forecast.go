package server

import (
	"context"
	"sync"
	"time"

	"dev.muster/agent/turns"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/explain"
)

// forecastAge is how old a forecast for lists may be: it costs as much as a cycle, and many may ask.
const forecastAge = 10 * time.Second

// forecasts are what is foretold to users: one at a time, since trying on a snapshot marks it, and scheduling goes
// first.
type forecasts struct {
	asking turns.Turns // of users who ask about jobs of their own
	mu     sync.Mutex  // held while the future is looked at
	starts map[cluster.JobID]sched.Start
	made   time.Time
}

// foretell fills in the expected starts that the scheduler has not planned.
func (s *Server) foretell(snap *cluster.Snapshot, jobs []*cluster.Job) {
	s.fore.mu.Lock()
	defer s.fore.mu.Unlock()
	for i, j := range jobs {
		if j.Phase != cluster.Pending || !j.PlannedStart.IsZero() {
			continue
		}
		if now := time.Now(); now.Sub(s.fore.made) > forecastAge {
			s.fore.starts, s.fore.made = sched.Forecast(snap, now), now
		}
		if st := s.fore.starts[j.ID]; !st.At.IsZero() {
			known := *j
			known.PlannedStart, known.PlannedNodes = st.At, st.Nodes()
			jobs[i] = &known
		}
	}
}

// testStart tells when a job would start if it were submitted now.
func (s *Server) testStart(ctx context.Context, snap *cluster.Snapshot, who api.Caller, spec *cluster.JobSpec) (
	api.TestResponse, error,
) {
	leave, err := s.fore.asking.Wait(ctx, who.UID, placesOfUser)
	if err != nil {
		return api.TestResponse{}, err
	}
	defer leave()
	s.fore.mu.Lock()
	defer s.fore.mu.Unlock()
	st, id, err := sched.Test(snap, time.Now(), who.Identity, spec)
	switch {
	case err != nil:
		return api.TestResponse{}, err
	case st.Alloc == nil:
		e := cluster.Errorf(cluster.Unavailable, cluster.ErrNodeConfig,
			"the job cannot start in the foreseeable future: it would wait for %s", st.Why)
		return api.TestResponse{}, e
	}
	out := api.TestResponse{StartsAt: st.At, Nodes: st.Nodes(), Partition: st.Alloc.Partition, Job: id}
	for _, sh := range st.Alloc.Shares {
		out.CPUs += sh.CPUs.Len()
	}
	return out, nil
}

// changes lists what would start a job sooner, for its user and for operators.
func (s *Server) changes(ctx context.Context, snap *cluster.Snapshot, who api.Caller, j *cluster.Job, now time.Time) (
	out []api.Change,
) {
	if who.UID != j.Spec.UID && !who.Operator() {
		return nil
	}
	leave, err := s.fore.asking.Wait(ctx, who.UID, placesOfUser)
	if err != nil {
		return nil
	}
	defer leave()
	s.fore.mu.Lock()
	defer s.fore.mu.Unlock()
	may := func(p *cluster.Partition) bool {
		return !p.Hidden && inGroups(p, j.Spec) && p.TakesFrom(j.Spec.SubmitHost)
	}
	for _, c := range explain.Changes(snap, now, j.ID, may) {
		out = append(out, api.Change{
			Change: c.Text, Hint: c.Hint, StartsAt: c.At, Now: !c.At.After(now), Nodes: c.Nodes(),
		})
	}
	return out
}
