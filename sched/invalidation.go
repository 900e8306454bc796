package sched

import (
	"slices"

	"dev.muster/sched/place"
)

// A shape remembers beside which sets of planned starts it did not fit (jobShape.failed), and an incremental pass
// does not try it again there. The memory is in doubt where a node has more free than it had, or a planned
// start leaves more of one: such nodes are an invalidation. It costs a look at every shape, so it is applied in three
// steps, each dearer than the one before: by numbers when the nodes become known (reopenShapes), by the nodes
// themselves when a shape is looked at (applyInvalidations), and by a search when the turn of one of its jobs comes
// (decideCandidate).

// invalidation is nodes that gained room for jobs that keep off certain sets of planned starts.
type invalidation struct {
	nodes    []int
	most     place.Capability       // the most that any of them had when it was made
	concerns func(mask uint64) bool // whether jobs that keep off these planned starts gained room
}

// reopenShapes makes an invalidation, and has the shapes become candidates whose needs one of the nodes may meet.
func (ip *incrementalPass) reopenShapes(nodes []int, concerns func(mask uint64) bool) {
	if len(nodes) == 0 {
		return
	}
	_, most := ip.free.Classify(nodes)
	ip.gainedNodes = append(ip.gainedNodes, nodes...)
	ip.book.invalidations = append(ip.book.invalidations, invalidation{nodes, most, concerns})
	for k := range ip.book.needs {
		if !ip.book.needs[k].Exceeds(&most) {
			ip.reopened = append(ip.reopened, k)
		}
	}
}

// concernsAll is for nodes of which more is free, whatever planned starts leave of them.
func concernsAll(uint64) bool { return true }

// concernsStart is for nodes of which planned start k leaves more.
func concernsStart(k int) func(mask uint64) bool {
	return func(mask uint64) bool { return mask>>k&1 != 0 }
}

// knownToFail reports whether a shape did not fit beside these planned starts, or fewer of them, and cannot fit now
// for all that is known.
func (c *cycle) knownToFail(shape *jobShape, mask uint64) bool {
	c.applyInvalidations(shape)
	return slices.ContainsFunc(shape.failed, func(m uint64) bool { return m&mask == m })
}

// applyInvalidations brings what is remembered of a shape up to date; it reports whether anything was invalid in this
// pass.
func (c *cycle) applyInvalidations(shape *jobShape) bool {
	book := &c.book
	if shape.checkedIn != book.pass {
		shape.checkedIn = book.pass
		shape.invalidations = 0
		shape.reopened = shape.reopened[:0]
	}
	for ; shape.invalidations < len(book.invalidations); shape.invalidations++ {
		inv := &book.invalidations[shape.invalidations]
		needsMore := book.needs[shape.number].Exceeds(&inv.most)
		if needsMore || !slices.ContainsFunc(shape.failed, inv.concerns) || !shape.fit.GainsFrom(c.free, inv.nodes) {
			continue
		}
		shape.failed = slices.DeleteFunc(shape.failed, func(mask uint64) bool {
			invalid := inv.concerns(mask)
			if invalid {
				shape.reopened = append(shape.reopened, mask)
			}
			return invalid
		})
	}
	return len(shape.reopened) > 0
}
