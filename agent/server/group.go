package server

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/consensus"
)

// Pace of looking after the group.
const (
	tendEvery   = 500 * time.Millisecond
	stableAfter = 2 * time.Second // a new server must keep up this long before it votes
	keptUp      = 64              // entries that it may be behind
	pingTime    = 2 * time.Second
	deadAfter   = 72 * time.Hour
)

func (s *Server) inGroup(name string) (consensus.Voter, error) {
	group, err := s.log.Group()
	if err != nil {
		return consensus.Voter{}, err
	}
	for _, v := range group {
		if v.ID == name {
			return v, nil
		}
	}
	return consensus.Voter{}, cluster.Errorf(cluster.NotFound, "",
		"there is no server %s; muster server members shows them", name)
}

// servers lists the group for others.
func (s *Server) servers() []api.Server {
	group, err := s.log.Group()
	if err != nil {
		s.slog.Warn("the group cannot be read", "err", err)
	}
	var out []api.Server
	for _, v := range group {
		out = append(out, api.Server{Name: v.ID, Addr: v.Addr, Leader: v.Leader, Voter: v.Voter,
			Silent: s.others.silent(v.ID),
			Behind: s.others.lag(v.ID)})
	}
	return out
}

// beginTerm marks that this server leads, as a majority said after a time; calls that live as long as its term end
// with it.
func (s *Server) beginTerm(ctx context.Context, asked time.Time) context.Context {
	s.termMu.Lock()
	defer s.termMu.Unlock()
	if s.term == nil {
		s.term, s.ended = context.WithCancel(ctx)
		s.beginReign(asked)
	}
	return s.term
}

func (s *Server) endTerm() {
	s.termMu.Lock()
	defer s.termMu.Unlock()
	if s.term != nil {
		s.ended()
		s.reign.end(nil)
		s.term, s.ended = nil, nil
	}
}

