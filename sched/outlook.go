package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// outlook is what a planned start rests on: the nodes as they are expected when all is over that is planned to be
// over before it, and when that is over, too, which ends with it. It is kept from cycle to cycle and follows the nodes
// that change, for as long as those before the start plainly do not suffice and those at it do: then no other
// moment comes into question.
type outlook struct {
	at     time.Time
	before *pool // with nothing on nodes that are kept free for others
	then   *pool
	look   *view // of then
	kept   nodeSet
	places []int32 // of the plan, in the order of their choice; nil: not known
	plan   *reservation
	seen   int // changes of the pool at hand that are in it
}

// plan finds when what a question asks will fit for a job's time if every job runs to its limit, away from the nodes of
// planned starts and of reservations; nil if it never will.
func (c *cycle) plan(q *question, j *cluster.Job) *reservation {
	kept := c.kept()
	if o := q.outlook; o != nil && c.unreserved(q, j, o.at) && o.holds(c, kept) {
		return o.plan
	}
	q.outlook = nil
	r, look := plan(c.row(q.want.over), c.timeline(), q.want, func(_ *pool, at time.Time) off { return c.offFrom(q.own, j, at).and(kept) })
	if r == nil || !c.unreserved(q, j, r.at) || c.free.shared || !look.numbers {
		return r
	}
	o := &outlook{at: r.at, before: look.p.clone(), then: look.p, look: look, plan: r, seen: len(c.free.changed)}
	for _, e := range c.timeline() {
		for _, sh := range e.shares {
			if i, ok := c.free.at(sh.Node); ok && e.at.Equal(r.at) {
				o.before.set(i, o.ahead(c, i))
			}
		}
	}
	o.keep(c, kept)
	q.outlook = o
	return r
}

// unreserved reports whether a job has nothing to do with reservations wherever it starts until a time.
func (c *cycle) unreserved(q *question, j *cluster.Job, at time.Time) bool {
	over := until(later(at, c.now), j.Limit)
	return q.own == nil && !slices.ContainsFunc(c.reserved, func(k *keptNodes) bool { return k.Start.Before(over) })
}

// offFrom is what a job must keep off that starts at a time, or now if that has passed: jobs may end later than is planned.
func (c *cycle) offFrom(own *keptNodes, j *cluster.Job, at time.Time) off {
	at = later(at, c.now)
	return c.off(own, j, at, until(at, j.Limit))
}

// holds brings the plan up to date; false if another moment comes into question.
func (o *outlook) holds(c *cycle, kept nodeSet) bool {
	same, others := o.follow(c), o.keep(c, kept)
	same = same && !others && !o.plan.spent && !o.look.d.gradient // which follows the jobs of late
	if !o.look.hopeless(o.before.scene(nil, 0)) {
		return false
	}
	if same {
		return true
	}
	choice := o.look.pick(kept)
	if choice == nil {
		return false
	}
	if !o.plan.spent && slices.Equal(choice.places, o.places) && !slices.ContainsFunc(o.places, o.plan.changed) {
		return true
	}
	a := o.look.allot(choice.places)
	if a != nil {
		o.places, o.plan = choice.places, newReservation(o.then, o.at, a, o.plan)
	}
	return a != nil
}

// follow takes the changes of the nodes at hand into account; it reports whether they make no difference at the start.
func (o *outlook) follow(c *cycle) bool {
	same := true
	for ; o.seen < len(c.free.changed); o.seen++ {
		ch, news := c.free.news(o.seen, 0)
		if !news {
			continue
		}
		i := int(ch.at)
		o.before.set(i, o.ahead(c, i))
		same = !o.then.set(i, c.expected(i, o.at)) && same
	}
	return same
}

// keep has other nodes kept free for others; it reports whether they are other ones.
func (o *outlook) keep(c *cycle, kept nodeSet) bool {
	if slices.Equal(o.kept, kept) {
		return false
	}
	was := o.kept
	o.kept = kept
	for i := range o.before.spaces {
		if was.has(i) != kept.has(i) {
			o.before.set(i, o.ahead(c, i))
		}
	}
	return true
}

// ahead is what is expected of a node just before the start, which is nothing where it is kept free for others.
func (o *outlook) ahead(c *cycle, i int) space {
	sp := c.expected(i, o.at.Add(-1))
	if o.kept.has(i) {
		sp.cpus, sp.gpus, sp.mem = cluster.IDSet{}, cluster.IDSet{}, 0
		sp.settle()
	}
	return sp
}

