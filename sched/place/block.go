package place

import (
	"cmp"
	"slices"

	"dev.muster/cluster"
)

// nodeBlocks is how the nodes of a free set lie in base blocks, and how these make larger ones.
type nodeBlocks struct {
	blockOf []int32 // by index, the base block of the node; -1: none
	count   int
	sizes   []int // nodes of a block by level, rising; the last may hold all
	base    int   // nodes of a base block
}

// newNodeBlocks lays blocks over the nodes of a free set.
func newNodeBlocks(w cluster.Wiring, fs *FreeSet) *nodeBlocks {
	b := &nodeBlocks{blockOf: make([]int32, len(fs.nodes)), count: len(w.Blocks), sizes: slices.Clone(w.BlockSizes)}
	for i := range b.blockOf {
		b.blockOf[i] = -1
	}
	for k, block := range w.Blocks {
		b.base = max(b.base, len(block.Nodes))
		for _, name := range block.Nodes {
			if i, ok := fs.Index(name); ok {
				b.blockOf[i] = int32(k)
			}
		}
	}
	if len(b.sizes) > 0 {
		b.base = b.sizes[0]
	} else {
		b.sizes = []int{b.base}
	}
	return b
}

// span is how many base blocks one block of a level has; beyond the levels all of them.
func (b *nodeBlocks) span(level int) int {
	if level >= len(b.sizes) {
		return max(b.count, 1)
	}
	return max(b.sizes[level]/max(b.base, 1), 1)
}

// level is that of the smallest blocks that can hold so many nodes.
func (b *nodeBlocks) level(nodes int) int {
	for k, size := range b.sizes {
		if size >= nodes {
			return k
		}
	}
	return len(b.sizes)
}

// chooseByBlock chooses as topology/block does: a job, or each segment of it, in one block of the smallest
// size that can hold it; or all of it on nodes that no block has.
func (c *choice) chooseByBlock() bool {
	return c.attempt(c.chooseInBlocks) || c.chooseOutsideBlocks()
}

// chooseOutsideBlocks takes nodes that no block has, without segments.
func (c *choice) chooseOutsideBlocks() bool {
	if k := c.demand.asked.of(segmentNodes); k > 0 && k < c.minNodes {
		return false
	}
	homeless := func(i int32) bool { return c.free.topology.blocks.blockOf[i] < 0 }
	if slices.ContainsFunc(c.chosen, func(i int32) bool { return !homeless(i) }) {
		return false
	}
	var list []int32
	for _, i := range c.candidates {
		if homeless(i) {
			list = append(list, i)
		}
	}
	return c.attempt(func() bool { return c.fillFrom(list) }) || c.exploreAll(list)
}

// chooseInBlocks takes nodes of blocks.
func (c *choice) chooseInBlocks() bool {
	d := c.demand
	b := c.free.topology.blocks
	free := make([][]int32, b.count) // candidates of each base block
	for _, i := range c.candidates {
		if k := b.blockOf[i]; k >= 0 {
			free[k] = append(free[k], i)
		}
	}
	if k := d.asked.of(segmentNodes); k > 0 && k < c.minNodes {
		return c.chooseSegments(free, k)
	}
	held := c.chosen
	least := c.minNodes
	defer func() { c.minNodes = least }()
	for level := b.level(c.minNodes); ; level++ {
		if c.chooseInOneBlock(free, level, 0, b.count, held) {
			return true
		}
		if level >= len(b.sizes) {
			return false
		}
		if d.countAsked { // so few nodes belong into a smaller block
			c.minNodes = max(c.minNodes, b.sizes[level]+1)
			if c.minNodes > c.maxNodes {
				return false
			}
		}
	}
}

// chooseInOneBlock takes what is missing from one block of the level between two base blocks, in which those held
// must lie: from the one that suffices with the fewest candidates.
func (c *choice) chooseInOneBlock(free [][]int32, level, from, to int, held []int32) bool {
	span := c.free.topology.blocks.span(level)
	type option struct{ at, nodes int }
	var options []option
	for at := from; at < to; at += span {
		n := 0
		for _, nodes := range free[at:min(at+span, to)] {
			n += len(nodes)
		}
		if len(c.chosen)+n >= c.minNodes {
			options = append(options, option{at, n})
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return a.nodes - b.nodes })
	for _, o := range options {
		block := free[o.at:min(o.at+span, to)]
		if !c.allWithin(held, o.at, min(o.at+span, to)) {
			continue
		}
		if c.attempt(func() bool { return c.fillBlocks(block) }) || c.exploreAll(slices.Concat(block...)) {
			return true
		}
	}
	return false
}

