package sched

import (
	"maps"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// An incremental pass in the responsive order first plans the starts of the protected jobs again, if anything runs
// that did not; then candidates have their turn by score; at last the first in line of partitions without a protected
// job are planned, as nothing that comes after a protected job can delay it. Whoever else is blocked only waits.

// visitByScore gives the jobs their turn that may start now; an error where there is more to look at.
func (ip *incrementalPass) visitByScore() error {
	c := ip.cycle
	firsts := maps.Clone(c.firstBlocked) // of partitions without a protected job
	maps.DeleteFunc(firsts, func(p *cluster.Partition, _ *cluster.Job) bool { return c.protectedJobs[p] != nil })
	ip.oldFirstBlocked = firsts
	c.planned = c.planned[:c.protectedStarts]
	if ip.runningChanged {
		ip.reopenShapes(ip.freedNodes, concernsAll)
		if err := ip.replanProtected(); err != nil {
			return err
		}
		ip.replanFirsts()
	}
	ip.visitUnstable()
	ch := ip.newCandidateHeap()
	for _, cand := range ch.list {
		if cand.changed {
			j, _ := c.s.Job(cand.id)
			c.expectProtection(j, 0)
		}
	}
	if c.protectionDue() {
		return errProtectionDue
	}
	if err := ip.visitCandidatesByScore(ch); err != nil {
		return err
	}
	if !ip.replanning && ip.mustReplanFirsts() {
		ip.replanFirsts()
		c.revisited = true
		for _, j := range firsts {
			if is, ok := c.s.Job(j.ID); ok && !c.isBlocked(j.ID) {
				c.decide(is)
			}
		}
	}
	if err := ip.planFirsts(); err != nil {
		return err
	}
	c.sortDecisions(c.decisions)
	return nil
}

// visitUnstable gives jobs a turn that may have become ready, or ceased to be.
func (ip *incrementalPass) visitUnstable() {
	for _, id := range ip.unstable {
		ip.visitChanged(id)
	}
	ip.unstable = ip.unstable[:0]
}

// visitCandidatesByScore gives the candidates their turn, the highest score first.
func (ip *incrementalPass) visitCandidatesByScore(ch *candidateHeap) error {
	c := ip.cycle
	for cand := ch.next(); cand != nil; cand = ch.next() {
		j, _ := c.s.Job(cand.id)
		c.revisited = !cand.changed
		c.current = queuedJob{queueWait: longestQueue}
		if cand.changed {
			c.current.share = c.scaleOfCluster().Share(j)
		}
		before := len(c.started)
		ip.decideCandidate(cand, j)
		if err := ip.checkStarts(ch, cand, before); err != nil {
			return err
		}
		ch.advance()
	}
	return nil
}

// checkStarts has limits checked again if the job of a candidate has started.
func (ip *incrementalPass) checkStarts(ch *candidateHeap, cand *candidate, before int) error {
	switch {
	case len(ip.started) >= maxStarts:
		return errManyStarts
	case len(ip.started) > before:
		return ip.recheckLaterLimits(ch, cand)
	}
	return nil
}

// replanFirsts has the first in line be looked at, and planned again.
func (ip *incrementalPass) replanFirsts() {
	c := ip.cycle
	ip.replanning = true
	c.releases, c.firstBlocked = nil, maps.Clone(c.protectedJobs)
	for _, j := range ip.oldFirstBlocked {
		ip.visit(j.ID)
	}
}

// mustReplanFirsts reports whether a job has started, or is blocked in a partition that has no first in line yet.
func (ip *incrementalPass) mustReplanFirsts() bool {
	return len(ip.started) > 0 ||
		slices.ContainsFunc(ip.blocked, func(b blockedJob) bool { return !ip.partitionsTaken(b.job) })
}

// queuedBlocked is a blocked job with its place in the queue.
type queuedBlocked struct {
	blockedJob
	place cluster.Place
}

// planFirsts plans the blocked jobs that had a turn, in the order of the queue.
func (ip *incrementalPass) planFirsts() error {
	c := ip.cycle
	stuck := make([]queuedBlocked, len(c.blocked))
	for k, b := range c.blocked {
		stuck[k].blockedJob = b
		stuck[k].place, _ = c.s.PlaceOf(b.job.ID)
	}
	slices.SortFunc(stuck, func(a, b queuedBlocked) int { return byQueuePlace(a.place, b.place) })
	if ip.replanning {
		for _, j := range ip.oldFirstBlocked { // who waits no more leaves its place to a job that had no turn
			if !c.isBlocked(j.ID) {
				return errFirstBlocked
			}
		}
	}
	for _, b := range stuck {
		if ip.overtakesFirst(&b) {
			return errFirstBlocked
		}
		c.planBlocked(b.blockedJob)
	}
	c.blocked = nil
	return nil
}

// overtakesFirst reports whether a blocked job is in the queue before one that is the first in line of its partition.
func (ip *incrementalPass) overtakesFirst(b *queuedBlocked) bool {
	for _, name := range b.job.Spec.Partitions {
		p, _ := ip.s.Partition(name)
		first := ip.firstBlocked[p]
		if first == nil || ip.protectedJobs[p] != nil || first.ID == b.job.ID {
			continue
		}
		if at, _ := ip.s.PlaceOf(first.ID); b.place.Before(at) {
			return true
		}
	}
	return false
}

// isBlocked reports whether a job had its turn and could start nowhere.
func (c *cycle) isBlocked(id cluster.JobID) bool {
	return slices.ContainsFunc(c.blocked, func(b blockedJob) bool { return b.job.ID == id })
}

// replanProtected plans the starts of the protected jobs again, and keeps those that are the same. An error if one
// would start, or comes later than before, or the jobs are others.
func (ip *incrementalPass) replanProtected() error {
	c := ip.cycle
	old := c.planned
	jobs := c.protectedJobs
	c.releases = nil
	c.planned = nil
	c.firstBlocked = map[*cluster.Partition]*cluster.Job{}
	c.revisited = true
	c.current = queuedJob{}
	places := map[cluster.JobID]cluster.Place{}
	for _, j := range jobs {
		p, ok := c.s.PlaceOf(j.ID)
		if !ok || !c.inView(p) {
			return errFirstBlocked
		}
		places[j.ID] = p
	}
	inQueue := func(a, b cluster.JobID) int { return byQueuePlace(places[a], places[b]) }
	for _, id := range slices.SortedFunc(maps.Keys(places), inQueue) {
		j, _ := c.s.Job(id)
		c.decide(j)
		if len(c.started) > 0 || len(c.planned) > len(old) || !ip.keepOrReplace(old, len(c.planned)-1) {
			return errProtectedStart
		}
	}
	if len(c.planned) != len(old) || len(c.firstBlocked) != len(jobs) {
		return errProtectedStart
	}
	for p, j := range jobs {
		if c.firstBlocked[p] == nil || c.firstBlocked[p].ID != j.ID {
			return errProtectedStart
		}
	}
	return nil
}

// keepOrReplace keeps planned start k of the last cycle if the new one is the same, else has that be in its place;
// false if it is another job's, or comes later.
func (ip *incrementalPass) keepOrReplace(old []*place.PlannedStart, k int) bool {
	if k < 0 || ip.planned[k] == old[k] {
		return true
	}
	ps := ip.planned[k]
	was := old[k]
	switch {
	case ps.Job != was.Job || ps.At.After(was.At):
		return false
	case ps.KeepsSame(was):
		ip.planned[k] = was
	default:
		ip.replaceStart(k, ps, was)
	}
	return true
}

// replaceStart has planned start k be another one, which comes no later.
func (ip *incrementalPass) replaceStart(k int, ps, was *place.PlannedStart) {
	more, other := ps.CompareLeftovers(was)
	ip.free.ReplaceStart(k, ps, other)
	ip.reopenShapes(more, concernsStart(k))
}

// protectionDue reports whether nodes may have to be kept free for another job than before.
func (c *cycle) protectionDue() bool {
	return !c.nextProtection.IsZero() && !c.now.Before(c.nextProtection)
}

// precedesProtected reports whether a job at this place has its turn before one that is protected.
func (ip *incrementalPass) precedesProtected(p cluster.Place) bool {
	for _, j := range ip.protectedJobs {
		if at, _ := ip.s.PlaceOf(j.ID); p.Before(at) {
			return true
		}
	}
	return len(ip.limitedProtected) > 0 && p.Before(ip.lastLimited)
}

// drainSooner takes into account that a change of a record may make the queue shorter, so that others have waited for
// longer than their part of it.
func (ip *incrementalPass) drainSooner(was *cluster.Job, queued bool, is *cluster.Job, queues bool) {
	if ip.nextProtection.IsZero() {
		return
	}
	var less time.Duration
	if queued && was.Held == cluster.NotHeld {
		less = drainTime(was, ip.shareOf(was))
	}
	if queues && is.Held == cluster.NotHeld {
		less -= drainTime(is, ip.shareOf(is))
	}
	ip.nextProtection = ip.nextProtection.Add(-queueFactor * max(less, 0))
}
