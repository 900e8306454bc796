package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// timeline has the start of a job planned that could start nowhere: at once or, in the responsive order, for most
// jobs when all others of the tier have had their turn.
func (c *cycle) timeline(b blockedJob) {
	if !c.responsive || c.earnsProtection(b.job, c.current.queueWait) && !c.partitionsTaken(b.job) {
		c.planBlocked(b)
		return
	}
	c.blocked = append(c.blocked, b)
}

// planBlocked plans the start of a blocked job if it is the first of a partition, and records why it waits.
func (c *cycle) planBlocked(b blockedJob) {
	if b.components != nil {
		c.planBlockedHet(b)
		return
	}
	why, planned := c.planFirstBlocked(b.job, b.shapes)
	note := ""
	if len(c.reserved) > 0 {
		note = c.reservedNote(b.shapes[0], b.job)
		if note != "" {
			why = cluster.WaitNodeNotAvail
		}
	}
	c.recordWait(b.job, why, note, planned)
}

// plannedAcross is the mask of planned starts that come before a job is over if it starts now, and when it is over.
func (c *cycle) plannedAcross(j *cluster.Job) (mask uint64, over time.Time) {
	return c.plannedWithin(j.Limit)
}

// plannedWithin is plannedAcross for a time limit.
func (c *cycle) plannedWithin(limit time.Duration) (mask uint64, over time.Time) {
	over = EndOf(c.now, limit)
	for i, ps := range c.planned {
		if over.After(ps.At) {
			mask |= 1 << i
		}
	}
	return mask, over
}

// planFirstBlocked gives the first blocked job of each partition a planned start that no later job of this cycle can
// delay (EASY backfill). Planned starts keep off each other's nodes.
func (c *cycle) planFirstBlocked(j *cluster.Job, shapes []*jobShape) (cluster.Reason, *place.PlannedStart) {
	first := false
	var best *place.PlannedStart
	if !c.responsive && !c.earnsProtection(j, 0) {
		return cluster.WaitPriority, nil
	}
	for _, shape := range shapes {
		if c.firstBlocked[shape.part] != nil {
			continue
		}
		first = true
		c.firstBlocked[shape.part] = j
		if len(c.planned) >= maxPlannedStarts || !c.meter.Reserves(j, shape.part.Name) {
			continue
		}
		if ps := c.planStart(shape, j); ps != nil && (best == nil || ps.At.Before(best.At)) {
			best = ps
		}
	}
	if !first {
		return cluster.WaitPriority, nil
	}
	if best != nil {
		best.Job = j.ID
		c.planned = append(c.planned, best)
	}
	return cluster.WaitResources, best
}

// releaseTimeline is what runs, and what this cycle has started, by when it will be over.
func (c *cycle) releaseTimeline() []place.Release {
	if c.releases == nil {
		c.releases = releases(c.s)
		for _, rn := range c.reserved { // at these moments, too, more can be had
			c.releases = append(c.releases, place.Release{At: rn.End})
			if rn.Start.After(c.now) {
				c.releases = append(c.releases, place.Release{At: rn.Start})
			}
		}
		slices.SortStableFunc(c.releases, func(a, b place.Release) int { return a.At.Compare(b.At) })
	}
	if len(c.started) == 0 {
		return c.releases
	}
	all := slices.Concat(c.releases, c.started)
	slices.SortStableFunc(all, func(a, b place.Release) int { return a.At.Compare(b.At) })
	return all
}

// plannedNodes is the nodes of all planned starts.
func (c *cycle) plannedNodes() place.NodeSet {
	if len(c.planned) == 0 {
		return nil
	}
	set := c.free.NoNodes()
	for _, ps := range c.planned {
		for i, in := range ps.Nodes {
			set[i] = set[i] || in
		}
	}
	return set
}
