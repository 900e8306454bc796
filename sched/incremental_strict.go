package sched

import (
	"maps"
	"slices"

	"dev.muster/cluster"
)

// An incremental pass in the strict order visits, in the order of the queue, the candidates and the first blocked job
// of each partition, whose start is planned again when its turn comes. Where that one is no longer the first, because
// it starts or is held back, the next in line is visited in its place. So at each visit the planned starts are those
// of the jobs ahead, as they would be in a full pass.
//
// A failure beside a planned start is no longer known when that start is another one, or is gone.

// visitInQueueOrder gives the jobs their turn that may start now; an error where there is more to look at.
func (ip *incrementalPass) visitInQueueOrder() error {
	c := ip.cycle
	ip.takeOldStarts()
	ip.replanning = ip.runningChanged
	c.planned = nil
	c.firstBlocked = map[*cluster.Partition]*cluster.Job{}
	c.current = queuedJob{}
	if ip.runningChanged {
		c.releases = nil
		ip.reopenShapes(ip.freedNodes, concernsAll)
	}
	ip.visitUnstable()
	firsts := maps.Clone(ip.oldFirstBlocked)
	ch := ip.newCandidateHeap()
	for _, j := range firsts {
		p, _ := c.s.PlaceOf(j.ID)
		if !ch.addJob(&candidate{id: j.ID, changed: ip.toVisit[j.ID], place: p}) {
			return errBeyondHorizon
		}
	}
	for cand := ch.next(); cand != nil; cand = ch.next() {
		if err := ip.visitCandidate(ch, cand); err != nil {
			return err
		}
		ch.advance()
		ch.addShapes()
	}
	c.sortDecisions(c.decisions)
	return nil
}

// takeOldStarts remembers what the last cycle had planned.
func (ip *incrementalPass) takeOldStarts() {
	ip.oldStarts = ip.planned
	ip.oldFirstBlocked = ip.firstBlocked
	ip.currentStarts = slices.Clone(ip.oldStarts)
	for _, ps := range ip.oldStarts {
		at, _ := ip.s.PlaceOf(ps.Job)
		ip.oldOwners = append(ip.oldOwners, ps.Job)
		ip.startPlaces = append(ip.startPlaces, at)
	}
}

// visitCandidate gives a candidate its turn; an error if that changes something for jobs that are not visited.
func (ip *incrementalPass) visitCandidate(ch *candidateHeap, cand *candidate) error {
	c := ip.cycle
	j, _ := c.s.Job(cand.id)
	planned := len(c.planned)
	started := len(c.started)
	wasFirst := ip.isOldFirstBlocked(cand.id)
	if wasFirst && !ip.replanning && !cand.changed && ip.keepFirstBlocked(j) {
		return nil
	}
	c.revisited = !cand.changed
	ip.decideCandidate(cand, j)
	if ip.wouldTurnAgain(cand, j) {
		return errKnownToFailTurn
	}
	if err := ip.checkStarts(ch, cand, started); err != nil {
		return err
	}
	owned := slices.Index(ip.oldOwners, cand.id) // the planned start that was its
	hasPlan := len(c.planned) > planned
	ip.replanning = ip.replanning || len(c.started) > started || hasPlan || owned >= 0
	switch {
	case hasPlan:
		if owned >= 0 && owned != planned || planned >= len(ip.oldStarts) {
			return errPlannedStarts
		}
		ip.recordStart(planned, cand)
	case owned >= planned: // nobody has its place yet, and its nodes are for others
		ip.reopenShapes(ip.oldStarts[owned].NodeIndexes(), concernsStart(owned))
	}
	if wasFirst {
		ip.addSuccessor(ch, cand)
	}
	return nil
}

// wouldTurnAgain reports whether a job that was passed over, since its shape is known to fail, would have its turn
// again: that was found out beside other planned starts than those that hold now.
func (ip *incrementalPass) wouldTurnAgain(cand *candidate, j *cluster.Job) bool {
	passedOver := cand.shape != nil && !ip.visited[cand.id]
	return passedOver && !ip.knownToFail(cand.shape, ip.plannedAcrossAt(j.Limit, cand.place))
}

// keepFirstBlocked has a job stay the first blocked one of its partitions, with the start that was planned, where
// nothing that came before it in the pass matters to it; false if something did.
func (ip *incrementalPass) keepFirstBlocked(j *cluster.Job) bool {
	c := ip.cycle
	k := len(ip.cycle.planned)
	for p, f := range ip.oldFirstBlocked {
		if f.ID == j.ID && c.firstBlocked[p] != nil {
			return false
		}
	}
	owned := slices.Index(ip.oldOwners, j.ID)
	if owned >= 0 && owned != k {
		return false
	}
	for p, f := range ip.oldFirstBlocked {
		if f.ID == j.ID {
			c.firstBlocked[p] = f
		}
	}
	if owned >= 0 {
		c.planned = append(c.planned, ip.oldStarts[k])
	}
	ip.visited[j.ID] = true
	return true
}

// recordStart has the planned start k of this pass, a candidate's, be in the place of the old one.
func (ip *incrementalPass) recordStart(k int, cand *candidate) {
	ps := ip.planned[k]
	was := ip.oldStarts[k]
	switch own := ip.oldOwners[k] == cand.id; {
	case ps == was:
	case own && ps.KeepsSame(was):
		ps = was
		ip.planned[k] = was
	case own && !ps.At.After(was.At):
		ip.replaceStart(k, ps, was)
	default:
		nodes := was.NodeIndexes()
		ip.free.ReplaceStart(k, ps, append(ps.NodeIndexes(), nodes...))
		ip.reopenShapes(nodes, concernsStart(k))
	}
	ip.currentStarts[k] = ps
	ip.startPlaces[k] = cand.place
}

// addSuccessor has the next in line visited of each partition whose first blocked job a candidate was and is no more.
func (ip *incrementalPass) addSuccessor(ch *candidateHeap, cand *candidate) {
	for p, f := range ip.oldFirstBlocked {
		if f.ID != cand.id || ip.firstBlocked[p] != nil {
			continue
		}
		delete(ip.oldFirstBlocked, p)
		next := ip.nextInLine(p, cand.place)
		if next.id != 0 && ip.inView(next.place) {
			ip.oldFirstBlocked[p], _ = ip.s.Job(next.id)
			ch.addJob(next)
		}
	}
}

// nextInLine is the first job of a partition behind a place that had no turn and that no limit holds back.
func (ip *incrementalPass) nextInLine(p *cluster.Partition, behind cluster.Place) *candidate {
	var next candidate
	for _, shape := range ip.book.list {
		if shape.part != p {
			continue
		}
		for _, m := range shape.members {
			if m.limited != cluster.NoReason || ip.visited[m.id] || !ip.isCurrent(m) {
				continue
			}
			at := ip.memberPlace(m)
			if behind.Before(at) && (next.id == 0 || at.Before(next.place)) {
				next = candidate{id: m.id, place: at}
			}
		}
	}
	return &next
}

// isOldFirstBlocked reports whether a job was the first blocked one of a partition, or comes next where that is no
// more.
func (ip *incrementalPass) isOldFirstBlocked(id cluster.JobID) bool {
	return holdsJob(ip.oldFirstBlocked, id)
}

// visitedAnyway reports whether a job has a turn of its own, so that it need not be a candidate of its shape.
func (ip *incrementalPass) visitedAnyway(id cluster.JobID) bool {
	if ip.responsive {
		return ip.isFirstBlocked(id)
	}
	return ip.isOldFirstBlocked(id)
}
