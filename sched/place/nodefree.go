package place

import (
	"slices"

	"dev.muster/cluster"
)

// NodeFree is what is free on one node. The counts are derived from the sets, see recount.
type NodeFree struct {
	node        *cluster.Node
	cpus        cluster.IDSet
	gpus        cluster.IDSet
	gpuParts    []cluster.GPUPart // of GPUs that are shared, what is given out
	mem         cluster.MemMB
	counted     []cluster.GRES // what is given out of the site's own resources
	model       int            // index in FreeSet.models
	class       int32          // number of its node class; -1: not known since it changed, see classOf
	cpuCount    int            // how many CPUs are free
	gpuCount    int            // how many GPUs are free
	wholeCPUs   int            // CPUs of cores (or sockets, see unit) that are free as a whole
	allCPUs     int            // wholeCPUs of the node without jobs
	jobs        int            // how many run there
	onlyUser    int64          // the UID plus one whose jobs alone it takes (--exclusive=user); 0: it takes all
	startedUser int64          // the UID plus one whose jobs have started there in this cycle; -1: of several users
	busy        bool           // some job runs there
	overlap     *cpuOverlap    // nil where a CPU has one job at most
	troubled    bool           // it had recent trouble, see cluster.Node.Shaky
	unit        int            // how many CPUs are given at once: a core's or a socket's
	limited     limitedCPUs
}

// Name is the node's.
func (free *NodeFree) Name() cluster.NodeName { return free.node.Name }

// recount derives the counts.
func (free *NodeFree) recount() {
	free.cpuCount, free.gpuCount = free.cpus.Len(), free.gpus.Len()
	free.wholeCPUs = freeInUnits(&free.node.Inventory, free.cpus, free.unit)
	free.busy = free.jobs > 0
}

// sameAs reports whether the same is free.
func (free *NodeFree) sameAs(o *NodeFree) bool {
	if anyOf(free.mem != o.mem, free.jobs != o.jobs, free.onlyUser != o.onlyUser) {
		return false
	}
	if !slices.Equal(free.counted, o.counted) {
		return false
	}
	sameLimited := slices.EqualFunc(free.limited, o.limited, partitionCPUs.equal)
	return free.cpus.Equal(o.cpus) && free.gpus.Equal(o.gpus) && slices.Equal(free.gpuParts, o.gpuParts) && sameLimited
}

// LimitTo leaves no more free than another state of the same node has.
func (free *NodeFree) LimitTo(o *NodeFree) {
	free.cpus, free.gpus = free.cpus.Intersect(o.cpus), free.gpus.Intersect(o.gpus)
	free.mem = min(free.mem, o.mem)
	free.counted = cluster.MostCounted(free.counted, o.counted)
	free.jobs = max(free.jobs, o.jobs)
	free.limited = free.limited.most(o.limited)
	free.recount()
}

// model is what nodes of the same hardware have in common.
type model struct {
	inventory  *cluster.Inventory // of the first of them
	cpus       cluster.IDSet
	gpus       cluster.IDSet
	wholeCPUs  int
	unit       int
	emptyClass int32 // class of a node without jobs
	limited    limitedCPUs

	types  []string // of GPUs
	typeOf []int    // by device number: the index in types
}

// sameHardware reports whether any job that may use an empty node of the one kind may use one of the other.
func sameHardware(a, b *cluster.Inventory) bool {
	if a == b {
		return true
	}
	numbers := func(i *cluster.Inventory) [8]int64 {
		return [...]int64{
			int64(i.CPUs), int64(i.Sockets), int64(i.CoresPerSocket), int64(i.ThreadsPerCore),
			int64(i.MemMB), int64(i.SpecMemMB), i.TmpMB, int64(b2i(i.External)),
		}
	}
	return numbers(a) == numbers(b) &&
		a.SpecCPUs.Equal(b.SpecCPUs) &&
		slices.Equal(a.Features, b.Features) &&
		slices.Equal(a.Shared, b.Shared) &&
		slices.EqualFunc(a.GPUs, b.GPUs, sameGPU)
}

func sameGPU(x, y cluster.GPU) bool {
	if x.Type != y.Type || x.Missing != y.Missing {
		return false
	}
	return x.Cores.Equal(y.Cores) && slices.Equal(x.Links, y.Links)
}

// emptyNode is a node without jobs.
func (m *model) emptyNode(n *cluster.Node, kind int) NodeFree {
	return NodeFree{
		node: n, model: kind, class: m.emptyClass, unit: m.unit,
		cpus: m.cpus, cpuCount: m.cpus.Len(), wholeCPUs: m.wholeCPUs, allCPUs: m.wholeCPUs,
		gpus: m.gpus, gpuCount: m.gpus.Len(),
		mem: m.inventory.MemMB - m.inventory.SpecMemMB, limited: m.limited,
	}
}

