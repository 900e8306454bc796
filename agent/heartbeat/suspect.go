package heartbeat

import (
	"cmp"
	"context"
	"log/slog"
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
	lookGap     = 100 * time.Millisecond // at least between two looks: a fleet that comes is news all the time
	glanceEvery = 2 * time.Second        // at members that gossip takes for failed though they answer
	maxLooks    = 512                    // at once
	witnesses   = 3
)

// LongestTurn is after how long Listen looks again where nothing is new.
const LongestTurn = time.Minute

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

// Rumours are what gossip says of all other members.
type Rumours struct {
	moved chan struct{}
	mu    sync.Mutex
	by    map[string]Rumour
}

// NewRumours are none.
func NewRumours() *Rumours {
	return &Rumours{moved: make(chan struct{}, 1), by: map[string]Rumour{}}
}

// All are those of now, by the member's name.
func (r *Rumours) All() map[string]Rumour {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.by)
}

// Hear takes what gossip says of the other members now.
func (r *Rumours) Hear(list []Rumour) {
	by := make(map[string]Rumour, len(list))
	for _, m := range list {
		by[m.Name] = m
	}
	r.mu.Lock()
	r.by = by
	r.mu.Unlock()
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// Lookout looks for hosts while this server leads.
type Lookout struct {
	Heartbeats *Heartbeats
	Rumours    *Rumours
	Reach      func(ctx context.Context, addr string) Answer // nil: nobody can be looked for
	Snapshot   func() *cluster.Snapshot
	Poke       func() // has the leader look at what has changed
	Log        *slog.Logger
}

// Listen follows the gossip for one term; each is called in every turn, once in LongestTurn at least.
func (l *Lookout) Listen(term context.Context, each func(context.Context)) {
	if l.Reach == nil {
		return
	}
	w := newWatch(l)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-term.Done():
			return
		case <-l.Rumours.moved:
		case <-timer.C:
		}
		each(term)
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
	*Lookout
	// reached are the members that answered once, by the address where: of another that gives no
	// answer nothing follows, it may be behind a firewall.
	reached map[string]string
	silent  map[string]bool      // members whose host gave no answer when last looked for
	glanced map[string]time.Time // when a member answered that gossip takes for failed
}

func newWatch(l *Lookout) *watch {
	return &watch{Lookout: l, reached: map[string]string{}, silent: map[string]bool{}, glanced: map[string]time.Time{}}
}

// look looks once for every member of whom gossip says that it has failed, and for those never
// looked for. It tells when to look again.
func (w *watch) look(ctx context.Context) time.Duration {
	all := w.placed(w.Rumours.All())
	var ask []Rumour
	watching, next := 0, LongestTurn
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
				w.Log.Debug("host reached", "member", m.Name, "addr", m.Addr)
			}
		}
	}
	return min(next, w.conclude(ask, answers, trusted))
}

// placed leaves those rumours that are of members, and has each be of where that one itself has said that it listens:
// who has the key of the gossip may say anything of anybody, and would have others' hosts be looked for in vain.
func (l *Lookout) placed(all map[string]Rumour) map[string]Rumour {
	snap := l.Snapshot()
	addrs := map[string]string{}
	for m := range snap.MemberList() {
		if m.Revoked.IsZero() {
			addrs[m.Name] = m.Addr
		}
	}
	for n := range snap.Nodes() {
		if n.Up && n.Owner != "" {
			addrs[n.Owner] = cmp.Or(n.Inventory.Addr, addrs[n.Owner])
		}
	}
	for name, m := range all {
		addr, known := addrs[name]
		if !known {
			delete(all, name)
			continue
		}
		m.Addr = cmp.Or(addr, m.Addr)
		all[name] = m
	}
	return all
}

func (w *watch) conclude(asked []Rumour, answers []Answer, trusted bool) time.Duration {
	next := LongestTurn
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
			w.Heartbeats.silence(nodes, time.Now())
			if !w.silent[m.Name] {
				w.silent[m.Name] = true
				w.Log.Warn("host is silent", "member", m.Name, "addr", m.Addr)
			}
		case answers[i] == Answered:
			w.Heartbeats.answer(nodes)
			delete(w.silent, m.Name)
		}
		pause := glanceEvery
		if w.silent[m.Name] {
			pause = lookEvery
		}
		next = min(next, pause)
	}
	w.Poke()
	return next
}

// ask looks for some members at once.
func (w *watch) ask(ctx context.Context, list []Rumour) []Answer {
	addrs := make([]string, len(list))
	for i, m := range list {
		addrs[i] = m.Addr
	}
	return lookFor(ctx, w.Reach, addrs)
}

// nodesOf lists the nodes that are up by the member whose they are.
func (l *Lookout) nodesOf() map[string][]cluster.NodeName {
	out := map[string][]cluster.NodeName{}
	for n := range l.Snapshot().Nodes() {
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

// lookFor looks for hosts at once.
func lookFor(ctx context.Context, reach func(context.Context, string) Answer, addrs []string) []Answer {
	out := make([]Answer, len(addrs))
	slots := make(chan struct{}, maxLooks)
	var wg sync.WaitGroup
	for i, addr := range addrs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			one, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			out[i] = reach(one, addr)
		})
	}
	wg.Wait()
	return out
}
