package sched

import (
	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Heterogeneous jobs that make others leave: victims are chosen for all components together, and nobody leaves unless
// all of them can start then.

// hetPreemption is what a heterogeneous job finds out about who may leave for it, for one component these, for
// another those.
type hetPreemption struct {
	*cycle
	parts      []*component
	candidates []victim
}

// newHetPreemption looks up who may leave for components.
func (c *cycle) newHetPreemption(comps []*component) *hetPreemption {
	hp := &hetPreemption{cycle: c, parts: comps}
	all := map[cluster.JobID]victim{}
	for _, comp := range comps {
		comp.preemptible = make([]map[cluster.JobID]bool, len(comp.shapes))
		for k, shape := range comp.shapes {
			comp.preemptible[k] = map[cluster.JobID]bool{}
			for _, v := range c.victimsFor(comp.job, shape) {
				comp.preemptible[k][v.ID], all[v.ID] = true, v
			}
		}
	}
	for _, o := range c.preemption.runningJobs {
		if v, ok := all[o.ID]; ok {
			hp.candidates = append(hp.candidates, v)
		}
	}
	return hp
}

// clearedKey is what decides on what a component sees as free once others have left.
type clearedKey struct {
	victimsKey
	over int
}

// fitWithout finds where all components would be once some have left: each in the place only of those that it may
// make leave.
func (hp *hetPreemption) fitWithout(gone []victim) (at []preemptClaim) {
	grounds := map[clearedKey]*place.FreeSet{}
	if !hp.fitComponents(hp.parts, func(comp *component, k int, taken place.NodeSet) (*cluster.Job, *cluster.Alloc) {
		shape := comp.shapes[k]
		key := clearedKey{hp.victimsKeyOf(comp.job, shape), shape.demand.JobsPerCPU}
		if grounds[key] == nil {
			grounds[key] = hp.freeAfterLeaving(shape.demand.JobsPerCPU)
			for _, v := range gone {
				if comp.preemptible[k][v.ID] {
					hp.giveBackVictim(grounds[key], v)
				}
			}
		}
		return comp.job, hp.fitInSet(grounds[key], shape, comp.job, taken)
	}) {
		return nil
	}
	for _, comp := range hp.parts {
		at = append(at, preemptClaim{job: comp.job, shape: comp.shapes[comp.fits], alloc: comp.alloc,
			preemptible: comp.preemptible[comp.fits]})
	}
	return at
}

// preemptForHet is preemptFor for a heterogeneous job: nobody leaves unless all of it can start then, and the nodes
// are kept for all of it.
func (c *cycle) preemptForHet(lead *cluster.Job, comps []*component) bool {
	if !c.mayPreempt(lead) {
		return false
	}
	pre := c.preemption
	owed := len(pre.leavingFor[lead.ID]) > 0
	key := c.futileHetKey(comps)
	if _, known := pre.futile[key]; known && !owed {
		return false
	}
	hp := c.newHetPreemption(comps)
	at := hp.fitWithout(nil)
	when := pre.allGoneAt(lead)
	var chosen []victim
	if at == nil && c.mayEvict(lead) {
		chosen, at = c.chooseVictims(hp.candidates, hp.fitWithout)
		if at != nil {
			pre.preemptors++
			when = c.now
		}
	}
	if at == nil || chosen == nil && !owed { // nothing helps, or nobody need leave
		if c.mayEvict(lead) {
			pre.futile[key] = 0
		}
		return false
	}
	from := len(c.decisions)
	for k, comp := range comps {
		ground := c.freeAfterLeaving(at[k].shape.demand.JobsPerCPU)
		for _, v := range chosen {
			c.giveBackVictim(ground, v)
		}
		comp.plan = c.planClaim(ground, at[k], when)
		if chosen != nil {
			c.decisions = append(c.decisions, c.evictDecision(at[k], chosen, comp.plan))
		} else {
			c.recordWait(comp.job, cluster.WaitResources, "", comp.plan)
		}
		for _, shape := range comp.shapes {
			c.firstBlocked[shape.part] = lead
		}
	}
	if chosen != nil {
		c.mergeDecisions(from)
	}
	c.planned = append(c.planned, combinedStart(lead, comps, when))
	return true
}

// futileHetKey names what all components ask together.
func (c *cycle) futileHetKey(comps []*component) (key futileKey) {
	pre := c.preemption
	for _, comp := range comps {
		for k, shape := range comp.shapes {
			before := pre.hetNumbers[key]
			if key.shape != nil && before == 0 {
				before = len(pre.hetNumbers) + 1
				pre.hetNumbers[key] = before
			}
			key = c.futileKeyOf(comp.job, shape)
			key.before = before<<1 | b2i(k > 0) // another component, or another shape of it
			if c.s.Config().Preempt.Type == cluster.PreemptQOS {
				key.prio = comp.job.Priority
			}
		}
	}
	return key
}
