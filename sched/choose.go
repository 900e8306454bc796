package sched

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"dev.muster/cluster"
)

// choice is one search for nodes: those it has, and those it may still take.
type choice struct {
	*view
	avoid  nodeSet
	cands  []int32 // places in node order
	places []int32 // chosen, in the order of choice
	tally  tally
	min    int // nodes that it must have now
	max    int
	need   []cluster.FeatureCount // of these so many must be among them
}

// tally sums what chosen nodes give.
type tally struct {
	tasks int
	gpus  []int64 // by entry of gpuJob
}

// choose picks the nodes: those asked for by name, then of the others by weight and topology.
func (c *choice) choose() bool {
	d := c.d
	if len(d.gpuJob) > 0 {
		c.tally.gpus = make([]int64, len(d.gpuJob))
	}
	if !c.named() {
		return false
	}
	list := c.p.members(d.part)
	c.max = d.most(len(list))
	if c.max < d.minNodes || len(c.places) > c.max {
		return false
	}
	c.min = d.minNodes
	if len(c.places) > 0 && c.covers() && !d.ranged() && !d.fussy() && d.wishes == nil {
		return true
	}
	if c.plain() && c.lowest() {
		return true
	}
	c.collect()
	c.cands = c.large()
	for _, c.cands = range c.reach() {
		for _, c.min = range c.sizes() {
			if c.wished() {
				return true
			}
		}
	}
	return false
}

// reach lists the candidates to try one after the other: of a range of nodes those of the lowest rank first, then with these
// those of the next, so that more nodes than must be are never of a higher one.
func (c *choice) reach() (out [][]int32) {
	if !c.p.plan.weight || !c.d.ranged() || c.d.spread || len(c.cands) == 0 {
		return [][]int32{c.cands}
	}
	ranks := map[int]bool{}
	for _, i := range c.cands {
		ranks[rank(c.p.spaces[i].node)] = true
	}
	for _, most := range slices.Sorted(maps.Keys(ranks)) {
		out = append(out, slices.DeleteFunc(slices.Clone(c.cands), func(i int32) bool { return rank(c.p.spaces[i].node) > most }))
	}
	return out
}

// wished takes the first way to meet the constraint that there are nodes for.
func (c *choice) wished() bool {
	d := c.d
	if d.wishes == nil || len(d.wishes) == 1 && d.wishes[0].Counts == nil { // then the view has these nodes only
		return c.weighted()
	}
	all := c.cands
	defer func() { c.cands = all }()
	for k := range d.wishes {
		w := &d.wishes[k]
		c.cands = slices.DeleteFunc(slices.Clone(all), func(i int32) bool { return !w.All(c.features(i)) })
		if !slices.ContainsFunc(c.places, func(i int32) bool { return !w.All(c.features(i)) }) &&
			c.try(func() bool { return c.counted(w.Counts) }) {
			return true
		}
	}
	return false
}

func (c *choice) features(i int32) []string { return c.p.spaces[i].node.Inventory.Features }

// counted takes nodes of which so many have some features: for each count those that are still missing,
// and then what else is needed; or if that leads nowhere, any nodes until it has all.
func (c *choice) counted(counts []cluster.FeatureCount) bool {
	if counts != nil && !c.d.fussy() && c.try(func() bool { return c.inTurn(counts) }) {
		return true
	}
	c.need = counts
	defer func() { c.need = nil }()
	return c.weighted()
}

