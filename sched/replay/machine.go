package replay

import "slices"

// machine is a set of nodes with one kind of thing to give away, GPUs or CPUs.
type machine struct {
	has  []int // by node
	most int   // what the largest has
}

// piece is a part of a job on one node.
type piece struct{ node, units int }

// Placement says which of the nodes that could take the rest of a job does.
type Placement func(free, best int) bool

// Placements by name. A whole node goes first to the lowest index always.
var Placements = map[string]Placement{
	"first": func(int, int) bool { return false },             // lowest index
	"best":  func(free, best int) bool { return free < best }, // the tightest
	"worst": func(free, best int) bool { return free > best }, // the emptiest
}

// place finds nodes for so many units, or nil. With nodes = 0 they are as few as possible: whole nodes, and one
// for what remains; else so many, of equal parts (the first ones get one more if it does not come out even).
func (m *machine) place(free []int, units, nodes int, better Placement) []piece {
	if nodes > 0 {
		return m.spread(free, units, nodes, better)
	}
	whole, rest := units/m.most, units%m.most
	var out []piece
	if whole > 0 {
		for i, f := range free {
			if f == m.most && len(out) < whole {
				out = append(out, piece{i, f})
			}
		}
		if len(out) < whole {
			return nil
		}
	}
	if rest == 0 {
		return out
	}
	best := -1
	for i, f := range free {
		if f < rest || best >= 0 && !better(f, free[best]) || slices.ContainsFunc(out,
			func(p piece) bool { return p.node == i }) {
			continue
		}
		best = i
	}
	if best < 0 {
		return nil
	}
	return append(out, piece{best, rest})
}

// parts is on how many nodes place puts so many units, and the smallest part.
func (m *machine) parts(units, nodes int) (n, least int) {
	if nodes > 0 {
		return nodes, units / nodes
	}
	if rest := units % m.most; rest > 0 {
		return units/m.most + 1, rest
	}
	return units / m.most, m.most
}

func (m *machine) spread(free []int, units, nodes int, better Placement) []piece {
	var out []piece
	left := slices.Clone(free)
	for k := range nodes {
		part := units / nodes
		if k < units%nodes {
			part++
		}
		best := -1
		for i, f := range left {
			if f >= part && (best < 0 || better(f, left[best])) {
				best = i
			}
		}
		if best < 0 {
			return nil
		}
		left[best] = -1
		out = append(out, piece{best, part})
	}
	return out
}

func give(free []int, p []piece) {
	for _, x := range p {
		free[x.node] += x.units
	}
}

func take(free []int, p []piece) {
	for _, x := range p {
		free[x.node] -= x.units
	}
}
