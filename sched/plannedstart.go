package sched

import (
	"slices"
	"sort"
	"time"

	"dev.muster/cluster"
)

// plannedStart is when and where a blocked job will start: later jobs must not delay it (a backfill reservation).
type plannedStart struct {
	job   cluster.JobID
	at    time.Time
	nodes nodeSet // where the job will run
	names []cluster.NodeName
	alloc *cluster.Alloc // what it will get
	// leftovers is what its nodes will have left beside it, for jobs that will still run then; by index, rising.
	leftovers []leftover
	reduced   bool // leftovers are less than when it was planned
	// excluded is CPUs that the job must not have: others may, before it and beside it.
	excluded    *excludedCPUs
	components  []*component // of a heterogeneous job, whose start as a whole this is
	free        *freeSet     // the nodes as they will be then
	seenChanges int          // how many changes of that set it knows
}

// newPlannedStart plans an allocation of a free set, which it does not change. An earlier plan for the same time, if
// there is one, saves the work for nodes that have not changed since.
func newPlannedStart(fs *freeSet, at time.Time, a *cluster.Alloc, last *plannedStart) *plannedStart {
	n := len(a.Shares)
	ps := &plannedStart{
		at: at, alloc: a, nodes: make(nodeSet, len(fs.nodes)), names: make([]cluster.NodeName, n),
		leftovers: make([]leftover, n), free: fs, seenChanges: len(fs.changes),
	}
	if last != nil && (last.reduced || last.free != fs) {
		last = nil
	}
	for k := range a.Shares {
		sh := &a.Shares[k]
		i, _ := fs.index(sh.Node)
		ps.names[k], ps.nodes[i] = sh.Node, true
		if was := last.leftIfUnchanged(i, sh); was != nil {
			ps.leftovers[k] = *was
			ps.leftovers[k].share = sh
			continue
		}
		free := fs.nodes[i]
		m := &fs.models[free.model]
		if free.takeShare(*sh, a.Over > 0); fs.wholePlans {
			ps.leftovers[k] = leftover{index: i, share: sh, gpus: make([]int, len(m.types))}
			continue
		}
		l := leftover{index: i, share: sh, cpus: free.wholeCPUs, cpuIDs: free.cpus, mem: free.mem,
			gpus: make([]int, len(m.types))}
		for id := range free.gpus.All() {
			l.gpus[m.typeOf[id]]++
		}
		ps.leftovers[k] = l
	}
	ps.sortLeftovers()
	return ps
}

// sortLeftovers sorts by index.
func (ps *plannedStart) sortLeftovers() {
	slices.SortFunc(ps.leftovers, func(a, b leftover) int { return a.index - b.index })
}

// leftOn is what will be left on a node of the planned start; nil on others.
func (ps *plannedStart) leftOn(i int) *leftover {
	if !ps.nodes.has(i) {
		return nil
	}
	k := sort.Search(len(ps.leftovers), func(k int) bool { return ps.leftovers[k].index >= i })
	if k == len(ps.leftovers) || ps.leftovers[k].index != i {
		return nil
	}
	return &ps.leftovers[k]
}

// changed reports whether a node is not as it was when the start was planned.
func (ps *plannedStart) changed(i int32) bool { return int(ps.free.lastChange[i]) > ps.seenChanges }

// leftIfUnchanged is what will be left on a node if it is as it was and the share is the same one; else nil.
func (ps *plannedStart) leftIfUnchanged(i int, sh *cluster.Share) *leftover {
	if ps == nil || ps.changed(int32(i)) {
		return nil
	}
	left := ps.leftOn(i)
	if left == nil || !sameShare(left.share, sh) {
		return nil
	}
	return left
}

// sameShare reports whether two shares without a part of a GPU are the same.
func sameShare(a, b *cluster.Share) bool {
	return a.Part == nil && b.Part == nil && a.MemMB == b.MemMB && a.CPUs.Equal(b.CPUs) && a.GPUs.Equal(b.GPUs)
}

