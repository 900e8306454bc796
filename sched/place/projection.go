package place

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// Projection is what a planned start rests on: the projected free resources just before it, when the job does not fit
// yet, and at it, when it does. It is kept from cycle to cycle and follows the nodes that change; while both
// statements hold no other moment can be the earliest, and nothing need be planned again.
type Projection struct {
	at           time.Time
	before       *FreeSet // just before the start; nodes of other planned starts have nothing free
	then         *FreeSet
	fit          *nodeFit // of then
	plannedNodes NodeSet
	chosen       []int32 // nodes of the start, in the order of their choice; nil: not known
	Start        *PlannedStart
	seen         int // how many changes of the free set of now are in it
}

// Expectation tells what will be free on a node at a time if every job uses up its limit.
type Expectation func(i int, by time.Time) NodeFree

// NewProjection is what a start rests on that was found by releases in turn, away from the nodes of other planned
// starts; nil where that cannot be kept, since amounts alone do not decide.
func NewProjection(now *FreeSet, found FoundStart, ends []Release, kept NodeSet, expect Expectation) *Projection {
	ps := found.PlannedStart
	fit := found.fit
	if now.Overlaps || !fit.byNumbers {
		return nil
	}
	pr := &Projection{at: ps.At, before: fit.free.Clone(), then: fit.free, fit: fit, Start: ps, seen: len(now.changes)}
	for _, e := range ends {
		for _, sh := range e.Shares {
			if i, ok := now.Index(sh.Node); ok && e.At.Equal(ps.At) {
				pr.before.replaceNode(i, pr.freeBefore(i, expect))
			}
		}
	}
	pr.setPlannedNodes(kept, expect)
	return pr
}

// StillHolds brings the planned start up to date; false if another moment may be the earliest.
func (pr *Projection) StillHolds(now *FreeSet, kept NodeSet, expect Expectation) bool {
	same := pr.catchUp(now, expect)
	others := pr.setPlannedNodes(kept, expect)
	moved := anyOf(
		!same,
		others,
		pr.Start.reduced,
		pr.fit.demand.byFragmentation, // which changes with the recent jobs
	)
	if !pr.fit.hopeless(pr.before.classIndex(nil, 0)) {
		return false
	}
	if !moved {
		return true
	}
	choice := pr.fit.pickNodes(kept)
	if choice == nil {
		return false
	}
	sameNodes := slices.Equal(choice.chosen, pr.chosen)
	if sameNodes && !pr.Start.reduced && !slices.ContainsFunc(pr.chosen, pr.Start.changed) {
		return true
	}
	a := pr.fit.allotTo(choice.chosen)
	if a != nil {
		pr.chosen, pr.Start = choice.chosen, newPlannedStart(pr.then, pr.at, a, pr.Start)
	}
	return a != nil
}

// catchUp follows the changes of the nodes; it reports whether they make no difference at the start.
func (pr *Projection) catchUp(now *FreeSet, expect Expectation) bool {
	same := true
	for ; pr.seen < len(now.changes); pr.seen++ {
		ch, news := now.freshChange(pr.seen, 0)
		if !news {
			continue
		}
		i := int(ch.index)
		pr.before.replaceNode(i, pr.freeBefore(i, expect))
		same = !pr.then.replaceNode(i, expect(i, pr.at)) && same
	}
	return same
}

// setPlannedNodes replaces the nodes of other planned starts; it reports whether these have changed.
func (pr *Projection) setPlannedNodes(kept NodeSet, expect Expectation) bool {
	if slices.Equal(pr.plannedNodes, kept) {
		return false
	}
	was := pr.plannedNodes
	pr.plannedNodes = kept
	for i := range pr.before.nodes {
		if was.Has(i) != kept.Has(i) {
			pr.before.replaceNode(i, pr.freeBefore(i, expect))
		}
	}
	return true
}

// freeBefore is what will be free on a node just before the start.
func (pr *Projection) freeBefore(i int, expect Expectation) NodeFree {
	free := expect(i, pr.at.Add(-1))
	if pr.plannedNodes.Has(i) {
		free.cpus = cluster.IDSet{}
		free.gpus = cluster.IDSet{}
		free.mem = 0
		free.recount()
	}
	return free
}

// FoundStart is a planned start, and how well the demand fits then; it has none if there is no such moment.
type FoundStart struct {
	*PlannedStart
	fit *nodeFit
}

// FindStart finds the first moment at which a demand fits as releases come in turn. avoid says what is excluded at a
// moment, with the nodes as they will be.
func FindStart(
	fs *FreeSet, ends []Release, want *Demand, avoid func(then *FreeSet, at time.Time) Exclusion,
) FoundStart {
	future := fs.Clone()
	cf := newClassFit(want, future)
	look := cf.newNodeFit(future, nil, 0)
	for i := 0; i < len(ends); {
		at := ends[i].At
		for ; i < len(ends) && ends[i].At.Equal(at); i++ {
			future.GiveBack(ends[i])
		}
		if cf.hopeless(future.classIndex(nil, 0)) {
			continue
		}
		ex := avoid(future, at)
		more := future.reduceNodes(ex.reduced)
		if a := look.find(ex); a != nil {
			return FoundStart{PlanAlloc(future, at, a, look.excluded), look}
		}
		future.reduceNodes(more)
	}
	return FoundStart{}
}
