package heartbeat

import (
	"context"
	"slices"
	"time"

	"dev.muster/cluster"
)

// A node that hangs on a leader which stood still, or was cut off, takes a while to notice and to find the next
// one. So a new leader looks by itself for the hosts of nodes that have not called it: only from when it finds one
// does the time run in which that node must call. A host that is not found may be gone with the old leader, but a
// broken network looks the same from here; its nodes have longer.
const (
	pathDelay = time.Second // most nodes come by themselves
	pathEvery = time.Second // between two looks
)

// FindPaths looks for hosts, for one term, until every node has called this leader or its host was found.
func (l *Lookout) FindPaths(term context.Context) {
	for wait := pathDelay; ; wait = pathEvery {
		select {
		case <-term.Done():
			return
		case <-time.After(wait):
		}
		hosts := l.unseen()
		if len(hosts) == 0 {
			continue // after a lapse of the lead all are looked for again
		}
		var addrs []string
		for addr := range hosts {
			addrs = append(addrs, addr)
		}
		slices.Sort(addrs)
		answers := lookFor(term, l.Reach, addrs)
		for i, addr := range addrs {
			if answers[i] == Answered {
				l.Heartbeats.found(hosts[addr], time.Now())
			}
		}
		l.Poke()
	}
}

// unseen lists the nodes that have not called this leader and whose host it has not found, by their address. A node
// that has none, or cannot be looked for, counts as found.
func (l *Lookout) unseen() map[string][]cluster.NodeName {
	out := map[string][]cluster.NodeName{}
	names := l.Heartbeats.missing()
	if len(names) == 0 {
		return out
	}
	snap := l.Snapshot()
	for _, name := range names {
		n, ok := snap.Node(name)
		if !ok || !n.Up {
			continue
		}
		addr := n.Inventory.Addr
		if addr == "" || l.Reach == nil {
			l.Heartbeats.found([]cluster.NodeName{name}, time.Now())
			continue
		}
		out[addr] = append(out[addr], name)
	}
	return out
}

// missing lists the nodes that have neither called this leader nor been found by it.
func (p *Heartbeats) missing() (names []cluster.NodeName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, b := range p.loose {
		if b.since.IsZero() && b.path.IsZero() {
			names = append(names, name)
		}
	}
	return names
}

// found notes that the hosts of nodes are there.
func (p *Heartbeats) found(nodes []cluster.NodeName, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		if b := p.beat(n); b.path.IsZero() {
			b.path = now
		}
	}
}
