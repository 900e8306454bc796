package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// projection is what a planned start rests on: the projected free resources just before it, when the job does not fit
// yet, and at it, when it does. It is kept from cycle to cycle and follows the nodes that change; while both
// statements hold no other moment can be the earliest, and nothing need be planned anew.
type projection struct {
	at           time.Time
	before       *freeSet // just before the start; nodes of other planned starts have nothing free
	then         *freeSet
	fit          *nodeFit // of then
	plannedNodes nodeSet
	chosen       []int32 // nodes of the start, in the order of their choice; nil: not known
	start        *plannedStart
	seen         int // how many changes of the cycle's free set are in it
}

// planStart finds the earliest start of a job of a shape if every running job uses up its limit, away from the nodes
// of other planned starts and of reservations; nil if there is none.
func (c *cycle) planStart(shape *jobShape, j *cluster.Job) *plannedStart {
	kept := c.plannedNodes()
	if pr := shape.projection; pr != nil && c.untouchedByReservations(shape, j, pr.at) && pr.stillHolds(c, kept) {
		return pr.start
	}
	shape.projection = nil
	ps, look := findStart(c.freeWithOverlap(shape.demand.jobsPerCPU), c.releaseTimeline(), shape.demand,
		func(_ *freeSet, at time.Time) exclusion {
			return c.exclusionFrom(shape.reservation, j, at).withNodes(kept)
		})
	if ps == nil || !c.untouchedByReservations(shape, j, ps.at) || c.free.overlaps || !look.byNumbers {
		return ps
	}
	pr := &projection{at: ps.at, before: look.free.clone(), then: look.free, fit: look, start: ps,
		seen: len(c.free.changes)}
	for _, e := range c.releaseTimeline() {
		for _, sh := range e.shares {
			if i, ok := c.free.index(sh.Node); ok && e.at.Equal(ps.at) {
				pr.before.replaceNode(i, pr.freeBefore(c, i))
			}
		}
	}
	pr.setPlannedNodes(c, kept)
	shape.projection = pr
	return ps
}

// untouchedByReservations reports whether a job that starts at a time, or before, is over before any reservation
// begins.
func (c *cycle) untouchedByReservations(shape *jobShape, j *cluster.Job, at time.Time) bool {
	over := endOf(laterOf(at, c.now), j.Limit)
	return shape.reservation == nil && !slices.ContainsFunc(c.reserved,
		func(rn *reservedNodes) bool { return rn.Start.Before(over) })
}

// exclusionFrom is what a job must keep off that starts at a time; now if that has passed, as jobs may end late.
func (c *cycle) exclusionFrom(own *reservedNodes, j *cluster.Job, at time.Time) exclusion {
	at = laterOf(at, c.now)
	return c.exclusionFor(own, j, at, endOf(at, j.Limit))
}

// stillHolds brings the planned start up to date; false if another moment may be the earliest.
func (pr *projection) stillHolds(c *cycle, kept nodeSet) bool {
	same, others := pr.catchUp(c), pr.setPlannedNodes(c, kept)
	same = same && !others && !pr.start.reduced &&
		!pr.fit.demand.byFragmentation // fragmentation changes with the jobs of late
	if !pr.fit.hopeless(pr.before.classIndex(nil, 0)) {
		return false
	}
	if same {
		return true
	}
	choice := pr.fit.pickNodes(kept)
	if choice == nil {
		return false
	}
	if !pr.start.reduced && slices.Equal(choice.chosen, pr.chosen) && !slices.ContainsFunc(pr.chosen, pr.start.changed) {
		return true
	}
	a := pr.fit.allotTo(choice.chosen)
	if a != nil {
		pr.chosen, pr.start = choice.chosen, newPlannedStart(pr.then, pr.at, a, pr.start)
	}
	return a != nil
}

// catchUp follows the changes of the cycle's nodes; it reports whether they make no difference at the start.
func (pr *projection) catchUp(c *cycle) bool {
	same := true
	for ; pr.seen < len(c.free.changes); pr.seen++ {
		ch, news := c.free.freshChange(pr.seen, 0)
		if !news {
			continue
		}
		i := int(ch.index)
		pr.before.replaceNode(i, pr.freeBefore(c, i))
		same = !pr.then.replaceNode(i, c.expectedFree(i, pr.at)) && same
	}
	return same
}

// setPlannedNodes replaces the nodes of other planned starts; it reports whether these have changed.
func (pr *projection) setPlannedNodes(c *cycle, kept nodeSet) bool {
	if slices.Equal(pr.plannedNodes, kept) {
		return false
	}
	was := pr.plannedNodes
	pr.plannedNodes = kept
	for i := range pr.before.nodes {
		if was.has(i) != kept.has(i) {
			pr.before.replaceNode(i, pr.freeBefore(c, i))
		}
	}
	return true
}

// freeBefore is what will be free on a node just before the start.
func (pr *projection) freeBefore(c *cycle, i int) nodeFree {
	free := c.expectedFree(i, pr.at.Add(-1))
	if pr.plannedNodes.has(i) {
		free.cpus, free.gpus, free.mem = cluster.IDSet{}, cluster.IDSet{}, 0
		free.recount()
	}
	return free
}

