package sched

import (
	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Oversubscription: in some partitions several jobs may be on one CPU. A job takes CPUs that nobody has where these
// suffice, on whichever nodes; else those that one job has at most, then two, up to what its partition says. For each
// such number there is a free set of its own, which sees as free what has fewer jobs. Memory and devices are given
// out once.

// freeWithOverlap is the free set in which a CPU with fewer jobs than this is free.
func (c *cycle) freeWithOverlap(jobs int) *place.FreeSet {
	if jobs <= 1 {
		return c.free
	}
	for len(c.freeByOverlap) <= jobs {
		c.freeByOverlap = append(c.freeByOverlap, nil)
	}
	if c.freeByOverlap[jobs] == nil {
		c.freeByOverlap[jobs] = c.free.WithOverlap(jobs)
	}
	return c.freeByOverlap[jobs]
}

// eachFreeSet does something to the free sets of all numbers of jobs a CPU.
func (c *cycle) eachFreeSet(do func(*place.FreeSet)) {
	do(c.free)
	for _, fs := range c.freeByOverlap {
		if fs != nil {
			do(fs)
		}
	}
}

// findNow finds an allocation among what is free now, on CPUs with as few jobs as possible.
func (c *cycle) findNow(shape *jobShape, j *cluster.Job, mask uint64, avoid place.Exclusion) *cluster.Alloc {
	local := c.images.Of(j, c.free)
	for jobs := 1; ; jobs++ {
		a := shape.fit.FindNear(local, c.freeWithOverlap(jobs), c.planned, mask, avoid)
		if a != nil || jobs >= shape.demand.JobsPerCPU {
			return a
		}
	}
}
