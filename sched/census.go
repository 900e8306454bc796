package sched

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// state is all of a node that decides how many tasks of a demand fit on it, by numbers.
type state struct {
	model     int
	cpu, free int
	mem       cluster.MemMB
	gpus      [4]int16 // by type, see model
	parts     int32    // number of the set of parts given out; 0: none
	busy      bool
	closed    int64
}

// kinds numbers the states that nodes are met in.
type kinds struct {
	of    map[state]int32
	list  []space          // an example of each
	brief []brief          // of each, too
	odd   bool             // there are nodes with more types of GPUs than a state tells apart
	parts map[string]int32 // numbers of sets of parts of GPUs, whichever these are
	work  *workload
	// ratings of each, for jobs without GPUs and with some; see there.
	ratings [2][]rating
}

// brief is what a look at a state begins with.
type brief struct {
	cpu, gpu int32 // at most
	mem      cluster.MemMB
	model    int
}

// exceeds reports whether it is more than another one, of anything.
func (b *brief) exceeds(o *brief) bool { return b.cpu > o.cpu || b.gpu > o.gpu || b.mem > o.mem }

// spot is a node and its kind.
type spot struct {
	at   int
	kind int32
}

// spots tells what these nodes are now, and the most that any of them has.
func (p *pool) spots(places []int) (list []spot, most brief) {
	list, most = make([]spot, len(places)), anything
	for k, i := range places {
		list[k] = spot{i, p.kindOf(&p.spaces[i])}
		b := &p.kinds.brief[list[k].kind]
		most.cpu, most.gpu, most.mem = max(most.cpu, b.cpu), max(most.gpu, b.gpu), max(most.mem, b.mem)
	}
	return list, most
}

// anything is no more than what any node has.
var anything = brief{mem: math.MinInt64}

// stateOf is a node's state by what of it is free.
func (p *pool) stateOf(sp *space) state {
	m := &p.models[sp.model]
	s := state{model: sp.model, cpu: sp.cpu, free: sp.free, mem: sp.mem, busy: sp.busy, closed: sp.closed}
	if len(sp.parts) > 0 {
		s.parts = p.kinds.partsOf(m, sp.parts)
	}
	switch {
	case len(m.types) == 1:
		s.gpus[0] = int16(sp.gpu)
	case !p.kinds.odd:
		for k := range sp.gpus.All() {
			s.gpus[m.typeOf[k]]++
		}
	}
	return s
}

// partsOf numbers a set of parts given out.
func (k *kinds) partsOf(m *model, list []cluster.GPUPart) int32 {
	text := make([]string, len(list))
	for i, p := range list {
		text[i] = fmt.Sprintf("%s:%d:%d:%t ", p.Name, p.Count, m.typeOf[p.GPU], m.of.GPUs[p.GPU].Missing)
	}
	slices.Sort(text)
	key := strings.Join(text, "")
	n, ok := k.parts[key]
	if !ok {
		if k.parts == nil {
			k.parts = map[string]int32{}
		}
		n = int32(len(k.parts) + 1)
		k.parts[key] = n
	}
	return n
}

// within is the state of which no more may be used than a rest: whole GPUs alone.
func (s state) within(l *rest, m *model) state {
	s.cpu, s.free, s.mem, s.parts = min(s.cpu, l.cpus), min(s.free, l.cpus), min(s.mem, l.mem), 0
	for k := range m.types {
		s.gpus[k] = min(s.gpus[k], int16(max(l.gpus[k], 0)))
	}
	return s
}

