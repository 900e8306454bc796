package place

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"dev.muster/cluster"
)

// choice is one search for nodes: those it has, and those it may still take.
type choice struct {
	*nodeFit
	avoid         NodeSet
	candidates    []int32 // rising
	chosen        []int32 // in the order of choice
	given         givenSum
	minNodes      int // nodes that it must have now
	maxNodes      int
	featureCounts []cluster.FeatureCount // of these so many must be among them
}

// givenSum sums what chosen nodes give.
type givenSum struct {
	tasks int
	gpus  []int64 // by entry of gpuJob
}

// chooseNodes picks the nodes: those asked for by name, then of the others by weight and topology.
func (c *choice) chooseNodes() bool {
	d := c.demand
	if len(d.gpuJob) > 0 {
		c.given.gpus = make([]int64, len(d.gpuJob))
	}
	if !c.takeNamed() {
		return false
	}
	list := c.free.Members(d.part)
	c.maxNodes = d.mostNodes(len(list))
	if c.maxNodes < d.MinNodes || len(c.chosen) > c.maxNodes {
		return false
	}
	c.minNodes = d.MinNodes
	if len(c.chosen) > 0 && c.covers() && !d.isChoosy() {
		return true
	}
	if c.isSimple() && c.takeLowest() {
		return true
	}
	c.collectCandidates()
	c.candidates = c.bigEnough()
	for _, c.candidates = range c.candidatesByWeight() {
		for _, c.minNodes = range c.nodeCounts() {
			if c.chooseByConstraint() {
				return true
			}
		}
	}
	return false
}

// candidatesByWeight lists the candidates to try one after the other: of a range of nodes those of the lowest weight
// first, then with these those of the next, so that no more nodes than must be are of a higher one.
func (c *choice) candidatesByWeight() (out [][]int32) {
	atOnce := anyOf(!c.free.topology.weight, c.demand.flags.has(spread), len(c.candidates) == 0)
	if atOnce || !c.demand.wantsMostNodes() {
		return [][]int32{c.candidates}
	}
	ranks := map[int]bool{}
	for _, i := range c.candidates {
		ranks[nodeWeight(c.free.nodes[i].node)] = true
	}
	for _, most := range slices.Sorted(maps.Keys(ranks)) {
		out = append(out, slices.DeleteFunc(slices.Clone(c.candidates),
			func(i int32) bool { return nodeWeight(c.free.nodes[i].node) > most }))
	}
	return out
}

// chooseByConstraint takes the first way to meet the constraint that there are nodes for.
func (c *choice) chooseByConstraint() bool {
	d := c.demand
	if d.wishes == nil || len(d.wishes) == 1 && d.wishes[0].Counts == nil { // then nodeFit has room on these nodes only
		return c.chooseByWeight()
	}
	all := c.candidates
	defer func() { c.candidates = all }()
	for k := range d.wishes {
		w := &d.wishes[k]
		c.candidates = slices.DeleteFunc(slices.Clone(all), func(i int32) bool { return !w.All(c.features(i)) })
		if !slices.ContainsFunc(c.chosen, func(i int32) bool { return !w.All(c.features(i)) }) &&
			c.attempt(func() bool { return c.chooseCounted(w.Counts) }) {
			return true
		}
	}
	return false
}

func (nf *nodeFit) features(i int32) []string { return nf.free.nodes[i].node.Inventory.Features }

// chooseCounted takes nodes of which so many have some features: for each count those that are still missing,
// and then what else is needed; or if that leads nowhere, any nodes until it has all.
func (c *choice) chooseCounted(counts []cluster.FeatureCount) bool {
	if counts != nil && !c.demand.constrainsLayout() && c.attempt(func() bool { return c.chooseCountByCount(counts) }) {
		return true
	}
	c.featureCounts = counts
	defer func() { c.featureCounts = nil }()
	return c.chooseByWeight()
}

// chooseCountByCount takes the nodes of one count after the other.
func (c *choice) chooseCountByCount(counts []cluster.FeatureCount) bool {
	all := c.candidates
	whole := c.minNodes
	view := c.nodeFit
	defer func() { c.candidates, c.minNodes, c.nodeFit = all, whole, view }()
	own := *view.demand
	part := *view
	cf := *view.classFit
	own.tasks = 0
	own.gpuJob = nil
	own.nodesAsked = true
	cf.demand = &own
	part.classFit = &cf
	for _, n := range counts {
		missing := n.Nodes - c.countWith(n)
		c.nodeFit = &part
		c.minNodes = len(c.chosen) + missing
		c.candidates = slices.DeleteFunc(slices.Clone(all),
			func(i int32) bool { return slices.Contains(c.chosen, i) || !n.Has(c.features(i)) })
		if missing > 0 && !c.chooseByWeight() {
			return false
		}
	}
	c.candidates = slices.DeleteFunc(slices.Clone(all), func(i int32) bool { return slices.Contains(c.chosen, i) })
	c.nodeFit = view
	c.minNodes = max(whole, len(c.chosen))
	c.recountGiven()
	return c.covers() || c.chooseByWeight()
}

