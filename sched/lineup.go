package sched

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"dev.muster/cluster"
)

// member is a job that asks a question, with what gives it its turn.
type member struct {
	id    cluster.JobID
	round int // in which it was looked at, see Scheduler
	nice  int
	since time.Time // when it began to wait
	limit time.Duration
	share float64        // in the responsive order
	place cluster.Place  // in the queue; nothing until it is asked for
	held  cluster.Reason // why limits keep it from starting, as far as is known
}

// bound is a turn that no job of a question comes before.
type bound struct {
	nice  int
	since time.Time
	limit time.Duration
	share float64
	place cluster.Place // in the strict order
}

// add has one more job be in it.
func (b *bound) add(m *member, only bool) {
	if only {
		*b = bound{m.nice, m.since, m.limit, m.share, m.place}
		return
	}
	b.nice, b.limit, b.share = min(b.nice, m.nice), min(b.limit, m.limit), max(b.share, m.share)
	if m.since.Before(b.since) {
		b.since = m.since
	}
	if m.place != (cluster.Place{}) && m.place.Before(b.place) {
		b.place = m.place
	}
}

// entry is a job in line: one to be looked at by itself, or of those that ask a question that may fit now the one whose
// turn comes first.
type entry struct {
	id      cluster.JobID
	q       *question // nil: by itself
	number  int       // of the question, so that who sifts need not look at that
	unseen  bool      // its jobs are not known to come before the bound of them all
	begun   int       // starts of the cycle when the question was last seen to fit, perhaps
	changed bool      // its question does not know it yet
	nice    int
	merit   float64
	place   cluster.Place
}

// lineup is the jobs that a round looks at, by turn: a heap of its entries.
type lineup struct {
	r     *round
	list  []*entry
	begun int    // starts of the cycle when it was last sifted
	more  int    // nodes that had more free then
	spots []spot // these
	most  brief  // that any of them had
}

func (l *lineup) Len() int           { return len(l.list) }
func (l *lineup) Less(i, k int) bool { return l.r.before(l.list[i], l.list[k]) }
func (l *lineup) Swap(i, k int)      { l.list[i], l.list[k] = l.list[k], l.list[i] }
func (l *lineup) Push(x any)         { l.list = append(l.list, x.(*entry)) }

func (l *lineup) Pop() any {
	e := l.list[len(l.list)-1]
	l.list = l.list[:len(l.list)-1]
	return e
}

// before reports whether one entry's turn comes before the other's: see byMerit.
func (r *round) before(a, b *entry) bool {
	if r.responsive {
		if n := cmp.Or(cmp.Compare(a.nice, b.nice), cmp.Compare(b.merit, a.merit)); n != 0 {
			return n < 0
		}
		if a.unseen != b.unseen {
			return a.unseen
		}
	}
	return a.place.Before(b.place)
}

// lineup makes the line of the jobs to look at.
func (r *round) lineup() *lineup {
	l := &lineup{r: r, list: make([]*entry, 0, len(r.asks)+len(r.open))}
	for id, changed := range r.asks {
		if changed {
			r.touched[id] = r.rounds
		}
		p, ok := r.s.PlaceOf(id)
		if !ok || !r.within(p) || r.apart(id) {
			continue
		}
		if j, _ := r.s.Job(id); j.Held == cluster.NotHeld {
			e := &entry{id: id, changed: changed, place: p, nice: j.Spec.Nice}
			if r.responsive {
				e.merit = r.merit(r.waited(j), r.sizes().Share(j), j.Limit)
			}
			l.list = append(l.list, e)
		}
	}
	l.begun, l.more = len(r.begun), len(r.more)
	heap.Init(l)
	l.join()
	return l
}

// join has the questions join the line that may fit now, each where the first of its jobs may be.
func (l *lineup) join() {
	r := l.r
	room := make([]entry, len(r.open))
	for k, n := range r.open {
		b := &r.bounds[n]
		room[k] = entry{q: r.posed[n], number: n, unseen: true, begun: len(r.begun), nice: b.nice, place: b.place}
		if r.responsive {
			room[k].merit = r.merit(wait(r.now, b.since), b.share, b.limit)
		}
		l.list = append(l.list, &room[k])
	}
	if len(r.open) > 0 {
		heap.Init(l)
	}
	r.open = r.open[:0]
}

// add has a job join the line by itself; false if others are ahead that are not looked at.
func (l *lineup) add(e *entry) bool {
	if !l.r.within(e.place) {
		return false
	}
	heap.Push(l, e)
	return true
}

// current reports whether a member is a pending job as it was when it asked.
func (r *round) current(m *member) bool { return m.round >= r.touched[m.id] }

// placeOf is the place of a member that is current.
func (r *round) placeOf(m *member) cluster.Place {
	if m.place == (cluster.Place{}) {
		m.place, _ = r.s.PlaceOf(m.id)
	}
	return m.place
}

