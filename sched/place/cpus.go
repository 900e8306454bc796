package place

import (
	"slices"

	"dev.muster/cluster"
)

// pickCPUs takes n free CPUs: cores near the GPUs first if there are any, and of these one of each
// socket in turn, as Slurm does; whole cores where the configuration says so.
func pickCPUs(free *NodeFree, n int, gpus cluster.IDSet, d *Demand) cluster.IDSet {
	inv := &free.node.Inventory
	t := max(inv.ThreadsPerCore, 1)
	keep := t
	if !d.wholeCore && !d.exclusive {
		keep = d.threadsPerCore(inv)
	}
	if n >= free.cpuCount && free.cpuCount == free.allCPUs && keep == t {
		return free.cpus
	}
	var ids []int
	near := cluster.IDSet{}
	if d.gpusBound {
		near = coresNear(inv, gpus)
	}
	for _, c := range coreOrder(free, n, gpus, d) {
		if n <= 0 || !near.Empty() && !near.Has(c*t) {
			break
		}
		most := keep
		if !d.wholeCore {
			most = min(keep, n)
		}
		for k := c * t; k < c*t+most; k++ {
			ids = append(ids, k)
		}
		n -= t
	}
	set := cluster.NewIDSet(ids...)
	if free.unit == t {
		return set
	}
	return free.inWholeUnits(set)
}

// inWholeUnits is some CPUs with what else is free of their sockets.
func (free *NodeFree) inWholeUnits(set cluster.IDSet) cluster.IDSet {
	for lo := 0; lo < free.node.Inventory.CPUs; lo += free.unit {
		s := cluster.RangeIDSet(lo, lo+free.unit-1)
		if !s.Intersect(set).Empty() {
			set = set.Union(s.Intersect(free.cpus))
		}
	}
	return set
}

// unitOf is how many CPUs of a node are given at once.
func unitOf(inv *cluster.Inventory, sockets bool) int {
	t := max(inv.ThreadsPerCore, 1)
	if sockets {
		return t * max(inv.CoresPerSocket, 1)
	}
	return t
}

// freeInUnits counts the CPUs of the cores or sockets that are free as a whole.
func freeInUnits(inv *cluster.Inventory, cpus cluster.IDSet, unit int) int {
	t := max(inv.ThreadsPerCore, 1)
	if unit > t {
		return wholeUnits(inv, cpus, unit).Len()
	}
	if t == 1 {
		return cpus.Len()
	}
	n := 0
	run := 0
	last := -1
	for k := range cpus.All() {
		switch {
		case k%t == 0:
			run = 1
		case run > 0 && k == last+1: // of the same core
			run++
		default:
			run = 0
		}
		last = k
		if run == t {
			n += t
			run = 0
		}
	}
	return n
}

// wholeUnits are those of the CPUs whose cores or sockets are in the set as a whole, but for CPUs that no job gets.
func wholeUnits(inv *cluster.Inventory, cpus cluster.IDSet, unit int) (out cluster.IDSet) {
	if unit <= 1 {
		return cpus
	}
	for lo := 0; lo < inv.CPUs; lo += unit {
		s := cluster.RangeIDSet(lo, min(lo+unit, inv.CPUs)-1).Minus(inv.SpecCPUs)
		if s.Minus(cpus).Empty() {
			out = out.Union(s)
		}
	}
	return out
}

// freeCores lists the cores of each socket that a job can have; what is beyond the last socket is
// counted to that.
func freeCores(free *NodeFree) [][]int {
	inv := &free.node.Inventory
	t := max(inv.ThreadsPerCore, 1)
	per := max(inv.CoresPerSocket, 1)
	sockets := max(inv.Sockets, 1)
	out := make([][]int, sockets)
	cpus := free.cpus
	if free.unit > t {
		cpus = wholeUnits(inv, cpus, free.unit)
	}
	for c := range inv.CPUs / t {
		n := 0
		for k := c * t; k < c*t+t; k++ {
			n += b2i(cpus.Has(k))
		}
		if n == t {
			s := min(c/per, sockets-1)
			out[s] = append(out[s], c)
		}
	}
	return out
}