// inTurn takes the nodes of one count after the other.
func (c *choice) inTurn(counts []cluster.FeatureCount) bool {
	all, whole, view := c.cands, c.min, c.view
	defer func() { c.cands, c.min, c.view = all, whole, view }()
	own, part, g := *view.d, *view, *view.gauge
	own.tasks, own.gpuJob, own.nodesAsked = 0, nil, true
	g.d, part.gauge = &own, &g
	for _, n := range counts {
		missing := n.Nodes - c.having(n)
		c.view, c.min = &part, len(c.places)+missing
		c.cands = slices.DeleteFunc(slices.Clone(all), func(i int32) bool { return slices.Contains(c.places, i) || !n.Has(c.features(i)) })
		if missing > 0 && !c.weighted() {
			return false
		}
	}
	c.cands = slices.DeleteFunc(slices.Clone(all), func(i int32) bool { return slices.Contains(c.places, i) })
	c.view, c.min = view, max(whole, len(c.places))
	c.recount()
	return c.covers() || c.weighted()
}

// having is how many of the chosen nodes have what a count asks for.
func (c *choice) having(n cluster.FeatureCount) (has int) {
	for _, i := range c.places {
		has += b2i(n.Has(c.features(i)))
	}
	return has
}

// recount sums what the chosen nodes give.
func (c *choice) recount() {
	places := c.places
	c.places, c.tally = nil, tally{gpus: make([]int64, len(c.d.gpuJob))}
	for _, i := range places {
		c.take(i)
	}
}

// plain reports whether the job takes of one run of nodes the lowest: there is nothing to choose by.
func (c *choice) plain() bool {
	t, d := c.p.plan, c.d
	return c.runs == 1 && d.wishes == nil && t.levels == nil && t.blocks == nil && !t.weight && c.avoid == nil && len(d.wanted) == 0 &&
		!d.ranged() && !d.dense() && !d.leastLoaded && !d.atEnd && !c.fits() && !d.contiguous &&
		(d.single || d.tasks <= 1 || c.max > d.tasks) // else see large
}

// lowest fills nodes from the lowest on, without a list of them.
func (c *choice) lowest() bool {
	for c.tasks[c.first] <= 0 {
		c.first++
	}
	return c.try(func() bool {
		for i := c.first; int(i) < len(c.tasks) && len(c.places) < min(c.max, c.nodes) && c.tasks[i] > 0; i++ {
			if c.take(i); c.covers() {
				return true
			}
		}
		return false
	})
}

// sizes lists the numbers of nodes to try as the least: of a range the largest first.
func (c *choice) sizes() []int {
	d := c.d
	if !d.ranged() && !(d.blocks && d.maxNodes > d.minNodes) {
		return []int{d.minNodes}
	}
	top := min(c.max, len(c.places)+len(c.cands))
	if d.counted || d.spread && !d.sized { // no node without a task
		top = min(top, max(d.tasks, d.minNodes))
	}
	var out []int
	for n := top; n > d.minNodes && (n == top || d.fussy()); n-- { // else fewer nodes do not give more
		out = append(out, n)
	}
	return append(out, d.minNodes)
}

// named takes the nodes that were asked for by name; false if one of them has no room.
func (c *choice) named() bool {
	for _, name := range c.d.wanted {
		i, ok := c.p.at(name)
		if !ok || c.avoid.has(i) || c.tasks[i] <= 0 {
			return false
		}
		if !slices.Contains(c.places, int32(i)) {
			c.take(int32(i))
		}
	}
	return true
}

// collect lists the other nodes with room.
func (c *choice) collect() {
	c.cands = c.list
	if c.avoid != nil || len(c.places) > 0 {
		c.cands = slices.DeleteFunc(slices.Clone(c.list), func(i int32) bool { return c.avoid.has(int(i)) || slices.Contains(c.places, i) })
	}
}

// large is those candidates that are large enough: with the others, so few nodes can not hold all tasks.
func (c *choice) large() []int32 {
	missing, others := c.d.tasks-c.tally.tasks, c.max-len(c.places)-1
	if missing <= 1 || others >= missing {
		return c.cands
	}
	most := int32(0)
	for _, i := range c.cands {
		most = max(most, c.tasks[i])
	}
	least := missing - others*int(most)
	if least <= 1 {
		return c.cands
	}
	return slices.DeleteFunc(slices.Clone(c.cands), func(i int32) bool { return int(c.tasks[i]) < least })
}

