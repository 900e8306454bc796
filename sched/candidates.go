package sched

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// An incremental pass tries few of the jobs that wait. Its candidates are jobs with a turn of their own, and of each
// shape that may fit now the one job whose turn comes first: when that has been tried, the next one of the shape
// takes its place.

// candidate is a job that may start, or a shape that may fit, in the person of its job whose turn comes first.
type candidate struct {
	id         cluster.JobID
	shape      *jobShape // nil: the job has a turn of its own
	number     int       // of the shape, so that sift need not load it
	tentative  bool      // it has no job yet, and the turn of the shape's bound
	seenStarts int       // how many jobs had started when it was last seen that the shape may fit
	changed    bool      // the job has changed, and is to join its shape
	nice       int
	score      float64
	place      cluster.Place
}

// candidateHeap is the candidates by turn, the next one first.
type candidateHeap struct {
	pass         *incrementalPass
	list         []*candidate
	turn         *candidate          // the one that had its turn last, as it was then; nil: none yet
	siftedStarts int                 // how many jobs had started when it was last sifted
	siftedGains  int                 // how many nodes had gained room by then
	gained       []place.ClassedNode // these nodes, as they were then
	most         place.Capability    // the most that any of them had
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

// precedes reports whether one candidate's turn comes before the other's, as byScore or the queue has it.
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

// newCandidateHeap is the heap of the jobs to visit and the shapes that are reopened.
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
	ch.siftedStarts = len(ip.started)
	ch.siftedGains = len(ip.gainedNodes)
	heap.Init(ch)
	ch.addShapes()
	return ch
}

// addShapes adds the shapes that are reopened, each at the turn that its first job may have.
func (ch *candidateHeap) addShapes() {
	ip := ch.pass
	room := make([]candidate, len(ip.reopened))
	for k, n := range ip.reopened {
		b := &ip.book.bounds[n]
		room[k] = candidate{
			shape: ip.book.list[n], number: n, tentative: true, seenStarts: len(ip.started),
			nice: b.nice, place: b.place,
		}
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

// addJob adds a job with a turn of its own; false if it is beyond the horizon.
func (ch *candidateHeap) addJob(cand *candidate) bool {
	if !ch.pass.inView(cand.place) {
		return false
	}
	heap.Push(ch, cand)
	return true
}

// isCurrent reports whether a member is still the pending job that joined.
func (ip *incrementalPass) isCurrent(m *shapeMember) bool { return m.pass >= ip.book.changedIn[m.id] }

// memberPlace is the place in the queue of a member that is current.
func (ip *incrementalPass) memberPlace(m *shapeMember) cluster.Place {
	if m.place == (cluster.Place{}) {
		m.place, _ = ip.s.PlaceOf(m.id)
	}
	return m.place
}

// advanceShape makes the candidate the member of its shape whose turn comes first, of those that had none and are not
// known to fail; false if there is none. Void members are dropped.
func (ip *incrementalPass) advanceShape(cand *candidate) bool {
	shape := cand.shape
	found := false
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
		if found && ip.responsive && cmp.Or(cmp.Compare(cand.nice, now.nice), cmp.Compare(now.score, cand.score)) < 0 {
			continue // whatever its place, which costs a search
		}
		now.place = ip.memberPlace(m)
		later := found && !ip.precedes(&now, cand)
		if later || ip.knownToFail(shape, ip.plannedAcrossAt(m.limit, now.place)) {
			continue
		}
		if ip.visitedAnyway(m.id) || !ip.inView(now.place) {
			continue
		}
		*cand, found = now, true
	}
	return found
}

// memberCandidate is candidateFor without the place, which costs a search.
func (ip *incrementalPass) memberCandidate(m *shapeMember) candidate {
	cand := candidate{id: m.id, nice: m.nice}
	if ip.responsive {
		cand.score = ip.scoreOf(waitedSince(ip.now, m.since), m.share, m.limit)
	}
	return cand
}

// candidateFor is a member as a candidate with a turn of its own.
func (ip *incrementalPass) candidateFor(m *shapeMember) *candidate {
	cand := ip.memberCandidate(m)
	cand.place = ip.memberPlace(m)
	return &cand
}

// plannedAcrossAt is the mask of planned starts that a job of this limit would run into if its turn were at this
// place, as far as the starts of jobs ahead are known by now.
func (ip *incrementalPass) plannedAcrossAt(limit time.Duration, p cluster.Place) (mask uint64) {
	if ip.responsive {
		mask, _ = ip.plannedWithin(limit)
		return mask
	}
	over := EndOf(ip.now, limit)
	for k, ps := range ip.currentStarts {
		if over.After(ps.At) && ip.startPlaces[k].Before(p) {
			mask |= 1 << k
		}
	}
	return mask
}

// next is the candidate whose turn it is; nil if there is none left.
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
		case ch.pass.visited[cand.id]: // as a member of another shape
			ch.advance()
		default:
			turn := *cand
			ch.turn = &turn
			return cand
		}
	}
	return nil
}