// replaceNode sets what is free on a node; it reports whether that has changed.
func (fs *freeSet) replaceNode(i int, free nodeFree) bool {
	was := &fs.nodes[i]
	sameNumbers := was.mem == free.mem && was.jobs == free.jobs && was.onlyUser == free.onlyUser
	if sameNumbers && was.cpus.Equal(free.cpus) && was.gpus.Equal(free.gpus) && slices.Equal(was.gpuParts, free.gpuParts) {
		return false
	}
	*was = free
	fs.noteChange(i, true)
	return true
}

// reducedNode is a node of which less may be used than is free.
type reducedNode struct {
	index int
	nodeFree
}

// reduceNodes replaces nodes, and returns what they were, to be put back the same way.
func (fs *freeSet) reduceNodes(list []reducedNode) (had []reducedNode) {
	for k := range list {
		i := list[k].index
		had = append(had, reducedNode{i, fs.nodes[i]})
		fs.replaceNode(i, list[k].nodeFree)
	}
	return had
}

// expectedFree is what will be free on a node at a time if every job uses up its limit.
func (c *cycle) expectedFree(i int, by time.Time) nodeFree {
	free := c.free.nodes[i]
	for _, id := range c.s.Load(free.node.Name).Jobs {
		j, ok := c.s.Job(id)
		if !ok || j.Alloc == nil {
			continue
		}
		j = j.On(free.node.Name)
		leftAlready := j.Phase == cluster.Ending && !slices.Contains(j.Waiting, free.node.Name)
		if leftAlready || plannedEnd(j, c.s.Config()).After(by) {
			continue
		}
		free.giveBackShares(j.Alloc.Shares, !j.HoldsCPUs())
	}
	for _, e := range c.started {
		if !e.at.After(by) {
			free.giveBackShares(e.shares, false)
		}
	}
	return free
}

// giveBackShares returns the node's share of an allocation.
func (free *nodeFree) giveBackShares(shares []cluster.Share, noCPUs bool) {
	for k := range shares {
		if shares[k].Node == free.node.Name {
			free.giveBackShare(shares[k], noCPUs)
		}
	}
}

// endless is how long a job without a limit is taken to run when starts are planned: Slurm's year.
const endless = 365 * 24 * time.Hour

// endOf is when a job that starts at a time is planned to be over.
func endOf(start time.Time, limit time.Duration) time.Time {
	return start.Add(min(limit, endless))
}

// release is a moment at which an allocation becomes free.
type release struct {
	at     time.Time
	shares []cluster.Share
	noCPUs bool // the job is suspended: its CPUs are free already
}

// plannedEnd is when a live job is planned to be over. It does not depend on the present time, so that plans stay the
// same while nothing changes.
func plannedEnd(j *cluster.Job, cfg *cluster.Config) time.Time {
	switch j.Phase {
	case cluster.Ending:
		return j.EndingAt
	case cluster.Suspended:
		if !j.AwaitsTurn() {
			return endOf(j.SuspendedAt, endless)
		}
	}
	if at := j.EndLimit(cfg); !at.IsZero() {
		return at
	}
	return endOf(j.Started, endless)
}

// releases lists when the live jobs are planned to end.
func releases(s *cluster.Snapshot) []release {
	out := make([]release, 0, 256)
	for j := range s.Live() {
		out = append(out, releasesOf(j, s.Config())...)
	}
	return out
}

// releasesOf lists when a live job will give back what it holds; what it has given back already, on nodes that are
// still cleaning up, comes earlier than the rest.
func releasesOf(j *cluster.Job, cfg *cluster.Config) []release {
	shares := j.HeldShares()
	n := len(shares) - len(j.Leaving())
	out := []release{{plannedEnd(j, cfg), shares[:n], !j.HoldsCPUs()}}
	if n < len(shares) {
		out = append(out, release{j.ResizedAt(), shares[n:], !j.HoldsCPUs()})
	}
	return out
}

// findStart finds the first moment at which a demand fits as releases come in turn, and how well it fits then; nil if
// it never does. avoid says what is excluded at a moment, with the nodes as they will be.
func findStart(
	fs *freeSet, ends []release, want *demand, avoid func(then *freeSet, at time.Time) exclusion,
) (*plannedStart, *nodeFit) {
	future := fs.clone()
	cf := newClassFit(want, future)
	look := cf.newNodeFit(future, nil, 0)
	for i := 0; i < len(ends); {
		at := ends[i].at
		for ; i < len(ends) && ends[i].at.Equal(at); i++ {
			future.giveBack(ends[i])
		}
		if cf.hopeless(future.classIndex(nil, 0)) {
			continue
		}
		ex := avoid(future, at)
		more := future.reduceNodes(ex.reduced)
		if a := look.find(ex); a != nil {
			ps := newPlannedStart(future, at, a, nil)
			ps.excluded = look.excluded
			return ps, look
		}
		future.reduceNodes(more)
	}
	return nil, nil
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
