package sched

import (
	"slices"

	"dev.muster/cluster"
)

// Limits hold back jobs whatever fits. Of each member of a shape it is known why limits hold it back, if they do.
// Members are filed by what limits them (a gate of the meter), and compared again only where a gate has reopened, that
// is where its limits or what counts against them have changed. Jobs of which that makes a difference get a turn of
// their own.

// joinGate files the job that has just joined a shape.
func (c *cycle) joinGate(shape *jobShape, j *cluster.Job) {
	if c.meter.Off() {
		return
	}
	gate := c.meter.Gate(j, shape.part.Name)
	if c.book.byGate[gate] == nil {
		c.book.byGate[gate] = map[*jobShape][]*shapeMember{}
	}
	c.book.byGate[gate][shape] = append(c.book.byGate[gate][shape], shape.members[len(shape.members)-1])
	if j.Spec.LimitMin > 0 { // as time goes on its time limit may be cut to another one
		c.unstable = append(c.unstable, j.ID)
	}
}

// limitReason is why limits keep a job of a shape from starting, with what it asks for.
func (c *cycle) limitReason(shape *jobShape, j *cluster.Job) cluster.Reason {
	if c.meter.Off() {
		return cluster.NoReason
	}
	why := c.meter.Verdict(c.meter.Gate(j, shape.part.Name), j.Limit, &shape.asking)
	if n := len(shape.members); !c.revisited && n > 0 && shape.members[n-1].id == j.ID {
		shape.members[n-1].limited = why
	}
	return why
}

// recheckLimits gives jobs a turn that limits hold back for another reason than at the last cycle, or no longer, or
// now; an error where others depend on such a job.
func (ip *incrementalPass) recheckLimits() (err error) {
	ip.eachLimitChange(true, func(m *shapeMember, why cluster.Reason) {
		m.limited = why
		if ip.isFirstBlocked(m.id) {
			ip.runningChanged = true
		}
		if ip.isFirstBlocked(m.id) && ip.responsive || ip.limitedProtected[m.id] {
			err = errLimitsReach
		}
		ip.visit(m.id)
	})
	return err
}

// recheckLaterLimits does the same once the job of a candidate has started, for jobs that have their turn later: they
// become candidates. In the responsive order the first in line have theirs when all others had.
func (ip *incrementalPass) recheckLaterLimits(ch *candidateHeap, started *candidate) (err error) {
	ip.eachLimitChange(false, func(m *shapeMember, why cluster.Reason) {
		cand := ip.candidateFor(m)
		switch {
		case ip.responsive && ip.isOldFirstBlocked(m.id):
			err = errLimitsReach
		case ip.precedes(started, cand) && !ip.isFirstBlocked(m.id) && !ip.limitedProtected[m.id]:
			m.limited = why
			ch.addJob(cand)
		}
	})
	return err
}

// eachLimitChange calls a function with each member of which limits say something else than is known. Void members
// are dropped.
func (ip *incrementalPass) eachLimitChange(unsteady bool, f func(*shapeMember, cluster.Reason)) {
	for _, gate := range ip.meter.Reopened(unsteady) {
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
