package place

import (
	"slices"
	"sort"
	"time"

	"dev.muster/cluster"
)

// PlannedStart is when and where a blocked job will start: later jobs must not delay it (a backfill reservation).
type PlannedStart struct {
	Job   cluster.JobID
	At    time.Time
	Nodes NodeSet // where the job will run
	Names []cluster.NodeName
	Alloc *cluster.Alloc // what it will get
	// leftovers is what its nodes will have left beside it, for jobs that will still run then; by index, rising.
	leftovers []leftover
	reduced   bool // leftovers are less than when it was planned
	// excluded is what the job must not have of nodes: others may, before it and alongside it.
	excluded    *ExcludedParts
	Components  []ComponentStart // of a heterogeneous job, whose start as a whole this is
	free        *FreeSet         // the nodes as they will be then
	seenChanges int              // how many changes of that set it knows
}

// newPlannedStart plans an allocation of a free set, which it does not change. An earlier plan for the same time, if
// there is one, saves the work for nodes that have not changed since.
func newPlannedStart(fs *FreeSet, at time.Time, a *cluster.Alloc, last *PlannedStart) *PlannedStart {
	n := len(a.Shares)
	ps := &PlannedStart{
		At: at, Alloc: a, Nodes: make(NodeSet, len(fs.nodes)), Names: make([]cluster.NodeName, n),
		leftovers: make([]leftover, n), free: fs, seenChanges: len(fs.changes),
	}
	if last != nil && (last.reduced || last.free != fs) {
		last = nil
	}
	for k := range a.Shares {
		sh := &a.Shares[k]
		i, _ := fs.Index(sh.Node)
		ps.Names[k] = sh.Node
		ps.Nodes[i] = true
		if was := last.leftIfUnchanged(i, sh); was != nil {
			ps.leftovers[k] = *was
			ps.leftovers[k].share = sh
			continue
		}
		free := fs.nodes[i]
		m := &fs.models[free.model]
		free.TakeShare(*sh, a.Partition, a.Over > 0)
		if fs.wholePlans {
			ps.leftovers[k] = leftover{index: i, share: sh, gpus: make([]int, len(m.types))}
			continue
		}
		l := leftover{index: i, share: sh, cpus: free.wholeCPUs, cpuIDs: free.cpus, mem: free.mem,
			counted: free.counted,
			gpus:    make([]int, len(m.types)), gpuIDs: free.gpus, limited: free.limited}
		for id := range free.gpus.All() {
			l.gpus[m.typeOf[id]]++
		}
		ps.leftovers[k] = l
	}
	ps.sortLeftovers()
	return ps
}

// PlanAlloc plans an allocation of a free set, which it does not change, for a job that must not have parts of nodes.
func PlanAlloc(fs *FreeSet, at time.Time, a *cluster.Alloc, excluded *ExcludedParts) *PlannedStart {
	ps := newPlannedStart(fs, at, a, nil)
	ps.excluded = excluded
	return ps
}

// ComponentStart is the planned start of one component of a heterogeneous job.
type ComponentStart struct {
	Job   *cluster.Job
	Start *PlannedStart
}

// CombineStarts is the start of all components of a job as one.
func CombineStarts(job cluster.JobID, at time.Time, comps []ComponentStart) *PlannedStart {
	all := &PlannedStart{Job: job, At: at, Components: comps}
	var kept ExcludedParts
	for _, comp := range comps {
		ps := comp.Start
		all.Nodes = all.Nodes.Union(ps.Nodes)
		all.Names = append(all.Names, ps.Names...)
		all.leftovers = append(all.leftovers, ps.leftovers...)
		for _, l := range ps.leftovers {
			i := int32(l.index)
			kept.Exclude(i, ps.excluded.On(i), ps.excluded.GPUsOn(i))
		}
	}
	if kept.nodes != nil {
		all.excluded = &kept
	}
	all.sortLeftovers()
	return all
}

// sortLeftovers sorts by index.
func (ps *PlannedStart) sortLeftovers() {
	slices.SortFunc(ps.leftovers, func(a, b leftover) int { return a.index - b.index })
}

// leftOn is what will be left on a node of the planned start; nil on others.
func (ps *PlannedStart) leftOn(i int) *leftover {
	if !ps.Nodes.Has(i) {
		return nil
	}
	k := sort.Search(len(ps.leftovers), func(k int) bool { return ps.leftovers[k].index >= i })
	if k == len(ps.leftovers) || ps.leftovers[k].index != i {
		return nil
	}
	return &ps.leftovers[k]
}

// changed reports whether a node is not as it was when the start was planned.
func (ps *PlannedStart) changed(i int32) bool { return int(ps.free.lastChange[i]) > ps.seenChanges }

// leftIfUnchanged is what will be left on a node if it is as it was and the share is the same one; else nil.
func (ps *PlannedStart) leftIfUnchanged(i int, sh *cluster.Share) *leftover {
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
	if anyOf(a.Part != nil, b.Part != nil, a.MemMB != b.MemMB, !slices.Equal(a.Counted, b.Counted)) {
		return false
	}
	return a.CPUs.Equal(b.CPUs) && a.GPUs.Equal(b.GPUs)
}

// leftover is what a planned start leaves of a node, by amounts: which CPUs and GPUs these will be is open, except
// where a reservation has some of them. Only cores that are free as a whole count.
type leftover struct {
	index  int
	share  *cluster.Share // what the planned start takes there
	cpus   int
	cpuIDs cluster.IDSet // the CPUs, as planned
	gpus   []int         // by type, see model.types
	gpuIDs cluster.IDSet // the GPUs, as planned
	mem    cluster.MemMB
	// counted is what will be given out of the site's own resources.
	counted []cluster.GRES
	// limited is what jobs of partitions with a limit will have, the planned one among them.
	limited limitedCPUs
}

