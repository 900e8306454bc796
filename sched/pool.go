package sched

import (
	"slices"
	"sort"
	"time"

	"dev.muster/cluster"
)

// space is what is free on one node.
type space struct {
	node   *cluster.Node
	cpus   cluster.IDSet
	gpus   cluster.IDSet
	parts  []cluster.GPUPart // given out
	mem    cluster.MemMB
	model  int      // number of its make in the pool
	kind   int32    // number of its state, see kindOf
	cpu    int      // how many CPUs are free
	gpu    int      // how many GPUs are free
	free   int      // CPUs of cores that are free as a whole
	all    int      // that, of an empty node
	jobs   int      // how many are there
	closed int64    // one more than the user for whose jobs alone it is; 0: for all
	taken  int64    // one more than the user whose jobs start there in this cycle; -1: several
	busy   bool     // some job is there
	over   *overlap // nil where a CPU has one job at most
	shaky  bool     // it had trouble of late
	unit   int      // how many CPUs are given at once: a core's or a socket's
}

// settle derives the counts.
func (sp *space) settle() {
	sp.cpu, sp.gpu, sp.free, sp.busy = sp.cpus.Len(), sp.gpus.Len(), freeInUnits(&sp.node.Inventory, sp.cpus, sp.unit), sp.jobs > 0
}

// atMost takes away what another state of the node does not have free.
func (sp *space) atMost(o *space) {
	sp.cpus, sp.gpus, sp.mem, sp.jobs = sp.cpus.Intersect(o.cpus), sp.gpus.Intersect(o.gpus), min(sp.mem, o.mem), max(sp.jobs, o.jobs)
	sp.settle()
}

// pool is what is free on every node that counts, in node order.
type pool struct {
	spaces  []space
	rank    map[cluster.NodeName]int32 // of every node of the cluster, of service or not
	placeOf []int32                    // by rank; -1: it is not in the pool
	all     []int
	parts   map[*cluster.Partition][]int // places of each partition's nodes, in node order
	models  []model
	sockets bool // CPUs are given as whole sockets
	shared  bool // a CPU may have several jobs
	// wholePlans says that planned starts leave nothing of their nodes.
	wholePlans bool
	closed     bool // there are nodes that are for one user's jobs
	hasGPUs    bool // there are nodes with GPUs
	plan       *topology
	kinds      *kinds
	scenes     []*scene // that were asked for
	changed    []change // of spaces since the pool was made, in turn
	latest     []int32  // by place, the number of its last change plus one
	turns      []int32  // by place, scratch of allot
	ranks      []int32  // by place, its rank
}

// nodeSet is a set of places in a pool; nil is empty.
type nodeSet []bool

func (s nodeSet) has(i int) bool { return s != nil && s[i] }

// model is what nodes of one make have in common.
type model struct {
	of   *cluster.Inventory // of the first of them
	cpus cluster.IDSet
	gpus cluster.IDSet
	free int
	unit int
	kind int32 // of an empty node

	types  []string // of GPUs
	typeOf []int    // by number of a GPU, that of its type
}

// alike reports whether a job that may use an empty node of the one make may use one of the other.
func alike(a, b *cluster.Inventory) bool {
	return a == b || a.CPUs == b.CPUs && a.MemMB == b.MemMB && a.TmpMB == b.TmpMB && a.Sockets == b.Sockets &&
		a.CoresPerSocket == b.CoresPerSocket && a.ThreadsPerCore == b.ThreadsPerCore && slices.Equal(a.Features, b.Features) &&
		a.SpecMemMB == b.SpecMemMB && slices.Equal(a.Shared, b.Shared) && a.SpecCPUs.Equal(b.SpecCPUs) &&
		slices.EqualFunc(a.GPUs, b.GPUs, func(x, y cluster.GPU) bool {
			return x.Type == y.Type && x.Missing == y.Missing && x.Cores.Equal(y.Cores) && slices.Equal(x.Links, y.Links)
		})
}

