package sched

import (
	"maps"
	"slices"

	"dev.muster/cluster"
)

// An incremental pass in the strict order visits, in the order of the queue, the jobs that may start or wait for another reason, and
// the first blocked job of each partition, whose start is planned anew when its turn comes. Where that one is no longer the
// first, because it starts or is held back, the next in line is visited in its place. So at each visit the planned starts
// are those of the jobs ahead, as they would be in a full pass.
//
// What is known to fail beside a planned start is tried again when that is another, or is no more, if it can use one of the
// nodes that it has left.

// visitInQueueOrder visits the jobs of an incremental pass; false if there is more to look at.
func (ip *incrementalPass) visitInQueueOrder() bool {
	c := ip.cycle
	ip.oldStarts, ip.oldFirstBlocked = c.planned, c.firstBlocked
	ip.currentStarts, ip.oldOwners = slices.Clone(ip.oldStarts), make([]cluster.JobID, len(ip.oldStarts))
	for k, ps := range ip.oldStarts {
		at, _ := c.s.PlaceOf(ps.job)
		ip.oldOwners[k], ip.startPlaces = ps.job, append(ip.startPlaces, at)
	}
	ip.replanning = ip.runningChanged
	c.planned, c.firstBlocked, c.current = nil, map[*cluster.Partition]*cluster.Job{}, queuedJob{}
	if ip.runningChanged {
		c.releases = nil
		ip.reopenShapes(ip.freedNodes, func(uint64) bool { return true })
	}
	for _, id := range c.unstable {
		ip.visitChanged(id)
	}
	c.unstable = c.unstable[:0]
	firsts := maps.Clone(ip.oldFirstBlocked)
	ch := ip.newCandidateHeap()
	for _, j := range firsts {
		if p, _ := c.s.PlaceOf(j.ID); !ch.addJob(&candidate{id: j.ID, changed: ip.toVisit[j.ID], place: p}) {
			return false
		}
	}
	for cand := ch.next(); cand != nil; cand = ch.next() {
		if !ip.visitCandidate(ch, cand) {
			return false
		}
		ch.advance()
		ch.addShapes()
	}
	c.sortDecisions(c.decisions)
	return true
}

// visitCandidate considers one job of the line; false if that changes something for jobs that are not looked at.
func (ip *incrementalPass) visitCandidate(ch *candidateHeap, cand *candidate) bool {
	c := ip.cycle
	j, _ := c.s.Job(cand.id)
	heads, begun, first := len(c.planned), len(c.started), ip.isOldFirstBlocked(cand.id)
	if first && !ip.replanning && !cand.changed && ip.keepFirstBlocked(j) {
		return true
	}
	c.revisited = !cand.changed
	ip.decideCandidate(cand, j)
	if ip.wouldTurnAgain(cand, j) {
		return false
	}
	if len(c.started) >= maxStarts || len(c.started) > begun && !ip.recheckLaterLimits(ch, cand) {
		return false
	}
	led := slices.Index(ip.oldOwners, cand.id)
	ip.replanning = ip.replanning || len(c.started) > begun || len(c.planned) > heads || led >= 0
	switch {
	case len(c.planned) > heads:
		if led >= 0 && led != heads || heads >= len(ip.oldStarts) {
			return false
		}
		ip.recordStart(heads, cand)
	case led >= heads: // nobody has its place yet, and its nodes are for others
		ip.reopenShapes(ip.oldStarts[led].nodeIndexes(), concernsStart(led))
	}
	if first {
		ip.addSuccessor(ch, cand)
	}
	return true
}

// wouldTurnAgain reports whether a job that was passed over, since its shape plainly fails, would have its turn again: it was
// found beside other planned starts than those that hold now.
func (ip *incrementalPass) wouldTurnAgain(cand *candidate, j *cluster.Job) bool {
	return cand.shape != nil && !ip.visited[cand.id] && !ip.knownToFail(cand.shape, ip.plannedAcrossAt(j.Limit, cand.place))
}

// keepFirstBlocked has the first blocked job of partitions stay that with the start that was planned, where nothing that came before it in
// the pass matters to it; false if something did.
func (ip *incrementalPass) keepFirstBlocked(j *cluster.Job) bool {
	c, k := ip.cycle, len(ip.cycle.planned)
	for p, f := range ip.oldFirstBlocked {
		if f.ID == j.ID && c.firstBlocked[p] != nil {
			return false
		}
	}
	led := slices.Index(ip.oldOwners, j.ID)
	if led >= 0 && led != k {
		return false
	}
	for p, f := range ip.oldFirstBlocked {
		if f.ID == j.ID {
			c.firstBlocked[p] = f
		}
	}
	if led >= 0 {
		c.planned = append(c.planned, ip.oldStarts[k])
	}
	ip.visited[j.ID] = true
	return true
}

// recordStart notes that a start was planned for the job of an entry, in the place of one of those before.
func (ip *incrementalPass) recordStart(k int, cand *candidate) {
	ps, was := ip.planned[k], ip.oldStarts[k]
	switch own := ip.oldOwners[k] == cand.id; {
	case ps == was:
	case own && ps.keepsSame(was):
		ps, ip.planned[k] = was, was
	case own && !ps.at.After(was.at):
		ip.replaceStart(k, ps, was)
	default:
		places := was.nodeIndexes()
		ip.free.replaceStart(k, ps, append(ps.nodeIndexes(), places...))
		ip.reopenShapes(places, concernsStart(k))
	}
	ip.currentStarts[k], ip.startPlaces[k] = ps, cand.place
}

// addSuccessor has the next in line visited of each partition whose first blocked job this was and is no more.
func (ip *incrementalPass) addSuccessor(ch *candidateHeap, cand *candidate) {
	for p, f := range ip.oldFirstBlocked {
		if f.ID != cand.id || ip.firstBlocked[p] != nil {
			continue
		}
		delete(ip.oldFirstBlocked, p)
		next := candidate{}
		for _, shape := range ip.book.list {
			if shape.demand.part != p {
				continue
			}
			for _, m := range shape.members {
				if m.limited != cluster.NoReason || ip.visited[m.id] || !ip.isCurrent(m) {
					continue
				}
				if at := ip.memberPlace(m); cand.place.Before(at) && (next.id == 0 || at.Before(next.place)) {
					next = candidate{id: m.id, place: at}
				}
			}
		}
		if next.id != 0 && ip.inView(next.place) {
			ip.oldFirstBlocked[p], _ = ip.s.Job(next.id)
			ch.addJob(&next)
		}
	}
}

// isOldFirstBlocked reports whether a job is the first blocked one of a partition, or comes next where that is so no more.
func (ip *incrementalPass) isOldFirstBlocked(id cluster.JobID) bool {
	return holdsJob(ip.oldFirstBlocked, id)
}

// visitedAnyway reports whether a job is looked at anyhow.
func (ip *incrementalPass) visitedAnyway(id cluster.JobID) bool {
	if ip.responsive {
		return ip.isFirstBlocked(id)
	}
	return ip.isOldFirstBlocked(id)
}

// concernsStart tells of sets of planned starts that have one of them.
func concernsStart(k int) func(mask uint64) bool {
	return func(mask uint64) bool { return mask>>k&1 != 0 }
}