// coreOrder lists free cores in the order of choice, for a job that gets n CPUs here.
func coreOrder(free *NodeFree, n int, gpus cluster.IDSet, d *Demand) []int {
	inv := &free.node.Inventory
	t := max(inv.ThreadsPerCore, 1)
	per := max(inv.CoresPerSocket, 1)
	bySocket := freeCores(free)
	near := coresNear(inv, gpus)
	isNear := func(c int) bool { return near.Has(c * t) }
	c := d.cpusPerTaskOn(inv)
	if need := (c + t - 1) / t; d.tasksPerSocket > 0 {
		for s, cores := range bySocket {
			bySocket[s] = cores[:min(len(cores), d.tasksPerSocket*need)]
		}
	}
	if g := int(sumGRES(d.gpuTask)); g > 0 && gpus.Len()%g == 0 {
		keepCoresNearGPUs(inv, bySocket, gpus, g, (c+t-1)/t)
	}
	if !d.wholeCore || d.flags.has(fillsSockets) { // tasks may lie across sockets
		sortSockets(bySocket, (n+t-1)/t)
		return sortNearFirst(slices.Concat(bySocket...), near, isNear)
	}
	tasksFitSockets := d.cpusPerTask > 1 && c <= per*t
	devicesKeepIt := free.unit > t && d.gpus && sameSocket(inv, gpus) // on their socket
	if tasksFitSockets || devicesKeepIt {
		return sortNearFirst(wholeTasks(bySocket, (c+t-1)/t), near, isNear)
	}
	if near.Empty() {
		return roundRobin(bySocket, nil)
	}
	var first, rest [][]int
	for _, cores := range bySocket {
		in, out := splitCores(cores, isNear)
		first = append(first, in)
		rest = append(rest, out)
	}
	slices.SortStableFunc(first, func(a, b []int) int { return len(b) - len(a) })
	return roundRobin(rest, roundRobin(first, nil))
}

// splitCores tells those that are near from the others.
func splitCores(cores []int, isNear func(core int) bool) (in, out []int) {
	for _, c := range cores {
		if isNear(c) {
			in = append(in, c)
		} else {
			out = append(out, c)
		}
	}
	return in, out
}

// coresNear are the CPUs near some GPUs.
func coresNear(inv *cluster.Inventory, gpus cluster.IDSet) (near cluster.IDSet) {
	for k := range gpus.All() {
		near = near.Union(inv.GPUs[k].Cores)
	}
	return near
}

// sortNearFirst puts the cores near the job's GPUs, where it has some, before the others.
func sortNearFirst(order []int, near cluster.IDSet, isNear func(core int) bool) []int {
	if !near.Empty() {
		slices.SortStableFunc(order, func(a, b int) int { return b2i(!isNear(a)) - b2i(!isNear(b)) })
	}
	return order
}

// keepCoresNearGPUs leaves of each socket's free cores those of as many tasks as it has so many GPUs for, if they are
// enough for all.
func keepCoresNearGPUs(inv *cluster.Inventory, bySocket [][]int, gpus cluster.IDSet, each, need int) {
	count := make([]int, len(bySocket))
	tasks := 0
	for k := range gpus.All() {
		count[socketOf(inv, k)]++
	}
	for s, cores := range bySocket {
		tasks += min(count[s]/each, len(cores)/need)
	}
	if tasks < gpus.Len()/each {
		return
	}
	for s, cores := range bySocket {
		bySocket[s] = cores[:count[s]/each*need]
	}
}

// sortSockets puts the socket first that has just enough free for so many cores, or, where none has, those with most.
func sortSockets(bySocket [][]int, cores int) {
	slices.SortStableFunc(bySocket, func(a, b []int) int {
		if whole := b2i(len(b) >= cores) - b2i(len(a) >= cores); whole != 0 {
			return whole
		}
		if len(a) >= cores {
			return len(a) - len(b)
		}
		return len(b) - len(a)
	})
}

// roundRobin takes one core of each socket in turn.
func roundRobin(sockets [][]int, order []int) []int {
	for i, more := 0, true; more; i++ {
		more = false
		for _, cores := range sockets {
			if i < len(cores) {
				order = append(order, cores[i])
				more = true
			}
		}
	}
	return order
}

// wholeTasks orders cores socket by socket, those that make up whole tasks of that many first.
func wholeTasks(sockets [][]int, need int) (order []int) {
	var rest []int
	for _, free := range sockets {
		n := len(free) / need * need
		order, rest = append(order, free[:n]...), append(rest, free[n:]...)
	}
	return append(order, rest...)
}

// socketFree is what of one is free.
type socketFree struct {
	cpus int
	gpus []int // near it, rising
}

