package place

import (
	"slices"

	"dev.muster/cluster"
)

// topology is how the nodes of a free set hang together: a tree of switches, or blocks, or neither.
type topology struct {
	leaves   []leafSwitch
	leafOf   []int32 // by index, the leaf of the node
	levels   [][]switchLeaves
	blocks   *nodeBlocks
	weight   bool // the nodes differ in weight
	troubled bool // some had recent trouble
}

// leafSwitch is a switch with nodes. Nodes that no switch names are a leaf of their own.
type leafSwitch struct {
	nodes []int32 // rising
	above []int32 // by level from 0, the switch above (itself at level 0); -1: none
}

// switchLeaves is a switch above others: which leaves are under it, in the order of the configuration.
type switchLeaves struct{ leaves []int32 }

// newTopology lays switches or blocks over the nodes of a free set, which differ in weight or not.
func newTopology(w cluster.Wiring, fs *FreeSet, weight bool) *topology {
	topo := &topology{weight: weight}
	for i := range fs.nodes {
		topo.troubled = topo.troubled || fs.nodes[i].troubled
	}
	if len(w.Blocks) > 0 {
		topo.blocks = newNodeBlocks(w, fs)
		return topo
	}
	if len(w.Switches) == 0 {
		return topo
	}
	topo.leafOf = make([]int32, len(fs.nodes))
	for i := range topo.leafOf {
		topo.leafOf[i] = -1
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
		l := leafSwitch{}
		for _, name := range s.Nodes {
			if i, ok := fs.Index(name); ok && topo.leafOf[i] < 0 {
				topo.leafOf[i] = int32(len(topo.leaves))
				l.nodes = append(l.nodes, int32(i))
			}
		}
		slices.Sort(l.nodes)
		number[s.Name] = int32(len(topo.leaves))
		topo.leaves = append(topo.leaves, l)
		for name, h := s.Name, 0; name != "" && h <= len(w.Switches); name, h = up[name], h+1 {
			level[name] = max(level[name], h)
		}
	}
	topo.addOrphanLeaf()
	topo.addLevels(w, up, level, number)
	return topo
}

// addOrphanLeaf makes a leaf of the nodes that no switch names.
func (topo *topology) addOrphanLeaf() {
	var l leafSwitch
	for i, at := range topo.leafOf {
		if at < 0 {
			topo.leafOf[i] = int32(len(topo.leaves))
			l.nodes = append(l.nodes, int32(i))
		}
	}
	if l.nodes != nil {
		topo.leaves = append(topo.leaves, l)
	}
}

// addLevels lists the switches of each level above the leaves.
func (topo *topology) addLevels(w cluster.Wiring, up map[string]string, level map[string]int, number map[string]int32) {
	top := 0
	for _, h := range level {
		top = max(top, h)
	}
	topo.levels = make([][]switchLeaves, top+1)
	at := map[string]int32{}
	for _, s := range w.Switches {
		if h := level[s.Name]; h > 0 {
			at[s.Name] = int32(len(topo.levels[h]))
			topo.levels[h] = append(topo.levels[h], switchLeaves{})
		}
	}
	for k := range topo.leaves {
		topo.leaves[k].above = make([]int32, top+1)
		for h := range topo.leaves[k].above {
			topo.leaves[k].above[h] = -1
		}
		topo.leaves[k].above[0] = int32(k)
	}
	for _, s := range w.Switches {
		k, ok := number[s.Name]
		if !ok {
			continue
		}
		for name, steps := up[s.Name], 0; name != "" && steps < len(w.Switches); name, steps = up[name], steps+1 {
			h := level[name]
			topo.leaves[k].above[h] = at[name]
			b := &topo.levels[h][at[name]]
			b.leaves = append(b.leaves, k)
		}
	}
}

// hops is how far two leaves are from each other: the level of the lowest switch above both, or one
// more than there are levels.
func (topo *topology) hops(a, b int32) int {
	for h := range topo.levels {
		if x := topo.leaves[a].above[h]; x >= 0 && x == topo.leaves[b].above[h] {
			return h
		}
	}
	return len(topo.levels)
}

// rootOf names the tree that a leaf is in, by the number of its first leaf.
func (topo *topology) rootOf(l int32) int32 {
	for h := len(topo.levels) - 1; h > 0; h-- {
		if b := topo.leaves[l].above[h]; b >= 0 {
			return topo.levels[h][b].leaves[0]
		}
	}
	return l
}