// take adds a node.
func (c *choice) take(i int32) {
	c.places = append(c.places, i)
	c.tally.tasks += int(c.tasks[i])
	for k, g := range c.d.gpuJob {
		c.tally.gpus[k] += int64(c.d.gives(c.space(i), g.Type))
	}
}

// covers reports whether the chosen nodes suffice.
func (c *choice) covers() bool {
	if len(c.places) < c.min || c.tally.tasks < c.d.tasks {
		return false
	}
	for k, g := range c.d.gpuJob {
		if c.tally.gpus[k] < g.Count {
			return false
		}
	}
	return !slices.ContainsFunc(c.need, func(n cluster.FeatureCount) bool { return c.having(n) < n.Nodes })
}

// try makes a step and undoes it if it fails, or anyway if it is only a question.
func (c *choice) try(step func() bool, question ...bool) bool {
	n, t := len(c.places), c.tally
	if len(t.gpus) > 0 {
		t.gpus = slices.Clone(t.gpus)
	}
	ok := step()
	if !ok || len(question) > 0 {
		c.places, c.tally = c.places[:n], t
	}
	return ok
}

// fill takes nodes in turn until it has enough.
func (c *choice) fill(list []int32) bool {
	if c.covers() {
		return true
	}
	for _, i := range list {
		if len(c.places) >= c.max {
			return false
		}
		if c.take(i); c.covers() {
			return true
		}
	}
	return false
}

// rank is which nodes are taken first: those of the lowest weight, and of these the ones that are on.
func rank(n *cluster.Node) int {
	r := 2 * max(n.Inventory.Weight, 1)
	if n.Off() {
		r++
	}
	return r
}

// weighted takes whole groups of equal weight, for large jobs those without trouble of late first, from the lowest up until they suffice; groups before
// the last are used up before it.
func (c *choice) weighted() bool {
	if !c.p.plan.weight && !(c.p.plan.shaky && c.d.large) || len(c.cands) == 0 {
		return c.try(c.patient)
	}
	all := c.cands
	defer func() { c.cands = all }()
	weight := func(i int32) int {
		r := 2 * rank(c.p.spaces[i].node)
		if c.d.large && c.p.spaces[i].shaky {
			r++
		}
		return r
	}
	var steps []int
	for _, i := range all {
		steps = append(steps, weight(i))
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	for _, w := range steps {
		var lower, group, upTo []int32
		for _, i := range all {
			switch at := weight(i); {
			case at < w:
				lower = append(lower, i)
			case at == w:
				group = append(group, i)
			default:
				continue
			}
			upTo = append(upTo, i)
		}
		c.cands = group
		if len(c.places)+len(lower) <= c.max && c.try(func() bool {
			for _, i := range lower {
				c.take(i)
			}
			return c.patient()
		}) {
			return true
		}
		if c.cands = upTo; len(lower) > 0 && c.try(c.patient) {
			return true
		}
	}
	return false
}

// patient tries without the nodes that have least room, from the least up, where so many nodes are
// too small together.
func (c *choice) patient() bool {
	all := c.cands
	if len(c.places)+len(all) < c.min {
		return false
	}
	if c.covers() && !c.d.contiguous && !c.d.blocks {
		return true
	}
	defer func() { c.cands = all }()
	if c.try(c.densest) || c.try(c.strategy) {
		return true
	}
	if len(c.places)+len(all) <= c.max && !c.d.fussy() {
		return false // not even all of them
	}
	for len(c.cands) > 0 {
		least := c.tasks[slices.MinFunc(c.cands, func(a, b int32) int { return cmp.Compare(c.tasks[a], c.tasks[b]) })]
		c.cands = slices.DeleteFunc(slices.Clone(c.cands), func(i int32) bool { return c.tasks[i] <= least })
		if len(c.cands) > 0 && c.try(c.strategy) {
			return true
		}
	}
	c.cands = all
	return !c.d.fussy() && c.try(c.search)
}

// maxSteps bounds a search.
const maxSteps = 20_000

// search looks for any nodes that suffice together where the order of choice has found none.
func (c *choice) search() bool {
	for _, list := range c.domains() {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(c.tasks[b], c.tasks[a]) })
		if c.try(func() bool { return c.fill(list) }) {
			return true
		}
		if steps := maxSteps; (len(c.d.gpuJob) > 0 || c.need != nil) && c.reaches(list) && c.explore(list, &steps) {
			return true
		}
	}
	return false
}