// leading lasts as long as this server is sure that it leads; it is over already if it is not.
func (s *Server) leading() context.Context {
	s.termMu.Lock()
	defer s.termMu.Unlock()
	if s.isSure(time.Now()) {
		return s.reign.sure
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// tend looks after the group for one term: servers that have caught up get a vote, those silent for
// very long are taken out.
func (s *Server) tend(term context.Context) {
	if s.cfg.Peer == nil {
		return
	}
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	known := newFollowers(cmp.Or(s.cfg.DeadAfter, deadAfter), time.Now())
	for {
		select {
		case <-term.Done():
			return
		case <-tick.C:
		}
		group, err := s.log.Group()
		if err != nil {
			continue
		}
		if err := s.raiseLevel(term); err != nil && term.Err() == nil {
			s.slog.Warn("the level of the log could not be raised", "err", err)
		}
		for _, v := range group {
			if v.ID != s.cfg.Name {
				tendOne(term, s, v, known)
			}
		}
	}
}

// tendOne asks another server how far it is, gives it its vote, or takes it out.
func tendOne(term context.Context, s *Server, v consensus.Voter, known *followers) {
	if v.Voter && known.heardOf(v.ID, time.Now()) {
		return // voters are asked now and then
	}
	behind, ok := s.askServer(term, v.Addr)
	now := time.Now()
	switch was, lost := known.noteLoss(v.ID, ok, now); {
	case lost && !was:
		s.slog.Warn("a server does not answer", "name", v.ID, "addr", v.Addr)
		meetTriggers(term, s, v.ID, cluster.TriggerServerLost)
	case was && !lost:
		s.slog.Info("a server answers again", "name", v.ID, "addr", v.Addr)
		meetTriggers(term, s, v.ID, cluster.TriggerServerBack)
	}
	if ok {
		known.answered(v.ID, behind, now)
		if !v.Voter && known.stable(v.ID, now) {
			s.vote(v)
		}
		return
	}
	if !known.silent(v.ID, now) {
		return
	}
	s.slog.Warn("a dead server is taken out", "name", v.ID, "addr", v.Addr)
	if err := s.log.Remove(v.ID); err != nil {
		s.slog.Warn("taking it out failed", "name", v.ID, "err", err)
	}
}

// followers is what a leader has heard of the others in its term.
type followers struct {
	dead   time.Duration // after so long a silence one is dead
	began  time.Time
	upward map[string]time.Time // keeps up since
	heard  map[string]time.Time // last heard
	lost   map[string]bool      // of these the site was notified
}

func newFollowers(dead time.Duration, now time.Time) *followers {
	return &followers{dead: dead, began: now, upward: map[string]time.Time{}, heard: map[string]time.Time{},
		lost: map[string]bool{}}
}

// askAgain is after how long a voter is asked again, at most.
const askAgain = 10 * time.Second

// heardOf reports whether a server was heard of so lately that it need not be asked.
func (f *followers) heardOf(id string, now time.Time) bool {
	last, ok := f.heard[id]
	return ok && now.Sub(last) < min(f.dead/4, askAgain)
}

// answered notes an answer, and by how many entries its server is behind.
func (f *followers) answered(id string, behind uint64, now time.Time) {
	f.heard[id] = now
	if behind > keptUp {
		delete(f.upward, id)
		return
	}
	if _, known := f.upward[id]; !known {
		f.upward[id] = now
	}
}

// lostAfter is how long a server is silent before the site is notified: longer than a restart takes.
const lostAfter = 15 * time.Second

// noteLoss notes whether a server answers, and returns whether it counted as lost before and does so now.
func (f *followers) noteLoss(id string, answers bool, now time.Time) (was, lost bool) {
	was = f.lost[id]
	last, known := f.heard[id]
	if !known {
		last = f.began
	}
	lost = !answers && (was || now.Sub(last) >= min(f.dead/2, lostAfter))
	f.lost[id] = lost
	return was, lost
}

// stable reports whether a server has kept up for long enough to vote.
func (f *followers) stable(id string, now time.Time) bool {
	at, up := f.upward[id]
	return up && now.Sub(at) >= stableAfter
}

// silent notes that a server does not answer, and reports whether it is dead by that.
func (f *followers) silent(id string, now time.Time) bool {
	delete(f.upward, id)
	last, known := f.heard[id]
	if !known {
		last = f.began
	}
	return now.Sub(last) > f.dead
}

func (s *Server) vote(v consensus.Voter) {
	if err := s.log.Add(v.ID, v.Addr, true); err != nil {
		s.slog.Warn("a server could not be given its vote", "name", v.ID, "err", err)
		return
	}
	s.slog.Info("server votes", "name", v.ID, "addr", v.Addr)
}

// CatchUp waits until this server has what the leader has now, or the leader cannot be asked: before a
// refusal because of something that may just not have arrived yet.
func (s *Server) CatchUp(ctx context.Context) {
	addr, self := s.log.Leader()
	if addr == "" || self || s.cfg.Peer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	asked := time.Now()
	if r, err := api.Call(ctx, s.cfg.Peer(addr), api.PingServer, api.Empty{}); err == nil {
		s.others.leads(progress{asked, r.Applied})
		_ = s.log.Applied(ctx, r.Applied) // then it is refused, or says how old it is
	}
}

// askAll notes which servers of a list answer.
func (s *Server) askAll(ctx context.Context, list []api.Server) {
	var wg sync.WaitGroup
	for i := range list {
		if list[i].Name == s.cfg.Name {
			list[i].Up = true
			continue
		}
		wg.Go(func() { _, list[i].Up = s.askServer(ctx, list[i].Addr) })
	}
	wg.Wait()
}

// askServer tells how many entries another server is behind.
func (s *Server) askServer(ctx context.Context, addr string) (behind uint64, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	r, err := api.Call(ctx, s.cfg.Peer(addr), api.PingServer, api.Empty{})
	if err != nil {
		return 0, false
	}
	mine := s.log.AppliedIndex()
	if r.Partial { // it should not lead yet
		return math.MaxUint64, true
	}
	return mine - min(mine, r.Applied), true
}
