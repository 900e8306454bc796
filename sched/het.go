package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dev.muster/cluster"
)

// Heterogeneous jobs: all components start at one instant or none does, on nodes of their own, at the leader's place in
// the queue. While one of them can not start the others hold nothing; the earliest time at which all can is planned
// for the whole, as one reservation.

// maxSwaps bounds the orders in which components are tried.
const maxSwaps = 8

// part is a component, and what it asks of each partition that it may start in.
type part struct {
	job     *cluster.Job   // to end before its deadline, if it may be cut
	why     cluster.Reason // if it may not start now whatever is free, or for limits not where it fits
	note    string
	qs      []*question
	limited []*question              // in none of which a limit lets it start; nil if it is not limits that keep it
	may     []map[cluster.JobID]bool // by question, those that it may make leave
	k       int                      // the question that it fits
	alloc   *cluster.Alloc
	limit   time.Duration // with which it fits
	plan    *reservation
}

// set looks at a heterogeneous job, once for all its components: when its leader's turn comes.
func (c *cycle) set(lead *cluster.Job) {
	c.het = true
	if lead.Follows() {
		return
	}
	parts, ok := c.components(lead)
	if parts == nil {
		return
	}
	if ok && c.fitSet(parts, c.fitNow) {
		c.startSet(parts)
		return
	}
	if slices.ContainsFunc(parts, func(p *part) bool { return p.why != cluster.NoReason }) {
		c.bar(parts)
		return
	}
	if c.makeRoomSet(lead, parts) {
		return
	}
	if b := (blocked{job: lead, at: c.turn.at, parts: parts}); !c.responsive || c.binds(lead, c.turn.patience) && !c.ahead(lead) {
		c.line(b)
	} else {
		c.blocked = append(c.blocked, b)
	}
}

// components are those of a job whose turn has come, none while some are not back yet; false if one of them may not start now
// whatever is free.
func (c *cycle) components(lead *cluster.Job) (parts []*part, ok bool) {
	all := c.s.Components(lead)
	if len(all) != lead.Het.Size || slices.ContainsFunc(all, func(o *cluster.Job) bool { return o.Phase != cluster.Pending }) {
		return nil, false
	}
	meter, used := c.limits.Fork(), maps.Clone(c.used)
	defer func() { c.used = used }()
	ok = true
	for _, o := range all {
		p := &part{job: c.beforeDeadline(o)}
		p.why, p.note = c.barred(p, meter)
		parts, ok = append(parts, p), ok && p.why == cluster.NoReason
	}
	return parts, ok
}

// bar notes why components may not start whatever is free; the others have no reason of their own. If it is limits alone, they
// may hold back others in the partitions of those that they keep, as those of plain jobs do.
func (c *cycle) bar(parts []*part) {
	if c.s.Config().LimitStop && !slices.ContainsFunc(parts, func(p *part) bool { return p.why != cluster.NoReason && p.limited == nil }) {
		for _, p := range parts {
			c.stop(p.limited)
		}
	}
	for _, p := range parts {
		if p.job.Held == cluster.NotHeld {
			c.wait(p.job, p.why, p.note, nil)
		}
	}
}

// barred finds a component's questions, or why it has none beside those before it, which the meter has counted.
func (c *cycle) barred(p *part, meter *cluster.Meter) (cluster.Reason, string) {
	_, why := c.s.Ready(p.job, c.now)
	if why == cluster.NoReason && c.evict != nil && c.s.Yields(p.job, c.now) {
		why = cluster.WaitPriority
	}
	if why != cluster.NoReason {
		return why, ""
	}
	qs, why, note := c.questions(p.job, nil)
	if len(qs) == 0 {
		return why, note
	}
	if p.job.Spec.Licenses != "" {
		if !c.licensed(p.job) {
			return cluster.WaitLicenses, ""
		}
		c.used = maps.Clone(c.used)
		c.license(p.job)
	}
	for _, q := range qs {
		if why = meter.Blocked(p.job, q.want.part.Name, nil); why == cluster.NoReason {
			p.qs = append(p.qs, q)
		}
	}
	if len(p.qs) == 0 {
		p.limited = qs
		return why, ""
	}
	one := p.qs[0].want.part
	if !slices.ContainsFunc(p.qs, func(q *question) bool { return q.want.part != one }) { // else nobody knows whose limits count
		meter.Start(p.job, one.Name, nil) // the next ones run beside it
	}
	return cluster.NoReason, ""
}

