package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dev.muster/cluster"
)

// Scheduler makes cycles that follow each other. It decides what Schedule would, always, but keeps what the last
// cycle has found out and looks only at what has changed since.
//
// Between two cycles it holds that every job looked at waits, and would wait again in a full pass over the same
// snapshot: a pass that is over has tried each job with the nodes that are free and the planned starts of those
// ahead of it, and as time goes on a job may only have to keep off more of these. So after a change only these
// jobs may start: those whose record has changed; those whose turn may come without that (see fickle); those that limits
// hold back no longer (see held.go); and, where nodes have more free or a planned start keeps less of them, those whose
// question can use such a node. They are looked at in the order of the queue, with the first blocked job of each partition,
// or the next in line where that has started (see inLine). Where the change reaches farther - to a reservation that a job
// could reach, to preemption, to anything that is not watched here - the pass is a full one.
type Scheduler struct {
	last  *cycle // nil: nothing is known
	nodes roster // as of the last full pass
	most  int    // records looked at in one cycle; 0: see depth
}

// Bounds of what is looked at again; beyond them a full pass is as quick.
const (
	maxFickle = 1000
	maxFreed  = 256 // nodes
	maxGrown  = 1 << 17
)

// Schedule decides like the function of this name.
func (s *Scheduler) Schedule(snap *cluster.Snapshot, now time.Time) []cluster.Decision {
	if c := s.last; c != nil {
		s.last = nil
		if r := (&round{cycle: c, old: c.s, asks: map[cluster.JobID]bool{}, done: map[cluster.JobID]bool{}}); r.begin(snap, now) && r.pass() {
			if c.keeps() {
				s.last = c
			}
			return c.out
		}
	}
	c := cycleOn(s.nodes.pool(snap), snap, now)
	c.pass(cmp.Or(s.most, c.depth()))
	c.first = len(c.posed)
	if c.keeps() {
		s.last = c
	}
	return c.out
}

// fickle reports whether a job may become ready, or cease to be, without a change of its record.
func fickle(j *cluster.Job, now time.Time) bool {
	s := j.Spec
	return len(j.Depends.Terms) > 0 || j.Eligible.After(now) || s.Begin.After(now) || s.Licenses != "" || s.Switches != 0 ||
		s.Array != nil && s.Array.Limit > 0
}

// steady reports whether the cluster is one whose cycles may go on from each other.
func (c *cycle) steady() bool {
	return !c.free.shared && !(c.responsive && c.tiers()) && c.s.Config().ReserveAge == nil && c.evict == nil && (c.limits.Off() || !c.s.Config().LimitStop) &&
		len(c.settling) == 0
}

// keeps reports whether the next cycle can go on from this one.
func (c *cycle) keeps() bool {
	if !c.steady() || c.near || c.het || c.strays || c.users || c.free.closed || len(c.fickle) > maxFickle || len(c.begun) >= maxStarts {
		return false
	}
	for _, j := range c.waiting {
		if fickle(j, c.now) {
			return false
		}
	}
	return true
}

// grown is how much is kept that only a full pass forgets: of jobs that have
// changed, questions that came since, changes of nodes, states that nodes were in.
func (c *cycle) grown() int {
	const each = 64 // cycles go through all questions
	return len(c.touched) + c.members - c.looked + each*(len(c.posed)-c.first) + len(c.free.changed) + len(c.free.kinds.list)
}

// round is a cycle that goes on from the one before.
type round struct {
	*cycle
	old    *cluster.Snapshot
	asks   map[cluster.JobID]bool              // jobs to look at by themselves; true: their questions do not know them yet
	open   []int                               // numbers of questions that may fit now, to join the line
	freed  []int                               // places of nodes that may have more free than before
	more   []int                               // these, and those of which a planned start keeps less
	live   bool                                // what runs has changed
	done   map[cluster.JobID]bool              // looked at
	firsts map[*cluster.Partition]*cluster.Job // that were blocked as the first of their partitions

	// In the strict order:
	anew   bool            // starts are planned anew from here on
	was    []*reservation  // the planned starts that the last cycle has left
	owners []cluster.JobID // whose they are
	plans  []*reservation  // these, or those that have taken their places
	headAt []cluster.Place // of the jobs whose these are
}