// kind numbers a state that a node may be used in.
func (p *pool) kind(s state, sp *space) int32 {
	n, ok := p.kinds.of[s]
	if ok {
		return n
	}
	m, own := &p.models[s.model], *sp
	own.cpu, own.free, own.mem, own.busy, own.closed = s.cpu, s.free, s.mem, s.busy, s.closed
	if s != p.stateOf(sp) {
		var gpus cluster.IDSet
		for k := range m.types {
			gpus = gpus.Union(first(sp.gpus, func(id int) bool { return m.typeOf[id] == k }, int(s.gpus[k])))
		}
		own.gpus, own.gpu, own.parts = gpus, gpus.Len(), nil
	}
	n = int32(len(p.kinds.list))
	p.kinds.of[s] = n
	p.kinds.list = append(p.kinds.list, own)
	p.kinds.brief = append(p.kinds.brief, brief{int32(max(own.cpu, own.free)), int32(own.gpu), own.mem, s.model})
	return n
}

// kindOf is the number of a node's state.
func (p *pool) kindOf(sp *space) int32 {
	if sp.kind < 0 {
		sp.kind = p.kind(p.stateOf(sp), sp)
	}
	return sp.kind
}

// scene is the nodes of a pool as they may be used beside some reservations.
type scene struct {
	p      *pool
	heads  []*reservation
	mask   uint64
	kind   []int32 // by place
	seen   int     // changes of the pool that are in it
	counts map[*cluster.Partition]*census
	moves  []move               // of nodes since it was made, in turn
	sums   map[*gauge]*capacity // of those that were found hopeless
	nodes  [][]int32            // places by kind, rising; nil until they are asked for
}

// move is a node that has become one of another kind.
type move struct{ at, from, to int32 }

// census counts the nodes of a partition by kind.
type census struct {
	in    []bool  // by place, which nodes; nil: all
	count []int32 // by kind
	kinds []int32 // that were met, in turn
	gone  int     // at most so many of them have no node any more
}

func (n *census) add(kind, more int32) {
	for int(kind) >= len(n.count) {
		n.count = append(n.count, -1)
	}
	if n.count[kind] < 0 {
		n.count[kind] = 0
		n.kinds = append(n.kinds, kind)
	}
	if n.count[kind] += more; n.count[kind] == 0 {
		n.gone++
	}
}

// met is the kinds of which there are nodes now, and perhaps others that are many no more.
func (n *census) met() []int32 {
	if n.gone > len(n.kinds)/4 {
		n.kinds = slices.DeleteFunc(n.kinds, func(k int32) bool {
			if n.count[k] == 0 {
				n.count[k] = -1
			}
			return n.count[k] < 0
		})
		n.gone = 0
	}
	return n.kinds
}

// scene is the pool's nodes beside the reservations of the mask.
func (p *pool) scene(heads []*reservation, mask uint64) *scene {
	for _, s := range p.scenes {
		if s.mask == mask {
			s.follow()
			return s
		}
	}
	s := &scene{p: p, heads: heads, mask: mask, kind: make([]int32, len(p.spaces)), seen: len(p.changed), counts: map[*cluster.Partition]*census{}}
	for i := range s.kind {
		s.kind[i] = s.look(i)
	}
	p.scenes = append(p.scenes, s)
	return s
}

// look finds what a node is now.
func (s *scene) look(i int) int32 {
	sp := &s.p.spaces[i]
	if s.mask == 0 || s.p.kinds.odd {
		return s.p.kindOf(sp)
	}
	var st state
	cut := false
	for k, h := range s.heads {
		if l := h.beside(i); s.mask>>k&1 != 0 && l != nil {
			if !cut {
				st, cut = s.p.stateOf(sp), true
			}
			st = st.within(l, &s.p.models[sp.model])
		}
	}
	if !cut {
		return s.p.kindOf(sp)
	}
	return s.p.kind(st, sp)
}

// follow takes the changes of the pool into account.
func (s *scene) follow() {
	for ; s.seen < len(s.p.changed); s.seen++ {
		ch, news := s.p.news(s.seen, s.mask)
		if !news {
			continue
		}
		at := ch.at
		old, now := s.kind[at], s.look(int(at))
		if s.kind[at] = now; old == now {
			continue
		}
		if s.nodes != nil {
			s.regroup(at, old, now)
		}
		if len(s.sums) > 0 {
			s.moves = append(s.moves, move{at, old, now})
		}
		for _, n := range s.counts {
			if n.in == nil || n.in[at] {
				n.add(old, -1)
				n.add(now, 1)
			}
		}
	}
}

