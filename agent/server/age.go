package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dev.muster/agent/federation"
	"dev.muster/api"
)

// A server answers reads from what it has. How old that is it cannot tell by itself: it may hear the leader's
// heartbeats and still lack entries. So every server asks the others each second how far they are; what it has is
// as of the last time at which the leader had no more than that.
const (
	listenEvery = time.Second
	// StaleAfter is how old an answer may be without saying so.
	StaleAfter  = 2 * time.Second
	maxProgress = 3600
	// silentAfter is how long a server does not answer until that is told.
	silentAfter = 3 * time.Second
)

// progress is how far the leader was when it was asked.
type progress struct {
	at    time.Time
	index uint64
}

// others are what this server knows of the other ones.
type others struct {
	began  time.Time
	mu     sync.Mutex
	heard  map[string]time.Time // when each last answered, by name
	failed map[string]bool      // it did not when it was last asked
	asked  map[string]bool      // it is being asked
	levels map[string]int       // of the log, that each knows
	behind map[string]uint64    // how many entries of the log each lacked
	lead   []progress           // with rising indexes
	// caughtUp: this server has had all that the leader had, once since it started (knowsEnds).
	caughtUp atomic.Bool
	// far asks a peer in the name of a user; nil: it cannot be done.
	far    func(who api.Caller, name string) (*api.Client, error)
	offers *federation.Offers // what other clusters are told; of the last term in which this server led
}

func newOthers() *others {
	return &others{began: time.Now(), heard: map[string]time.Time{}, failed: map[string]bool{},
		asked: map[string]bool{}, levels: map[string]int{},
		behind: map[string]uint64{}}
}

// hears notes an answer, or that there was none.
func (o *others) hears(name string, at time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed[name], o.asked[name] = !ok, false
	if ok {
		o.heard[name] = at
	}
}

// asks reports whether a server is not being asked already, and notes that it is now.
func (o *others) asks(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked[name] {
		return false
	}
	o.asked[name] = true
	return true
}

// silent is since when a server has not answered, as far as this one has asked; zero if it does.
func (o *others) silent(name string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, ever := o.heard[name]
	if !ever {
		since = o.began
	}
	if !o.failed[name] || time.Since(since) < silentAfter {
		return time.Time{}
	}
	return since
}

// leads notes how far the leader was at a time.
func (o *others) leads(s progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.lead); n > 0 && o.lead[n-1].index >= s.index {
		if s.index == o.lead[n-1].index {
			o.lead[n-1].at = s.at
		}
		return
	}
	if o.lead = append(o.lead, s); len(o.lead) > maxProgress {
		o.lead = o.lead[1:]
	}
}

// asOf is the last time at which the leader had no more than an index; zero if none is known. Older indexes are
// forgotten.
func (o *others) asOf(index uint64) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for n < len(o.lead) && o.lead[n].index <= index {
		n++
	}
	if n == 0 {
		return time.Time{}
	}
	o.lead = o.lead[n-1:]
	return o.lead[0].at
}

// newest returns how far the leader was when it answered last; 0 if it has not.
func (o *others) newest() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lead) == 0 {
		return 0
	}
	return o.lead[len(o.lead)-1].index
}

// known returns the index of the last entry that this server knows to exist, whether it has applied it or not.
func known(s *Server) uint64 {
	index := max(s.log.Committed(), s.others.newest())
	if a := s.ahead.Load(); a != nil {
		index = max(index, a.Index)
	}
	return index
}

// leaderAnswers reports whether another server leads and answered when it was last asked.
func leaderAnswers(s *Server) bool {
	addr := s.LeaderAddr()
	if addr == "" || s.cfg.Peer == nil {
		return false
	}
	for _, v := range s.servers() {
		if v.Addr == addr {
			return !s.others.fails(v.Name)
		}
	}
	return false
}

// fails reports whether a server did not answer when it was last asked.
func (o *others) fails(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed[name]
}

// listenToServers asks the others how far they are until ctx ends.
func (s *Server) listenToServers(ctx context.Context) {
	if s.cfg.Peer == nil {
		return
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	tick := time.NewTicker(listenEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, v := range s.servers() {
			if v.Name != s.cfg.Name && s.others.asks(v.Name) {
				asking.Go(func() { s.askHowFar(ctx, v.Name, v.Addr) })
			}
		}
	}
}

// askHowFar asks one server how far it is.
func (s *Server) askHowFar(ctx context.Context, name, addr string) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	asked, leads, here := time.Now(), s.LeaderAddr() == addr, s.log.AppliedIndex()
	r, err := api.Call(ctx, s.cfg.Peer(addr), api.PingServer, api.Empty{})
	s.others.hears(name, time.Now(), err == nil)
	if err == nil {
		s.others.knows(name, r.Level, here-min(here, r.Applied))
	}
	if err == nil && leads && s.LeaderAddr() == addr {
		s.others.leads(progress{asked, r.Applied})
	}
}

// Age is how old what this server knows is; 0 if that is nothing to speak of.
func (s *Server) Age() time.Duration {
	if s.Leads() || s.cfg.Peer == nil {
		return 0
	}
	applied := s.log.AppliedIndex()
	at := s.others.asOf(applied)
	switch {
	case !at.IsZero():
	case s.others.newest() > applied: // the leader has had more for as long as this server knows it
		at = s.Snapshot().Now
	default:
		at = s.heard()
	}
	if age := time.Since(at); age >= StaleAfter {
		return age
	}
	return 0
}

// Freshen has this server catch up with the leader if what it knows is old, for a short while.
func (s *Server) Freshen(ctx context.Context) {
	if s.Age() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, freshenTime)
	defer cancel()
	s.CatchUp(ctx)
}

// knowsEnds reports whether this server has had all that the leader had, at some time since it started. Before that it
// does not know which sessions and tokens were ended while it was away, and believes none.
func knowsEnds(s *Server) bool {
	if s.others.caughtUp.Load() {
		return true
	}
	if s.tookOver.Load() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), freshenTime)
		defer cancel()
		s.CatchUp(ctx)
		if s.others.asOf(s.log.AppliedIndex()).IsZero() {
			return false
		}
	}
	s.others.caughtUp.Store(true)
	return true
}

// freshenTime bounds how long a read waits for what this server lacks.
const freshenTime = time.Second