// set replaces what is free on a node; it reports whether that is something else.
func (p *pool) set(i int, sp space) bool {
	was := &p.spaces[i]
	if was.cpus.Equal(sp.cpus) && was.gpus.Equal(sp.gpus) && was.mem == sp.mem && slices.Equal(was.parts, sp.parts) && was.jobs == sp.jobs && was.closed == sp.closed {
		return false
	}
	*was = sp
	p.note(i, true)
	return true
}

// lessened is what may be used of a node.
type lessened struct {
	place int
	space
}

// lessen has nodes have what is told, and tells what they had.
func (p *pool) lessen(list []lessened) (had []lessened) {
	for k := range list {
		i := list[k].place
		had = append(had, lessened{i, p.spaces[i]})
		p.set(i, list[k].space)
	}
	return had
}

// expected is what will be free on a node when all is over there that is planned to be over by a time.
func (c *cycle) expected(i int, by time.Time) space {
	sp := c.free.spaces[i]
	for _, id := range c.s.Load(sp.node.Name).Jobs {
		j, ok := c.s.Job(id)
		if !ok || j.Alloc == nil {
			continue
		}
		if j = j.On(sp.node.Name); overAt(j, c.s.Config()).After(by) || j.Phase == cluster.Ending && !slices.Contains(j.Waiting, sp.node.Name) {
			continue
		}
		sp.giveOf(j.Alloc.Shares, !j.HoldsCPUs())
	}
	for _, e := range c.begun {
		if !e.at.After(by) {
			sp.giveOf(e.shares, false)
		}
	}
	return sp
}

// giveOf returns the node's share of an allocation.
func (sp *space) giveOf(shares []cluster.Share, noCPUs bool) {
	for k := range shares {
		if shares[k].Node == sp.node.Name {
			sp.give(shares[k], noCPUs)
		}
	}
}

// endless is how long a job without a limit is taken to run when starts are planned: Slurm's year.
const endless = 365 * 24 * time.Hour

// until is when a job that starts or started at a time is planned to be over.
func until(start time.Time, limit time.Duration) time.Time {
	return start.Add(min(limit, endless))
}

// release is a moment at which an allocation becomes free.
type release struct {
	at     time.Time
	shares []cluster.Share
	noCPUs bool // its CPUs are free already: the job is suspended
}

// overAt is when a live job is planned to be over. None of it depends on the present time, so that a plan stays the
// same while nothing changes.
func overAt(j *cluster.Job, cfg *cluster.Config) time.Time {
	switch j.Phase {
	case cluster.Ending:
		return j.EndingAt
	case cluster.Suspended:
		if !j.AwaitsTurn() {
			return until(j.SuspendedAt, endless)
		}
	}
	if at := j.EndLimit(cfg); !at.IsZero() {
		return at
	}
	return until(j.Started, endless)
}

// releases lists when the live jobs are planned to end.
func releases(s *cluster.Snapshot) []release {
	out := make([]release, 0, 256)
	for j := range s.Live() {
		out = append(out, releasesOf(j, s.Config())...)
	}
	return out
}

// releasesOf lists when a live job is planned to give back what it holds: what it has given back on nodes that are not clean of it
// yet, and the rest.
func releasesOf(j *cluster.Job, cfg *cluster.Config) []release {
	shares := j.HeldShares()
	n := len(shares) - len(j.Leaving())
	out := []release{{overAt(j, cfg), shares[:n], !j.HoldsCPUs()}}
	if n < len(shares) {
		out = append(out, release{j.ResizedAt(), shares[n:], !j.HoldsCPUs()})
	}
	return out
}

// plan finds when want will fit if every job runs to its limit, with a look at all nodes at that time; nil if it
// never will. avoid tells what is out of question at a time, at which the nodes are as the pool has them.
func plan(free *pool, ends []release, want *demand, avoid func(then *pool, at time.Time) off) (*reservation, *view) {
	future := free.clone()
	g := newGauge(want, future)
	look := g.view(future, nil, 0)
	for i := 0; i < len(ends); {
		at := ends[i].at
		for ; i < len(ends) && ends[i].at.Equal(at); i++ {
			future.give(ends[i])
		}
		if g.hopeless(future.scene(nil, 0)) {
			continue
		}
		o := avoid(future, at)
		more := future.lessen(o.less)
		if a := look.find(o); a != nil {
			r := newReservation(future, at, a, nil)
			r.barred = look.barred
			return r, look
		}
		future.lessen(more)
	}
	return nil, nil
}
