package step

import (
	"iter"

	"dev.muster/cluster"
)

// Table is the parts of steps that a client knows of, by node: one that is many hollow nodes looks at each by
// itself.
type Table map[cluster.NodeName]map[ID]*Status

// Get is what is known of a part, nil if nothing is.
func (h Table) Get(id ID) *Status { return h[id.Node][id] }

// Put keeps what is known of a part.
func (h Table) Put(id ID, st *Status) {
	if h[id.Node] == nil {
		h[id.Node] = map[ID]*Status{}
	}
	h[id.Node][id] = st
}

// Drop forgets a part.
func (h Table) Drop(id ID) {
	if delete(h[id.Node], id); len(h[id.Node]) == 0 {
		delete(h, id.Node)
	}
}

// All yields every part; whoever reads may drop the one at hand.
func (h Table) All() iter.Seq2[ID, *Status] {
	return func(yield func(ID, *Status) bool) {
		for _, parts := range h {
			for id, st := range parts {
				if !yield(id, st) {
					return
				}
			}
		}
	}
}