// countWith is how many of the chosen nodes have what a count asks for.
func (c *choice) countWith(n cluster.FeatureCount) (has int) {
	for _, i := range c.chosen {
		has += b2i(n.Has(c.features(i)))
	}
	return has
}

// recountGiven sums what the chosen nodes give.
func (c *choice) recountGiven() {
	places := c.chosen
	c.chosen = nil
	c.given = givenSum{gpus: make([]int64, len(c.demand.gpuJob))}
	for _, i := range places {
		c.takeNode(i)
	}
}

// isSimple reports whether the job takes of one run of nodes the lowest: there is nothing to choose by.
func (c *choice) isSimple() bool {
	topo := c.free.topology
	d := c.demand
	choosy := anyOf(
		c.runCount != 1,
		c.avoid != nil,
		topo.levels != nil,
		topo.blocks != nil,
		topo.weight,
		d.wishes != nil,
		len(d.wanted) > 0,
		d.leastLoaded,
		d.atEnd,
		d.flags.has(contiguous),
	)
	if choosy || d.wantsMostNodes() || d.fewNodesForGPUs() || c.wantsBestFit() {
		return false
	}
	return d.oneNode || d.tasks <= 1 || c.maxNodes > d.tasks // else see bigEnough
}

// takeLowest fills nodes from the lowest on, without a list of them.
func (c *choice) takeLowest() bool {
	for c.tasks[c.firstWithRoom] <= 0 {
		c.firstWithRoom++
	}
	return c.attempt(func() bool {
		most := min(c.maxNodes, c.nodeCount)
		for i := c.firstWithRoom; int(i) < len(c.tasks) && len(c.chosen) < most && c.tasks[i] > 0; i++ {
			c.takeNode(i)
			if c.covers() {
				return true
			}
		}
		return false
	})
}

// nodeCounts lists the numbers of nodes to try as the least: of a range the largest first.
func (c *choice) nodeCounts() []int {
	d := c.demand
	blocksGrow := d.topoBlocks && d.maxNodes > d.MinNodes
	if !blocksGrow && !d.wantsMostNodes() {
		return []int{d.MinNodes}
	}
	top := min(c.maxNodes, len(c.chosen)+len(c.candidates))
	if d.tasksAsked || d.flags.has(spread) && !d.countAsked { // no node without a task
		top = min(top, max(d.tasks, d.MinNodes))
	}
	if top <= d.MinNodes {
		return []int{d.MinNodes}
	}
	if !d.constrainsLayout() { // fewer nodes do not give more
		return []int{top, d.MinNodes}
	}
	var out []int
	for n := top; n >= d.MinNodes; n-- {
		out = append(out, n)
	}
	return out
}

// takeNamed takes the nodes that were asked for by name; false if one of them has no room.
func (c *choice) takeNamed() bool {
	for _, name := range c.demand.wanted {
		i, ok := c.free.Index(name)
		if !ok || c.avoid.Has(i) || c.tasks[i] <= 0 {
			return false
		}
		if !slices.Contains(c.chosen, int32(i)) {
			c.takeNode(int32(i))
		}
	}
	return true
}

// collectCandidates lists the other nodes with room.
func (c *choice) collectCandidates() {
	c.candidates = c.withRoom
	if c.avoid != nil || len(c.chosen) > 0 {
		c.candidates = slices.DeleteFunc(slices.Clone(c.withRoom),
			func(i int32) bool { return c.avoid.Has(int(i)) || slices.Contains(c.chosen, i) })
	}
}

// bigEnough is those candidates that are large enough: with the others, so few nodes cannot hold all tasks.
func (c *choice) bigEnough() []int32 {
	missing := c.demand.tasks - c.given.tasks
	others := c.maxNodes - len(c.chosen) - 1
	if missing <= 1 || others >= missing {
		return c.candidates
	}
	most := int32(0)
	for _, i := range c.candidates {
		most = max(most, c.tasks[i])
	}
	least := missing - others*int(most)
	if least <= 1 {
		return c.candidates
	}
	return slices.DeleteFunc(slices.Clone(c.candidates), func(i int32) bool { return int(c.tasks[i]) < least })
}