// nodesOf lists the nodes of a kind.
func (s *scene) nodesOf(kind int32) []int32 {
	if s.nodes == nil {
		s.nodes = make([][]int32, len(s.p.kinds.list))
		for i, k := range s.kind {
			s.nodes[k] = append(s.nodes[k], int32(i))
		}
	}
	if int(kind) >= len(s.nodes) {
		return nil
	}
	return s.nodes[kind]
}

// regroup has a node be among those of another kind.
func (s *scene) regroup(at, from, to int32) {
	if int(to) >= len(s.nodes) {
		s.nodes = append(s.nodes, make([][]int32, len(s.p.kinds.list)-len(s.nodes))...)
	}
	list := s.nodes[from]
	if k, ok := slices.BinarySearch(list, at); ok {
		s.nodes[from] = slices.Delete(list, k, k+1)
	}
	k, _ := slices.BinarySearch(s.nodes[to], at)
	s.nodes[to] = slices.Insert(s.nodes[to], k, at)
}

// census counts the nodes of a partition.
func (s *scene) census(part *cluster.Partition) *census {
	n, ok := s.counts[part]
	if !ok {
		n = &census{}
		if !part.All {
			n.in = make([]bool, len(s.kind))
		}
		for _, i := range s.p.members(part) {
			if n.in != nil {
				n.in[i] = true
			}
			n.add(s.kind[i], 1)
		}
		s.counts[part] = n
	}
	return n
}

// gauge knows how many tasks of a demand fit on nodes of each kind.
type gauge struct {
	d     *demand
	kinds *kinds
	known []int32 // tasks by kind, plus one; 0: not looked at yet
	makes []int8  // by model, whether the job may use it: 1 yes, -1 no, 0 not looked at yet
	least brief   // what a node must have at least
	// numbers says that numbers alone tell how many tasks fit on a node.
	numbers bool
	rated   *workload // that its own ratings are of
	ratings []rating  // by kind, where they are its own; see there
}

func newGauge(d *demand, p *pool) *gauge {
	g := &gauge{d: d, kinds: p.kinds, makes: make([]int8, len(p.models))}
	g.least.cpu = int32(max(d.minCPUs, 1))
	if d.leaves != nil { // perhaps more than nodes seem to have
		g.least.cpu = 1
	} else if !d.overcommit {
		g.least.cpu = max(g.least.cpu, int32(d.cpusPer))
	}
	g.least.gpu = int32(sum(d.gpuNode))
	g.least.mem = math.MinInt64
	if d.memAlloc && d.mem.Per == cluster.MemPerNode {
		g.least.mem = d.mem.MB
	}
	g.numbers = !g.kinds.odd && d.perSocket == 0 && !(d.bound && d.gpus) && len(d.gpuSocket) == 0 && !d.alone
	return g
}

// suits reports whether the job may use nodes of a model.
func (g *gauge) suits(p *pool, model int) bool {
	if g.makes[model] == 0 {
		g.makes[model] = int8(2*b2i(g.d.suits(p.models[model].of)) - 1)
	}
	return g.makes[model] > 0
}

// roomOn is how many tasks fit on a node of the kind.
func (g *gauge) roomOn(p *pool, kind int32) int32 {
	b := &g.kinds.brief[kind]
	if g.least.exceeds(b) || !g.suits(p, b.model) {
		return 0
	}
	return g.tasksOn(kind)
}

// needs is what a node must have at least for a task to fit, as far as numbers tell.
func (g *gauge) needs() *brief {
	if g.numbers {
		return &g.least
	}
	return &anything
}

// fit is how many tasks fit on a node of the kind, of a model that suits.
func (g *gauge) fit(kind int32) int32 {
	if g.least.exceeds(&g.kinds.brief[kind]) {
		return 0
	}
	return g.tasksOn(kind)
}

