package sched

import (
	"slices"

	"dev.muster/cluster"
)

// topology is how the nodes of a pool hang together: a tree of switches, or blocks, or neither.
type topology struct {
	leaves []leaf
	leafOf []int32 // by place, the leaf of the node
	levels [][]branch
	blocks *blocks
	weight bool // the nodes differ in weight
	shaky  bool // some had trouble of late
}

// leaf is a switch with nodes. Nodes that no switch names are a leaf of their own.
type leaf struct {
	nodes []int32 // places, rising
	above []int32 // by level from 0, the switch above (itself at level 0); -1: none
}

// branch is a switch above others: which leaves are under it, in the order of the configuration.
type branch struct{ leaves []int32 }

// newTopology lays switches or blocks over the nodes of a pool, which differ in weight or not.
func newTopology(w cluster.Wiring, p *pool, weight bool) *topology {
	t := &topology{weight: weight}
	for i := range p.spaces {
		t.shaky = t.shaky || p.spaces[i].shaky
	}
	if len(w.Blocks) > 0 {
		t.blocks = newBlocks(w, p)
		return t
	}
	if len(w.Switches) == 0 {
		return t
	}
	t.leafOf = make([]int32, len(p.spaces))
	for i := range t.leafOf {
		t.leafOf[i] = -1
	}
	level := map[string]int{} // height of each switch above the nodes
	up := map[string]string{}
	for _, s := range w.Switches {
		for _, child := range s.Switches {
			up[child] = s.Name
		}
	}
	number := map[string]int32{}
	for _, s := range w.Switches {
		if len(s.Nodes) == 0 {
			continue
		}
		l := leaf{}
		for _, name := range s.Nodes {
			if i, ok := p.at(name); ok && t.leafOf[i] < 0 {
				t.leafOf[i] = int32(len(t.leaves))
				l.nodes = append(l.nodes, int32(i))
			}
		}
		slices.Sort(l.nodes)
		number[s.Name] = int32(len(t.leaves))
		t.leaves = append(t.leaves, l)
		for name, h := s.Name, 0; name != "" && h <= len(w.Switches); name, h = up[name], h+1 {
			level[name] = max(level[name], h)
		}
	}
	t.orphans()
	t.climb(w, up, level, number)
	return t
}

// orphans makes a leaf of the nodes that no switch names.
func (t *topology) orphans() {
	var l leaf
	for i, at := range t.leafOf {
		if at < 0 {
			t.leafOf[i] = int32(len(t.leaves))
			l.nodes = append(l.nodes, int32(i))
		}
	}
	if l.nodes != nil {
		t.leaves = append(t.leaves, l)
	}
}

// climb lists the switches of each level above the leaves.
func (t *topology) climb(w cluster.Wiring, up map[string]string, level map[string]int, number map[string]int32) {
	top := 0
	for _, h := range level {
		top = max(top, h)
	}
	t.levels = make([][]branch, top+1)
	at := map[string]int32{}
	for _, s := range w.Switches {
		if h := level[s.Name]; h > 0 {
			at[s.Name] = int32(len(t.levels[h]))
			t.levels[h] = append(t.levels[h], branch{})
		}
	}
	for k := range t.leaves {
		t.leaves[k].above = make([]int32, top+1)
		for h := range t.leaves[k].above {
			t.leaves[k].above[h] = -1
		}
		t.leaves[k].above[0] = int32(k)
	}
	for _, s := range w.Switches {
		k, ok := number[s.Name]
		if !ok {
			continue
		}
		for name, steps := up[s.Name], 0; name != "" && steps < len(w.Switches); name, steps = up[name], steps+1 {
			h := level[name]
			t.leaves[k].above[h] = at[name]
			b := &t.levels[h][at[name]]
			b.leaves = append(b.leaves, k)
		}
	}
}

// hops is how far two leaves are from each other: the level of the lowest switch above both, or one
// more than there are levels.
func (t *topology) hops(a, b int32) int {
	for h := range t.levels {
		if x := t.leaves[a].above[h]; x >= 0 && x == t.leaves[b].above[h] {
			return h
		}
	}
	return len(t.levels)
}

