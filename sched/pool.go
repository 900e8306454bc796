package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// space is what is free on one node.
type space struct {
	node *cluster.Node
	cpus cluster.IDSet
	gpus cluster.IDSet
	mem  cluster.MemMB
	free int  // CPUs of cores that are free as a whole
	jobs int  // how many are there
	busy bool // some job is there
}

// settle derives the counts.
func (sp *space) settle() {
	sp.free, sp.busy = freeInCores(&sp.node.Inventory, sp.cpus), sp.jobs > 0
}

// pool is what is free on every node that counts, in node order.
type pool struct {
	spaces []space
	at     map[cluster.NodeName]int
	all    []int
	parts  map[*cluster.Partition][]int // places of each partition's nodes, in its order
}

// nodeSet is a set of places in a pool; nil is empty.
type nodeSet []bool

func (s nodeSet) has(i int) bool { return s != nil && s[i] }

// gather makes a pool of the nodes that count, with what load leaves free.
func gather(s *cluster.Snapshot, counts func(*cluster.Node) bool, devices func(*cluster.Inventory) cluster.IDSet,
	load func(cluster.NodeName) *cluster.Load) *pool {
	p := &pool{at: make(map[cluster.NodeName]int, s.NodeCount()), parts: map[*cluster.Partition][]int{}}
	none := &cluster.Load{}
	for n := range s.Nodes() {
		if !counts(n) {
			continue
		}
		l := none
		if load != nil {
			l = load(n.Name)
		}
		inv := &n.Inventory
		sp := space{node: n, mem: inv.MemMB - l.MemMB, jobs: len(l.Jobs),
			cpus: cluster.RangeIDSet(0, inv.CPUs-1), gpus: devices(inv)}
		if sp.jobs > 0 {
			sp.cpus, sp.gpus = sp.cpus.Minus(l.CPUs), sp.gpus.Minus(l.GPUs)
		}
		sp.settle()
		p.at[n.Name] = len(p.spaces)
		p.all = append(p.all, len(p.spaces))
		p.spaces = append(p.spaces, sp)
	}
	return p
}

// newPool is what is free now on the nodes that may be used.
func newPool(s *cluster.Snapshot) *pool {
	return gather(s, (*cluster.Node).Usable, (*cluster.Inventory).Devices, s.Load)
}

// whole is the pool as if nothing ran; with all, also of nodes that are not usable now.
func whole(s *cluster.Snapshot, all bool) *pool {
	devices := (*cluster.Inventory).Devices
	if all { // those too that may come back
		devices = func(inv *cluster.Inventory) cluster.IDSet { return cluster.RangeIDSet(0, len(inv.GPUs)-1) }
	}
	return gather(s, func(n *cluster.Node) bool { return all || n.Usable() }, devices, nil)
}

// members lists the places of a partition's nodes.
func (p *pool) members(part *cluster.Partition) []int {
	if part.All {
		return p.all
	}
	list, ok := p.parts[part]
	if !ok {
		for _, name := range part.Nodes {
			if i, ok := p.at[name]; ok {
				list = append(list, i)
			}
		}
		p.parts[part] = list
	}
	return list
}

func (p *pool) inPartition(part *cluster.Partition, i int) bool {
	return part.All || slices.Contains(p.members(part), i)
}

func (p *pool) clone() *pool {
	return &pool{spaces: slices.Clone(p.spaces), at: p.at, all: p.all, parts: p.parts}
}

func (p *pool) take(a *cluster.Alloc) {
	for _, sh := range a.Shares {
		if i, ok := p.at[sh.Node]; ok {
			sp := &p.spaces[i]
			sp.cpus, sp.gpus, sp.mem, sp.jobs = sp.cpus.Minus(sh.CPUs), sp.gpus.Minus(sh.GPUs), sp.mem-sh.MemMB, sp.jobs+1
			sp.settle()
		}
	}
}

// places is the set of the allocation's nodes.
func (p *pool) places(a *cluster.Alloc) nodeSet {
	set := make(nodeSet, len(p.spaces))
	for _, sh := range a.Shares {
		if i, ok := p.at[sh.Node]; ok {
			set[i] = true
		}
	}
	return set
}

// release is a moment at which an allocation becomes free.
type release struct {
	at     time.Time
	shares []cluster.Share
	noCPUs bool // its CPUs are free already: the job is suspended
}

// give returns shares to the pool.
func (p *pool) give(r release) {
	for _, sh := range r.shares {
		i, ok := p.at[sh.Node]
		if !ok {
			continue
		}
		sp := &p.spaces[i]
		sp.gpus, sp.mem, sp.jobs = sp.gpus.Union(sh.GPUs.Intersect(sp.node.Inventory.Devices())), sp.mem+sh.MemMB, sp.jobs-1
		if !r.noCPUs {
			sp.cpus = sp.cpus.Union(sh.CPUs)
		}
		sp.settle()
	}
}