// begin takes over what has changed; false if that reaches too far.
func (r *round) begin(s *cluster.Snapshot, now time.Time) bool {
	c := r.cycle
	touched, ok := s.Since(r.old.Moment())
	if !ok || s.Config() != r.old.Config() || !c.outOfReach(s, now) || now.Before(c.now) || c.grown() > maxGrown || len(settling(s, now)) > 0 || c.free.calmed(s.Now) {
		return false
	}
	said := make(map[cluster.JobID]*cluster.Decision, len(c.out))
	nodes := map[cluster.NodeName]bool{}
	for i := range c.out {
		d := &c.out[i]
		if d.Start != nil { // taken or not, as the state tells
			for _, sh := range d.Start.Shares {
				nodes[sh.Node] = true
			}
			if j, ok := r.old.Job(d.Job); ok {
				c.limits.Stir(j, d.Start)
			}
		}
		said[d.Job] = d
		r.touch(d.Job)
	}
	c.s, c.now, c.out, c.begun, c.used = s, now, nil, nil, nil
	c.limits.GoOn(s, now)
	c.doubts = nil
	c.free.kinds.work = &workload{s: s}
	clear(c.running)
	c.rounds++
	for _, t := range touched {
		switch {
		case t.Node != "", t.Book && !c.limits.Off():
			return false
		case t.Load != "":
			nodes[t.Load] = true
		default:
			r.touch(t.Job)
		}
	}
	return r.settle(said) && !c.binding() && r.reload(nodes) && r.unhold()
}

// calmed reports whether trouble that some node had is long enough ago by now.
func (p *pool) calmed(now time.Time) bool {
	return p.plan.shaky && slices.ContainsFunc(p.spaces, func(sp space) bool { return sp.shaky && !sp.node.Shaky(now) })
}

func (r *round) touch(id cluster.JobID) { r.asks[id] = true }

// ask has a job looked at by itself.
func (r *round) ask(id cluster.JobID) {
	if _, ok := r.asks[id]; !ok {
		r.asks[id] = false
	}
}

// settle keeps of the jobs touched those to be looked at.
func (r *round) settle(said map[cluster.JobID]*cluster.Decision) bool {
	shift := 0
	for id := range r.asks {
		was, _ := r.old.Job(id)
		is, _ := r.s.Job(id)
		if is != nil && is.Het != nil && is.Phase == cluster.Pending {
			return false
		}
		if runs(was) || runs(is) {
			r.live = true
			r.shake(is)
			for _, j := range []*cluster.Job{was, is} {
				if runs(j) {
					r.limits.Stir(j, j.Alloc)
				}
			}
		}
		from, queued := r.old.PlaceOf(id)
		to, queues := r.s.PlaceOf(id)
		if queued && queues && from == to && same(was, is, said[id]) {
			delete(r.asks, id)
			continue
		}
		if queued && (r.blocks(id) || r.early[id]) {
			return false
		}
		if queues && r.delays(to) {
			return false
		}
		r.hasten(was, queued, is, queues)
		r.touched[id] = r.rounds
		shift += b2i(queues && r.within(to)) - b2i(queued && r.within(from))
		if !queues {
			delete(r.asks, id)
		}
	}
	if shift != 0 && (r.edge != nil || r.looked+shift > r.most) { // others come into view, or fall out of it
		return false
	}
	r.looked += shift
	for _, j := range r.waiting {
		if p, ok := r.s.PlaceOf(j.ID); !ok || !r.within(p) {
			return false
		}
	}
	return true
}

// delays reports whether a job at this place has its turn before one for which nodes are kept free.
func (r *round) delays(p cluster.Place) bool {
	for _, j := range r.binders {
		if at, _ := r.s.PlaceOf(j.ID); p.Before(at) {
			return true
		}
	}
	return len(r.early) > 0 && p.Before(r.earlyTo)
}

// hasten notes that a change of a record may make the queue shorter, and others wait longer than is their part of it.
func (r *round) hasten(was *cluster.Job, queued bool, is *cluster.Job, queues bool) {
	if r.bindAt.IsZero() {
		return
	}
	var less time.Duration
	if queued && was.Held == cluster.NotHeld {
		less = drains(was, r.share(was))
	}
	if queues && is.Held == cluster.NotHeld {
		less -= drains(is, r.share(is))
	}
	r.bindAt = r.bindAt.Add(-patience * max(less, 0))
}