// limitNode takes from a node of the set what is more than the leftover, for a job that must not have some CPUs. The
// planned job must not have some GPUs.
func (left *leftover) limitNode(fs *FreeSet, free *NodeFree, barred, notPlanned cluster.IDSet) {
	ids := wholeUnits(&free.node.Inventory, free.cpus, free.unit)
	most := left.cpus
	if !barred.Empty() {
		most = min(most, left.cpuIDs.Minus(barred).Len())
	}
	free.cpus = lowestOf(ids, func(int) bool { return true }, most)
	var gpus cluster.IDSet
	for kind, n := range left.gpus {
		isOfKind := func(k int) bool { return fs.models[free.model].typeOf[k] == kind }
		others := lowestOf(free.gpus.Intersect(notPlanned), isOfKind, n)
		n -= others.Len()
		if !notPlanned.Empty() { // of what it may have it must find enough
			n = min(n, lowestOf(left.gpuIDs.Minus(notPlanned), isOfKind, n).Len())
		}
		gpus = gpus.Union(others).Union(lowestOf(free.gpus.Minus(notPlanned), isOfKind, n))
	}
	free.gpus = gpus
	free.mem = min(free.mem, left.mem)
	free.counted = cluster.MostCounted(free.counted, left.counted)
	free.limited = free.limited.most(left.limited)
	free.gpuParts = nil // shared GPUs are never left over
	free.recount()
}

// ReduceFor takes what a job has that will still run when the planned start comes.
func (ps *PlannedStart) ReduceFor(fs *FreeSet, a *cluster.Alloc) {
	for _, sh := range a.Shares {
		i, ok := fs.Index(sh.Node)
		if !ok {
			continue
		}
		left := ps.leftOn(i)
		if left == nil {
			continue
		}
		ps.reduced, left.gpus = true, slices.Clone(left.gpus)
		left.cpus -= sh.CPUs.Len()
		left.limited = left.limited.with(a.Partition, sh.CPUs)
		left.mem -= sh.MemMB
		left.counted = cluster.AddCounted(left.counted, sh.Counted, 1)
		if ps.excluded != nil { // the planned job will get other CPUs for those of its own that are gone
			gone := sh.CPUs.Minus(left.cpuIDs).Len()
			left.cpuIDs = left.cpuIDs.Minus(sh.CPUs)
			left.cpuIDs = left.cpuIDs.Minus(left.cpuIDs.Minus(ps.excluded.On(int32(i))).First(gone))
		}
		types := fs.models[fs.nodes[i].model].typeOf
		gpus := sh.Devices()
		for k := range gpus.All() {
			left.gpus[types[k]]--
		}
		if ps.excluded != nil {
			left.replaceGPUs(types, gpus, ps.excluded.GPUsOn(int32(i)))
		}
	}
}

// replaceGPUs notes that a job has some GPUs, so that the planned job gets others of their types, none of the excluded
// ones, for those that it would have had.
func (left *leftover) replaceGPUs(types []int, taken, excluded cluster.IDSet) {
	gone := taken.Minus(left.gpuIDs)
	left.gpuIDs = left.gpuIDs.Minus(taken)
	for id := range gone.All() {
		isOfType := func(k int) bool { return types[k] == types[id] }
		left.gpuIDs = left.gpuIDs.Minus(lowestOf(left.gpuIDs.Minus(excluded), isOfType, 1))
	}
}

// KeepsSame reports whether both keep the same.
func (ps *PlannedStart) KeepsSame(o *PlannedStart) bool {
	if ps.Job != o.Job || !ps.At.Equal(o.At) {
		return false
	}
	return slices.Equal(ps.Names, o.Names) && slices.EqualFunc(ps.leftovers, o.leftovers, sameAmounts)
}

// sameAmounts reports whether as much is left of one node.
func sameAmounts(x, y leftover) bool {
	a := [...]int{x.index, x.cpus, int(x.mem)}
	b := [...]int{y.index, y.cpus, int(y.mem)}
	sameCounts := slices.Equal(x.gpus, y.gpus) && slices.Equal(x.counted, y.counted)
	return a == b && sameCounts && slices.EqualFunc(x.limited, y.limited, partitionCPUs.equal)
}

// CompareLeftovers lists the nodes of which it leaves more than another one did, and all of which it leaves
// something else.
func (ps *PlannedStart) CompareLeftovers(was *PlannedStart) (more, other []int) {
	a := ps.leftovers
	b := was.leftovers
	for len(a) > 0 && len(b) > 0 {
		i := min(a[0].index, b[0].index)
		isNow := a[0].index == i
		wasToo := b[0].index == i
		switch {
		case !isNow:
			more = append(more, i)
			other = append(other, i)
		case !wasToo:
			other = append(other, i)
		case a[0].exceeds(&b[0]):
			more = append(more, i)
			other = append(other, i)
		case b[0].exceeds(&a[0]):
			other = append(other, i)
		}
		a = a[b2i(isNow):]
		b = b[b2i(wasToo):]
	}
	for k := range a {
		other = append(other, a[k].index)
	}
	for k := range b {
		more = append(more, b[k].index)
		other = append(other, b[k].index)
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
	return !slices.Equal(left.counted, cluster.MostCounted(left.counted, was.counted))
}

// NodeIndexes are those of its nodes.
func (ps *PlannedStart) NodeIndexes() []int {
	out := make([]int, len(ps.leftovers))
	for k := range ps.leftovers {
		out[k] = ps.leftovers[k].index
	}
	return out
}