// finder finds nodes for what a component asks by its question k, away from some that are taken, and the time limit for it.
type finder func(p *part, k int, taken nodeSet) (*cluster.Job, *cluster.Alloc)

// fitSet finds allocations for all components. One that finds nothing beside those before it is tried first.
func (c *cycle) fitSet(parts []*part, find finder) bool {
	order := ranked(parts)
	for range maxSwaps {
		k := c.fitEach(order, find)
		if k < 0 {
			return true
		}
		if k == 0 {
			return false
		}
		order = slices.Concat(order[k:k+1], order[:k], order[k+1:])
	}
	return false
}

// ranked are the components in the order in which they choose their nodes: by their own priorities.
func ranked(parts []*part) []*part {
	return slices.SortedStableFunc(slices.Values(parts), func(a, b *part) int { return cmp.Compare(b.job.Priority, a.job.Priority) })
}

// fitEach gives each component nodes that none before it has; the number of the first that finds none, -1 if all do.
func (c *cycle) fitEach(order []*part, find finder) int {
	var taken nodeSet
	meter := c.limits.Fork()
	for k, p := range order {
		if p.alloc = nil; !p.fits(taken, meter, find) {
			return k
		}
		taken = union(taken, c.free.places(p.alloc))
	}
	return -1
}

// fits finds nodes for a component, where limits let it have them beside those before it; else why is the limit, if it is
// limits alone that do not.
func (p *part) fits(taken nodeSet, meter *cluster.Meter, find finder) bool {
	p.why, p.limited = cluster.NoReason, p.qs
	full := false
	for k, q := range p.qs {
		j, a := find(p, k, taken)
		if full = full || a == nil; a == nil {
			continue
		}
		if p.why = meter.Blocked(j, q.want.part.Name, a); p.why != cluster.NoReason {
			continue
		}
		if q.own != nil {
			a.Reservation = q.own.Name
		}
		p.k, p.alloc, p.limit, p.limited = k, a, j.Limit, nil
		meter.Start(j, a.Partition, a)
		return true
	}
	if full {
		p.why, p.limited = cluster.NoReason, nil
	}
	return false
}

// fitNow finds what is free now and delays no planned start, with a shorter time limit if that helps.
func (c *cycle) fitNow(p *part, k int, taken nodeSet) (*cluster.Job, *cluster.Alloc) {
	q := p.qs[k]
	fit := func(j *cluster.Job) *cluster.Alloc {
		mask, over := c.mask(j)
		return c.find(q, mask, c.off(q.own, j, c.now, over).and(taken))
	}
	j := c.allowed(q.want.part, p.job)
	if a := fit(j); a != nil || j.Spec.LimitMin == 0 {
		return j, a
	}
	return c.shorter(j, fit)
}

// startSet starts all components by one decision.
func (c *cycle) startSet(parts []*part) {
	at := len(c.out)
	if c.used == nil && slices.ContainsFunc(parts, func(p *part) bool { return p.job.Spec.Licenses != "" }) {
		c.used = c.s.LicensesUsed()
	}
	for _, p := range parts {
		short := *p.job
		short.Limit = p.limit
		c.start(&short, cluster.TaskAny, p.alloc)
		if full, _ := c.s.Job(p.job.ID); full.Limit != p.limit {
			c.out[len(c.out)-1].Limit = p.limit
		}
	}
	c.oneDecision(at)
}

// oneDecision makes what was decided from a place on for components one decision.
func (c *cycle) oneDecision(at int) {
	c.out[at].With = slices.Clone(c.out[at+1:])
	c.out = c.out[:at+1]
}

