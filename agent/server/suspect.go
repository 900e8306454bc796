package server

import (
	"context"
	"maps"
	"sync"
	"time"

	"dev.muster/cluster"
)

// A host that falls silent breaks no connection: only its missing answers tell, and those of one
// connection take seconds to be missed. All members watch each other by gossip, which notices
// sooner, but may be wrong. So when gossip says that a member has failed, the leader looks at once
// and goes on looking; only while the host gives no answer do its nodes count as not responding, and
// does their lease end early.
const (
	lookTime    = 500 * time.Millisecond // one look
	lookEvery   = 250 * time.Millisecond // while some host is silent
	lookGap     = 100 * time.Millisecond // at least between two looks: a fleet that comes, or flaps, is news all the time
	glanceEvery = 2 * time.Second        // at members that gossip takes for failed though they answer
	maxLooks    = 512                    // at once
	witnesses   = 3
	silentLease = time.Second     // what is left of the lease of a silent host, at least
	silentSeen  = 3 * time.Second // how long it has been silent by then
)

// Answer is what came of looking for a host.
type Answer int

// The answers. A refusal is one too: somebody must be there to refuse.
const (
	Answered Answer = iota
	NoAnswer
	Unclear // this machine could not look
)

// Rumour is what gossip says of a member.
type Rumour struct {
	Name, Addr, Version string
	Failed              bool
}

// rumours are what gossip says of all other members.
type rumours struct {
	moved chan struct{}
	mu    sync.Mutex
	by    map[string]Rumour
}

func newRumours() *rumours {
	return &rumours{moved: make(chan struct{}, 1), by: map[string]Rumour{}}
}

func (r *rumours) all() map[string]Rumour {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.by)
}

// Hear takes what gossip says of the other members now.
func (s *Server) Hear(list []Rumour) {
	by := make(map[string]Rumour, len(list))
	for _, m := range list {
		by[m.Name] = m
	}
	s.rumours.mu.Lock()
	s.rumours.by = by
	s.rumours.mu.Unlock()
	select {
	case s.rumours.moved <- struct{}{}:
	default:
	}
}

// versions are those of the members' programs, as far as the gossip tells.
func (s *Server) versions() map[string]string {
	out := map[string]string{s.cfg.Name: s.cfg.Version}
	for name, r := range s.rumours.all() {
		out[name] = r.Version
	}
	return out
}

// listen follows the gossip for one term, and changes its key in time.
func (s *Server) listen(term context.Context) {
	if s.cfg.Reach == nil {
		return
	}
	w := newWatch(s)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-term.Done():
			return
		case <-s.rumours.moved:
		case <-timer.C:
		}
		s.rotateGossip(term)
		timer.Reset(w.look(term))
		select {
		case <-term.Done():
			return
		case <-time.After(lookGap):
		}
	}
}

// watch is what one term knows of other members' hosts.
type watch struct {
	*Server
	// reached are the members that answered once, by the address where: of another that gives no
	// answer nothing follows, it may be behind a firewall.
	reached map[string]string
	silent  map[string]bool      // members whose host gave no answer when last looked for
	glanced map[string]time.Time // when a member answered that gossip takes for failed
}

func newWatch(s *Server) *watch {
	return &watch{Server: s, reached: map[string]string{}, silent: map[string]bool{}, glanced: map[string]time.Time{}}
}

// look looks once for every member of whom gossip says that it has failed, and for those never
// looked for. It tells when to look again.
func (w *watch) look(ctx context.Context) time.Duration {
	all := w.rumours.all()
	var ask []Rumour
	watching, next := 0, maintain
	for name, m := range all {
		known := w.reached[m.Name] == m.Addr
		if !m.Failed {
			delete(w.glanced, name)
		}
		switch {
		case m.Failed && known && !w.silent[name] && time.Since(w.glanced[name]) < glanceEvery: // it answered just now
			next = glanceEvery
		case m.Failed == known, w.silent[name]: // failed, or new
			ask = append(ask, m)
		case known && watching < witnesses:
			watching++
			ask = append(ask, m)
		}
	}
	if len(ask) == watching {
		return next // nothing new
	}
	answers := w.ask(ctx, ask)
	if ctx.Err() != nil {
		return 0
	}
	trusted := false // some other answers, so it is not this server's own network that is gone
	for i, m := range ask {
		if answers[i] == Answered {
			trusted = true
			if m.Failed {
				w.glanced[m.Name] = time.Now()
			}
			if w.reached[m.Name] != m.Addr {
				w.reached[m.Name] = m.Addr
				w.slog.Debug("host reached", "member", m.Name, "addr", m.Addr)
			}
		}
	}
	return min(next, w.conclude(ask, answers, trusted))
}

func (w *watch) conclude(asked []Rumour, answers []Answer, trusted bool) time.Duration {
	next := maintain
	of := w.nodesOf()
	for i, m := range asked {
		nodes := of[m.Name]
		switch {
		case len(nodes) == 0:
			delete(w.silent, m.Name)
			continue
		case !m.Failed && !w.silent[m.Name]:
			continue
		case answers[i] == NoAnswer && trusted:
			w.heartbeats.silence(nodes, time.Now())
			if !w.silent[m.Name] {
				w.silent[m.Name] = true
				w.slog.Warn("host is silent", "member", m.Name, "addr", m.Addr)
			}
		case answers[i] == Answered:
			w.heartbeats.answer(nodes)
			delete(w.silent, m.Name)
		}
		pause := glanceEvery
		if w.silent[m.Name] {
			pause = lookEvery
		}
		next = min(next, pause)
	}
	w.poke()
	return next
}

// ask looks for some members at once.
func (w *watch) ask(ctx context.Context, list []Rumour) []Answer {
	addrs := make([]string, len(list))
	for i, m := range list {
		addrs[i] = m.Addr
	}
	return lookFor(ctx, w.cfg.Reach, addrs)
}

// nodesOf lists the nodes that are up by the member whose they are.
func (s *Server) nodesOf() map[string][]cluster.NodeName {
	out := map[string][]cluster.NodeName{}
	for n := range s.Snapshot().Nodes() {
		if n.Up && n.Owner != "" {
			out[n.Owner] = append(out[n.Owner], n.Name)
		}
	}
	return out
}

// silence notes that a host gives no answer.
func (p *Heartbeats) silence(nodes []cluster.NodeName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		if b := p.beat(n); b.silent.IsZero() && !b.around {
			b.silent, p.news = now, true
			p.settle(n, b)
		}
	}
}

// answer notes that a host is there: that is no sign of life of its client, but takes back what was
// concluded from its silence.
func (p *Heartbeats) answer(nodes []cluster.NodeName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		b := p.beat(n)
		p.news = p.news || !b.silent.IsZero()
		b.silent, b.around = time.Time{}, false
		p.settle(n, b)
	}
}

// cut ends a lease early while the host is silent.
func (b *nodeContact) cut(l Lease, timeout time.Duration) Lease {
	if b.silent.IsZero() {
		return l
	}
	if end := b.silent.Add(max(silentLease, timeout-silentSeen)); end.Before(l.Until) {
		l.Until = end
	}
	l.Quiet = b.silent
	return l
}
