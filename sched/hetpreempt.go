package sched

import (
	"dev.muster/cluster"
)

// Heterogeneous jobs that make others leave: victims are chosen for all components together, and nobody leaves unless all of
// them can start then.

// clearing is what a heterogeneous job finds out about who may leave for it, for one component these, for another those.
type clearing struct {
	*cycle
	parts  []*part
	rivals []victim
}

// clearing looks up who may leave for components.
func (c *cycle) clearing(parts []*part) *clearing {
	r := &clearing{cycle: c, parts: parts}
	all := map[cluster.JobID]victim{}
	for _, p := range parts {
		p.may = make([]map[cluster.JobID]bool, len(p.qs))
		for k, q := range p.qs {
			p.may[k] = map[cluster.JobID]bool{}
			for _, v := range c.rivals(p.job, q) {
				p.may[k][v.ID], all[v.ID] = true, v
			}
		}
	}
	for _, o := range c.evict.others {
		if v, ok := all[o.ID]; ok {
			r.rivals = append(r.rivals, v)
		}
	}
	return r
}

// groundKey names what components of one kind see as free.
type groundKey struct {
	rivalKey
	over int
}

// fit finds where all components would be once some have left: each in the place only of those that it may make leave.
func (r *clearing) fit(gone []victim) (at []claim) {
	grounds := map[groundKey]*pool{}
	if !r.fitSet(r.parts, func(p *part, k int, taken nodeSet) (*cluster.Job, *cluster.Alloc) {
		q := p.qs[k]
		key := groundKey{r.rivalKey(p.job, q), q.want.over}
		if grounds[key] == nil {
			grounds[key] = r.soon(q.want.over)
			for _, v := range gone {
				if p.may[k][v.ID] {
					r.back(grounds[key], v)
				}
			}
		}
		return p.job, r.fitIn(grounds[key], q, p.job, taken)
	}) {
		return nil
	}
	for _, p := range r.parts {
		at = append(at, claim{job: p.job, q: p.qs[p.k], alloc: p.alloc, may: p.may[p.k]})
	}
	return at
}

// makeRoomSet is makeRoom for a heterogeneous job: nobody leaves unless all of it can start then, and the nodes are kept
// for all of it.
func (c *cycle) makeRoomSet(lead *cluster.Job, parts []*part) bool {
	if !c.clears(lead) {
		return false
	}
	e := c.evict
	owed, key := len(e.owed[lead.ID]) > 0, c.vainSet(parts)
	if _, known := e.vain[key]; known && !owed {
		return false
	}
	r := c.clearing(parts)
	at, when := r.fit(nil), e.gather(lead)
	var chosen []victim
	if at == nil && c.mayEvict(lead) {
		if chosen, at = c.victims(r.rivals, r.fit); at != nil {
			e.rooms++
			when = c.now
		}
	}
	if at == nil || chosen == nil && !owed { // nothing helps, or nobody need leave
		if c.mayEvict(lead) {
			e.vain[key] = 0
		}
		return false
	}
	from := len(c.out)
	for k, p := range parts {
		ground := c.soon(at[k].q.want.over)
		for _, v := range chosen {
			c.back(ground, v)
		}
		p.plan = c.planned(ground, at[k], when)
		if chosen != nil {
			c.out = append(c.out, c.evicts(at[k], chosen, p.plan))
		} else {
			c.wait(p.job, cluster.WaitResources, "", p.plan)
		}
		for _, q := range p.qs {
			c.waiting[q.want.part] = lead
		}
	}
	if chosen != nil {
		c.oneDecision(from)
	}
	c.heads = append(c.heads, asOne(lead, parts, when))
	return true
}

// vainSet names what all components ask together.
func (c *cycle) vainSet(parts []*part) (key vainKey) {
	e := c.evict
	for _, p := range parts {
		for k, q := range p.qs {
			before := e.sets[key]
			if key.q != nil && before == 0 {
				before = len(e.sets) + 1
				e.sets[key] = before
			}
			key = c.vainKey(p.job, q)
			key.before = before<<1 | b2i(k > 0) // another component, or another question of it
			if c.s.Config().Preempt.Type == cluster.PreemptQOS {
				key.prio = p.job.Priority
			}
		}
	}
	return key
}