// rootOf names the tree that a leaf is in, by the number of its first leaf.
func (t *topology) rootOf(l int32) int32 {
	for h := len(t.levels) - 1; h > 0; h-- {
		if b := t.leaves[l].above[h]; b >= 0 {
			return t.levels[h][b].leaves[0]
		}
	}
	return l
}

// groves is the candidates of one choice, leaf by leaf.
type groves struct {
	nodes [][]int32 // of each leaf
	held  []int32   // leaves of the nodes that it had before
}

func (c *choice) groves() *groves {
	t := c.p.plan
	ends := make([]int32, len(t.leaves)+1)
	for _, i := range c.cands {
		ends[t.leafOf[i]+1]++
	}
	for l := range t.leaves {
		ends[l+1] += ends[l]
	}
	g, all, next := &groves{nodes: make([][]int32, len(t.leaves))}, make([]int32, len(c.cands)), slices.Clone(ends)
	for _, i := range c.cands {
		l := t.leafOf[i]
		all[next[l]] = i
		next[l]++
	}
	for l := range t.leaves {
		g.nodes[l] = all[ends[l]:ends[l+1]]
	}
	for _, i := range c.places {
		g.held = append(g.held, t.leafOf[i])
	}
	slices.Sort(g.held)
	g.held = slices.Compact(g.held)
	return g
}

// tree chooses under the lowest switch whose nodes suffice: the one with the fewest of them. Which
// leaves, see leavesUnder.
func (c *choice) tree() bool {
	type option struct{ at, nodes int }
	t, g := c.p.plan, c.groves()
	for h := range t.levels {
		var options []option
		for k := range t.switches(h) {
			n := 0
			for _, l := range t.under(h, k) {
				n += len(g.nodes[l])
			}
			in := !slices.ContainsFunc(g.held, func(l int32) bool { return t.leaves[l].above[h] != int32(k) })
			if n > 0 && in && len(c.places)+n >= c.min {
				options = append(options, option{k, n})
			}
		}
		slices.SortStableFunc(options, func(a, b option) int { return a.nodes - b.nodes })
		for _, o := range options {
			if c.try(func() bool { return c.leavesUnder(t.under(h, o.at), g) }) {
				return true
			}
		}
	}
	return false
}

// switches is how many switches there are at a level.
func (t *topology) switches(h int) int {
	if h == 0 {
		return len(t.leaves)
	}
	return len(t.levels[h])
}

// under lists the leaves under a switch.
func (t *topology) under(h, k int) []int32 {
	if h == 0 {
		return []int32{int32(k)}
	}
	return t.levels[h][k].leaves
}

// leavesUnder goes from leaf to leaf: always to the nearest of those in use; of these to the one
// that suffices with the fewest nodes, or if none does to the one with most.
func (c *choice) leavesUnder(leaves []int32, g *groves) bool {
	t := c.p.plan
	far, gone := make([]int, len(leaves)), make([]bool, len(leaves))
	near := func(used int32, first bool) {
		for i, l := range leaves {
			if d := t.hops(l, used); first || d < far[i] {
				far[i] = d
			}
		}
	}
	for k, l := range g.held {
		near(l, k == 0)
	}
	for used := len(g.held); ; {
		i := c.nextLeaf(leaves, far, gone, g)
		if i < 0 {
			return false
		}
		l := leaves[i]
		if !slices.Contains(g.held, l) {
			used++
		}
		if c.d.switches > 0 && used > c.d.switches {
			return false
		}
		if gone[i] = true; c.fill(g.nodes[l]) {
			return true
		}
		near(l, used == 1)
	}
}

// nextLeaf is the number of the leaf to go on with, or -1.
func (c *choice) nextLeaf(leaves []int32, far []int, gone []bool, g *groves) int {
	best, enough := -1, false
	for i, l := range leaves {
		nodes := g.nodes[l]
		if gone[i] || len(nodes) == 0 || best >= 0 && far[i] > far[best] {
			continue
		}
		covers := len(c.places)+len(nodes) >= c.min && c.try(func() bool { return c.fill(nodes) }, true)
		better := best < 0 || far[i] < far[best] || covers && !enough
		if !better && covers == enough {
			more := len(nodes) - len(g.nodes[leaves[best]])
			better = covers && more < 0 || !covers && more > 0
		}
		if better {
			best, enough = i, covers
		}
	}
	return best
}
