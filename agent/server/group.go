package server

import (
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
		s.slog.Warn("the group can not be read", "err", err)
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
	dead := s.cfg.DeadAfter
	if dead == 0 {
		dead = deadAfter
	}
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	began := time.Now()
	since, heard := map[string]time.Time{}, map[string]time.Time{} // keeps up since; last heard
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
			if v.ID == s.cfg.Name {
				continue
			}
			if last, ok := heard[v.ID]; v.Voter && ok && time.Since(last) < dead/4 &&
				time.Since(last) < 10*time.Second {
				continue // voters are asked now and then
			}
			behind, ok := s.askServer(term, v.Addr)
			switch now := time.Now(); {
			case ok:
				heard[v.ID] = now
				if behind > keptUp {
					delete(since, v.ID)
				} else if _, known := since[v.ID]; !known {
					since[v.ID] = now
				}
				if at, up := since[v.ID]; up && !v.Voter && now.Sub(at) >= stableAfter {
					s.vote(v)
				}
			default:
				delete(since, v.ID)
				last, known := heard[v.ID]
				if !known {
					last = began
				}
				if now.Sub(last) > dead {
					s.slog.Warn("a dead server is taken out", "name", v.ID, "addr", v.Addr)
					if err := s.log.Remove(v.ID); err != nil {
						s.slog.Warn("taking it out failed", "name", v.ID, "err", err)
					}
				}
			}
		}
	}
}

func (s *Server) vote(v consensus.Voter) {
	if err := s.log.Add(v.ID, v.Addr, true); err != nil {
		s.slog.Warn("a server could not be given its vote", "name", v.ID, "err", err)
		return
	}
	s.slog.Info("server votes", "name", v.ID, "addr", v.Addr)
}

// CatchUp waits until this server has what the leader has now, or the leader can not be asked: before a
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