// leafCandidates is the candidates of one choice, leaf by leaf.
type leafCandidates struct {
	nodes      [][]int32 // of each leaf
	heldLeaves []int32   // leaves of the nodes that it had before
}

func (c *choice) candidatesByLeaf() *leafCandidates {
	topo := c.free.topology
	ends := make([]int32, len(topo.leaves)+1)
	for _, i := range c.candidates {
		ends[topo.leafOf[i]+1]++
	}
	for l := range topo.leaves {
		ends[l+1] += ends[l]
	}
	g := &leafCandidates{nodes: make([][]int32, len(topo.leaves))}
	all := make([]int32, len(c.candidates))
	next := slices.Clone(ends)
	for _, i := range c.candidates {
		l := topo.leafOf[i]
		all[next[l]] = i
		next[l]++
	}
	for l := range topo.leaves {
		g.nodes[l] = all[ends[l]:ends[l+1]]
	}
	for _, i := range c.chosen {
		g.heldLeaves = append(g.heldLeaves, topo.leafOf[i])
	}
	slices.Sort(g.heldLeaves)
	g.heldLeaves = slices.Compact(g.heldLeaves)
	return g
}

// chooseInTree chooses under the lowest switch whose nodes suffice: the one with the fewest of them. Which
// leaves, see chooseLeaves.
func (c *choice) chooseInTree() bool {
	type option struct{ at, nodes int }
	topo := c.free.topology
	g := c.candidatesByLeaf()
	for h := range topo.levels {
		var options []option
		for k := range topo.switches(h) {
			n := 0
			for _, l := range topo.under(h, k) {
				n += len(g.nodes[l])
			}
			in := !slices.ContainsFunc(g.heldLeaves, func(l int32) bool { return topo.leaves[l].above[h] != int32(k) })
			if n > 0 && in && len(c.chosen)+n >= c.minNodes {
				options = append(options, option{k, n})
			}
		}
		slices.SortStableFunc(options, func(a, b option) int { return a.nodes - b.nodes })
		for _, o := range options {
			if c.attempt(func() bool { return c.chooseLeaves(topo.under(h, o.at), g) }) {
				return true
			}
		}
	}
	return false
}

// switches is how many switches there are at a level.
func (topo *topology) switches(h int) int {
	if h == 0 {
		return len(topo.leaves)
	}
	return len(topo.levels[h])
}

// under lists the leaves under a switch.
func (topo *topology) under(h, k int) []int32 {
	if h == 0 {
		return []int32{int32(k)}
	}
	return topo.levels[h][k].leaves
}

// chooseLeaves goes from leaf to leaf: always to the nearest of those in use; of these to the one
// that suffices with the fewest nodes, or if none does to the one with most.
func (c *choice) chooseLeaves(leaves []int32, g *leafCandidates) bool {
	topo := c.free.topology
	far := make([]int, len(leaves))
	gone := make([]bool, len(leaves))
	near := func(used int32, first bool) {
		for i, l := range leaves {
			if d := topo.hops(l, used); first || d < far[i] {
				far[i] = d
			}
		}
	}
	for k, l := range g.heldLeaves {
		near(l, k == 0)
	}
	for used := len(g.heldLeaves); ; {
		i := c.nextLeaf(leaves, far, gone, g)
		if i < 0 {
			return false
		}
		l := leaves[i]
		if !slices.Contains(g.heldLeaves, l) {
			used++
		}
		if c.demand.Switches > 0 && used > c.demand.Switches {
			return false
		}
		gone[i] = true
		if c.fillFrom(g.nodes[l]) {
			return true
		}
		near(l, used == 1)
	}
}

// nextLeaf is the number of the leaf to go on with, or -1.
func (c *choice) nextLeaf(leaves []int32, far []int, gone []bool, g *leafCandidates) int {
	best := -1
	enough := false
	for i, l := range leaves {
		nodes := g.nodes[l]
		if gone[i] || len(nodes) == 0 || best >= 0 && far[i] > far[best] {
			continue
		}
		covers := len(c.chosen)+len(nodes) >= c.minNodes && c.wouldDo(func() bool { return c.fillFrom(nodes) })
		nearer := best < 0 || far[i] < far[best]
		if nearer || preferGroup(covers, len(nodes), enough, len(g.nodes[leaves[best]])) {
			best = i
			enough = covers
		}
	}
	return best
}
