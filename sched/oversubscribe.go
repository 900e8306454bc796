package sched

import (
	"slices"

	"dev.muster/cluster"
)

// Oversubscription: in some partitions several jobs may be on one CPU. A job takes CPUs that nobody has where these
// suffice, on whichever nodes; else those that one job has at most, then two, up to what its partition says. For each
// such number there is a free set of its own, which sees as free what has fewer jobs. Memory and devices are given
// out once.

// cpuOverlap is how often a node's CPUs are given out, where that may be more than once.
type cpuOverlap struct {
	cluster.CPUUse
	all     cluster.IDSet // that jobs may have
	maxJobs int           // a CPU with fewer jobs is free
}

// oversubscribed reports whether several jobs may be on one CPU of the cluster, or are.
func oversubscribed(s *cluster.Snapshot) bool {
	parts := s.Config().Partitions
	return slices.ContainsFunc(parts, func(p cluster.Partition) bool { return p.Oversubscribes() })
}

// countOverlap has a node count how often its CPUs are given out; those with fewer jobs than some number are free.
func (free *nodeFree) countOverlap(use cluster.CPUUse, all cluster.IDSet, jobs int) {
	free.overlap = &cpuOverlap{use, all, jobs}
	free.cpus = all.Minus(use.Taken(jobs))
	free.recount()
}

// takeCPUs takes CPUs for a job from those that are free; over says that it lets others beside it.
func (free *nodeFree) takeCPUs(cpus cluster.IDSet, over bool) {
	if free.overlap == nil {
		free.cpus = free.cpus.Minus(cpus)
		return
	}
	o := *free.overlap
	o.Give(cpus, over)
	free.overlap, free.cpus = &o, o.all.Minus(o.Taken(o.maxJobs))
}

// giveBackCPUs is the reverse.
func (free *nodeFree) giveBackCPUs(cpus cluster.IDSet) {
	if free.overlap == nil {
		free.cpus = free.cpus.Union(cpus)
		return
	}
	o := *free.overlap
	o.TakeBack(cpus)
	free.overlap, free.cpus = &o, o.all.Minus(o.Taken(o.maxJobs))
}

// freeWithOverlap is the free set in which a CPU with fewer jobs than this is free.
func (c *cycle) freeWithOverlap(jobs int) *freeSet {
	if jobs <= 1 {
		return c.free
	}
	for len(c.freeByOverlap) <= jobs {
		c.freeByOverlap = append(c.freeByOverlap, nil)
	}
	if c.freeByOverlap[jobs] == nil {
		fs := c.free.clone()
		for i := range fs.nodes {
			if free := &fs.nodes[i]; free.overlap != nil {
				free.countOverlap(free.overlap.CPUUse, free.overlap.all, jobs)
				free.class = -1
			}
		}
		c.freeByOverlap[jobs] = fs
	}
	return c.freeByOverlap[jobs]
}

// eachFreeSet does something to the free sets of all numbers of jobs a CPU.
func (c *cycle) eachFreeSet(do func(*freeSet)) {
	do(c.free)
	for _, fs := range c.freeByOverlap {
		if fs != nil {
			do(fs)
		}
	}
}

// findNow finds an allocation among what is free now, on CPUs with as few jobs as possible.
func (c *cycle) findNow(shape *jobShape, j *cluster.Job, mask uint64, avoid exclusion) *cluster.Alloc {
	local := c.images.of(j, c.free)
	for jobs := 1; ; jobs++ {
		a := shape.findAmong(local, c.freeWithOverlap(jobs), c.planned, mask, avoid)
		if a != nil || jobs >= shape.demand.jobsPerCPU {
			return a
		}
	}
}