// foremost makes the entry that of the job whose turn comes first of those of its question that have not been looked at
// and are not known to fail; false if there is none. It forgets those that ask no more.
func (r *round) foremost(e *entry) bool {
	q, found := e.q, false
	q.jobs = slices.DeleteFunc(q.jobs, func(m *member) bool { return !r.current(m) })
	for k, m := range q.jobs {
		if !r.responsive {
			r.placeOf(m)
		}
		r.bounds[q.number].add(m, k == 0)
		if m.held != cluster.NoReason || r.done[m.id] {
			continue
		}
		if _, asks := r.asks[m.id]; asks {
			continue
		}
		now := r.entryOf(m)
		now.q, now.number, now.begun = q, q.number, e.begun
		if r.responsive {
			if found && cmp.Or(cmp.Compare(e.nice, now.nice), cmp.Compare(now.merit, e.merit)) < 0 {
				continue // whatever its place
			}
		}
		if now.place = r.placeOf(m); found && !r.before(&now, e) || r.fails(q, r.maskAt(m.limit, now.place)) || r.apart(m.id) || !r.within(now.place) {
			continue
		}
		*e, found = now, true
	}
	return found
}

// entryOf is the entry of a member by itself, but for its place.
func (r *round) entryOf(m *member) entry {
	e := entry{id: m.id, nice: m.nice}
	if r.responsive {
		e.merit = r.merit(wait(r.now, m.since), m.share, m.limit)
	}
	return e
}

// alone is the entry of a member by itself.
func (r *round) alone(m *member) *entry {
	e := r.entryOf(m)
	e.place = r.placeOf(m)
	return &e
}

// maskAt is the planned starts that a job of this limit and place must keep off, as far as they are known.
func (r *round) maskAt(limit time.Duration, p cluster.Place) (mask uint64) {
	if r.responsive {
		mask, _ = r.maskOf(limit)
		return mask
	}
	over := until(r.now, limit)
	for k, h := range r.plans {
		if over.After(h.at) && r.headAt[k].Before(p) {
			mask |= 1 << k
		}
	}
	return mask
}

// next is the entry whose turn it is, or nil.
func (l *lineup) next() *entry {
	for len(l.list) > 0 {
		if l.begun != len(l.r.begun) || l.more != len(l.r.more) {
			l.sift()
			continue
		}
		switch e := l.list[0]; {
		case e.q != nil && !l.mayFit(e):
			l.drop(e)
			heap.Pop(l)
		case e.unseen:
			l.open(e)
		case l.r.done[e.id]: // in another partition
			l.seen()
		default:
			return e
		}
	}
	return nil
}

// open looks into the question of the first entry: if it may fit, its first job gets its place in line.
func (l *lineup) open(e *entry) {
	r := l.r
	e.unseen = false
	if !r.reopen(e.q) {
		heap.Pop(l)
		return
	}
	if !e.q.fickle {
		l.seen()
		return
	}
	heap.Pop(l)
	for _, m := range e.q.jobs { // each by itself
		if _, asks := r.asks[m.id]; !asks && r.current(m) && !r.apart(m.id) {
			r.ask(m.id)
			l.add(r.alone(m))
		}
	}
}

// sift has the questions leave the line, with all their jobs, that need more than any node has that has more free than
// before, where these are few.
func (l *lineup) sift() {
	l.begun, l.more = len(l.r.begun), len(l.r.more)
	if l.more > fewPlaces {
		return
	}
	all := len(l.list)
	l.spots, l.most = l.r.free.spots(l.r.more)
	l.list = slices.DeleteFunc(l.list, func(e *entry) bool {
		gone := e.q != nil && l.r.least[e.number].exceeds(&l.most)
		if gone {
			l.drop(e)
		}
		return gone
	})
	if len(l.list) < all {
		heap.Init(l)
	}
}

// drop has a question be known to fail as before.
func (l *lineup) drop(e *entry) {
	if q := e.q; q.opened == l.r.rounds {
		q.failed, q.lost = append(q.failed, q.lost...), q.lost[:0]
	}
}

// mayFit reports whether a question that did not fit before may fit on the nodes that have more free since then, where these
// are few: then it can be asked about each.
func (l *lineup) mayFit(e *entry) bool {
	if e.begun == l.begun || l.more > fewPlaces {
		return true
	}
	e.begun = l.begun
	return !l.r.least[e.number].exceeds(&l.most) && slices.ContainsFunc(l.spots, func(s spot) bool { return e.q.room(l.r.free, s) > 0 })
}

// seen tells that the entry whose turn it was has been looked at: the next job of its question takes its place.
func (l *lineup) seen() {
	e := l.list[0]
	if e.q != nil && l.r.foremost(e) {
		heap.Fix(l, 0)
	} else {
		heap.Pop(l)
	}
}

// fewPlaces is how many nodes a question that failed before they had more free is asked about one by one.
const fewPlaces = 16
