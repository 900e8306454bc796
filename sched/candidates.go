package sched

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"dev.muster/cluster"
)

// shapeMember is a job that asks a shape, with what gives it its turn.
type shapeMember struct {
	id      cluster.JobID
	pass    int // in which it was looked at, see Scheduler
	nice    int
	since   time.Time // when it began to wait
	limit   time.Duration
	share   float64        // in the responsive order
	place   cluster.Place  // in the queue; nothing until it is asked for
	limited cluster.Reason // why limits keep it from starting, as far as is known
}

// turnBound is a turn that no job of a shape comes before.
type turnBound struct {
	nice  int
	since time.Time
	limit time.Duration
	share float64
	place cluster.Place // in the strict order
}

// widen has one more job be in it.
func (b *turnBound) widen(m *shapeMember, only bool) {
	if only {
		*b = turnBound{m.nice, m.since, m.limit, m.share, m.place}
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

// candidate is a job in line: one to be looked at by itself, or of those that ask a shape that may fit now the one whose
// turn comes first.
type candidate struct {
	id         cluster.JobID
	shape      *jobShape // nil: by itself
	number     int       // of the shape, so that who sifts need not look at that
	tentative  bool      // its jobs are not known to come before the bound of them all
	seenStarts int       // starts of the cycle when the shape was last seen to fit, perhaps
	changed    bool      // its shape does not know it yet
	nice       int
	score      float64
	place      cluster.Place
}

// candidateHeap is the jobs that an incremental pass looks at, by turn: a heap of its entries.
type candidateHeap struct {
	pass         *incrementalPass
	list         []*candidate
	siftedStarts int           // starts of the cycle when it was last sifted
	siftedGains  int           // nodes that had more free then
	gained       []classedNode // these
	most         capability    // that any of them had
}

func (ch *candidateHeap) Len() int           { return len(ch.list) }
func (ch *candidateHeap) Less(i, k int) bool { return ch.pass.precedes(ch.list[i], ch.list[k]) }
func (ch *candidateHeap) Swap(i, k int)      { ch.list[i], ch.list[k] = ch.list[k], ch.list[i] }
func (ch *candidateHeap) Push(x any)         { ch.list = append(ch.list, x.(*candidate)) }

func (ch *candidateHeap) Pop() any {
	cand := ch.list[len(ch.list)-1]
	ch.list = ch.list[:len(ch.list)-1]
	return cand
}

// precedes reports whether one entry's turn comes before the other's: see byScore.
func (ip *incrementalPass) precedes(a, b *candidate) bool {
	if ip.responsive {
		if n := cmp.Or(cmp.Compare(a.nice, b.nice), cmp.Compare(b.score, a.score)); n != 0 {
			return n < 0
		}
		if a.tentative != b.tentative {
			return a.tentative
		}
	}
	return a.place.Before(b.place)
}

// newCandidateHeap makes the line of the jobs to look at.
func (ip *incrementalPass) newCandidateHeap() *candidateHeap {
	ch := &candidateHeap{pass: ip, list: make([]*candidate, 0, len(ip.toVisit)+len(ip.reopened))}
	for id, changed := range ip.toVisit {
		if changed {
			ip.book.changedIn[id] = ip.book.pass
		}
		p, ok := ip.s.PlaceOf(id)
		if !ok || !ip.inView(p) || ip.visitedAnyway(id) {
			continue
		}
		if j, _ := ip.s.Job(id); j.Held == cluster.NotHeld {
			cand := &candidate{id: id, changed: changed, place: p, nice: j.Spec.Nice}
			if ip.responsive {
				cand.score = ip.scoreOf(ip.waited(j), ip.scaleOfCluster().Share(j), j.Limit)
			}
			ch.list = append(ch.list, cand)
		}
	}
	ch.siftedStarts, ch.siftedGains = len(ip.started), len(ip.gainedNodes)
	heap.Init(ch)
	ch.addShapes()
	return ch
}

// addShapes has the shapes join the line that may fit now, each where the first of its jobs may be.
func (ch *candidateHeap) addShapes() {
	ip := ch.pass
	room := make([]candidate, len(ip.reopened))
	for k, n := range ip.reopened {
		b := &ip.book.bounds[n]
		room[k] = candidate{shape: ip.book.list[n], number: n, tentative: true, seenStarts: len(ip.started), nice: b.nice, place: b.place}
		if ip.responsive {
			room[k].score = ip.scoreOf(waitedSince(ip.now, b.since), b.share, b.limit)
		}
		ch.list = append(ch.list, &room[k])
	}
	if len(ip.reopened) > 0 {
		heap.Init(ch)
	}
	ip.reopened = ip.reopened[:0]
}

// addJob has a job join the line by itself; false if others are ahead that are not looked at.
func (ch *candidateHeap) addJob(cand *candidate) bool {
	if !ch.pass.inView(cand.place) {
		return false
	}
	heap.Push(ch, cand)
	return true
}

// isCurrent reports whether a member is a pending job as it was when it asked.
func (ip *incrementalPass) isCurrent(m *shapeMember) bool { return m.pass >= ip.book.changedIn[m.id] }

// memberPlace is the place of a member that is current.
func (ip *incrementalPass) memberPlace(m *shapeMember) cluster.Place {
	if m.place == (cluster.Place{}) {
		m.place, _ = ip.s.PlaceOf(m.id)
	}
	return m.place
}

// advanceShape makes the entry that of the job whose turn comes first of those of its shape that have not been looked at
// and are not known to fail; false if there is none. It forgets those that ask no more.
func (ip *incrementalPass) advanceShape(cand *candidate) bool {
	shape, found := cand.shape, false
	shape.members = slices.DeleteFunc(shape.members, func(m *shapeMember) bool { return !ip.isCurrent(m) })
	for k, m := range shape.members {
		if !ip.responsive {
			ip.memberPlace(m)
		}
		ip.book.bounds[shape.number].widen(m, k == 0)
		if m.limited != cluster.NoReason || ip.visited[m.id] {
			continue
		}
		if _, asks := ip.toVisit[m.id]; asks {
			continue
		}
		now := ip.memberCandidate(m)
		now.shape, now.number, now.seenStarts = shape, shape.number, cand.seenStarts
		if ip.responsive {
			if found && cmp.Or(cmp.Compare(cand.nice, now.nice), cmp.Compare(now.score, cand.score)) < 0 {
				continue // whatever its place
			}
		}
		if now.place = ip.memberPlace(m); found && !ip.precedes(&now, cand) || ip.knownToFail(shape, ip.plannedAcrossAt(m.limit, now.place)) || ip.visitedAnyway(m.id) || !ip.inView(now.place) {
			continue
		}
		*cand, found = now, true
	}
	return found
}

// memberCandidate is the entry of a member by itself, but for its place.
func (ip *incrementalPass) memberCandidate(m *shapeMember) candidate {
	cand := candidate{id: m.id, nice: m.nice}
	if ip.responsive {
		cand.score = ip.scoreOf(waitedSince(ip.now, m.since), m.share, m.limit)
	}
	return cand
}

// candidateFor is the entry of a member by itself.
func (ip *incrementalPass) candidateFor(m *shapeMember) *candidate {
	cand := ip.memberCandidate(m)
	cand.place = ip.memberPlace(m)
	return &cand
}

// plannedAcrossAt is the planned starts that a job of this limit and place must keep off, as far as they are known.
func (ip *incrementalPass) plannedAcrossAt(limit time.Duration, p cluster.Place) (mask uint64) {
	if ip.responsive {
		mask, _ = ip.plannedWithin(limit)
		return mask
	}
	over := endOf(ip.now, limit)
	for k, ps := range ip.currentStarts {
		if over.After(ps.at) && ip.startPlaces[k].Before(p) {
			mask |= 1 << k
		}
	}
	return mask
}

// next is the entry whose turn it is, or nil.
func (ch *candidateHeap) next() *candidate {
	for len(ch.list) > 0 {
		if ch.siftedStarts != len(ch.pass.started) || ch.siftedGains != len(ch.pass.gainedNodes) {
			ch.sift()
			continue
		}
		switch cand := ch.list[0]; {
		case cand.shape != nil && !ch.mayFit(cand):
			ch.restoreFailures(cand)
			heap.Pop(ch)
		case cand.tentative:
			ch.resolveFirst(cand)
		case ch.pass.visited[cand.id]: // in another partition
			ch.advance()
		default:
			return cand
		}
	}
	return nil
}

// resolveFirst looks into the shape of the first entry: if it may fit, its first job gets its place in line.
func (ch *candidateHeap) resolveFirst(cand *candidate) {
	ip := ch.pass
	cand.tentative = false
	if !ip.applyInvalidations(cand.shape) {
		heap.Pop(ch)
		return
	}
	if !cand.shape.unstable {
		ch.advance()
		return
	}
	heap.Pop(ch)
	for _, m := range cand.shape.members { // each by itself
		if _, asks := ip.toVisit[m.id]; !asks && ip.isCurrent(m) && !ip.visitedAnyway(m.id) {
			ip.visit(m.id)
			ch.addJob(ip.candidateFor(m))
		}
	}
}

// sift has the shapes leave the line, with all their jobs, that need more than any node has that has more free than
// before, where these are few.
func (ch *candidateHeap) sift() {
	ch.siftedStarts, ch.siftedGains = len(ch.pass.started), len(ch.pass.gainedNodes)
	if ch.siftedGains > maxProbed {
		return
	}
	all := len(ch.list)
	ch.gained, ch.most = ch.pass.free.classify(ch.pass.gainedNodes)
	ch.list = slices.DeleteFunc(ch.list, func(cand *candidate) bool {
		gone := cand.shape != nil && ch.pass.book.needs[cand.number].exceeds(&ch.most)
		if gone {
			ch.restoreFailures(cand)
		}
		return gone
	})
	if len(ch.list) < all {
		heap.Init(ch)
	}
}

// restoreFailures has a shape be known to fail as before.
func (ch *candidateHeap) restoreFailures(cand *candidate) {
	if shape := cand.shape; shape.checkedIn == ch.pass.book.pass {
		shape.failed, shape.reopened = append(shape.failed, shape.reopened...), shape.reopened[:0]
	}
}

// mayFit reports whether a shape that did not fit before may fit on the nodes that have more free since then, where these
// are few: then it can be asked about each.
func (ch *candidateHeap) mayFit(cand *candidate) bool {
	if cand.seenStarts == ch.siftedStarts || ch.siftedGains > maxProbed {
		return true
	}
	cand.seenStarts = ch.siftedStarts
	return !ch.pass.book.needs[cand.number].exceeds(&ch.most) && slices.ContainsFunc(ch.gained, func(s classedNode) bool { return cand.shape.tasksOn(ch.pass.free, s) > 0 })
}

// advance tells that the entry whose turn it was has been looked at: the next job of its shape takes its place.
func (ch *candidateHeap) advance() {
	cand := ch.list[0]
	if cand.shape != nil && ch.pass.advanceShape(cand) {
		heap.Fix(ch, 0)
	} else {
		heap.Pop(ch)
	}
}

// maxProbed is how many nodes a shape that failed before they had more free is asked about one by one.
const maxProbed = 16
