package sched

import (
	"slices"

	"dev.muster/cluster"
)

// Limits hold back jobs whatever fits. A scheduler that goes on from its last cycle knows of each job that asks why limits
// hold it back, if they do, and compares again only where what they look at has changed: jobs of which that makes a difference
// are looked at by themselves.

// joinGate notes to which limits the job is held that has just joined a shape.
func (c *cycle) joinGate(shape *jobShape, j *cluster.Job) {
	if c.meter.Off() {
		return
	}
	g := c.meter.Gate(j, shape.demand.part.Name)
	if c.book.byGate[g] == nil {
		c.book.byGate[g] = map[*jobShape][]*shapeMember{}
	}
	c.book.byGate[g][shape] = append(c.book.byGate[g][shape], shape.members[len(shape.members)-1])
	if j.Spec.LimitMin > 0 { // its time limit may be another, as time goes on
		c.unstable = append(c.unstable, j.ID)
	}
}

// limitReason is why limits keep a job from starting where a shape is about, with what it asks for.
func (c *cycle) limitReason(shape *jobShape, own *cluster.Job) cluster.Reason {
	if c.meter.Off() {
		return cluster.NoReason
	}
	why := c.meter.Verdict(c.meter.Gate(own, shape.demand.part.Name), own.Limit, &shape.asking)
	if n := len(shape.members); !c.revisited && n > 0 && shape.members[n-1].id == own.ID {
		shape.members[n-1].limited = why
	}
	return why
}

// recheckLimits has the jobs looked at that limits hold back for another reason than before, or no longer, or now; false if that
// reaches farther.
func (ip *incrementalPass) recheckLimits() bool {
	near := true
	ip.eachLimitChange(true, func(m *shapeMember, why cluster.Reason) {
		m.limited = why
		if ip.isFirstBlocked(m.id) {
			near, ip.runningChanged = near && !ip.responsive, true
		}
		near = near && !ip.limitedProtected[m.id]
		ip.visit(m.id)
	})
	return near
}

// recheckLaterLimits is unhold when the job of an entry has started, of those whose turn comes later: they join the line. In the
// responsive order the first in line are looked at when all others were.
func (ip *incrementalPass) recheckLaterLimits(ch *candidateHeap, begun *candidate) bool {
	near := true
	ip.eachLimitChange(false, func(m *shapeMember, why cluster.Reason) {
		cand := ip.candidateFor(m)
		switch {
		case ip.responsive && ip.isOldFirstBlocked(m.id):
			near = false
		case ip.precedes(begun, cand) && !ip.isFirstBlocked(m.id) && !ip.limitedProtected[m.id]:
			m.limited = why
			ch.addJob(cand)
		}
	})
	return near
}

// eachLimitChange calls a function with each job of which limits say something else than is known. Those that ask no more are forgotten.
func (ip *incrementalPass) eachLimitChange(restless bool, f func(*shapeMember, cluster.Reason)) {
	for _, gate := range ip.meter.Stirred(restless) {
		now := ip.meter.Fill(gate)
		for shape, list := range ip.book.byGate[gate] {
			why := now.Verdict(0, &shape.asking)
			list = slices.DeleteFunc(list, func(m *shapeMember) bool { return !ip.isCurrent(m) })
			ip.book.byGate[gate][shape] = list
			for _, m := range list {
				if now.Timed {
					why = now.Verdict(m.limit, &shape.asking)
				}
				if why != m.limited {
					f(m, why)
				}
			}
		}
	}
}