// exploreAll looks for any of the nodes that suffice, where there are too many to take all.
func (c *choice) exploreAll(list []int32) bool {
	if len(c.chosen)+len(list) <= c.maxNodes {
		return false
	}
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(c.tasks[b], c.tasks[a]) })
	steps := maxSearchSteps
	return c.searchSubsets(list, &steps)
}

// allWithin reports whether all nodes lie in these base blocks.
func (c *choice) allWithin(places []int32, from, to int) bool {
	return !slices.ContainsFunc(places,
		func(i int32) bool { k := int(c.free.topology.blocks.blockOf[i]); return k < from || k >= to })
}

// fillBlocks fills base blocks: the one that suffices with the fewest nodes, or if none does the one with most.
func (c *choice) fillBlocks(free [][]int32) bool {
	if c.covers() {
		return true
	}
	gone := make([]bool, len(free))
	for {
		best := -1
		enough := false
		for k, nodes := range free {
			if gone[k] || len(nodes) == 0 {
				continue
			}
			covers := len(c.chosen)+len(nodes) >= c.minNodes && c.wouldDo(func() bool { return c.fillFrom(nodes) })
			if best < 0 || preferGroup(covers, len(nodes), enough, len(free[best])) {
				best = k
				enough = covers
			}
		}
		if best < 0 {
			return false
		}
		gone[best] = true
		if c.fillFrom(free[best]) {
			return true
		}
	}
}

// preferGroup reports whether a group of nodes is better than another one to fill next: it suffices and the other
// does not, or both suffice and it is smaller, or neither does and it is larger.
func preferGroup(suffices bool, nodes int, otherSuffices bool, otherNodes int) bool {
	switch {
	case suffices != otherSuffices:
		return suffices
	case suffices:
		return nodes < otherNodes
	}
	return nodes > otherNodes
}

// chooseSegments places groups of k nodes one after the other, each as if it were a job.
func (c *choice) chooseSegments(free [][]int32, k int) bool {
	b := c.free.topology.blocks
	if c.minNodes%k != 0 || len(c.chosen) > 0 { // nodes by name have no segment
		return false
	}
	if !c.demand.flags.has(sameBlock) {
		return c.chooseSegmentsIn(free, k, 0, b.count)
	}
	span := b.span(b.level(c.minNodes))
	type option struct{ at, nodes int }
	var options []option
	for at := 0; at < b.count; at += span {
		o := option{at: at}
		for _, nodes := range free[at:min(at+span, b.count)] {
			o.nodes += len(nodes)
		}
		options = append(options, o)
	}
	slices.SortStableFunc(options, func(a, b option) int { return a.nodes - b.nodes })
	for _, o := range options {
		if c.attempt(func() bool { return c.chooseSegmentsIn(free, k, o.at, min(o.at+span, b.count)) }) {
			return true
		}
	}
	return false
}

// chooseSegmentsIn places all segments between two base blocks.
func (c *choice) chooseSegmentsIn(free [][]int32, k, from, to int) bool {
	b := c.free.topology.blocks
	whole := c.minNodes
	wantTasks := c.demand.tasks
	wantGPUs := c.demand.gpuJob
	own := *c.demand
	own.tasks = 0
	own.gpuJob = nil // each segment by its number of nodes; all together by what is asked
	left := slices.Clone(free)
	defer func(nf *nodeFit, n int) { c.nodeFit, c.minNodes = nf, n }(c.nodeFit, c.minNodes)
	part := *c.nodeFit
	cf := *c.classFit
	cf.demand = &own
	part.classFit = &cf
	for c.minNodes = k; c.minNodes <= whole; c.minNodes += k {
		before := len(c.chosen)
		c.nodeFit = &part
		ok := c.chooseInOneBlock(left, b.level(k), from, to, nil)
		if !ok {
			return false
		}
		for _, i := range c.chosen[before:] {
			at := b.blockOf[i]
			left[at] = slices.DeleteFunc(slices.Clone(left[at]),
				func(n int32) bool { return n == i || c.demand.flags.has(separateBlocks) })
		}
	}
	tasks := 0
	gpus := make([]int64, len(wantGPUs))
	for _, i := range c.chosen {
		tasks += int(c.tasks[i])
		for n, g := range wantGPUs {
			gpus[n] += int64(c.demand.gpusGivenBy(c.freeOn(i), g.Type))
		}
	}
	for n, g := range wantGPUs {
		if gpus[n] < g.Count {
			return false
		}
	}
	return tasks >= wantTasks
}
