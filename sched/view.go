package sched

import (
	"slices"

	"dev.muster/cluster"
)

// view is what each node of a pool can give to a demand beside some reservations. It follows what
// the pool notes of its changes.
type view struct {
	*gauge
	p      *pool
	beside *scene // the nodes as numbers, beside the planned starts of the mask
	mask   uint64
	barred *barred // CPUs that are kept from the job
	tasks  []int32 // by place, how many tasks fit; -1: the job may not use the node
	seen   int     // changes of the pool that are in it
	nodes  int     // how many nodes have room
	sum    int     // for how many tasks
	runs   int     // in how many runs of consecutive nodes
	first  int32   // no place before it has room
	list   []int32 // the places with room, rising
	cut    []run   // the runs that they make, by length; nil if not known
}

// view looks at all nodes of the demand's partition.
func (g *gauge) view(p *pool, heads []*reservation, mask uint64) *view {
	d := g.d
	v := &view{gauge: g, p: p, mask: mask, tasks: make([]int32, len(p.spaces)), seen: len(p.changed), first: int32(len(p.spaces))}
	if !d.part.All {
		for i := range v.tasks {
			v.tasks[i] = -1
		}
	}
	v.beside = p.scene(heads, mask)
	for _, i := range p.members(d.part) {
		n := int32(-1)
		if g.suits(p, p.kinds.brief[v.beside.kind[i]].model) && (d.not == nil || !d.not[p.spaces[i].node.Name]) {
			n = v.count(int32(i))
		}
		if v.tasks[i] = n; n > 0 {
			v.nodes, v.sum, v.runs = v.nodes+1, v.sum+int(n), v.runs+1-b2i(v.room(int32(i)-1, int32(i), -1))
		}
	}
	v.list = make([]int32, 0, v.nodes)
	for i, n := range v.tasks {
		if n > 0 {
			v.list = append(v.list, int32(i))
		}
	}
	if len(v.list) > 0 {
		v.first = v.list[0]
	}
	return v
}

// count is how many tasks fit on a node that the job may use.
func (v *view) count(i int32) int32 {
	if v.barred.has(i) {
		return int32(v.d.fits(v.space(i)))
	}
	if v.numbers {
		return v.fit(v.beside.kind[i])
	}
	if v.mask == 0 || v.d.gpus || v.d.piece != nil {
		return int32(v.d.fits(v.space(i)))
	}
	own := v.p.spaces[i]
	for k, h := range v.beside.heads {
		if l := h.beside(int(i)); v.mask>>k&1 != 0 && l != nil {
			own.cpu, own.free, own.mem = min(own.cpu, l.cpus), min(own.free, l.cpus), min(own.mem, l.mem)
		}
	}
	return int32(v.d.fits(&own))
}

// bar keeps CPUs from the job, and no others.
func (v *view) bar(b *barred) {
	if v.barred == b {
		return
	}
	v.follow()
	old := v.barred
	v.barred = b
	for _, list := range [...][]int32{old.list(), b.list()} {
		for _, i := range list {
			v.look(i)
		}
	}
}

// look takes a node's present state into account.
func (v *view) look(i int32) {
	if v.tasks[i] < 0 {
		return
	}
	v.set(i, v.count(i))
}

// set notes how many tasks fit on a node, and what follows for the sums.
func (v *view) set(i, n int32) {
	old := v.tasks[i]
	v.tasks[i] = n
	v.sum += int(n - old)
	if n > 0 == (old > 0) {
		return
	}
	v.cut = nil
	if at := len(v.list); n > 0 && (at == 0 || v.list[at-1] < i) {
		v.list = append(v.list, i)
	} else if at, _ = slices.BinarySearch(v.list, i); n > 0 {
		v.list = slices.Insert(v.list, at, i)
	} else {
		v.list = slices.Delete(v.list, at, at+1)
	}
	beside := b2i(v.room(i-1, i, -1)) + b2i(v.room(i+1, i, 1))
	if n > 0 {
		v.nodes, v.runs, v.first = v.nodes+1, v.runs+1-beside, min(v.first, i)
	} else {
		v.nodes, v.runs = v.nodes-1, v.runs-1+beside
	}
}

// room reports whether place a is the neighbour of place i in the configuration, step before or
// behind it, and has room.
func (v *view) room(a, i, step int32) bool {
	return a >= 0 && int(a) < len(v.tasks) && v.tasks[a] > 0 && v.p.ranks[a] == v.p.ranks[i]+step
}

// space is what of a node may be used: with reservations, a copy with what they leave.
func (v *view) space(i int32) *space {
	sp := &v.p.spaces[i]
	if v.mask == 0 && !v.barred.has(i) {
		return sp
	}
	trimmed := v.barred.within(i, sp)
	for k, h := range v.beside.heads {
		if v.mask>>k&1 == 0 {
			continue
		}
		l := h.beside(int(i))
		if l == nil {
			continue
		}
		if trimmed == sp {
			own := *sp
			trimmed = &own
		}
		l.trim(v.p, trimmed, v.barred.on(i))
	}
	return trimmed
}

// follow takes the changes of the pool into account.
func (v *view) follow() {
	v.beside.follow()
	for ; v.seen < len(v.p.changed); v.seen++ {
		ch, news := v.p.news(v.seen, v.mask)
		if old := v.tasks[ch.at]; news && (old > 0 || old == 0 && ch.more) {
			v.look(ch.at)
		}
	}
}

// short reports that there are too few nodes with room, or too little room on them, whatever is avoided.
func (v *view) short() bool {
	v.follow()
	return v.nodes < v.d.minNodes || v.sum < v.d.tasks
}

// find is an allocation that fits now and keeps off what it must, or nil.
func (v *view) find(avoid off) *cluster.Alloc {
	v.bar(avoid.cpus)
	if c := v.pick(avoid.nodes); c != nil {
		return v.allot(c.places)
	}
	return nil
}

// pick chooses the nodes of find; nil if there are not enough.
func (v *view) pick(avoid nodeSet) *choice {
	if v.short() || v.d.unbounded() {
		return nil
	}
	if c := (&choice{view: v, avoid: avoid}); c.choose() {
		return c
	}
	return nil
}

// allot deals what the job gets out to nodes in the order of their choice; nil if that does not come out even. The shares
// are in the order of the nodes.
func (v *view) allot(places []int32) *cluster.Alloc {
	rooms := make([]room, len(places))
	for k, i := range places {
		rooms[k] = room{sp: v.space(i), tasks: int(v.tasks[i]), at: k}
	}
	if !slices.IsSorted(places) {
		if v.p.turns == nil {
			v.p.turns = make([]int32, len(v.tasks))
		}
		turns, at := v.p.turns[slices.Min(places):slices.Max(places)+1], 0
		for k, i := range places {
			v.p.turns[i] = int32(k + 1)
		}
		for i, k := range turns {
			if k > 0 {
				rooms[k-1].at, turns[i], at = at, 0, at+1
			}
		}
	}
	return v.d.deal(rooms)
}
