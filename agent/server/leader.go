package server

import (
	"context"
	"sync"
	"time"

	"dev.muster/agent/heartbeat"
	"dev.muster/agent/watches"
	"dev.muster/cluster"
	"dev.muster/sched"
)

// Pace of the leader's loop.
const (
	minCycle = 2 * time.Millisecond   // cycles begin at least this far apart, and think half of the time at most,
	maxRest  = 200 * time.Millisecond // up to this: a server has its callers to answer, too
	maxSleep = 30 * time.Second
)

// Step is the whole leader: which commands follow from the state, the leases and the clock. Without leases nobody's
// silence is looked at, and without a scheduler nothing is started. Its memory of the last cycle makes it
// quicker, and changes nothing else.
func Step(s *cluster.Snapshot, leases heartbeat.Leases, now time.Time, scheduler *sched.Scheduler) []cluster.Command {
	var out []cluster.Command
	if leases != nil {
		out = leases.Commands(s, now)
	}
	out = append(out, cluster.Due(s, now)...)
	out = append(out, sched.Replenish(s, now)...)
	if scheduler == nil {
		return out
	}
	ds, asks := cluster.DropAsked(s, scheduler.Schedule(s, now))
	if asks {
		scheduler.Forget()
	}
	if len(ds) > 0 {
		out = append(out, &cluster.Decide{Decisions: ds})
	}
	return out
}

// maxTurns bounds how many turns from one role to the other wait for their program.
const maxTurns = 64

// lead runs the leader's loop whenever this server leads.
func (s *Server) lead(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var tending sync.WaitGroup
	defer tending.Wait()
	defer s.endTerm()
	leading, opened := false, false
	turns := make(chan cluster.HookKind, maxTurns)
	defer close(turns)
	runner := hookRunner(s)
	if s.cfg.Dialect != nil {
		tending.Go(func() { runner.Turns(ctx, turns) })
	}
	turn := func(kind cluster.HookKind) {
		select {
		case turns <- kind:
		default:
			s.slog.Warn("the program of a change of roles is left out: too many wait", "kind", kind)
		}
	}
	scheduler := sched.Scheduler{Images: s.images.Nodes}
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
			asked := time.Now()
			if err := s.takeOver(ctx); err != nil {
				s.slog.Warn("taking the lead failed", "err", err)
				timer.Reset(100 * time.Millisecond)
				continue
			}
			term, followed := s.beginTerm(ctx, asked), opened
			tending.Go(func() { s.confirm(term) })
			tending.Go(func() { s.lookout.FindPaths(term) })
			tending.Go(func() { s.heartbeats.Watch(term) })
			tending.Go(func() { s.tend(term) })
			tending.Go(func() { s.lookout.Listen(term, s.rotateGossip) })
			tending.Go(func() { runner.Run(term) })
			tending.Go(func() { federate(term, s) })
			tending.Go(func() { tellLead(term, s, followed) })
			tending.Go(func() { (&watches.Watcher{Server: watchServer{s}, Samples: s.hist.Samples, Log: s.slog}).Run(term) })
			turn(cluster.HookLead)
		}
		if !self && leading {
			s.slog.Info("no longer leading")
			turn(cluster.HookFollow)
			now := time.Now()
			s.led.Store(&now)
			s.endTerm()
		}
		if !opened && (self || follows(s)) {
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
		timer.Reset(s.cycle(ctx, &scheduler))
	}
}

// catchUpChecks is how often a server that starts looks whether it follows a leader.
const catchUpChecks = 20 * time.Millisecond

// follows reports whether this server has heard of a leader and applied what it had when it started.
func follows(s *Server) bool {
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
	now := time.Now()
	s.heartbeats.Grace(snap, now)
	s.tookOver.Store(&now)
	s.slog.Info("leading", "index", snap.Index, "jobs", snap.JobCount())
	if err := s.establish(ctx, snap); err != nil {
		return err
	}
	if err := s.raiseLevel(ctx); err != nil {
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
func (s *Server) cycle(ctx context.Context, scheduler *sched.Scheduler) time.Duration {
	began := time.Now()
	if !s.Leads() { // it may be somebody else by now who decides
		return heartbeat.LeaseChecks
	}
	if s.heartbeats.ClockSet(began) {
		s.slog.Warn("this machine's clock was set: launches have their time once more")
	}
	snap := s.Snapshot()
	var leases heartbeat.Leases
	if s.heartbeats.Due(began) || heartbeat.AnyUnconfirmed(snap, began) {
		leases = s.heartbeats.Leases(snap, began)
	}
	if s.unsettled(snap, began) > 0 || cluster.FederationInactive(snap) {
		scheduler = nil
	}
	cmds := Step(snap, leases, began, scheduler)
	thought := time.Since(began)
	s.stats.Pass(thought, snap.QueueLen(), began)
	if len(cmds) > 0 {
		if down, ok := cmds[0].(*cluster.NodeDown); ok {
			s.slog.Warn("nodes are lost", "nodes", down.Nodes, "why", down.Why)
		}
		if _, _, err := s.propose(ctx, cluster.Identity{System: true}, cmds...); err != nil && ctx.Err() == nil {
			s.slog.Warn("decisions not taken", "err", err)
		}
	}
	if rest := min(max(minCycle, 2*thought), maxRest) - time.Since(began); rest > 0 {
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
	sleep := maxSleep
	if at := snap.NextTimer(began); !at.IsZero() {
		sleep = min(sleep, max(time.Until(at), time.Millisecond))
	}
	if s.heartbeats.AnySilent() {
		sleep = min(sleep, heartbeat.LeaseChecks)
	}
	return sleep
}