// takeNode adds a node.
func (c *choice) takeNode(i int32) {
	c.chosen = append(c.chosen, i)
	c.given.tasks += int(c.tasks[i])
	for k, g := range c.demand.gpuJob {
		c.given.gpus[k] += int64(c.demand.gpusGivenBy(c.freeOn(i), g.Type))
	}
}

// covers reports whether the chosen nodes suffice.
func (c *choice) covers() bool {
	if len(c.chosen) < c.minNodes || c.given.tasks < c.demand.tasks {
		return false
	}
	for k, g := range c.demand.gpuJob {
		if c.given.gpus[k] < g.Count {
			return false
		}
	}
	return !slices.ContainsFunc(c.featureCounts, func(n cluster.FeatureCount) bool { return c.countWith(n) < n.Nodes })
}

// attempt makes a step, and undoes it if it fails.
func (c *choice) attempt(step func() bool) bool { return c.undoing(step, false) }

// wouldDo reports whether a step would succeed, and undoes it.
func (c *choice) wouldDo(step func() bool) bool { return c.undoing(step, true) }

func (c *choice) undoing(step func() bool, always bool) bool {
	n := len(c.chosen)
	given := c.given
	if len(given.gpus) > 0 {
		given.gpus = slices.Clone(given.gpus)
	}
	ok := step()
	if !ok || always {
		c.chosen = c.chosen[:n]
		c.given = given
	}
	return ok
}

// fillFrom takes nodes in turn until it has enough.
func (c *choice) fillFrom(list []int32) bool {
	if c.covers() {
		return true
	}
	for _, i := range list {
		if len(c.chosen) >= c.maxNodes {
			return false
		}
		c.takeNode(i)
		if c.covers() {
			return true
		}
	}
	return false
}

// nodeWeight is which nodes are taken first: those of the lowest weight, and of these the ones that are on.
func nodeWeight(n *cluster.Node) int {
	r := 2 * max(n.Inventory.Weight, 1)
	if n.Off() {
		r++
	}
	return r
}

// chooseByWeight takes whole groups of equal weight, for large jobs those without recent trouble first, from the
// lowest up until they suffice; groups before the last are used up before it.
func (c *choice) chooseByWeight() bool {
	if !c.free.topology.weight && !(c.free.topology.troubled && c.demand.isLarge) || len(c.candidates) == 0 {
		return c.attempt(c.chooseDroppingSmallest)
	}
	all := c.candidates
	defer func() { c.candidates = all }()
	weight := func(i int32) int {
		r := 2 * nodeWeight(c.free.nodes[i].node)
		if c.demand.isLarge && c.free.nodes[i].troubled {
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
		c.candidates = group
		if len(c.chosen)+len(lower) <= c.maxNodes && c.attempt(func() bool {
			for _, i := range lower {
				c.takeNode(i)
			}
			return c.chooseDroppingSmallest()
		}) {
			return true
		}
		c.candidates = upTo
		if len(lower) > 0 && c.attempt(c.chooseDroppingSmallest) {
			return true
		}
	}
	return false
}

// chooseDroppingSmallest tries without the nodes that have least room, from the least up, where so many nodes are
// too small together.
func (c *choice) chooseDroppingSmallest() bool {
	all := c.candidates
	if len(c.chosen)+len(all) < c.minNodes {
		return false
	}
	if c.covers() && !c.demand.flags.has(contiguous) && !c.demand.topoBlocks {
		return true
	}
	defer func() { c.candidates = all }()
	if c.attempt(c.chooseDensest) || c.attempt(c.chooseByStrategy) {
		return true
	}
	if len(c.chosen)+len(all) <= c.maxNodes && !c.demand.constrainsLayout() {
		return false // not even all of them
	}
	for c.dropSmallest() {
		if c.attempt(c.chooseByStrategy) {
			return true
		}
	}
	c.candidates = all
	return !c.demand.constrainsLayout() && c.attempt(c.searchAny)
}

// dropSmallest drops the candidates that have least room; false if none is left.
func (c *choice) dropSmallest() bool {
	if len(c.candidates) == 0 {
		return false
	}
	byTasks := func(a, b int32) int { return cmp.Compare(c.tasks[a], c.tasks[b]) }
	least := c.tasks[slices.MinFunc(c.candidates, byTasks)]
	isLeast := func(i int32) bool { return c.tasks[i] <= least }
	c.candidates = slices.DeleteFunc(slices.Clone(c.candidates), isLeast)
	return len(c.candidates) > 0
}

// maxSearchSteps bounds a search.
const maxSearchSteps = 20_000

// searchAny looks for any nodes that suffice together where the order of choice has found none.
func (c *choice) searchAny() bool {
	for _, list := range c.connectedCandidates() {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(c.tasks[b], c.tasks[a]) })
		if c.attempt(func() bool { return c.fillFrom(list) }) {
			return true
		}
		steps := maxSearchSteps
		combinationsDiffer := len(c.demand.gpuJob) > 0 || c.featureCounts != nil
		if combinationsDiffer && c.canReachGPUs(list) && c.searchSubsets(list, &steps) {
			return true
		}
	}
	return false
}