// socketOf is the socket that a GPU is at: the first if that is not known.
func socketOf(inv *cluster.Inventory, gpu int) int {
	cpus := max(inv.CoresPerSocket, 1) * max(inv.ThreadsPerCore, 1)
	return min(max(inv.GPUs[gpu].Cores.Min(), 0)/cpus, max(inv.Sockets, 1)-1)
}

// sameSocket reports whether all GPUs are at one socket.
func sameSocket(inv *cluster.Inventory, gpus cluster.IDSet) bool {
	for k := range gpus.All() {
		if socketOf(inv, k) != socketOf(inv, gpus.Min()) {
			return false
		}
	}
	return true
}

// sockets lists those of a node with what is free, the one with most CPUs first.
func sockets(free *NodeFree, d *Demand) []socketFree {
	inv := &free.node.Inventory
	t := max(inv.ThreadsPerCore, 1)
	bySocket := freeCores(free)
	out := make([]socketFree, len(bySocket))
	for s, cores := range bySocket {
		out[s].cpus = len(cores) * t
	}
	for k := range free.gpus.All() {
		s := socketOf(inv, k)
		out[s].gpus = append(out[s].gpus, k)
	}
	if !d.gpusUnbound {
		slices.SortStableFunc(out, func(a, b socketFree) int { return b.cpus - a.cpus })
	}
	return out
}

// hasGPUs reports whether the node's free GPUs satisfy the requests.
func hasGPUs(free *NodeFree, want []cluster.GRES) bool {
	total := int64(0)
	for _, g := range want {
		total += g.Count
		if g.Type != "" && int64(countGPUs(free, g.Type)) < g.Count {
			return false
		}
	}
	return int64(free.gpuCount) >= total
}

// pickGPUs takes free GPUs that satisfy the requests (those with a type first): of one socket if one
// has enough of them and of CPUs, else of each in turn, the lowest first.
func pickGPUs(free *NodeFree, want []cluster.GRES, cpus int, d *Demand) (cluster.IDSet, bool) {
	list := sockets(free, d)
	all := socketFree{}
	for _, s := range list {
		if s.cpus >= cpus {
			if got, ok := pickFrom(free, s.gpus, want); ok {
				return got, true
			}
		}
		all.gpus = append(all.gpus, s.gpus...)
	}
	if got, ok := pickTaskGPUs(free, list, cpus, d); ok && len(want) == 1 && len(d.gpuTask) == 1 {
		return got, true
	}
	return pickFrom(free, all.gpus, want)
}

// pickTaskGPUs takes the GPUs of so many CPUs' tasks from the sockets that these tasks are on: in turn, or filling
// one before the next.
func pickTaskGPUs(free *NodeFree, list []socketFree, cpus int, d *Demand) (cluster.IDSet, bool) {
	var got cluster.IDSet
	each := sumGRES(d.gpuTask)
	per := d.cpusPerTaskOn(&free.node.Inventory)
	if each == 0 {
		return got, false
	}
	tasks := make([]int64, len(list))
	left := cpus / per
	for more := true; left > 0 && more; {
		more = false
		for i, s := range list {
			for left > 0 && s.cpus >= per*int(tasks[i]+1) && len(s.gpus) >= int(each*(tasks[i]+1)) {
				tasks[i]++
				left--
				more = true
				if d.wholeCore && !d.flags.has(fillsSockets) {
					break
				}
			}
		}
	}
	for i, s := range list {
		set, ok := pickFrom(free, s.gpus, []cluster.GRES{
			{Name: "gpu", Type: d.gpuTask[0].Type, Count: each * tasks[i]},
		})
		got = got.Union(set)
		if !ok {
			return got, false
		}
	}
	return got, left == 0
}

// pickFrom takes of some GPUs the first that satisfy the requests, or, where some are linked straight to each other,
// those with the most links.
func pickFrom(free *NodeFree, gpus []int, want []cluster.GRES) (cluster.IDSet, bool) {
	inv := &free.node.Inventory
	links := slices.ContainsFunc(gpus, func(k int) bool { return len(inv.GPUs[k].Links) > 0 })
	var got []int
	for _, g := range want {
		n := int(g.Count)
		fit := slices.DeleteFunc(slices.Clone(gpus), func(k int) bool {
			return slices.Contains(got, k) || g.Type != "" && inv.GPUs[k].Type != g.Type
		})
		switch {
		case len(fit) < n:
			return cluster.IDSet{}, false
		case links && n > 0 && n < len(fit):
			got = mostLinked(inv, got, fit, n)
		default:
			got = append(got, fit[:n]...)
		}
	}
	return cluster.NewIDSet(got...), true
}

