package place

import "slices"

// NodeSet is a set of nodes of a FreeSet; nil is empty.
type NodeSet []bool

// Has reports whether a node is in the set.
func (s NodeSet) Has(i int) bool { return s != nil && s[i] }

// Union is the nodes of both sets.
func (s NodeSet) Union(o NodeSet) NodeSet {
	if s == nil || o == nil {
		return slices.Concat(s, o) // a copy of the one that is not empty
	}
	out := slices.Clone(s)
	for i, in := range o {
		out[i] = out[i] || in
	}
	return out
}