// endless is how long a job without a limit is taken to run when starts are planned: Slurm's year.
const endless = 365 * 24 * time.Hour

// until is when a job that starts or started at a time is planned to be over.
func until(start time.Time, limit time.Duration) time.Time {
	return start.Add(min(limit, endless))
}

// releases lists when the live jobs are planned to end, soonest first. None of it depends on the
// present time, so that a plan stays the same while nothing changes.
func releases(s *cluster.Snapshot) (out []release) {
	for j := range s.Live() {
		at := j.EndLimit(s.Config())
		if at.IsZero() {
			at = until(j.Started, endless)
		}
		shares := j.Alloc.Shares
		switch {
		case j.Phase == cluster.Ending: // part of it may be free already
			at = j.EndingAt
			if len(j.Waiting) < len(shares) {
				shares = slices.DeleteFunc(slices.Clone(shares), func(sh cluster.Share) bool { return !slices.Contains(j.Waiting, sh.Node) })
			}
		case j.Phase == cluster.Suspended:
			at = until(j.SuspendedAt, endless)
		}
		out = append(out, release{at, shares, !j.SuspendedAt.IsZero()})
	}
	slices.SortStableFunc(out, func(a, b release) int { return a.at.Compare(b.at) })
	return out
}

// reservation is the planned start of a job at the head of the queue.
type reservation struct {
	job   cluster.JobID
	at    time.Time
	nodes nodeSet // where it will run
	list  []cluster.NodeName
	// beside is what those nodes will have left beside it, for jobs that will still run then.
	beside map[int]*rest
}

// rest is a part of a node, by amounts: which CPUs and GPUs it will be is open.
type rest struct {
	cpus int
	gpus map[string]int // by type
	mem  cluster.MemMB
}

// restOf is what is free on a node. With cores, only cores that are free as a whole count.
func restOf(sp *space, cores bool) *rest {
	l := &rest{cpus: sp.cpus.Len(), gpus: map[string]int{}, mem: sp.mem}
	if cores {
		l.cpus = sp.free
	}
	for k := range sp.gpus.All() {
		l.gpus[sp.node.Inventory.GPUs[k].Type]++
	}
	return l
}

// trim takes from a space what is more than the rest.
func (l *rest) trim(sp *space, cores bool) {
	ids := sp.cpus
	if cores {
		ids = wholeCores(&sp.node.Inventory, ids)
	}
	sp.cpus = first(ids, func(int) bool { return true }, l.cpus)
	var gpus cluster.IDSet
	for kind, n := range l.gpus {
		gpus = gpus.Union(first(sp.gpus, func(k int) bool { return sp.node.Inventory.GPUs[k].Type == kind }, n))
	}
	sp.gpus, sp.mem = gpus, min(sp.mem, l.mem)
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
		i, ok := p.at[sh.Node]
		l := r.beside[i]
		if !ok || l == nil {
			continue
		}
		l.cpus, l.mem = l.cpus-sh.CPUs.Len(), l.mem-sh.MemMB
		for k := range sh.GPUs.All() {
			l.gpus[p.spaces[i].node.Inventory.GPUs[k].Type]--
		}
	}
}

// plan finds when want will fit if every job runs to its limit; nil if it never will.
func plan(free *pool, ends []release, want *demand, avoid nodeSet) *reservation {
	future := free.clone()
	for i := 0; i < len(ends); {
		at := ends[i].at
		for ; i < len(ends) && ends[i].at.Equal(at); i++ {
			future.give(ends[i])
		}
		a := want.place(future, avoid)
		if a == nil {
			continue
		}
		r := &reservation{at: at, nodes: future.places(a), beside: map[int]*rest{}}
		future.take(a)
		for _, sh := range a.Shares {
			r.list = append(r.list, sh.Node)
			i := future.at[sh.Node]
			r.beside[i] = restOf(&future.spaces[i], want.wholeCore)
		}
		return r
	}
	return nil
}

// lessen takes from the pool what reservations of the mask need, for a while: restore gives it back.
func (p *pool) lessen(heads []*reservation, mask uint64, cores bool) (kept map[int]space) {
	kept = map[int]space{}
	for k, h := range heads {
		if mask>>k&1 == 0 {
			continue
		}
		for i, l := range h.beside {
			if _, ok := kept[i]; !ok {
				kept[i] = p.spaces[i]
			}
			l.trim(&p.spaces[i], cores)
		}
	}
	return kept
}

func (p *pool) restore(kept map[int]space) {
	for i, sp := range kept {
		p.spaces[i] = sp
	}
}