// empty is the space of a node without jobs.
func (m *model) empty(n *cluster.Node, kind int) space {
	return space{node: n, model: kind, kind: m.kind, mem: m.of.MemMB - m.of.SpecMemMB, cpus: m.cpus, gpus: m.gpus,
		unit: m.unit, cpu: m.cpus.Len(), all: m.free, gpu: m.gpus.Len(), free: m.free}
}

// loaded is the space of a node with jobs.
func (m *model) loaded(n *cluster.Node, kind int, l *cluster.Load) space {
	sp := m.empty(n, kind)
	if len(l.Jobs) > 0 {
		sp.load(l)
	}
	return sp
}

// load takes what jobs have of an empty node.
func (sp *space) load(l *cluster.Load) {
	sp.jobs = len(l.Jobs)
	sp.cpus, sp.gpus, sp.mem, sp.closed, sp.parts = sp.cpus.Minus(l.CPUs), sp.gpus.Minus(l.GPUs), sp.mem-l.MemMB, l.Closed, l.Parts
	sp.settle()
}

// emptied is the same nodes without any job.
func (p *pool) emptied() *pool {
	out := p.clone()
	for i := range out.spaces {
		sp := &out.spaces[i]
		*sp = p.models[sp.model].empty(sp.node, sp.model)
	}
	return out
}

// members lists the places of a partition's nodes.
func (p *pool) members(part *cluster.Partition) []int {
	if part.All {
		return p.all
	}
	list, ok := p.parts[part]
	if !ok {
		for _, name := range part.Nodes {
			if i, ok := p.at(name); ok {
				list = append(list, i)
			}
		}
		slices.Sort(list)
		p.parts[part] = list
	}
	return list
}

// clone is a pool of the same nodes that changes by itself; what was derived from their states stays behind.
func (p *pool) clone() *pool {
	own := *p
	own.spaces, own.scenes, own.changed, own.latest, own.turns = slices.Clone(p.spaces), nil, nil, nil, nil
	return &own
}

func (p *pool) take(a *cluster.Alloc) {
	for _, sh := range a.Shares {
		if i, ok := p.at(sh.Node); ok {
			p.spaces[i].take(sh, a.Over > 0)
			p.note(i, false)
		}
	}
}

// take gives a share of the node away, to a job that may let others beside it.
func (sp *space) take(sh cluster.Share, over bool) {
	sp.giveOut(sh.CPUs, over)
	sp.gpus, sp.mem, sp.jobs = sp.gpus.Minus(sh.GPUs), sp.mem-sh.MemMB, sp.jobs+1
	if sh.Part != nil {
		sp.parts, sp.gpus = cluster.AddPart(sp.parts, *sh.Part), sp.gpus.Minus(cluster.NewIDSet(sh.Part.GPU))
	}
	sp.settle()
}

// start takes what a job gets, and notes whose it is.
func (p *pool) start(a *cluster.Alloc, spec *cluster.JobSpec) {
	p.take(a)
	who := int64(spec.UID) + 1
	for _, sh := range a.Shares {
		i, _ := p.at(sh.Node)
		sp := &p.spaces[i]
		if sp.taken != 0 && sp.taken != who {
			who = -1
		}
		if sp.taken = who; spec.Sharing == cluster.ShareUser {
			sp.closed, p.closed = who, true
			p.note(i, false)
		}
	}
}

// change tells that a node has more free than before, or less.
type change struct {
	at    int32
	more  bool
	heads uint64 // not 0: what it will have left beside these planned starts is something else, not what is free
}

// note tells that a node has changed.
func (p *pool) note(i int, more bool) {
	p.spaces[i].kind = -1 // till it is asked for
	if p.latest == nil {
		p.latest = make([]int32, len(p.spaces))
	}
	if last := p.latest[i]; last > 0 && p.changed[last-1].more {
		more = true // who sees only the last change must look
	}
	p.changed = append(p.changed, change{at: int32(i), more: more})
	p.latest[i] = int32(len(p.changed))
}