// tasksOn is fit of a node that has what it must have at least.
func (g *gauge) tasksOn(kind int32) int32 {
	if int(kind) >= len(g.known) {
		g.known = append(g.known, make([]int32, len(g.kinds.list)-len(g.known))...)
	}
	if g.known[kind] == 0 {
		g.known[kind] = int32(min(g.d.fits(&g.kinds.list[kind]), math.MaxInt32-1)) + 1
	}
	return g.known[kind] - 1
}

// capacity is what the nodes of a scene can hold of a demand: how many have room, for how many tasks, and for how many one
// has at most.
type capacity struct {
	nodes, tasks, best int
	seen               int // moves of the scene that are in it
}

func (t *capacity) add(nodes, room int) {
	t.nodes, t.tasks, t.best = t.nodes+nodes, t.tasks+nodes*room, max(t.best, room)
}

// lacks reports whether that is too little.
func (t *capacity) lacks(d *demand, most int) bool {
	return t.nodes < d.minNodes || t.tasks < d.tasks || min(most, t.nodes)*t.best < d.tasks
}

// hopeless reports that the nodes do not have enough, whichever are taken. Who asks again of the same scene has counted all
// of it, and counts only what has changed from then on; as best may be too much then, it may see hope where there is none.
func (g *gauge) hopeless(s *scene) bool {
	d := g.d
	if !g.numbers {
		return false
	}
	n := s.census(d.part)
	most := d.most(len(s.p.members(d.part)))
	t, asked := s.sums[g]
	if t == nil || len(s.moves)-t.seen > len(n.kinds) {
		t = &capacity{seen: len(s.moves)}
		for _, k := range n.met() {
			if count, room := int(n.count[k]), int(g.roomOn(s.p, k)); count > 0 && room > 0 {
				if t.add(count, room); !asked && !t.lacks(d, most) {
					s.keep(g, nil)
					return g.shortOfGPUs(n, s.p, most)
				}
			}
		}
		s.keep(g, t)
	}
	for _, m := range s.moves[t.seen:] {
		if from, to := int(g.roomOn(s.p, m.from)), int(g.roomOn(s.p, m.to)); from != to && (n.in == nil || n.in[m.at]) {
			if t.tasks += to - from; from == 0 {
				t.nodes++
			} else if to == 0 {
				t.nodes--
			}
			t.best = max(t.best, to)
		}
	}
	t.seen = len(s.moves)
	return t.lacks(d, most) || g.shortOfGPUs(n, s.p, most)
}

func (s *scene) keep(g *gauge, t *capacity) {
	if s.sums == nil {
		s.sums = map[*gauge]*capacity{}
	}
	s.sums[g] = t
}

// shortOfGPUs reports whether the nodes do not have as many GPUs as --gpus asks for.
func (g *gauge) shortOfGPUs(n *census, p *pool, most int) bool {
	return slices.ContainsFunc(g.d.gpuJob, func(w cluster.GRES) bool { return g.short(n, p, w, most) })
}

// short reports that so many nodes do not have as many GPUs as an entry of --gpus asks for.
func (g *gauge) short(n *census, p *pool, want cluster.GRES, most int) bool {
	var nodes []int // by how many GPUs they can give
	for _, k := range n.met() {
		count := int(n.count[k])
		if count == 0 || g.roomOn(p, k) == 0 {
			continue
		}
		gives := max(g.d.gives(&g.kinds.list[k], want.Type), 0)
		for gives >= len(nodes) {
			nodes = append(nodes, 0)
		}
		nodes[gives] += count
	}
	return !reach(nodes, most, want.Count)
}

// reach reports whether so many nodes, counted by what they can give, give enough together.
func reach(nodes []int, most int, want int64) bool {
	for gives := len(nodes) - 1; gives > 0 && most > 0 && want > 0; gives-- {
		n := min(nodes[gives], most)
		most, want = most-n, want-int64(n*gives)
	}
	return want <= 0
}