// loadedNode is a node with the jobs of its load.
func (m *model) loadedNode(n *cluster.Node, kind int, l *cluster.Load, s *cluster.Snapshot) NodeFree {
	free := m.emptyNode(n, kind)
	if len(l.Jobs) > 0 {
		free.subtractLoad(l, s)
	}
	return free
}

// subtractLoad takes from an empty node what its jobs have.
func (free *NodeFree) subtractLoad(l *cluster.Load, s *cluster.Snapshot) {
	free.jobs = len(l.Jobs)
	free.cpus, free.gpus = free.cpus.Minus(l.CPUs), free.gpus.Minus(l.GPUs)
	free.mem -= l.MemMB
	free.counted = l.Counted
	free.onlyUser = l.Closed
	free.gpuParts = l.Parts
	free.limited = free.limited.of(l, s)
	free.recount()
}

// TakeShare gives a share of the node to a job of a partition; over: the job lets others onto its CPUs.
func (free *NodeFree) TakeShare(sh cluster.Share, partition string, over bool) {
	free.takeCPUs(sh.CPUs, over)
	free.limited = free.limited.with(partition, sh.CPUs)
	free.gpus = free.gpus.Minus(sh.GPUs)
	free.mem -= sh.MemMB
	free.counted = cluster.AddCounted(free.counted, sh.Counted, 1)
	free.jobs++
	if sh.Part != nil {
		free.gpuParts = cluster.AddPart(free.gpuParts, *sh.Part)
		free.gpus = free.gpus.Minus(cluster.NewIDSet(sh.Part.GPU))
	}
	free.recount()
}

// giveBackShare returns a share to the node, without its CPUs if these are free already.
func (free *NodeFree) giveBackShare(sh cluster.Share, noCPUs bool) {
	free.gpus = free.gpus.Union(sh.GPUs.Intersect(free.node.Inventory.Devices()))
	free.mem += sh.MemMB
	free.counted = cluster.AddCounted(free.counted, sh.Counted, -1)
	free.jobs--
	if !noCPUs {
		free.giveBackCPUs(sh.CPUs)
	}
	if p := sh.Part; p != nil {
		free.gpuParts = cluster.AddPart(free.gpuParts, cluster.GPUPart{Name: p.Name, GPU: p.GPU, Count: -p.Count})
		if !slices.ContainsFunc(free.gpuParts, func(o cluster.GPUPart) bool { return o.GPU == p.GPU }) {
			free.gpus = free.gpus.Union(cluster.NewIDSet(p.GPU).Intersect(free.node.Inventory.Devices()))
		}
	}
	free.recount()
	if free.jobs == 0 {
		free.onlyUser = 0
		free.startedUser = 0
	}
}

// lowestOf is the n lowest members that count.
func lowestOf(set cluster.IDSet, counts func(int) bool, n int) cluster.IDSet {
	var ids []int
	for k := range set.All() {
		if len(ids) >= n {
			break
		}
		if counts(k) {
			ids = append(ids, k)
		}
	}
	return cluster.NewIDSet(ids...)
}

// GiveBackShares returns the node's share of an allocation.
func (free *NodeFree) GiveBackShares(shares []cluster.Share, noCPUs bool) {
	for k := range shares {
		if shares[k].Node == free.node.Name {
			free.giveBackShare(shares[k], noCPUs)
		}
	}
}

// cpuOverlap is how often a node's CPUs are given out, where that may be more than once.
type cpuOverlap struct {
	cluster.CPUUse
	all     cluster.IDSet // that jobs may have
	maxJobs int           // a CPU with fewer jobs is free
}

// countOverlap has a node count how often its CPUs are given out; those with fewer jobs than some number are free.
func (free *NodeFree) countOverlap(use cluster.CPUUse, all cluster.IDSet, jobs int) {
	free.overlap = &cpuOverlap{use, all, jobs}
	free.cpus = all.Minus(use.Taken(jobs))
	free.recount()
}

// takeCPUs takes CPUs for a job from those that are free; over says that it lets others beside it.
func (free *NodeFree) takeCPUs(cpus cluster.IDSet, over bool) {
	if free.overlap == nil {
		free.cpus = free.cpus.Minus(cpus)
		return
	}
	o := *free.overlap
	o.Give(cpus, over)
	free.overlap, free.cpus = &o, o.all.Minus(o.Taken(o.maxJobs))
}

// giveBackCPUs is the reverse.
func (free *NodeFree) giveBackCPUs(cpus cluster.IDSet) {
	free.limited = free.limited.without(cpus)
	if free.overlap == nil {
		free.cpus = free.cpus.Union(cpus)
		return
	}
	o := *free.overlap
	o.TakeBack(cpus)
	free.overlap, free.cpus = &o, o.all.Minus(o.Taken(o.maxJobs))
}
