package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// planStart finds the earliest start of a job of a shape if every running job uses up its limit, away from the nodes
// of other planned starts and of reservations; nil if there is none.
func (c *cycle) planStart(shape *jobShape, j *cluster.Job) *place.PlannedStart {
	kept := c.plannedNodes()
	pr := shape.projection
	if pr != nil && c.untouchedByReservations(shape, j, pr.Start.At) && pr.StillHolds(c.free, kept, c.expectedFree) {
		return pr.Start
	}
	shape.projection = nil
	ends := c.releaseTimeline()
	found := place.FindStart(c.freeWithOverlap(shape.demand.JobsPerCPU), ends, shape.demand,
		func(_ *place.FreeSet, at time.Time) place.Exclusion {
			return c.exclusionFrom(shape.reservation, j, at).WithNodes(kept)
		})
	ps := found.PlannedStart
	if ps != nil && c.untouchedByReservations(shape, j, ps.At) {
		shape.projection = place.NewProjection(c.free, found, ends, kept, c.expectedFree)
	}
	return ps
}

// untouchedByReservations reports whether a job that starts at a time, or before, is over before any reservation
// begins.
func (c *cycle) untouchedByReservations(shape *jobShape, j *cluster.Job, at time.Time) bool {
	over := EndOf(laterOf(at, c.now), j.Limit)
	return shape.reservation == nil && !slices.ContainsFunc(c.reserved,
		func(rn *reservedNodes) bool { return rn.Start.Before(over) })
}

// exclusionFrom is what a job must keep off that starts at a time; now if that has passed, as jobs may end late.
func (c *cycle) exclusionFrom(own *reservedNodes, j *cluster.Job, at time.Time) place.Exclusion {
	at = laterOf(at, c.now)
	return c.exclusionFor(own, j, at, EndOf(at, j.Limit))
}

// expectedFree is what will be free on a node at a time if every job uses up its limit.
func (c *cycle) expectedFree(i int, by time.Time) place.NodeFree {
	free := c.free.Node(i)
	for _, id := range c.s.Load(free.Name()).Jobs {
		j, ok := c.s.Job(id)
		if !ok || j.Alloc == nil {
			continue
		}
		j = j.On(free.Name())
		leftAlready := j.Phase == cluster.Ending && !slices.Contains(j.Waiting, free.Name())
		if leftAlready || PlannedEnd(j, c.s.Config()).After(by) {
			continue
		}
		free.GiveBackShares(j.Alloc.Parts(), !j.HoldsCPUs())
	}
	for _, e := range c.started {
		if !e.At.After(by) {
			free.GiveBackShares(e.Shares, false)
		}
	}
	return free
}

// endless is how long a job without a limit is taken to run when starts are planned: Slurm's year.
const Endless = 365 * 24 * time.Hour

// EndOf is when a job that starts at a time is planned to be over.
func EndOf(start time.Time, limit time.Duration) time.Time {
	return start.Add(min(limit, Endless))
}

// PlannedEnd is when a live job is planned to be over. It does not depend on the present time, so that plans stay the
// same while nothing changes.
func PlannedEnd(j *cluster.Job, cfg *cluster.Config) time.Time {
	switch j.Phase {
	case cluster.Ending:
		return j.EndingAt
	case cluster.Suspended:
		if !j.AwaitsTurn() {
			return EndOf(j.SuspendedAt, Endless)
		}
	}
	if at := j.EndLimit(cfg); !at.IsZero() {
		return at
	}
	return EndOf(j.Started, Endless)
}

// releases lists when the live jobs are planned to end.
func releases(s *cluster.Snapshot) []place.Release {
	out := make([]place.Release, 0, 256)
	for j := range s.Live() {
		out = append(out, ReleasesOf(j, s.Config())...)
	}
	return out
}

// ReleasesOf lists when a live job will give back what it holds; what it has given back already, on nodes that are
// still cleaning up, comes earlier than the rest.
func ReleasesOf(j *cluster.Job, cfg *cluster.Config) []place.Release {
	shares := j.HeldShares()
	n := len(shares) - len(j.Leaving())
	out := []place.Release{{At: PlannedEnd(j, cfg), Shares: shares[:n], NoCPUs: !j.HoldsCPUs()}}
	if n < len(shares) {
		out = append(out, place.Release{At: j.ResizedAt(), Shares: shares[n:], NoCPUs: !j.HoldsCPUs()})
	}
	return out
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