// lineSet records why a heterogeneous job waits, and when all of it is planned to start.
func (c *cycle) lineSet(b blocked) {
	lead := b.job
	first := c.responsive || c.binds(lead, 0)
	for _, p := range b.parts {
		first = first && slices.ContainsFunc(p.qs, func(q *question) bool { return c.waiting[q.want.part] == nil })
	}
	why := cluster.WaitPriority
	var whole *reservation
	if first {
		why, whole = cluster.WaitResources, c.reserveSet(lead, b.parts)
	}
	for _, p := range b.parts {
		note, own := "", why
		if len(c.reserved) > 0 {
			if _, alone := c.fitNow(p, 0, nil); alone == nil {
				note = c.reservedNote(p.qs[0], p.job)
			}
			if note != "" {
				own = cluster.WaitNodeNotAvail
			}
		}
		var head *reservation
		if whole != nil {
			head = p.plan
		}
		c.wait(p.job, own, note, head)
	}
}

// reserveSet plans a start of all components, and keeps their nodes for them.
func (c *cycle) reserveSet(lead *cluster.Job, parts []*part) *reservation {
	for _, p := range parts {
		for _, q := range p.qs {
			if c.waiting[q.want.part] == nil {
				c.waiting[q.want.part] = lead
			}
		}
	}
	if len(c.heads) >= maxHeads || slices.ContainsFunc(parts, func(p *part) bool { return !c.limits.Reserves(p.job, p.qs[0].want.part.Name) }) {
		return nil
	}
	kept := c.kept()
	all := c.planSet(lead, parts, c.timeline(), func(_ *pool, q *question, j *cluster.Job, at time.Time) off {
		return c.offFrom(q.own, j, at).and(kept)
	})
	if all != nil {
		c.heads = append(c.heads, all)
	}
	return all
}

// maxPlans bounds how often the components' plans are brought together.
const maxPlans = 16

// planSet finds when all components will fit if every job runs to its limit: the latest of their times, as one
// reservation; nil if none is found.
func (c *cycle) planSet(lead *cluster.Job, parts []*part, ends []release, avoid func(*pool, *question, *cluster.Job, time.Time) off) *reservation {
	var at time.Time
	for range maxPlans {
		latest, ok := c.planEach(parts, ends, avoid)
		if !ok {
			return nil
		}
		if latest.Equal(at) {
			break
		}
		at, ends = latest, slices.Clone(ends)
		for i := range ends { // whatever is free before is free then
			ends[i].at = later(ends[i].at, at)
		}
	}
	if slices.ContainsFunc(parts, func(p *part) bool { return !p.plan.at.Equal(at) }) {
		return nil // they do not come together
	}
	return asOne(lead, parts, at)
}

// asOne is the start of all components as one.
func asOne(lead *cluster.Job, parts []*part, at time.Time) *reservation {
	all := &reservation{job: lead.ID, at: at, parts: parts}
	var kept barred
	for _, p := range parts {
		all.nodes, all.list = union(all.nodes, p.plan.nodes), append(all.list, p.plan.list...)
		all.rests = append(all.rests, p.plan.rests...)
		for _, l := range p.plan.rests {
			kept.add(int32(l.place), p.plan.barred.on(int32(l.place)))
		}
	}
	if kept.places != nil {
		all.barred = &kept
	}
	all.arrange()
	return all
}

// planEach plans each component away from the nodes of those before it, and tells the latest time.
func (c *cycle) planEach(parts []*part, ends []release, avoid func(*pool, *question, *cluster.Job, time.Time) off) (latest time.Time, ok bool) {
	var taken nodeSet
	for _, p := range ranked(parts) {
		p.plan = nil
		for _, q := range p.qs {
			r, _ := plan(c.row(q.want.over), ends, q.want, func(then *pool, at time.Time) off { return avoid(then, q, p.job, at).and(taken) })
			if r != nil && (p.plan == nil || r.at.Before(p.plan.at)) {
				p.plan = r
			}
		}
		if p.plan == nil {
			return latest, false
		}
		latest, taken = later(latest, p.plan.at), union(taken, p.plan.nodes)
	}
	return latest, true
}

