package client

import (
	"iter"

	"dev.muster/agent/step"
	"dev.muster/cluster"
)

// statuses are the parts of steps that a client knows of, by node: one that is many hollow nodes looks at each by
// itself.
type statuses map[cluster.NodeName]map[step.ID]*step.Status

// get is what is known of a part, nil if nothing is.
func (h statuses) get(id step.ID) *step.Status { return h[id.Node][id] }

func (h statuses) put(id step.ID, st *step.Status) {
	if h[id.Node] == nil {
		h[id.Node] = map[step.ID]*step.Status{}
	}
	h[id.Node][id] = st
}

func (h statuses) drop(id step.ID) {
	if delete(h[id.Node], id); len(h[id.Node]) == 0 {
		delete(h, id.Node)
	}
}

// all yields every part; whoever reads may drop the one at hand.
func (h statuses) all() iter.Seq2[step.ID, *step.Status] {
	return func(yield func(step.ID, *step.Status) bool) {
		for _, parts := range h {
			for id, st := range parts {
				if !yield(id, st) {
					return
				}
			}
		}
	}
}