// resolveFirst puts in place of the first candidate, a shape, its first job, or drops it if it is still known to fail.
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
	for _, m := range cand.shape.members { // unstable: each has a turn of its own
		if _, asks := ip.toVisit[m.id]; asks || !ip.isCurrent(m) || ip.visitedAnyway(m.id) {
			continue
		}
		if own := ip.candidateFor(m); !ch.isPast(own) {
			ip.visit(m.id)
			ch.addJob(own)
		}
	}
}

// isPast reports whether a job had its turn in a full pass before what has happened in this one: whatever that was does
// not concern it.
func (ch *candidateHeap) isPast(cand *candidate) bool {
	return ch.turn != nil && ch.pass.precedes(cand, ch.turn)
}

// sift drops shapes that need more than any of the nodes has that gained room, where these are few: so many shapes are
// waiting for each that most are dropped unseen.
func (ch *candidateHeap) sift() {
	ch.siftedStarts = len(ch.pass.started)
	ch.siftedGains = len(ch.pass.gainedNodes)
	if ch.siftedGains > maxProbed {
		return
	}
	all := len(ch.list)
	ch.gained, ch.most = ch.pass.free.Classify(ch.pass.gainedNodes)
	ch.list = slices.DeleteFunc(ch.list, func(cand *candidate) bool {
		gone := cand.shape != nil && ch.pass.book.needs[cand.number].Exceeds(&ch.most)
		if gone {
			ch.restoreFailures(cand)
		}
		return gone
	})
	if len(ch.list) < all {
		heap.Init(ch)
	}
}

// restoreFailures has a shape be known to fail again where it was before this pass.
func (ch *candidateHeap) restoreFailures(cand *candidate) {
	if shape := cand.shape; shape.checkedIn == ch.pass.book.pass {
		shape.failed = append(shape.failed, shape.reopened...)
		shape.reopened = shape.reopened[:0]
	}
}

// mayFit reports whether a shape may fit now on one of the nodes that gained room, where these are few enough to try
// each.
func (ch *candidateHeap) mayFit(cand *candidate) bool {
	if cand.seenStarts == ch.siftedStarts || ch.siftedGains > maxProbed {
		return true
	}
	cand.seenStarts = ch.siftedStarts
	fits := func(node place.ClassedNode) bool { return cand.shape.fit.TasksOn(ch.pass.free, node) > 0 }
	return !ch.pass.book.needs[cand.number].Exceeds(&ch.most) && slices.ContainsFunc(ch.gained, fits)
}

// advance drops the first candidate, which had its turn; if it has a shape the next job of that takes its place.
func (ch *candidateHeap) advance() {
	cand := ch.list[0]
	if cand.shape != nil && ch.pass.advanceShape(cand) {
		heap.Fix(ch, 0)
	} else {
		heap.Pop(ch)
	}
}

// maxProbed is how many nodes that gained room shapes are tried on one by one.
const maxProbed = 16

// decideCandidate decides a job, unless its shape does not fit at its turn: then its record and reason stay what they
// were.
func (ip *incrementalPass) decideCandidate(cand *candidate, j *cluster.Job) {
	if shape := cand.shape; shape != nil {
		mask, _ := ip.plannedAcross(j)
		if ip.knownToFail(shape, mask) {
			return
		}
		if shape.fit.Find(ip.free, ip.planned, mask, place.Exclusion{}) == nil {
			shape.noteFailure(mask)
			return
		}
	}
	ip.visited[j.ID] = true
	ip.decide(j)
}
