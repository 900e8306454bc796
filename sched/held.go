package sched

import (
	"slices"

	"dev.muster/cluster"
)

// Limits hold back jobs whatever fits. A scheduler that goes on from its last cycle knows of each job that asks why limits
// hold it back, if they do, and compares again only where what they look at has changed: jobs of which that makes a difference
// are looked at by themselves.

// heldTo notes to which limits the job is held that has just joined a question.
func (c *cycle) heldTo(q *question, j *cluster.Job) {
	if c.limits.Off() {
		return
	}
	g := c.limits.Gate(j, q.want.part.Name)
	if c.gated[g] == nil {
		c.gated[g] = map[*question][]*member{}
	}
	c.gated[g][q] = append(c.gated[g][q], q.jobs[len(q.jobs)-1])
	if j.Spec.LimitMin > 0 { // its time limit may be another, as time goes on
		c.fickle = append(c.fickle, j.ID)
	}
}

// holds is why limits keep a job from starting where a question is about, with what it asks for.
func (c *cycle) holds(q *question, own *cluster.Job) cluster.Reason {
	if c.limits.Off() {
		return cluster.NoReason
	}
	why := c.limits.Verdict(c.limits.Gate(own, q.want.part.Name), own.Limit, &q.asks)
	if n := len(q.jobs); !c.known && n > 0 && q.jobs[n-1].id == own.ID {
		q.jobs[n-1].held = why
	}
	return why
}

// unhold has the jobs looked at that limits hold back for another reason than before, or no longer, or now; false if that
// reaches farther.
func (r *round) unhold() bool {
	near := true
	r.reheld(true, func(m *member, why cluster.Reason) {
		m.held = why
		if r.blocks(m.id) {
			near, r.live = near && !r.responsive, true
		}
		near = near && !r.early[m.id]
		r.ask(m.id)
	})
	return near
}

// rehold is unhold when the job of an entry has started, of those whose turn comes later: they join the line. In the
// responsive order the first in line are looked at when all others were.
func (r *round) rehold(l *lineup, begun *entry) bool {
	near := true
	r.reheld(false, func(m *member, why cluster.Reason) {
		e := r.alone(m)
		switch {
		case r.responsive && r.isFirst(m.id):
			near = false
		case r.before(begun, e) && !r.blocks(m.id) && !r.early[m.id]:
			m.held = why
			l.add(e)
		}
	})
	return near
}

// reheld calls a function with each job of which limits say something else than is known. Those that ask no more are forgotten.
func (r *round) reheld(restless bool, f func(*member, cluster.Reason)) {
	for _, gate := range r.limits.Stirred(restless) {
		now := r.limits.Fill(gate)
		for q, list := range r.gated[gate] {
			why := now.Verdict(0, &q.asks)
			list = slices.DeleteFunc(list, func(m *member) bool { return !r.current(m) })
			r.gated[gate][q] = list
			for _, m := range list {
				if now.Timed {
					why = now.Verdict(m.limit, &q.asks)
				}
				if why != m.held {
					f(m, why)
				}
			}
		}
	}
}
