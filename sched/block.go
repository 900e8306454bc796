package sched

import (
	"cmp"
	"slices"

	"dev.muster/cluster"
)

// blocks is how the nodes of a pool lie in base blocks, and how these make larger ones.
type blocks struct {
	of    []int32 // by place, the base block of the node; -1: none
	count int
	sizes []int // nodes of a block by level, rising; the last may hold all
	base  int   // nodes of a base block
}

// newBlocks lays blocks over the nodes of a pool.
func newBlocks(w cluster.Wiring, p *pool) *blocks {
	b := &blocks{of: make([]int32, len(p.spaces)), count: len(w.Blocks), sizes: slices.Clone(w.BlockSizes)}
	for i := range b.of {
		b.of[i] = -1
	}
	for k, block := range w.Blocks {
		b.base = max(b.base, len(block.Nodes))
		for _, name := range block.Nodes {
			if i, ok := p.at(name); ok {
				b.of[i] = int32(k)
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
func (b *blocks) span(level int) int {
	if level >= len(b.sizes) {
		return max(b.count, 1)
	}
	return max(b.sizes[level]/max(b.base, 1), 1)
}

// level is that of the smallest blocks that can hold so many nodes.
func (b *blocks) level(nodes int) int {
	for k, size := range b.sizes {
		if size >= nodes {
			return k
		}
	}
	return len(b.sizes)
}

// block chooses as topology/block does: a job, or each segment of it, in one block of the smallest
// size that can hold it; or all of it on nodes that no block has.
func (c *choice) block() bool {
	return c.try(c.inBlocks) || c.outside()
}

// outside takes nodes that no block has, without segments.
func (c *choice) outside() bool {
	if k := c.d.segment; k > 0 && k < c.min {
		return false
	}
	homeless := func(i int32) bool { return c.p.plan.blocks.of[i] < 0 }
	if slices.ContainsFunc(c.places, func(i int32) bool { return !homeless(i) }) {
		return false
	}
	var list []int32
	for _, i := range c.cands {
		if homeless(i) {
			list = append(list, i)
		}
	}
	return c.try(func() bool { return c.fill(list) }) || c.anyOf(list)
}

// inBlocks takes nodes of blocks.
func (c *choice) inBlocks() bool {
	d, b := c.d, c.p.plan.blocks
	free := make([][]int32, b.count) // candidates of each base block
	for _, i := range c.cands {
		if k := b.of[i]; k >= 0 {
			free[k] = append(free[k], i)
		}
	}
	if k := d.segment; k > 0 && k < c.min {
		return c.segments(free, k)
	}
	held, least := c.places, c.min
	defer func() { c.min = least }()
	for level := b.level(c.min); ; level++ {
		if c.inOne(free, level, 0, b.count, held) {
			return true
		}
		if level >= len(b.sizes) {
			return false
		}
		if d.sized { // so few nodes belong into a smaller block
			if c.min = max(c.min, b.sizes[level]+1); c.min > c.max {
				return false
			}
		}
	}
}

// inOne takes what is missing from one block of the level between two base blocks, in which those held
// must lie: from the one that suffices with the fewest candidates.
func (c *choice) inOne(free [][]int32, level, from, to int, held []int32) bool {
	span := c.p.plan.blocks.span(level)
	type option struct{ at, nodes int }
	var options []option
	for at := from; at < to; at += span {
		n := 0
		for _, nodes := range free[at:min(at+span, to)] {
			n += len(nodes)
		}
		if len(c.places)+n >= c.min {
			options = append(options, option{at, n})
		}
	}
	slices.SortStableFunc(options, func(a, b option) int { return a.nodes - b.nodes })
	for _, o := range options {
		block := free[o.at:min(o.at+span, to)]
		if c.lie(held, o.at, min(o.at+span, to)) && (c.try(func() bool { return c.bases(block) }) || c.anyOf(slices.Concat(block...))) {
			return true
		}
	}
	return false
}

// anyOf looks for any of the nodes that suffice, where there are too many to take all.
func (c *choice) anyOf(list []int32) bool {
	if len(c.places)+len(list) <= c.max {
		return false
	}
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(c.tasks[b], c.tasks[a]) })
	steps := maxSteps
	return c.explore(list, &steps)
}

// lie reports whether all of the places lie in these base blocks.
func (c *choice) lie(places []int32, from, to int) bool {
	return !slices.ContainsFunc(places, func(i int32) bool { k := int(c.p.plan.blocks.of[i]); return k < from || k >= to })
}

// bases fills base blocks: the one that suffices with the fewest nodes, or if none does the one with most.
func (c *choice) bases(free [][]int32) bool {
	if c.covers() {
		return true
	}
	gone := make([]bool, len(free))
	for {
		best, enough := -1, false
		for k, nodes := range free {
			if gone[k] || len(nodes) == 0 {
				continue
			}
			covers := len(c.places)+len(nodes) >= c.min && c.try(func() bool { return c.fill(nodes) }, true)
			more := 0
			if best >= 0 {
				more = len(nodes) - len(free[best])
			}
			if best < 0 || covers && !enough || covers == enough && (covers && more < 0 || !covers && more > 0) {
				best, enough = k, covers
			}
		}
		if best < 0 {
			return false
		}
		if gone[best] = true; c.fill(free[best]) {
			return true
		}
	}
}

// segments places groups of k nodes one after the other, each as if it were a job.
func (c *choice) segments(free [][]int32, k int) bool {
	b := c.p.plan.blocks
	if c.min%k != 0 || len(c.places) > 0 { // nodes by name have no segment
		return false
	}
	if !c.d.together {
		return c.segmentsIn(free, k, 0, b.count)
	}
	span := b.span(b.level(c.min))
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
		if c.try(func() bool { return c.segmentsIn(free, k, o.at, min(o.at+span, b.count)) }) {
			return true
		}
	}
	return false
}

// segmentsIn places all segments between two base blocks.
func (c *choice) segmentsIn(free [][]int32, k, from, to int) bool {
	b, whole := c.p.plan.blocks, c.min
	wantTasks, wantGPUs := c.d.tasks, c.d.gpuJob
	own := *c.d
	own.tasks, own.gpuJob = 0, nil // each segment by its number of nodes; all together by what is asked
	left := slices.Clone(free)
	defer func(v *view, n int) { c.view, c.min = v, n }(c.view, c.min)
	part, g := *c.view, *c.gauge
	g.d, part.gauge = &own, &g
	for c.min = k; c.min <= whole; c.min += k {
		before := len(c.places)
		c.view = &part
		ok := c.inOne(left, b.level(k), from, to, nil)
		if !ok {
			return false
		}
		for _, i := range c.places[before:] {
			at := b.of[i]
			left[at] = slices.DeleteFunc(slices.Clone(left[at]), func(n int32) bool { return n == i || c.d.apart })
		}
	}
	tasks, gpus := 0, make([]int64, len(wantGPUs))
	for _, i := range c.places {
		tasks += int(c.tasks[i])
		for n, g := range wantGPUs {
			gpus[n] += int64(c.d.gives(c.space(i), g.Type))
		}
	}
	for n, g := range wantGPUs {
		if gpus[n] < g.Count {
			return false
		}
	}
	return tasks >= wantTasks
}