// mostLinked adds so many GPUs to those that there are: from each one to begin with always the next that has most links
// to the others, and of these sets the one with most links in all. Of sets that are equal in this, it chooses the one
// that takes the fewest links from the GPUs that stay free, so that pairs stay whole; then the earlier one.
func mostLinked(inv *cluster.Inventory, have, from []int, n int) (best []int) {
	most := -1
	cut := 0
	for _, seed := range from {
		set := append(slices.Clone(have), seed)
		total := inv.LinksTo(seed, have)
		for len(set) < len(have)+n {
			next := nextLinked(inv, set, from, len(have)+n-len(set))
			total += inv.LinksTo(next, set)
			set = append(set, next)
		}
		lost := linksBetween(inv, set[len(have):], without(from, set))
		if total > most || total == most && lost < cut {
			best = set
			most = total
			cut = lost
		}
	}
	return best
}

// nextLinked is the GPU with most links to a set. Of those that are equal in this it is one that can bring a partner
// along, or, where it is the last one, one that takes none from another; then the earlier one.
func nextLinked(inv *cluster.Inventory, set, from []int, left int) int {
	next := -1
	with := -1
	partners := 0
	rest := without(from, set)
	for _, k := range rest {
		l := inv.LinksTo(k, set)
		p := inv.LinksTo(k, rest)
		if left == 1 {
			p = -p
		}
		if l > with || l == with && p > partners {
			next = k
			with = l
			partners = p
		}
	}
	return next
}

// without is a list without the elements of another.
func without(list, others []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(k int) bool { return slices.Contains(others, k) })
}

// linksBetween is how many links lead from some GPUs to others.
func linksBetween(inv *cluster.Inventory, some, others []int) (n int) {
	for _, k := range some {
		n += inv.LinksTo(k, others)
	}
	return n
}

// gpusNearCPUs is how many free GPUs of a type are near the sockets that so many CPUs are taken of.
func gpusNearCPUs(free *NodeFree, cpus int, kind string, d *Demand) (n int64) {
	list := sockets(free, d)
	if d.gpusUnbound {
		return int64(countGPUs(free, kind))
	}
	t := max(free.node.Inventory.ThreadsPerCore, 1)
	for _, s := range list[:min(max((cpus+t-1)/t, 1), len(list))] {
		for _, k := range s.gpus {
			n += int64(b2i(kind == "" || free.node.Inventory.GPUs[k].Type == kind))
		}
	}
	return n
}

// tasksBySocket is how many tasks fit if each socket takes no more than its number.
func (d *Demand) tasksBySocket(free *NodeFree, per int) (n int) {
	t := max(free.node.Inventory.ThreadsPerCore, 1)
	for _, cores := range freeCores(free) {
		n += min(d.tasksPerSocket, len(cores)*t/per)
	}
	return n
}

// pickSocketGPUs takes what --gpus-per-socket asks for from as many sockets as the job wants of a node, the lowest that
// have it and a free core, and beside that what else is wanted.
func (d *Demand) pickSocketGPUs(free *NodeFree, more []cluster.GRES) (cluster.IDSet, bool) {
	list := sockets(free, &Demand{gpusUnbound: true, wholeCore: d.wholeCore})
	var got cluster.IDSet
	left := max(d.asked.of(nodeSockets), 1)
	for _, s := range list {
		if set, ok := pickFrom(free, s.gpus, d.gpuSocket); ok && left > 0 && s.cpus > 0 {
			got = got.Union(set)
			left--
		}
	}
	if left > 0 {
		return got, false
	}
	rest := *free
	rest.gpus = free.gpus.Minus(got)
	rest.gpuCount = rest.gpus.Len()
	set, ok := pickGPUs(&rest, more, 0, d)
	return got.Union(set), ok
}

// tasksNearGPUs is how many tasks fit on the CPUs near GPUs that can be had.
func (d *Demand) tasksNearGPUs(free *NodeFree) int {
	cpus := 0
	best := 0
	for _, s := range sockets(free, d) {
		if len(s.gpus) == 0 {
			continue
		}
		cpus += s.cpus
		if _, ok := pickFrom(free, s.gpus, d.gpuNode); ok {
			best = max(best, s.cpus)
		}
	}
	if best > 0 && len(d.gpuJob)+len(d.gpuTask) == 0 {
		cpus = best // all GPUs are of one socket then
	}
	return cpus / d.cpusPerTaskOn(&free.node.Inventory)
}