// shake notes that a job may leave its nodes at another time than was planned.
func (r *round) shake(j *cluster.Job) {
	if runs(j) && j.Alloc != nil {
		for _, sh := range j.HeldShares() {
			if i, ok := r.free.at(sh.Node); ok {
				r.free.note(i, false)
			}
		}
	}
}

func runs(j *cluster.Job) bool {
	return j != nil && j.Phase >= cluster.Starting && j.Phase <= cluster.Ending
}

// same reports whether a pending record waits as before, and its reason is the one that was decided on, if any was.
func same(was, is *cluster.Job, said *cluster.Decision) bool {
	if was == nil || is == nil || was.Spec != is.Spec || was.Held != is.Held || was.Limit != is.Limit || was.ArrayID != is.ArrayID || !was.Tasks.Equal(is.Tasks) ||
		!was.Eligible.Equal(is.Eligible) || was.Depends.Any != is.Depends.Any || !slices.Equal(was.Depends.Terms, is.Depends.Terms) ||
		!slices.Equal(was.Avoid, is.Avoid) {
		return false
	}
	if said != nil {
		return said.Start == nil && is.Wait == said.Wait && is.WaitNote == said.Note && is.PlannedStart.Equal(said.StartsAt)
	}
	return is.Wait == was.Wait && is.WaitNote == was.WaitNote && is.PlannedStart.Equal(was.PlannedStart)
}

// blocks reports whether a job is the first blocked one of a partition.
func (c *cycle) blocks(id cluster.JobID) bool { return among(c.waiting, id) }

func among(list map[*cluster.Partition]*cluster.Job, id cluster.JobID) bool {
	for _, j := range list {
		if j.ID == id {
			return true
		}
	}
	return false
}

// within reports whether a place is among those looked at.
func (c *cycle) within(p cluster.Place) bool { return c.edge == nil || p.Before(*c.edge) }

// reload takes over what is given out on nodes, and asks again for whom that matters.
func (r *round) reload(nodes map[cluster.NodeName]bool) bool {
	c := r.cycle
	if len(nodes) > maxFreed {
		return false
	}
	for name := range nodes {
		i, ok := c.free.at(name)
		if !ok {
			continue
		}
		sp := &c.free.spaces[i]
		l := c.s.Load(name)
		if l.Closed != 0 && !c.free.closed {
			return false // questions are told apart by user from now on
		}
		now := c.free.models[sp.model].loaded(sp.node, sp.model, l)
		now.shaky, sp.taken = sp.shaky, 0
		if c.free.set(i, now) { // not as the last cycle left it
			r.freed = append(r.freed, i)
		}
	}
	slices.Sort(r.freed)
	r.live = r.live || len(nodes) > 0 || c.s.Config().Gradient // plans follow the jobs of late
	return true
}

// pass looks at the jobs that may start now; false if there is more to look at.
func (r *round) pass() bool {
	if r.responsive {
		return r.turns()
	}
	return r.inLine()
}

// sort puts decisions into the order of the queue.
func (c *cycle) sort(list []cluster.Decision) {
	slices.SortStableFunc(list, func(a, b cluster.Decision) int {
		x, _ := c.s.PlaceOf(a.Job)
		y, _ := c.s.PlaceOf(b.Job)
		return byPlace(x, y)
	})
}

// binding reports whether nodes may have to be kept free for another job than before.
func (c *cycle) binding() bool { return !c.bindAt.IsZero() && !c.now.Before(c.bindAt) }

