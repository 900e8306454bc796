package server

import (
	"context"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
)

// Pace of the leader's loop.
const (
	minCycle    = 2 * time.Millisecond // cycles are at least this far apart
	maxSleep    = 30 * time.Second
	leaseChecks = 250 * time.Millisecond // how often silence is looked for while some node is silent
	quietAfter  = 500 * time.Millisecond // without an open call a node counts as not responding
	patience    = 2 * time.Second        // a new leader takes no node for quiet so long: all have to find it first
	never       = 100 * 365 * 24 * time.Hour
)

// Leases say which nodes have been heard of. They are the leader's memory only.
type Leases map[cluster.NodeName]Lease

// Lease is how long a node is trusted.
type Lease struct {
	Until time.Time // then it is down
	Quiet time.Time // then it counts as not responding: nothing new is started there; zero while its call is open
}

// Step is the whole leader: which commands follow from the state, the leases and the clock.
func Step(s *cluster.Snapshot, leases Leases, now time.Time) []cluster.Command {
	var out []cluster.Command
	var lost, quiet, heard []cluster.NodeName
	for n := range s.Nodes() {
		l, ok := leases[n.Name]
		if !ok || !n.Up {
			continue
		}
		silent := !l.Quiet.IsZero() && l.Quiet.Before(now)
		switch {
		case l.Until.Before(now):
			lost = append(lost, n.Name)
		case silent && !n.Quiet:
			quiet = append(quiet, n.Name)
		case n.Quiet && !silent:
			heard = append(heard, n.Name)
		}
	}
	if lost != nil {
		out = append(out, &cluster.NodeDown{Nodes: lost, Why: "Not responding"})
	}
	if quiet != nil {
		out = append(out, &cluster.NodeQuiet{Nodes: quiet, Quiet: true})
	}
	if heard != nil {
		out = append(out, &cluster.NodeQuiet{Nodes: heard})
	}
	out = append(out, cluster.Due(s, now)...)
	if ds := sched.Schedule(s, now); len(ds) > 0 {
		out = append(out, &cluster.Decide{Decisions: ds})
	}
	return out
}

// lead runs the leader's loop whenever this server leads.
func (s *Server) lead(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var tending sync.WaitGroup
	defer tending.Wait()
	defer s.endTerm()
	leading, opened := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		case <-s.log.LeaderCh():
		}
		_, self := s.log.Leader()
		if self && !leading {
			if err := s.takeOver(ctx); err != nil {
				s.slog.Warn("taking the lead failed", "err", err)
				timer.Reset(100 * time.Millisecond)
				continue
			}
			term := s.beginTerm(ctx)
			tending.Go(func() { s.tend(term) })
			tending.Go(func() { s.listen(term) })
		}
		if !self && leading {
			s.slog.Info("no longer leading")
			now := time.Now()
			s.led.Store(&now)
			s.endTerm()
		}
		if !opened && (self || s.follows()) {
			opened = true
			s.open()
		}
		leading = self
		if !leading {
			if !opened {
				timer.Reset(catchUpChecks)
			}
			continue
		}
		timer.Reset(s.cycle(ctx))
	}
}

// catchUpChecks is how often a server that starts looks whether it follows a leader.
const catchUpChecks = 20 * time.Millisecond

// follows reports whether this server has heard of a leader and applied what it had when it started.
func (s *Server) follows() bool {
	addr, self := s.log.Leader()
	return addr != "" && !self && s.log.CaughtUp()
}

// takeOver prepares a new leader: everything committed is applied, and every node gets one full
// lease of grace.
func (s *Server) takeOver(ctx context.Context) error {
	if err := s.log.Barrier(10 * time.Second); err != nil {
		return err
	}
	s.ahead.Store(nil)
	snap := s.Snapshot()
	s.leases.grace(snap, time.Now())
	s.slog.Info("leading", "index", snap.Index, "jobs", snap.JobCount())
	if err := s.establish(ctx, snap); err != nil {
		return err
	}
	return s.putInForce(ctx, snap)
}

