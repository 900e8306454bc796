// Package heartbeat is the leader's memory of who has been heard of: the calls of nodes' clients, what gossip says of
// their hosts, and what came of looking for those. The leader decides the consequences of silence. It knows neither the
// log nor what nodes do. Start with Heartbeats.
package heartbeat

import (
	"context"
	"sync"
	"time"

	"dev.muster/cluster"
)

// pathTime is how long at least a new leader looks for the host of a node (paths.go).
const pathTime = 12 * time.Second

// quietAfter is how long after its last call a node counts as not responding.
const quietAfter = 500 * time.Millisecond

const (
	// LeaseChecks is how often silence is looked for while some node is silent.
	LeaseChecks = 250 * time.Millisecond

	patience = 2 * time.Second // a new leader takes no node for quiet so long: all have to find it first
	never    = 100 * 365 * 24 * time.Hour
)

// Leases say which nodes have been heard of. They are the leader's memory only. A node that is not among them is
// left alone.
type Leases map[cluster.NodeName]Lease

// Lease is how long a node is trusted.
type Lease struct {
	Until time.Time // then it is down
	Quiet time.Time // then it counts as not responding: nothing new is started there; zero while its call is open
	Since time.Time // when it first called this leader; zero if it has not
	Led   time.Time // when this leader began
}

// Heartbeats is what the leader remembers of the nodes' calls: whether one is open, and when the node was
// last heard of. It is nothing worth losing: a new leader begins with Grace. Methods are told the time.
type Heartbeats struct {
	mu    sync.Mutex
	nodes map[cluster.NodeName]*nodeContact
	came  time.Time // when a node last called this leader for the first time
	began time.Time // when this leader began

	clock  wallClock
	ticked time.Time // when the leader was last seen to be awake; zero: nobody looks
	looked time.Time // when Leases were last made
	whole  time.Time // and those of all nodes; zero: not since all of them changed
	news   bool      // since then one came back, or its host fell silent: that is looked at soon
	// loose are the nodes that have no call open or a silent host: all others are well, as far as is known.
	loose map[cluster.NodeName]*nodeContact
}

// wholeChecks is how often the leases of all nodes are made. In a large cluster there is always a node of which
// something may be said; to look for it among all of them each time costs more than all else that a cycle does.
const wholeChecks = 10 * time.Second

type nodeContact struct {
	open  int       // calls open now
	since time.Time // first call
	heard time.Time // last sign of life
	grace time.Time // until then its silence is not remarked on: the leader has just changed
	path  time.Time // when its host was first found to be there by this leader; zero: it was not
	hold  time.Duration
	// silent is since when its host does not answer, as gossip and a probe agree; see suspect.go.
	silent time.Time
	// around says that it has called since then: it reaches the leader through another server.
	around bool
}

// New has heard of nobody.
func New() *Heartbeats {
	return &Heartbeats{nodes: map[cluster.NodeName]*nodeContact{}, loose: map[cluster.NodeName]*nodeContact{}}
}

// Grace gives every node that is up one full lease, and half of it until its silence is remarked on. The
// lease of a node that has not called this leader begins again with each other node that does: a large
// fleet takes its time to come over, and as long as it does nobody is given up who may be on his way. And it begins
// when the node's host is found (paths.go): who cannot be reached cannot come either, so that is waited for, for
// a while.
func (p *Heartbeats) Grace(s *cluster.Snapshot, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came = now
	p.began = now
	p.news = true
	p.whole = time.Time{}
	for n := range s.Nodes() {
		if n.Up {
			b := p.beat(n.Name)
			b.heard, b.grace = now, now.Add(min(s.Config().NodeTimeout/2, patience))
			b.silent = time.Time{}
			b.since = time.Time{}
			b.path = time.Time{}
			b.around = false
			p.settle(n.Name, b)
		}
	}
}

func (p *Heartbeats) beat(n cluster.NodeName) *nodeContact {
	b, ok := p.nodes[n]
	if !ok {
		b = &nodeContact{}
		p.nodes[n] = b
	}
	return b
}

// settle notes whether a node is loose now.
func (p *Heartbeats) settle(n cluster.NodeName, b *nodeContact) {
	if b.open == 0 || !b.silent.IsZero() {
		p.loose[n] = b
	} else {
		delete(p.loose, n)
	}
}

// Open notes that a call of these nodes' client is open; the returned function that it is over.
func (p *Heartbeats) Open(nodes []cluster.NodeName, hold time.Duration, now time.Time) (over func(now time.Time)) {
	mark := func(d int, now time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, n := range nodes {
			b := p.beat(n)
			if d > 0 {
				p.hear(b, now)
			}
			b.open = b.open + d
			b.heard = now
			b.hold = hold
			b.around = b.around && b.open > 0
			if d > 0 && b.since.IsZero() {
				b.since = now
				p.came = now
				p.news = true
			}
			p.settle(n, b)
		}
	}
	mark(1, now)
	return func(now time.Time) { mark(-1, now) }
}

// Hear notes another sign of life of these nodes' client: one that has much to report may take its time to ask for
// work.
func (p *Heartbeats) Hear(nodes []cluster.NodeName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		b := p.beat(n)
		p.hear(b, now)
		p.settle(n, b)
	}
}

func (p *Heartbeats) hear(b *nodeContact, now time.Time) {
	p.news = p.news || !b.silent.IsZero() || b.open == 0 && now.Sub(b.heard) >= quietAfter
	b.around = b.around || !b.silent.IsZero()
	b.heard, b.silent = now, time.Time{}
}