// turns is pass in the responsive order. The jobs for which nodes are kept free are planned anew if anything runs that
// did not; then those asked are tried by their merit, and the first in line of the other partitions are planned.
func (r *round) turns() bool {
	c := r.cycle
	firsts, lined := maps.Clone(c.waiting), false
	maps.DeleteFunc(firsts, func(p *cluster.Partition, _ *cluster.Job) bool { return c.binders[p] != nil })
	line := func() { // the first in line are looked at, too
		c.ends, c.waiting, lined = nil, maps.Clone(c.binders), true
		for _, j := range firsts {
			r.ask(j.ID)
		}
	}
	c.heads, r.firsts = c.heads[:c.bound], firsts
	if r.live {
		r.again(r.freed, func(uint64) bool { return true })
		if c.waiting = c.binders; !r.replan() {
			return false
		}
		line()
	}
	for _, id := range c.fickle {
		r.touch(id)
	}
	c.fickle = c.fickle[:0]
	l := r.lineup()
	for _, e := range l.list {
		if e.changed {
			j, _ := c.s.Job(e.id)
			c.soonest(j, 0)
		}
	}
	if c.binding() {
		return false
	}
	for e := l.next(); e != nil; e = l.next() {
		j, _ := c.s.Job(e.id)
		if c.known, c.turn = !e.changed, (turn{patience: longestQueue}); e.changed {
			c.turn.share = c.sizes().Share(j)
		}
		begun := len(c.begun)
		if r.consider(e, j); len(c.begun) >= maxStarts || len(c.begun) > begun && !r.rehold(l, e) {
			return false
		}
		l.seen()
	}
	if !lined && (len(c.begun) > 0 || slices.ContainsFunc(c.blocked, func(b blocked) bool { return !c.ahead(b.job) })) {
		line()
		c.known = true
		for _, j := range firsts {
			if is, ok := c.s.Job(j.ID); ok && !c.isBlocked(j.ID) {
				c.consider(is)
			}
		}
	}
	stuck := make([]placed, len(c.blocked)) // in the order of the queue
	for k, b := range c.blocked {
		stuck[k].blocked = b
		stuck[k].place, _ = c.s.PlaceOf(b.job.ID)
	}
	slices.SortFunc(stuck, func(a, b placed) int { return byPlace(a.place, b.place) })
	if lined {
		for _, j := range firsts { // one that waits no more leaves its place to a job that is not looked at
			if !c.isBlocked(j.ID) {
				return false
			}
		}
	}
	for _, b := range stuck {
		for _, name := range b.job.Spec.Partitions {
			p, _ := c.s.Partition(name)
			if f := c.waiting[p]; f != nil && c.binders[p] == nil && f.ID != b.job.ID {
				if x, _ := c.s.PlaceOf(f.ID); b.place.Before(x) {
					return false
				}
			}
		}
		c.line(b.blocked)
	}
	c.blocked = nil
	c.sort(c.out)
	return true
}

// isBlocked reports whether a job was looked at and could start nowhere.
func (c *cycle) isBlocked(id cluster.JobID) bool {
	return slices.ContainsFunc(c.blocked, func(b blocked) bool { return b.job.ID == id })
}

// doubt is nodes that have more free, or of which a planned start keeps less: a question that can use one of them may fit now
// beside sets of planned starts with which it failed.
type doubt struct {
	places []int
	most   brief                  // that any of them had
	lost   func(mask uint64) bool // tells of which sets
}

// again asks for the jobs of those questions that can use one of the nodes. Only numbers are looked at here: most of these
// questions will be out of the way when their turn comes, see lineup.
func (r *round) again(places []int, lost func(mask uint64) bool) {
	if len(places) == 0 {
		return
	}
	r.more = append(r.more, places...)
	d := doubt{places: places, lost: lost}
	_, d.most = r.free.spots(places)
	r.doubts = append(r.doubts, d)
	for k := range r.least {
		if !r.least[k].exceeds(&d.most) {
			r.open = append(r.open, k)
		}
	}
}

// fails reports whether a question did not fit beside these planned starts, or fewer of them, and nothing is known by which it
// may fit now.
func (c *cycle) fails(q *question, mask uint64) bool {
	c.reopen(q)
	return slices.ContainsFunc(q.failed, func(m uint64) bool { return m&mask == m })
}

// reopen forgets what is in doubt of a question; it reports whether that was anything in this round.
func (c *cycle) reopen(q *question) bool {
	if q.opened != c.rounds {
		q.opened, q.doubts, q.lost = c.rounds, 0, q.lost[:0]
	}
	for ; q.doubts < len(c.doubts); q.doubts++ {
		d := &c.doubts[q.doubts]
		if c.least[q.number].exceeds(&d.most) || !slices.ContainsFunc(q.failed, d.lost) || !q.gains(c.free, d.places) {
			continue
		}
		q.failed = slices.DeleteFunc(q.failed, func(mask uint64) bool {
			if d.lost(mask) {
				q.lost = append(q.lost, mask)
			}
			return d.lost(mask)
		})
	}
	return len(q.lost) > 0
}

// gains reports whether some of the places are of use now, and enough together with what else there is.
func (q *question) gains(p *pool, places []int) bool {
	useful := false
	for _, i := range places {
		if n := q.room(p, spot{i, p.kindOf(&p.spaces[i])}); n > 0 {
			if n >= q.want.tasks && q.want.minNodes <= 1 {
				return true
			}
			useful = true
		}
	}
	return useful && !q.gauge.hopeless(p.scene(nil, 0))
}

