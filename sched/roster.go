package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// roster is what pools are made of: every node of the cluster, in node order, with what is given out on it. Most nodes are from
// one snapshot to the next what they were, and are not looked at again: a pass that cannot go on from the last one would
// spend its time with going through all of them.
type roster struct {
	whole bool // every node, of service or not, as if nothing ran; with the devices that may come back
	since cluster.Moment
	seats []seat
	rank  map[cluster.NodeName]int32 // of each node among them; never changed once all are there
	makes []*cluster.Inventory       // no two alike
	most  int                        // of these, or it starts over: some may be none's any more
}

// seat is a node in a roster.
type seat struct {
	node   *cluster.Node
	load   *cluster.Load
	make   int32
	weight int // see rank
	usable bool
	frail  bool // it may be shaky
}

var noLoad = &cluster.Load{}

// follow brings the roster to a snapshot.
func (r *roster) follow(s *cluster.Snapshot) {
	if !r.goOn(s) {
		r.begin(s)
	}
	r.since = s.Moment()
}

// begin makes the roster anew.
func (r *roster) begin(s *cluster.Snapshot) {
	r.seats, r.rank, r.makes = make([]seat, 0, s.NodeCount()), make(map[cluster.NodeName]int32, s.NodeCount()), nil
	for n := range s.Nodes() {
		r.rank[n.Name] = int32(len(r.seats))
		r.seats = append(r.seats, r.seat(s, n, max(len(r.seats)-1, 0)))
	}
	r.most = 2*len(r.makes) + 64
}

// goOn looks at what has changed; false if nodes have come or gone, or too much is unknown.
func (r *roster) goOn(s *cluster.Snapshot) bool {
	touched, ok := s.Since(r.since)
	if !ok || len(r.seats) != s.NodeCount() || len(r.makes) > r.most {
		return false
	}
	k := 0
	for n := range s.Nodes() { // a record is never changed in place
		if st := &r.seats[k]; st.node != n {
			if st.node.Name != n.Name {
				return false
			}
			*st = r.seat(s, n, k)
		}
		k++
	}
	for _, t := range touched {
		if k, ok := r.rank[t.Load]; ok && t.Load != "" && !r.whole {
			r.seats[k].load = s.Load(t.Load)
		}
	}
	return true
}

// seat is that of a node which is most likely of the same make as the one in another seat.
func (r *roster) seat(s *cluster.Snapshot, n *cluster.Node, like int) seat {
	st := seat{node: n, load: noLoad, weight: rank(n), usable: r.whole || n.Usable(), frail: n.Trouble != nil || len(n.Inventory.Faults) > 0}
	if !r.whole {
		st.load = s.Load(n.Name)
	}
	first := 0
	if like < len(r.seats) {
		first = int(r.seats[like].make)
	}
	for m := range len(r.makes) {
		if k := (first + m) % len(r.makes); alike(r.makes[k], &n.Inventory) {
			st.make = int32(k)
			return st
		}
	}
	st.make, r.makes = int32(len(r.makes)), append(r.makes, &n.Inventory)
	return st
}

// pool is what of the nodes is free at a snapshot.
func (r *roster) pool(s *cluster.Snapshot) *pool {
	r.follow(s)
	p := &pool{rank: r.rank, placeOf: make([]int32, len(r.seats)), parts: map[*cluster.Partition][]int{},
		spaces: make([]space, 0, len(r.seats)), all: make([]int, 0, len(r.seats)), ranks: make([]int32, 0, len(r.seats))}
	p.kinds = &kinds{of: map[state]int32{}, list: make([]space, 0, 64), brief: make([]brief, 0, 64), work: &workload{s: s}}
	p.shared, p.sockets, p.wholePlans = oversubscribed(s), s.Config().SocketAlloc, s.Config().PlanWhole
	models := make([]int, len(r.makes)) // by make, the number plus one
	weight, first := false, -1
	for k := range r.seats {
		st := &r.seats[k]
		p.placeOf[k] = -1
		if !st.usable {
			continue
		}
		if models[st.make] == 0 {
			p.addModel(&st.node.Inventory, r.whole)
			models[st.make] = len(p.models)
		}
		p.seat(st, models[st.make]-1, s.Now)
		if first < 0 {
			first = st.weight
		}
		weight = weight || st.weight != first
		p.placeOf[k] = int32(len(p.all))
		p.all = append(p.all, len(p.all))
		p.ranks = append(p.ranks, int32(k))
	}
	p.plan = newTopology(s.Wiring(), p, weight)
	return p
}

// seat adds the space of a node.
func (p *pool) seat(st *seat, number int, now time.Time) {
	m, l := &p.models[number], st.load
	if m.kind < 0 {
		sp := m.empty(st.node, number)
		m.kind = p.kind(p.stateOf(&sp), &sp)
	}
	p.spaces = append(p.spaces, space{})
	sp := &p.spaces[len(p.spaces)-1]
	if *sp = m.empty(st.node, number); len(l.Jobs) > 0 {
		sp.load(l)
		p.closed = p.closed || l.Closed != 0
		p.shared = p.shared || !l.Shared.Empty()
		sp.kind = p.kind(p.stateOf(sp), sp)
	}
	if p.shared {
		sp.overlaps(l.CPUUse, m.cpus, 1)
	}
	sp.shaky = st.frail && st.node.Shaky(now)
}

// addModel adds the model that nodes of one make have.
func (p *pool) addModel(inv *cluster.Inventory, whole bool) {
	m := model{of: inv, kind: -1, cpus: inv.JobCPUs(), gpus: inv.Devices()}
	if whole {
		m.gpus = cluster.RangeIDSet(0, len(inv.GPUs)-1)
	}
	m.unit = unitOf(inv, p.sockets)
	m.free = freeInUnits(inv, m.cpus, m.unit)
	for _, g := range inv.GPUs {
		k := slices.Index(m.types, g.Type)
		if k < 0 {
			k, m.types = len(m.types), append(m.types, g.Type)
		}
		m.typeOf = append(m.typeOf, k)
	}
	p.kinds.odd = p.kinds.odd || len(m.types) > len(state{}.gpus)
	p.hasGPUs = p.hasGPUs || len(inv.GPUs) > 0
	p.models = append(p.models, m)
}

// newPool is what is free now on the nodes that may be used.
func newPool(s *cluster.Snapshot) *pool { return new(roster).pool(s) }

// whole is every node, of service or not, as if nothing ran; with the devices that may come back.
func whole(s *cluster.Snapshot) *pool { return (&roster{whole: true}).pool(s) }

// at is the place of a node; false if it is not in the pool.
func (p *pool) at(name cluster.NodeName) (int, bool) {
	if k, ok := p.rank[name]; ok && p.placeOf[k] >= 0 {
		return int(p.placeOf[k]), true
	}
	return 0, false
}