// moved tells that one of the planned starts is another now, of which these nodes will have something else left.
func (p *pool) moved(k int, now *reservation, places []int) {
	for _, s := range p.scenes {
		if s.mask>>k&1 != 0 {
			s.heads = slices.Clone(s.heads)
			s.heads[k] = now
		}
	}
	for _, i := range places {
		p.changed = append(p.changed, change{int32(i), true, 1 << k})
	}
}

// news is one of the changes, if who keeps off the planned starts of the mask has to look at its node: a node that has changed
// more often is looked at for the last time alone.
func (p *pool) news(n int, mask uint64) (change, bool) {
	ch := p.changed[n]
	if ch.heads != 0 {
		return ch, ch.heads&mask != 0
	}
	return ch, int(p.latest[ch.at]) == n+1
}

// places is the set of the allocation's nodes.
func (p *pool) places(a *cluster.Alloc) nodeSet {
	set := make(nodeSet, len(p.spaces))
	for _, sh := range a.Shares {
		if i, ok := p.at(sh.Node); ok {
			set[i] = true
		}
	}
	return set
}

// give returns shares to the pool.
func (p *pool) give(r release) {
	for _, sh := range r.shares {
		if i, ok := p.at(sh.Node); ok {
			p.spaces[i].give(sh, r.noCPUs)
			p.note(i, true)
		}
	}
}

// give returns a share to the node, without its CPUs if these are free already.
func (sp *space) give(sh cluster.Share, noCPUs bool) {
	sp.gpus, sp.mem, sp.jobs = sp.gpus.Union(sh.GPUs.Intersect(sp.node.Inventory.Devices())), sp.mem+sh.MemMB, sp.jobs-1
	if !noCPUs {
		sp.takeBack(sh.CPUs)
	}
	if p := sh.Part; p != nil {
		sp.parts = cluster.AddPart(sp.parts, cluster.GPUPart{Name: p.Name, GPU: p.GPU, Count: -p.Count})
		if !slices.ContainsFunc(sp.parts, func(o cluster.GPUPart) bool { return o.GPU == p.GPU }) {
			sp.gpus = sp.gpus.Union(cluster.NewIDSet(p.GPU).Intersect(sp.node.Inventory.Devices()))
		}
	}
	sp.settle()
	if sp.jobs == 0 {
		sp.closed, sp.taken = 0, 0
	}
}

// reservation is the planned start of a job at the head of the queue.
type reservation struct {
	job   cluster.JobID
	at    time.Time
	nodes nodeSet // where it will run
	list  []cluster.NodeName
	alloc *cluster.Alloc // as it would be then
	// rests is what those nodes will have left beside it, for jobs that will still run then; by place, rising.
	rests []rest
	spent bool // less of it than when it was planned
	// barred is CPUs that were kept from it: others may have them meanwhile and then.
	barred *barred
	parts  []*part // of a heterogeneous job, whose start this is
	pool   *pool   // as it will be then
	seen   int     // changes of it that were known
}

// newReservation keeps an allocation of a pool, which stays as it is. Where nothing has changed since an earlier one for the
// same time, if there is one, that tells what is left.
func newReservation(p *pool, at time.Time, a *cluster.Alloc, last *reservation) *reservation {
	n := len(a.Shares)
	r := &reservation{at: at, nodes: make(nodeSet, len(p.spaces)), alloc: a, list: make([]cluster.NodeName, n), rests: make([]rest, n), pool: p, seen: len(p.changed)}
	if last != nil && (last.spent || last.pool != p) {
		last = nil
	}
	for k := range a.Shares {
		sh := &a.Shares[k]
		i, _ := p.at(sh.Node)
		r.list[k], r.nodes[i] = sh.Node, true
		if was := last.unchanged(i, sh); was != nil {
			r.rests[k] = *was
			r.rests[k].share = sh
			continue
		}
		sp := p.spaces[i]
		m := &p.models[sp.model]
		if sp.take(*sh, a.Over > 0); p.wholePlans {
			r.rests[k] = rest{place: i, share: sh, gpus: make([]int, len(m.types))}
			continue
		}
		l := rest{place: i, share: sh, cpus: sp.free, ids: sp.cpus, mem: sp.mem, gpus: make([]int, len(m.types))}
		for id := range sp.gpus.All() {
			l.gpus[m.typeOf[id]]++
		}
		r.rests[k] = l
	}
	r.arrange()
	return r
}