// canReachGPUs reports whether the nodes that give most have the GPUs that are missing.
func (c *choice) canReachGPUs(list []int32) bool {
	for k, g := range c.demand.gpuJob {
		var nodes []int
		for _, i := range list {
			gives := max(c.demand.gpusGivenBy(c.freeOn(i), g.Type), 0)
			for gives >= len(nodes) {
				nodes = append(nodes, 0)
			}
			nodes[gives]++
		}
		if !canReach(nodes, c.maxNodes-len(c.chosen), g.Count-c.given.gpus[k]) {
			return false
		}
	}
	return true
}

// searchSubsets tries each node, and then without it.
func (c *choice) searchSubsets(list []int32, steps *int) bool {
	if c.covers() {
		return true
	}
	*steps--
	n := len(c.chosen)
	if anyOf(*steps < 0, len(list) == 0, n >= c.maxNodes, n+len(list) < c.minNodes) {
		return false
	}
	return c.attempt(func() bool { c.takeNode(list[0]); return c.searchSubsets(list[1:], steps) }) ||
		c.searchSubsets(list[1:], steps)
}

// connectedCandidates lists the candidates that may be used together: those under one root with a tree.
func (c *choice) connectedCandidates() [][]int32 {
	topo := c.free.topology
	if topo.levels == nil || c.demand.flags.has(spread) || c.demand.ignoresTopology() {
		return [][]int32{slices.Clone(c.candidates)}
	}
	roots := map[int32]int{}
	var out [][]int32
	for _, i := range c.candidates {
		r := topo.rootOf(topo.leafOf[i])
		if slices.ContainsFunc(c.chosen, func(k int32) bool { return topo.rootOf(topo.leafOf[k]) != r }) {
			continue
		}
		k, ok := roots[r]
		if !ok {
			k = len(out)
			roots[r] = len(out)
			out = append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	return out
}

// chooseDensest takes for a job with GPUs, of which tasks or all have some and whose number of nodes is open, as few
// nodes as will do: one that has all it needs, else those with most of its GPUs.
func (c *choice) chooseDensest() bool {
	d := c.demand
	otherwise := anyOf(c.maxNodes == c.minNodes, d.flags.has(spread), d.leastLoaded, d.flags.has(contiguous))
	if otherwise || !d.fewNodesForGPUs() {
		return false
	}
	all := c.candidates
	defer func() { c.candidates = all }()
	need := int(sumGRES(d.gpuJob))
	levels := []int(nil)
	gives := make([]int, len(all))
	for k, i := range all {
		for _, g := range d.gpuJob {
			gives[k] += min(d.gpusGivenBy(c.freeOn(i), g.Type), int(g.Count))
		}
		if len(d.gpuTask) > 0 {
			need = d.tasks
			gives[k] = min(int(c.tasks[i]), d.tasks)
		}
		levels = append(levels, gives[k])
	}
	from := func(enough func(k int) bool) bool {
		c.candidates = nil
		for k, i := range all {
			if enough(k) {
				c.candidates = append(c.candidates, i)
			}
		}
		return len(c.candidates) > 0 && c.attempt(c.chooseByStrategy)
	}
	isAllNeeded := func(k int) bool { return gives[k] >= need && int(c.tasks[all[k]]) >= d.tasks }
	if c.minNodes <= 1 && len(c.chosen) == 0 && from(isAllNeeded) {
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

// chooseByStrategy is how the configuration and the job want nodes chosen.
func (c *choice) chooseByStrategy() bool {
	topo := c.free.topology
	switch {
	case c.demand.flags.has(contiguous):
		return c.chooseContiguous()
	case topo.blocks != nil:
		return c.chooseByBlock()
	case c.demand.leastLoaded:
		return c.chooseLeastLoaded()
	case c.demand.atEnd:
		list := slices.Clone(c.candidates)
		slices.Reverse(list)
		return c.fillFrom(list)
	case c.demand.flags.has(spread):
		return c.fillFrom(c.candidates)
	case c.wantsBestFit() && c.attempt(c.chooseBestFit):
		return true
	}
	return c.chooseNearby()
}

// chooseNearby takes nodes under few switches, or else of few runs.
func (c *choice) chooseNearby() bool {
	if c.free.topology.levels != nil && !c.demand.ignoresTopology() {
		return c.chooseInTree()
	}
	return c.chooseByRuns()
}

// chooseLeastLoaded takes the nodes with most free CPUs first.
func (c *choice) chooseLeastLoaded() bool {
	list := slices.Clone(c.candidates)
	slices.SortStableFunc(list, func(a, b int32) int {
		return cmp.Compare(c.free.nodes[b].cpuCount,
			c.free.nodes[a].cpuCount)
	})
	return c.fillFrom(list)
}

// nodeRun is a number of nodes that follow each other in the configuration.
type nodeRun []int32

// cutIntoRuns cuts nodes, rising, into runs.
func (c *choice) cutIntoRuns(list []int32) (out []nodeRun) {
	from := 0
	for k, i := range list {
		if k > 0 && c.free.ranks[i] != c.free.ranks[list[k-1]]+1 {
			out = append(out, list[from:k])
			from = k
		}
	}
	if len(list) > 0 {
		out = append(out, list[from:])
	}
	return out
}

// chooseByRuns takes the run of consecutive nodes that suffices with the fewest of them, else the largest
// ones first; within a run the lowest.
func (c *choice) chooseByRuns() bool {
	usual := c.hasAllCandidates()
	runs := c.runsByLength
	if !usual || runs == nil {
		runs = sortByLength(c.cutIntoRuns(c.candidates))
	}
	if usual {
		c.runsByLength = runs
	}
	for len(runs) > 0 {
		if c.chooseShortestRun(runs) {
			return true
		}
		last := len(runs) - 1
		if c.fillFrom(runs[last]) {
			return true
		}
		runs = runs[:last]
	}
	return false
}

// chooseShortestRun takes the shortest run that suffices.
func (c *choice) chooseShortestRun(runs []nodeRun) bool {
	longer := func(list []nodeRun, nodes int) int {
		return sort.Search(len(list), func(k int) bool { return len(list[k]) >= nodes })
	}
	for rest := runs[longer(runs, c.minNodes-len(c.chosen)):]; len(rest) > 0; {
		alike := longer(rest, len(rest[0])+1)
		for k := alike - 1; k >= 0; k-- {
			if c.attempt(func() bool { return c.fillFrom(rest[k]) }) {
				return true
			}
		}
		rest = rest[alike:]
	}
	return false
}

// sortByLength sorts runs, the shortest first, of equal ones the last.
func sortByLength(list []nodeRun) []nodeRun {
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
	out := make([]nodeRun, len(list))
	for _, r := range list {
		ends[len(r)]--
		out[ends[len(r)]] = r
	}
	return out
}

// chooseContiguous takes nodes of one run only (--contiguous), the lowest that suffice; nodes asked for by
// name must be among them.
func (c *choice) chooseContiguous() bool {
	named := slices.Clone(c.chosen)
	list := slices.Concat(named, c.candidates)
	slices.Sort(list)
	runs := c.cutIntoRuns(list)
	slices.SortStableFunc(runs, func(a, b nodeRun) int { return cmp.Compare(len(a), len(b)) })
	for _, r := range runs {
		if slices.ContainsFunc(named, func(i int32) bool { return !slices.Contains(r, i) }) {
			continue
		}
		for k := range r {
			if c.attempt(func() bool { return c.fillWindow(r[k:], len(named)) }) {
				return true
			}
			if slices.Contains(named, r[k]) {
				break // it must be in it
			}
		}
	}
	return false
}

// fillWindow takes nodes in turn until it has enough and has met so many that it had already.
func (c *choice) fillWindow(list []int32, named int) bool {
	held := c.chosen[:named:named]
	for _, i := range list {
		if slices.Contains(held, i) {
			named--
		} else if len(c.chosen) >= c.maxNodes {
			return false
		} else {
			c.takeNode(i)
		}
		if named == 0 && c.covers() {
			return true
		}
	}
	return false
}
