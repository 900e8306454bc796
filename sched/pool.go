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
		r := &reservation{at: at, nodes: future.places(a)}
		for _, sh := range a.Shares {
			r.list = append(r.list, sh.Node)
		}
		return r
	}
	return nil
}