// arrange puts what is left into the order of the nodes' places.
func (r *reservation) arrange() {
	slices.SortFunc(r.rests, func(a, b rest) int { return a.place - b.place })
}

// beside is what will be left on a node of the reservation, nil on others.
func (r *reservation) beside(i int) *rest {
	if !r.nodes.has(i) {
		return nil
	}
	k := sort.Search(len(r.rests), func(k int) bool { return r.rests[k].place >= i })
	if k == len(r.rests) || r.rests[k].place != i {
		return nil
	}
	return &r.rests[k]
}

// changed reports whether a node is not as it was when the start was planned.
func (r *reservation) changed(i int32) bool { return int(r.pool.latest[i]) > r.seen }

// unchanged is what will be left on a node beside the same share, if the node is as it was.
func (r *reservation) unchanged(i int, sh *cluster.Share) *rest {
	if r == nil || r.changed(int32(i)) {
		return nil
	}
	l := r.beside(i)
	if l == nil || l.share.MemMB != sh.MemMB || l.share.Part != nil || sh.Part != nil || !l.share.CPUs.Equal(sh.CPUs) || !l.share.GPUs.Equal(sh.GPUs) {
		return nil
	}
	return l
}

// rest is a part of a node, by amounts: which CPUs and GPUs it will be is open, but for those that are kept for jobs of
// reservations. Of CPUs those of cores that are free as a whole count.
type rest struct {
	place int
	share *cluster.Share // what the planned start takes there
	cpus  int
	ids   cluster.IDSet // the CPUs, as planned
	gpus  []int         // by type, see model
	mem   cluster.MemMB
}

// trim takes from a space of the pool what is more than the rest, for a job that some CPUs are kept from.
func (l *rest) trim(p *pool, sp *space, barred cluster.IDSet) {
	ids, most := wholeUnits(&sp.node.Inventory, sp.cpus, sp.unit), l.cpus
	if !barred.Empty() {
		most = min(most, l.ids.Minus(barred).Len())
	}
	sp.cpus = first(ids, func(int) bool { return true }, most)
	var gpus cluster.IDSet
	for kind, n := range l.gpus {
		gpus = gpus.Union(first(sp.gpus, func(k int) bool { return p.models[sp.model].typeOf[k] == kind }, n))
	}
	sp.gpus, sp.mem, sp.parts = gpus, min(sp.mem, l.mem), nil // whole GPUs alone are spared
	sp.settle()
}

// first is the n lowest of the set that count.
func first(set cluster.IDSet, counts func(int) bool, n int) cluster.IDSet {
	var ids []int
	for k := range set.All() {
		if len(ids) >= n {
			break
		}
		if counts(k) {
			ids = append(ids, k)
		}
	}
	return cluster.NewIDSet(ids...)
}

// outlives notes that a job with these shares still runs when the reserved start comes.
func (r *reservation) outlives(p *pool, shares []cluster.Share) {
	for _, sh := range shares {
		i, ok := p.at(sh.Node)
		if !ok {
			continue
		}
		l := r.beside(i)
		if l == nil {
			continue
		}
		r.spent, l.gpus = true, slices.Clone(l.gpus)
		l.cpus, l.mem = l.cpus-sh.CPUs.Len(), l.mem-sh.MemMB
		if r.barred != nil { // for those of its own that are gone it will have others
			gone := sh.CPUs.Minus(l.ids).Len()
			l.ids = l.ids.Minus(sh.CPUs)
			l.ids = l.ids.Minus(l.ids.Minus(r.barred.on(int32(i))).First(gone))
		}
		types := p.models[p.spaces[i].model].typeOf
		for k := range sh.GPUs.All() {
			l.gpus[types[k]]--
		}
		if sh.Part != nil {
			l.gpus[types[sh.Part.GPU]]--
		}
	}
}
