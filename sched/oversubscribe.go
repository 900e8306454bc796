package sched

import (
	"slices"

	"dev.muster/cluster"
)

// Oversubscription: in some partitions several jobs may be on one CPU. A job takes CPUs that nobody has where these
// suffice, on whichever nodes; else those that one job has at most, then two, up to what its partition says. For each
// such number there is a pool of its own, which sees as free what has fewer jobs. Memory and devices are given out once.

// overlap is how often a node's CPUs are given out, where that may be more than once.
type overlap struct {
	cluster.CPUUse
	all  cluster.IDSet // that jobs may have
	jobs int           // a CPU with fewer jobs is free
}

// oversubscribed reports whether several jobs may be on one CPU of the cluster, or are.
func oversubscribed(s *cluster.Snapshot) bool {
	parts := s.Config().Partitions
	return slices.ContainsFunc(parts, func(p cluster.Partition) bool { return p.Oversubscribes() })
}

// overlaps makes a space count how often its CPUs are given out.
func (sp *space) overlaps(use cluster.CPUUse, all cluster.IDSet, jobs int) {
	sp.over = &overlap{use, all, jobs}
	sp.cpus = all.Minus(use.Taken(jobs))
	sp.settle()
}

// giveOut takes CPUs for a job from those that are free; over says that it lets others beside it.
func (sp *space) giveOut(cpus cluster.IDSet, over bool) {
	if sp.over == nil {
		sp.cpus = sp.cpus.Minus(cpus)
		return
	}
	o := *sp.over
	o.Give(cpus, over)
	sp.over, sp.cpus = &o, o.all.Minus(o.Taken(o.jobs))
}

// takeBack is the reverse.
func (sp *space) takeBack(cpus cluster.IDSet) {
	if sp.over == nil {
		sp.cpus = sp.cpus.Union(cpus)
		return
	}
	o := *sp.over
	o.TakeBack(cpus)
	sp.over, sp.cpus = &o, o.all.Minus(o.Taken(o.jobs))
}

// row is the pool in which a CPU with fewer jobs is free.
func (c *cycle) row(jobs int) *pool {
	if jobs <= 1 {
		return c.free
	}
	for len(c.rows) <= jobs {
		c.rows = append(c.rows, nil)
	}
	if c.rows[jobs] == nil {
		p := c.free.clone()
		for i := range p.spaces {
			if sp := &p.spaces[i]; sp.over != nil {
				sp.overlaps(sp.over.CPUUse, sp.over.all, jobs)
				sp.kind = -1
			}
		}
		c.rows[jobs] = p
	}
	return c.rows[jobs]
}

// pools are all that know what is free now.
func (c *cycle) pools(do func(*pool)) {
	do(c.free)
	for _, p := range c.rows {
		if p != nil {
			do(p)
		}
	}
}

// find is that of the question, row by row.
func (c *cycle) find(q *question, mask uint64, avoid off) *cluster.Alloc {
	for jobs := 1; ; jobs++ {
		if a := q.find(c.row(jobs), c.heads, mask, avoid); a != nil || jobs >= q.want.over {
			return a
		}
	}
}
