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
	busy bool // some job is there
}

// pool is what is free on every usable node, in node order.
type pool struct {
	spaces []space
	at     map[cluster.NodeName]int
}

func newPool(s *cluster.Snapshot) *pool {
	p := &pool{at: make(map[cluster.NodeName]int, s.NodeCount())}
	for n := range s.Nodes() {
		if !n.Usable() {
			continue
		}
		l := s.Load(n.Name)
		inv := &n.Inventory
		p.at[n.Name] = len(p.spaces)
		p.spaces = append(p.spaces, space{node: n, mem: inv.MemMB - l.MemMB, busy: len(l.Jobs) > 0,
			cpus: cluster.RangeIDSet(0, inv.CPUs-1).Minus(l.CPUs),
			gpus: cluster.RangeIDSet(0, len(inv.GPUs)-1).Minus(l.GPUs)})
	}
	return p
}

func (p *pool) clone() *pool {
	return &pool{spaces: slices.Clone(p.spaces), at: p.at}
}

func (p *pool) take(a *cluster.Alloc) {
	for _, sh := range a.Shares {
		if i, ok := p.at[sh.Node]; ok {
			sp := &p.spaces[i]
			sp.cpus, sp.gpus, sp.mem, sp.busy = sp.cpus.Minus(sh.CPUs), sp.gpus.Minus(sh.GPUs), sp.mem-sh.MemMB, true
		}
	}
}

// give returns a live job's shares to the pool, as when it will have ended.
func (p *pool) give(s *cluster.Snapshot, j *cluster.Job) {
	for _, sh := range j.Alloc.Shares {
		i, ok := p.at[sh.Node]
		if !ok || j.Phase == cluster.Ending && !slices.Contains(j.Waiting, sh.Node) {
			continue
		}
		sp := &p.spaces[i]
		sp.gpus, sp.mem = sp.gpus.Union(sh.GPUs), sp.mem+sh.MemMB
		if j.Phase != cluster.Suspended {
			sp.cpus = sp.cpus.Union(sh.CPUs)
		}
		sp.busy = sp.cpus.Len() < sp.node.Inventory.CPUs
	}
}

// reservation is the planned start of the head of the queue.
type reservation struct {
	job   cluster.JobID
	at    time.Time
	nodes map[cluster.NodeName]bool // where it will run; nil if it is not known
	list  []cluster.NodeName
}

// never is later than any start.
var never = time.Unix(1<<40, 0)

// plan finds when want will fit if every live job runs to its limit.
func plan(s *cluster.Snapshot, free *pool, want *demand, now time.Time) *reservation {
	type release struct {
		at  time.Time
		job *cluster.Job
	}
	var ends []release
	for j := range s.Live() {
		at := j.EndLimit(s.Config())
		switch {
		case j.Phase == cluster.Ending:
			at = now
		case at.IsZero():
			at = never
		case at.Before(now):
			at = now
		}
		ends = append(ends, release{at, j})
	}
	slices.SortStableFunc(ends, func(a, b release) int { return a.at.Compare(b.at) })
	future := free.clone()
	for i := 0; i < len(ends); {
		at := ends[i].at
		if at.Equal(never) {
			break
		}
		for ; i < len(ends) && ends[i].at.Equal(at); i++ {
			future.give(s, ends[i].job)
		}
		if a := want.place(future, nil); a != nil {
			r := &reservation{at: at, nodes: map[cluster.NodeName]bool{}}
			for _, sh := range a.Shares {
				r.nodes[sh.Node] = true
				r.list = append(r.list, sh.Node)
			}
			return r
		}
	}
	return &reservation{at: never, nodes: map[cluster.NodeName]bool{}}
}
