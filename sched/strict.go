package sched

import (
	"maps"
	"slices"

	"dev.muster/cluster"
)

// A round in the strict order visits, in the order of the queue, the jobs that may start or wait for another reason, and
// the first blocked job of each partition, whose start is planned anew when its turn comes. Where that one is no longer the
// first, because it starts or is held back, the next in line is visited in its place. So at each visit the planned starts
// are those of the jobs ahead, as they would be in a full pass.
//
// What is known to fail beside a planned start is tried again when that is another, or is no more, if it can use one of the
// nodes that it has left.

// inLine visits the jobs of a round; false if there is more to look at.
func (r *round) inLine() bool {
	c := r.cycle
	r.was, r.firsts = c.heads, c.waiting
	r.plans, r.owners = slices.Clone(r.was), make([]cluster.JobID, len(r.was))
	for k, h := range r.was {
		at, _ := c.s.PlaceOf(h.job)
		r.owners[k], r.headAt = h.job, append(r.headAt, at)
	}
	r.anew = r.live
	c.heads, c.waiting, c.turn = nil, map[*cluster.Partition]*cluster.Job{}, turn{}
	if r.live {
		c.ends = nil
		r.again(r.freed, func(uint64) bool { return true })
	}
	for _, id := range c.fickle {
		r.touch(id)
	}
	c.fickle = c.fickle[:0]
	firsts := maps.Clone(r.firsts)
	l := r.lineup()
	for _, j := range firsts {
		if p, _ := c.s.PlaceOf(j.ID); !l.add(&entry{id: j.ID, changed: r.asks[j.ID], place: p}) {
			return false
		}
	}
	for e := l.next(); e != nil; e = l.next() {
		if !r.visit(l, e) {
			return false
		}
		l.seen()
		l.join()
	}
	c.sort(c.out)
	return true
}

// visit considers one job of the line; false if that changes something for jobs that are not looked at.
func (r *round) visit(l *lineup, e *entry) bool {
	c := r.cycle
	j, _ := c.s.Job(e.id)
	heads, begun, first := len(c.heads), len(c.begun), r.isFirst(e.id)
	if first && !r.anew && !e.changed && r.keep(j) {
		return true
	}
	c.known = !e.changed
	r.consider(e, j)
	if r.turnsAgain(e, j) {
		return false
	}
	if len(c.begun) >= maxStarts || len(c.begun) > begun && !r.rehold(l, e) {
		return false
	}
	led := slices.Index(r.owners, e.id)
	r.anew = r.anew || len(c.begun) > begun || len(c.heads) > heads || led >= 0
	switch {
	case len(c.heads) > heads:
		if led >= 0 && led != heads || heads >= len(r.was) {
			return false
		}
		r.planned(heads, e)
	case led >= heads: // nobody has its place yet, and its nodes are for others
		r.again(r.was[led].places(), hasBit(led))
	}
	if first {
		r.succeed(l, e)
	}
	return true
}

// turnsAgain reports whether a job that was passed over, since its question plainly fails, would have its turn again: it was
// found beside other planned starts than those that hold now.
func (r *round) turnsAgain(e *entry, j *cluster.Job) bool {
	return e.q != nil && !r.done[e.id] && !r.fails(e.q, r.maskAt(j.Limit, e.place))
}

// keep has the first blocked job of partitions stay that with the start that was planned, where nothing that came before it in
// the round matters to it; false if something did.
func (r *round) keep(j *cluster.Job) bool {
	c, k := r.cycle, len(r.cycle.heads)
	for p, f := range r.firsts {
		if f.ID == j.ID && c.waiting[p] != nil {
			return false
		}
	}
	led := slices.Index(r.owners, j.ID)
	if led >= 0 && led != k {
		return false
	}
	for p, f := range r.firsts {
		if f.ID == j.ID {
			c.waiting[p] = f
		}
	}
	if led >= 0 {
		c.heads = append(c.heads, r.was[k])
	}
	r.done[j.ID] = true
	return true
}

// planned notes that a start was planned for the job of an entry, in the place of one of those before.
func (r *round) planned(k int, e *entry) {
	h, was := r.heads[k], r.was[k]
	switch own := r.owners[k] == e.id; {
	case h == was:
	case own && h.equal(was):
		h, r.heads[k] = was, was
	case own && !h.at.After(was.at):
		r.shift(k, h, was)
	default:
		places := was.places()
		r.free.moved(k, h, append(h.places(), places...))
		r.again(places, hasBit(k))
	}
	r.plans[k], r.headAt[k] = h, e.place
}

// succeed has the next in line visited of each partition whose first blocked job this was and is no more.
func (r *round) succeed(l *lineup, e *entry) {
	for p, f := range r.firsts {
		if f.ID != e.id || r.waiting[p] != nil {
			continue
		}
		delete(r.firsts, p)
		next := entry{}
		for _, q := range r.posed {
			if q.want.part != p {
				continue
			}
			for _, m := range q.jobs {
				if m.held != cluster.NoReason || r.done[m.id] || !r.current(m) {
					continue
				}
				if at := r.placeOf(m); e.place.Before(at) && (next.id == 0 || at.Before(next.place)) {
					next = entry{id: m.id, place: at}
				}
			}
		}
		if next.id != 0 && r.within(next.place) {
			r.firsts[p], _ = r.s.Job(next.id)
			l.add(&next)
		}
	}
}

// isFirst reports whether a job is the first blocked one of a partition, or comes next where that is so no more.
func (r *round) isFirst(id cluster.JobID) bool { return among(r.firsts, id) }

// apart reports whether a job is looked at anyhow.
func (r *round) apart(id cluster.JobID) bool {
	if r.responsive {
		return r.blocks(id)
	}
	return r.isFirst(id)
}

// hasBit tells of sets of planned starts that have one of them.
func hasBit(k int) func(mask uint64) bool { return func(mask uint64) bool { return mask>>k&1 != 0 } }

// places are those of its nodes.
func (r *reservation) places() []int {
	out := make([]int, len(r.rests))
	for k := range r.rests {
		out[k] = r.rests[k].place
	}
	return out
}