// room is how many tasks fit on a node.
func (q *question) room(p *pool, s spot) int {
	if q.gauge.numbers {
		return int(q.gauge.roomOn(p, s.kind))
	}
	if sp := &p.spaces[s.at]; q.gauge.suits(p, sp.model) {
		return q.want.fits(sp)
	}
	return 0
}

// replan plans the starts of the jobs anew for which nodes are kept free. It holds on to a plan that has not changed; false
// if one comes later than before, or the jobs are others.
func (r *round) replan() bool {
	c := r.cycle
	old, firsts := c.heads, c.waiting
	c.ends, c.heads, c.waiting = nil, nil, map[*cluster.Partition]*cluster.Job{}
	c.known, c.turn = true, turn{}
	list := map[cluster.JobID]cluster.Place{}
	for _, j := range firsts {
		p, ok := c.s.PlaceOf(j.ID)
		if !ok || !c.within(p) {
			return false
		}
		list[j.ID] = p
	}
	for _, id := range slices.SortedFunc(maps.Keys(list), func(a, b cluster.JobID) int { return byPlace(list[a], list[b]) }) {
		j, _ := c.s.Job(id)
		c.consider(j)
		k := len(c.heads) - 1
		if len(c.begun) > 0 || k >= len(old) {
			return false
		}
		if k < 0 || c.heads[k] == old[k] {
			continue
		}
		h, was := c.heads[k], old[k]
		switch {
		case h.job != was.job || h.at.After(was.at):
			return false
		case h.equal(was):
			c.heads[k] = was
		default:
			r.shift(k, h, was)
		}
	}
	if len(c.heads) != len(old) || len(c.waiting) != len(firsts) {
		return false
	}
	for p, j := range firsts {
		if c.waiting[p] == nil || c.waiting[p].ID != j.ID {
			return false
		}
	}
	return true
}

// shift has one of the planned starts be another one, which comes no later.
func (r *round) shift(k int, h, was *reservation) {
	eased, other := h.against(was)
	r.free.moved(k, h, other)
	r.again(eased, hasBit(k))
}

// placed is a job that could start nowhere, with its place in the queue.
type placed struct {
	blocked
	place cluster.Place
}

func byPlace(a, b cluster.Place) int { return b2i(b.Before(a)) - b2i(a.Before(b)) }

// consider decides a job, unless its question plainly fails: then its record and reason are what they were.
func (r *round) consider(e *entry, j *cluster.Job) {
	if q := e.q; q != nil {
		mask, _ := r.mask(j)
		if r.fails(q, mask) || q.find(r.free, r.heads, mask, off{}) == nil && q.fail(mask) {
			return
		}
	}
	r.done[j.ID] = true
	r.cycle.consider(j)
}

// equal reports whether both keep the same.
func (r *reservation) equal(o *reservation) bool {
	return r.job == o.job && r.at.Equal(o.at) && slices.Equal(r.list, o.list) && slices.EqualFunc(r.rests, o.rests, func(x, y rest) bool {
		return x.place == y.place && x.cpus == y.cpus && x.mem == y.mem && slices.Equal(x.gpus, y.gpus)
	})
}

// against lists the places of which it leaves more than another one did, and all of which it leaves something else.
func (r *reservation) against(was *reservation) (more, other []int) {
	for a, b := r.rests, was.rests; len(a) > 0 || len(b) > 0; {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].place < b[0].place:
			other, a = append(other, a[0].place), a[1:]
			continue
		case len(a) == 0 || a[0].place > b[0].place:
			more, other, b = append(more, b[0].place), append(other, b[0].place), b[1:]
			continue
		case a[0].more(&b[0]):
			more, other = append(more, a[0].place), append(other, a[0].place)
		case b[0].more(&a[0]):
			other = append(other, a[0].place)
		}
		a, b = a[1:], b[1:]
	}
	return more, other
}

// more reports whether it is more than another one, of anything.
func (l *rest) more(was *rest) bool {
	if l.cpus > was.cpus || l.mem > was.mem {
		return true
	}
	for k, n := range l.gpus {
		if n > was.gpus[k] {
			return true
		}
	}
	return false
}