// reaches reports whether the nodes that give most have the GPUs that are missing.
func (c *choice) reaches(list []int32) bool {
	for k, g := range c.d.gpuJob {
		var nodes []int
		for _, i := range list {
			gives := max(c.d.gives(c.space(i), g.Type), 0)
			for gives >= len(nodes) {
				nodes = append(nodes, 0)
			}
			nodes[gives]++
		}
		if !reach(nodes, c.max-len(c.places), g.Count-c.tally.gpus[k]) {
			return false
		}
	}
	return true
}

// explore tries each node, and then without it.
func (c *choice) explore(list []int32, steps *int) bool {
	if c.covers() {
		return true
	}
	if *steps--; *steps < 0 || len(list) == 0 || len(c.places) >= c.max || len(c.places)+len(list) < c.min {
		return false
	}
	return c.try(func() bool { c.take(list[0]); return c.explore(list[1:], steps) }) || c.explore(list[1:], steps)
}

// domains lists the candidates that may be used together: those under one root with a tree.
func (c *choice) domains() [][]int32 {
	t := c.p.plan
	if t.levels == nil || c.d.spread || c.d.flat() {
		return [][]int32{slices.Clone(c.cands)}
	}
	roots := map[int32]int{}
	var out [][]int32
	for _, i := range c.cands {
		r := t.rootOf(t.leafOf[i])
		if slices.ContainsFunc(c.places, func(k int32) bool { return t.rootOf(t.leafOf[k]) != r }) {
			continue
		}
		k, ok := roots[r]
		if !ok {
			k, roots[r] = len(out), len(out)
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}

// densest takes for a job with GPUs, of which tasks or all have some and whose number of nodes is open, as few nodes as will do: one that
// has all it needs, else those with most of its GPUs.
func (c *choice) densest() bool {
	d := c.d
	if !d.dense() || c.max == c.min || d.spread || d.leastLoaded || d.contiguous {
		return false
	}
	all := c.cands
	defer func() { c.cands = all }()
	need, levels := int(sum(d.gpuJob)), []int(nil)
	gives := make([]int, len(all))
	for k, i := range all {
		for _, g := range d.gpuJob {
			gives[k] += min(d.gives(c.space(i), g.Type), int(g.Count))
		}
		if len(d.gpuTask) > 0 {
			need, gives[k] = d.tasks, min(int(c.tasks[i]), d.tasks)
		}
		levels = append(levels, gives[k])
	}
	from := func(enough func(k int) bool) bool {
		c.cands = nil
		for k, i := range all {
			if enough(k) {
				c.cands = append(c.cands, i)
			}
		}
		return len(c.cands) > 0 && c.try(c.strategy)
	}
	if c.min <= 1 && len(c.places) == 0 && from(func(k int) bool { return gives[k] >= need && int(c.tasks[all[k]]) >= d.tasks }) {
		return true
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	for _, least := range slices.Backward(levels) {
		if from(func(k int) bool { return gives[k] >= least }) {
			return true
		}
	}
	return false
}

// strategy is how the configuration and the job want nodes chosen.
func (c *choice) strategy() bool {
	t := c.p.plan
	switch {
	case c.d.contiguous:
		return c.single()
	case t.blocks != nil:
		return c.block()
	case c.d.leastLoaded:
		return c.roomiest()
	case c.d.atEnd:
		list := slices.Clone(c.cands)
		slices.Reverse(list)
		return c.fill(list)
	case c.d.spread:
		return c.fill(c.cands)
	case c.fits() && c.try(c.bestFit):
		return true
	}
	return c.nearby()
}

// nearby takes nodes under few switches, or else of few runs.
func (c *choice) nearby() bool {
	if c.p.plan.levels != nil && !c.d.flat() {
		return c.tree()
	}
	return c.byRuns()
}

// roomiest takes the nodes with most free CPUs first.
func (c *choice) roomiest() bool {
	list := slices.Clone(c.cands)
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(c.p.spaces[b].cpu, c.p.spaces[a].cpu) })
	return c.fill(list)
}

// run is a number of nodes that follow each other in the configuration.
type run []int32

// sequences cuts places in node order into runs.
func (c *choice) sequences(list []int32) (out []run) {
	from := 0
	for k, i := range list {
		if k > 0 && c.p.ranks[i] != c.p.ranks[list[k-1]]+1 {
			out, from = append(out, list[from:k]), k
		}
	}
	if len(list) > 0 {
		out = append(out, list[from:])
	}
	return out
}

// byRuns takes the run of consecutive nodes that suffices with the fewest of them, else the largest
// ones first; within a run the lowest.
func (c *choice) byRuns() bool {
	usual := c.unfiltered()
	runs := c.cut
	if !usual || runs == nil {
		runs = byLength(c.sequences(c.cands))
	}
	if usual {
		c.cut = runs
	}
	for len(runs) > 0 {
		if c.oneOf(runs) {
			return true
		}
		last := len(runs) - 1
		if c.fill(runs[last]) {
			return true
		}
		runs = runs[:last]
	}
	return false
}

// oneOf takes the shortest run that suffices.
func (c *choice) oneOf(runs []run) bool {
	longer := func(list []run, nodes int) int {
		return sort.Search(len(list), func(k int) bool { return len(list[k]) >= nodes })
	}
	for rest := runs[longer(runs, c.min-len(c.places)):]; len(rest) > 0; {
		alike := longer(rest, len(rest[0])+1)
		for k := alike - 1; k >= 0; k-- {
			if c.try(func() bool { return c.fill(rest[k]) }) {
				return true
			}
		}
		rest = rest[alike:]
	}
	return false
}

// byLength sorts runs, the shortest first, of equal ones the last.
func byLength(list []run) []run {
	longest := 0
	for _, r := range list {
		longest = max(longest, len(r))
	}
	ends := make([]int32, longest+1) // by length
	for _, r := range list {
		ends[len(r)]++
	}
	for n := 1; n <= longest; n++ {
		ends[n] += ends[n-1]
	}
	out := make([]run, len(list))
	for _, r := range list {
		ends[len(r)]--
		out[ends[len(r)]] = r
	}
	return out
}

// single takes nodes of one run only (--contiguous), the lowest that suffice; nodes asked for by
// name must be among them.
func (c *choice) single() bool {
	named := slices.Clone(c.places)
	list := slices.Concat(named, c.cands)
	slices.Sort(list)
	runs := c.sequences(list)
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(len(a), len(b)) })
	for _, r := range runs {
		if slices.ContainsFunc(named, func(i int32) bool { return !slices.Contains(r, i) }) {
			continue
		}
		for k := range r {
			if c.try(func() bool { return c.window(r[k:], len(named)) }) {
				return true
			}
			if slices.Contains(named, r[k]) {
				break // it must be in it
			}
		}
	}
	return false
}

// window takes nodes in turn until it has enough and has met so many that it had already.
func (c *choice) window(list []int32, named int) bool {
	held := c.places[:named:named]
	for _, i := range list {
		if slices.Contains(held, i) {
			named--
		} else if len(c.places) >= c.max {
			return false
		} else {
			c.take(i)
		}
		if named == 0 && c.covers() {
			return true
		}
	}
	return false
}