// leftover is what a planned start leaves of a node, by amounts: which CPUs and GPUs these will be is open, except
// where a reservation has some of them. Only cores that are free as a whole count.
type leftover struct {
	index  int
	share  *cluster.Share // what the planned start takes there
	cpus   int
	cpuIDs cluster.IDSet // the CPUs, as planned
	gpus   []int         // by type, see model.types
	mem    cluster.MemMB
}

// limitNode takes from a node of the set what is more than the leftover, for a job that must not have some CPUs.
func (left *leftover) limitNode(fs *freeSet, free *nodeFree, barred cluster.IDSet) {
	ids, most := wholeUnits(&free.node.Inventory, free.cpus, free.unit), left.cpus
	if !barred.Empty() {
		most = min(most, left.cpuIDs.Minus(barred).Len())
	}
	free.cpus = lowestOf(ids, func(int) bool { return true }, most)
	var gpus cluster.IDSet
	for kind, n := range left.gpus {
		gpus = gpus.Union(lowestOf(free.gpus, func(k int) bool { return fs.models[free.model].typeOf[k] == kind }, n))
	}
	free.gpus, free.mem, free.gpuParts = gpus, min(free.mem, left.mem), nil // shared GPUs are never left over
	free.recount()
}

// reduceFor takes what a job has that will still run when the planned start comes.
func (ps *plannedStart) reduceFor(fs *freeSet, shares []cluster.Share) {
	for _, sh := range shares {
		i, ok := fs.index(sh.Node)
		if !ok {
			continue
		}
		left := ps.leftOn(i)
		if left == nil {
			continue
		}
		ps.reduced, left.gpus = true, slices.Clone(left.gpus)
		left.cpus, left.mem = left.cpus-sh.CPUs.Len(), left.mem-sh.MemMB
		if ps.excluded != nil { // the planned job will get other CPUs for those of its own that are gone
			gone := sh.CPUs.Minus(left.cpuIDs).Len()
			left.cpuIDs = left.cpuIDs.Minus(sh.CPUs)
			left.cpuIDs = left.cpuIDs.Minus(left.cpuIDs.Minus(ps.excluded.on(int32(i))).First(gone))
		}
		types := fs.models[fs.nodes[i].model].typeOf
		for k := range sh.GPUs.All() {
			left.gpus[types[k]]--
		}
		if sh.Part != nil {
			left.gpus[types[sh.Part.GPU]]--
		}
	}
}

// keepsSame reports whether both keep the same.
func (ps *plannedStart) keepsSame(o *plannedStart) bool {
	sameAmounts := func(x, y leftover) bool {
		return x.index == y.index && x.cpus == y.cpus && x.mem == y.mem && slices.Equal(x.gpus, y.gpus)
	}
	return ps.job == o.job && ps.at.Equal(o.at) && slices.Equal(ps.names, o.names) &&
		slices.EqualFunc(ps.leftovers, o.leftovers, sameAmounts)
}

// compareLeftovers lists the nodes of which it leaves more than another one did, and all of which it leaves
// something else.
func (ps *plannedStart) compareLeftovers(was *plannedStart) (more, other []int) {
	for a, b := ps.leftovers, was.leftovers; len(a) > 0 || len(b) > 0; {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].index < b[0].index:
			other, a = append(other, a[0].index), a[1:]
			continue
		case len(a) == 0 || a[0].index > b[0].index:
			more, other, b = append(more, b[0].index), append(other, b[0].index), b[1:]
			continue
		case a[0].exceeds(&b[0]):
			more, other = append(more, a[0].index), append(other, a[0].index)
		case b[0].exceeds(&a[0]):
			other = append(other, a[0].index)
		}
		a, b = a[1:], b[1:]
	}
	return more, other
}

// exceeds reports whether it is more than another one, of anything.
func (left *leftover) exceeds(was *leftover) bool {
	if left.cpus > was.cpus || left.mem > was.mem {
		return true
	}
	for k, n := range left.gpus {
		if n > was.gpus[k] {
			return true
		}
	}
	return false
}

// nodeIndexes are those of its nodes.
func (ps *plannedStart) nodeIndexes() []int {
	out := make([]int, len(ps.leftovers))
	for k := range ps.leftovers {
		out[k] = ps.leftovers[k].index
	}
	return out
}