// leaderOf is the number of a job, of a heterogeneous one that of its leader.
func leaderOf(j *cluster.Job) cluster.JobID {
	if j.Het == nil {
		return j.ID
	}
	return j.Het.ID
}

// whole lists the components of a job's heterogeneous job, or the job alone.
func (c *cycle) whole(j *cluster.Job) []*cluster.Job {
	if j.Het == nil {
		return []*cluster.Job{j}
	}
	return c.s.Components(j)
}

// partitions lists those that a job, or any component of a heterogeneous one, may start in.
func (c *cycle) partitions(j *cluster.Job) (out []string) {
	if j.Het == nil {
		return j.Spec.Partitions
	}
	for _, o := range c.s.Components(j) {
		out = append(out, o.Spec.Partitions...)
	}
	return out
}

// share is the part of the cluster that a job asks for, or a heterogeneous one as a whole.
func (c *cycle) share(j *cluster.Job) (sum float64) {
	if j.Het == nil {
		return c.sizes().Share(j)
	}
	for _, o := range c.s.Components(j) {
		sum += c.sizes().Share(o)
	}
	return sum
}

// noteSet is note for a heterogeneous job: it is told with its leader.
func (f *forecast) noteSet(lead *cluster.Job, must bool, look func()) {
	if lead.Follows() {
		return
	}
	out, heads, blocked := len(f.out), len(f.heads), len(f.blocked)
	if look(); len(f.blocked) > blocked {
		return // it is looked at again
	}
	for _, o := range f.s.Components(lead) {
		f.starts[o.ID] = Start{Why: o.Wait, Note: o.WaitNote}
	}
	for _, d := range f.out[out:] {
		if o, ok := f.s.Job(d.Job); !ok || o.Het == nil || o.Het.ID != lead.ID {
			continue
		}
		for _, one := range append([]cluster.Decision{d}, d.With...) {
			f.starts[one.Job] = Start{Why: one.Wait, Note: one.Note}
			if one.Start != nil {
				f.starts[one.Job] = Start{At: f.now, Alloc: one.Start}
			}
		}
		if d.Start != nil {
			return
		}
	}
	var r *reservation
	if len(f.heads) > heads {
		r = f.heads[len(f.heads)-1]
	} else if must || f.extra < maxForecast {
		r = f.laterSet(lead)
		f.extra++
	}
	if r == nil {
		return
	}
	at, longest := later(r.at, f.now), time.Duration(0)
	var parts []part
	for _, p := range r.parts {
		parts = append(parts, *p)
		st := f.starts[p.job.ID]
		st.At, st.Alloc, longest = at, p.plan.alloc, max(longest, p.job.Limit)
		f.starts[p.job.ID] = st
	}
	f.take(&span{from: at, to: until(at, longest), first: begins(lead)}, parts...)
}

// laterSet is later for a heterogeneous job.
func (f *forecast) laterSet(lead *cluster.Job) *reservation {
	from := f.now
	var parts []*part
	for _, o := range f.s.Components(lead) {
		switch f.starts[o.ID].Why {
		case cluster.NoReason, cluster.WaitPriority, cluster.WaitResources, cluster.WaitNodeNotAvail, cluster.WaitReservation:
		case cluster.WaitBegin:
			from = later(from, begins(o))
		default:
			return nil
		}
		p := &part{job: o}
		qs, _, _ := f.questions(o, nil)
		for _, q := range qs {
			if f.limits.Blocked(o, q.want.part.Name, nil) == cluster.NoReason {
				p.qs = append(p.qs, q)
			}
		}
		parts = append(parts, p)
	}
	return f.planSet(lead, parts, f.moments(from), func(p *pool, q *question, j *cluster.Job, at time.Time) off {
		if at.Before(from) {
			return off{nodes: f.all()}
		}
		return f.beside(p, f.off(q.own, j, at, until(at, j.Limit)), at, until(at, j.Limit))
	})
}