// establish makes the cluster's authority if this is its first server, and notes where this server
// listens if that has changed.
func (s *Server) establish(ctx context.Context, snap *cluster.Snapshot) error {
	if s.cfg.Authority != nil && snap.CA() == nil {
		if _, _, err := s.propose(ctx, cluster.Identity{System: true}, &cluster.TrustInit{CA: *s.cfg.Authority, Member: s.cfg.Self}); err != nil {
			return err
		}
	}
	v, err := s.inGroup(s.cfg.Name)
	if err != nil || v.Addr == s.cfg.Log.Addr {
		return err
	}
	return s.log.Add(s.cfg.Name, s.cfg.Log.Addr, true)
}

// cycle does one step and tells how long to sleep unless woken.
func (s *Server) cycle(ctx context.Context) time.Duration {
	began := time.Now()
	snap := s.Snapshot()
	cmds := Step(snap, s.leases.until(snap, began), began)
	if len(cmds) > 0 {
		if _, _, err := s.propose(ctx, cluster.Identity{System: true}, cmds...); err != nil && ctx.Err() == nil {
			s.slog.Warn("decisions not taken", "err", err)
		}
	}
	if rest := minCycle - time.Since(began); rest > 0 && len(cmds) > 0 {
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
	sleep := maxSleep
	if at := snap.NextTimer(began); !at.IsZero() {
		sleep = min(sleep, max(time.Until(at), time.Millisecond))
	}
	if s.leases.anySilent() {
		sleep = min(sleep, leaseChecks)
	}
	return sleep
}

// leases remembers for each node whether a call of its client is open, and when it was last heard.
type leases struct {
	mu    sync.Mutex
	nodes map[cluster.NodeName]*lease
}

type lease struct {
	open  int       // calls open now
	heard time.Time // last sign of life
	grace time.Time // until then its silence is not remarked on: the leader has just changed
	hold  time.Duration
	// silent is since when its host does not answer, as gossip and a probe agree; see suspect.go.
	silent time.Time
}

func newLeases() *leases { return &leases{nodes: map[cluster.NodeName]*lease{}} }

func (l *leases) grace(s *cluster.Snapshot, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range s.Nodes() {
		if n.Up {
			e := l.entry(n.Name)
			e.heard, e.grace, e.silent = now, now.Add(min(s.Config().NodeTimeout/2, patience)), time.Time{}
		}
	}
}

func (l *leases) entry(n cluster.NodeName) *lease {
	e, ok := l.nodes[n]
	if !ok {
		e = &lease{}
		l.nodes[n] = e
	}
	return e
}

// open notes that a call of these nodes' client is open; the returned function that it is over.
func (l *leases) open(nodes []cluster.NodeName, hold time.Duration) func() {
	mark := func(d int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, n := range nodes {
			e := l.entry(n)
			e.open, e.heard, e.hold = e.open+d, time.Now(), hold
			if d > 0 {
				e.silent = time.Time{}
			}
		}
	}
	mark(1)
	return func() { mark(-1) }
}

func (l *leases) until(s *cluster.Snapshot, now time.Time) Leases {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(Leases, len(l.nodes))
	timeout := min(s.Config().NodeTimeout, never) // sums with it must not overflow
	for n, e := range l.nodes {
		out[n] = Lease{Until: e.heard.Add(timeout), Quiet: e.heard.Add(quietAfter)}
		if e.grace.After(out[n].Quiet) {
			out[n] = Lease{out[n].Until, e.grace}
		}
		if e.open > 0 {
			out[n] = Lease{Until: e.heard.Add(timeout + e.hold)}
		}
		out[n] = e.cut(out[n], timeout)
	}
	return out
}

func (l *leases) anySilent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.nodes {
		if e.open == 0 || !e.silent.IsZero() {
			return true
		}
	}
	return false
}