// Due reports whether it is time to go through all nodes again: news are looked at once, silence that grows every
// LeaseChecks. Nothing of that is said of a node whose call is open, so most cycles need not look.
func (p *Heartbeats) Due(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.news || len(p.loose) > 0 && now.Sub(p.looked) >= LeaseChecks
}

// A leader that sleeps hears nobody. It is seen to be awake every tickEvery; what goes beyond stall is not held
// against nodes.
const (
	tickEvery = 500 * time.Millisecond
	stall     = 3 * tickEvery
)

// Watch notes that the leader is awake until the context ends.
func (p *Heartbeats) Watch(ctx context.Context) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for p.Tick(time.Now()); ; p.Tick(time.Now()) {
		select {
		case <-ctx.Done():
			p.Tick(time.Time{})
			return
		case <-ticker.C:
		}
	}
}

// Tick notes that the leader is awake, with the zero time that nobody looks any more.
func (p *Heartbeats) Tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.IsZero() {
		p.wake(now)
	}
	p.ticked = now
}

// wake leaves out of every silence the time for which the leader has not been awake: a machine that stood still, or
// a process that did not get to run, must not give up all nodes before it has looked what they have sent meanwhile.
func (p *Heartbeats) wake(now time.Time) {
	slept := now.Sub(p.ticked)
	if p.ticked.IsZero() || slept < stall {
		return
	}
	p.ticked, p.whole = now, time.Time{}
	for _, b := range p.nodes {
		if b.heard = b.heard.Add(slept); b.heard.After(now) {
			b.heard = now
		}
		if !b.silent.IsZero() {
			b.silent = now
		}
	}
}

// Leases are those of the nodes of which something may follow: that are loose, or that the state says are quiet. At
// times they are those of all nodes heard of, and always while a job waits for nodes that do not confirm it.
func (p *Heartbeats) Leases(s *cluster.Snapshot, now time.Time) Leases {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake(now)
	p.looked, p.news = now, false
	timeout := min(s.Config().NodeTimeout, never) // sums with it must not overflow
	if p.whole.IsZero() || now.Sub(p.whole) >= wholeChecks || AnyUnconfirmed(s, now) {
		p.whole = now
		out := make(Leases, len(p.nodes))
		for n, b := range p.nodes {
			out[n] = p.lease(b, timeout)
		}
		return out
	}
	out := make(Leases, len(p.loose))
	for n, b := range p.loose {
		out[n] = p.lease(b, timeout)
	}
	for n := range s.Mute() {
		if b, ok := p.nodes[n.Name]; ok {
			out[n.Name] = p.lease(b, timeout)
		}
	}
	return out
}

func (p *Heartbeats) lease(b *nodeContact, timeout time.Duration) Lease {
	l := Lease{Until: b.heard.Add(timeout), Quiet: b.heard.Add(quietAfter)}
	if end := p.firstCall(b, timeout); b.since.IsZero() && end.After(l.Until) {
		l.Until = end
	}
	if b.grace.After(l.Quiet) {
		l.Quiet = b.grace
	}
	if b.open > 0 {
		l = Lease{Until: b.heard.Add(timeout + b.hold)}
	}
	l.Since, l.Led = b.since, p.began
	return b.cut(l, timeout)
}

// firstCall is until when a node is waited for that has not called this leader yet.
func (p *Heartbeats) firstCall(b *nodeContact, timeout time.Duration) time.Time {
	end := p.came.Add(timeout)
	open := b.path.Add(timeout)
	if b.path.IsZero() {
		open = p.began.Add(timeout + max(2*timeout, pathTime))
	}
	if open.After(end) {
		return open
	}
	return end
}

// AnySilent reports whether some node has no call open, or a host that is silent.
func (p *Heartbeats) AnySilent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.loose) > 0
}

// ClockSet reports whether the clock was set since it was last asked. The time for what nodes want to
// confirm begins again then: the clock by which launches were written down is not the one of now.
func (p *Heartbeats) ClockSet(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.clock.jumped(now) {
		return false
	}
	p.giveTime(now)
	return true
}

func (p *Heartbeats) giveTime(now time.Time) {
	for _, b := range p.nodes {
		if !b.since.IsZero() {
			b.since = now
		}
	}
}

// wallClock notices that the machine's clock was set, by what passed meanwhile on the one that is never set.
type wallClock struct {
	born  time.Time // when it was first asked
	shown time.Time // what the clock showed when it was last asked
	at    time.Duration
}

// clockSlack is how much the clock may be set at a time and count as right.
const clockSlack = time.Second

// jumped reports whether the clock was set since it was last asked.
func (w *wallClock) jumped(now time.Time) bool {
	if w.born.IsZero() {
		w.born = now
	}
	return w.moved(now.Round(0), now.Sub(w.born))
}

// moved is jumped with what the clock shows and with what has passed since born.
func (w *wallClock) moved(shown time.Time, at time.Duration) bool {
	first := w.shown.IsZero()
	off := shown.Sub(w.shown) - (at - w.at)
	w.shown, w.at = shown, at
	return !first && off.Abs() > clockSlack
}

// AnyUnconfirmed reports whether a job waits for nodes that do not confirm it.
func AnyUnconfirmed(s *cluster.Snapshot, now time.Time) bool {
	for range s.Unconfirmed(now) {
		return true
	}
	return false
}

// Of a host that gossip takes for failed and that gives no answer.
const (
	silentLease = time.Second     // what is left of the lease of a silent host, at least
	silentSeen  = 3 * time.Second // how long it has been silent by then
)

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
