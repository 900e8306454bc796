package sched

import (
	"slices"

	"dev.muster/cluster"
)

// nodeFree is what is free on one node. The counts are derived from the sets, see recount.
type nodeFree struct {
	node        *cluster.Node
	cpus        cluster.IDSet
	gpus        cluster.IDSet
	gpuParts    []cluster.GPUPart // of GPUs that are shared, what is given out
	mem         cluster.MemMB
	model       int         // index in freeSet.models
	class       int32       // number of its node class; -1: not known since it changed, see classOf
	cpuCount    int         // how many CPUs are free
	gpuCount    int         // how many GPUs are free
	wholeCPUs   int         // CPUs of cores (or sockets, see unit) that are free as a whole
	allCPUs     int         // wholeCPUs of the node without jobs
	jobs        int         // how many run there
	onlyUser    int64       // the UID plus one whose jobs alone it takes (--exclusive=user); 0: it takes all
	startedUser int64       // the UID plus one whose jobs have started there in this cycle; -1: of several users
	busy        bool        // some job runs there
	overlap     *cpuOverlap // nil where a CPU has one job at most
	troubled    bool        // it had trouble of late, see cluster.Node.Shaky
	unit        int         // how many CPUs are given at once: a core's or a socket's
}

// recount derives the counts.
func (free *nodeFree) recount() {
	free.cpuCount, free.gpuCount = free.cpus.Len(), free.gpus.Len()
	free.wholeCPUs = freeInUnits(&free.node.Inventory, free.cpus, free.unit)
	free.busy = free.jobs > 0
}

// limitTo leaves no more free than another state of the same node has.
func (free *nodeFree) limitTo(o *nodeFree) {
	free.cpus, free.gpus = free.cpus.Intersect(o.cpus), free.gpus.Intersect(o.gpus)
	free.mem, free.jobs = min(free.mem, o.mem), max(free.jobs, o.jobs)
	free.recount()
}

// freeSet is what is free on every usable node, in the order of the configuration. Everything else of this package
// names a node by its index here. It keeps a list of its changes, so that what was derived from it can catch up.
type freeSet struct {
	nodes          []nodeFree
	rankOf         map[cluster.NodeName]int32 // position of each node of the cluster in the configuration, usable or not
	indexOf        []int32                    // by rank; -1: the node is not usable
	all            []int
	partitionNodes map[*cluster.Partition][]int // indexes of each partition's nodes, rising; made when first asked for
	models         []model
	wholeSockets   bool // CPUs are given as whole sockets
	overlaps       bool // a CPU may have several jobs
	// wholePlans: planned starts leave nothing of their nodes to others (plan_whole_nodes).
	wholePlans      bool
	hasOneUserNodes bool // there are nodes that are for one user's jobs
	hasGPUs         bool // there are nodes with GPUs
	topology        *topology
	classes         *nodeClasses
	indexes         []*classIndex // those that were asked for
	changes         []nodeChange  // since the set was made, oldest first
	lastChange      []int32       // by index: the number of the node's last change plus one
	scratch         []int32       // by index, all zero: see allotTo
	ranks           []int32       // by index: the rank
}

// nodeSet is a set of nodes of a freeSet; nil is empty.
type nodeSet []bool

func (s nodeSet) has(i int) bool { return s != nil && s[i] }

// model is what nodes of the same hardware have in common.
type model struct {
	inventory  *cluster.Inventory // of the first of them
	cpus       cluster.IDSet
	gpus       cluster.IDSet
	wholeCPUs  int
	unit       int
	emptyClass int32 // class of a node without jobs

	types  []string // of GPUs
	typeOf []int    // by device number: the index in types
}

// sameHardware reports whether any job that may use an empty node of the one kind may use one of the other.
func sameHardware(a, b *cluster.Inventory) bool {
	if a == b {
		return true
	}
	numbers := func(i *cluster.Inventory) [7]int64 {
		return [...]int64{
			int64(i.CPUs), int64(i.Sockets), int64(i.CoresPerSocket), int64(i.ThreadsPerCore),
			int64(i.MemMB), int64(i.SpecMemMB), i.TmpMB,
		}
	}
	return numbers(a) == numbers(b) && a.SpecCPUs.Equal(b.SpecCPUs) &&
		slices.Equal(a.Features, b.Features) && slices.Equal(a.Shared, b.Shared) && slices.EqualFunc(a.GPUs, b.GPUs, sameGPU)
}

func sameGPU(x, y cluster.GPU) bool {
	return x.Type == y.Type && x.Missing == y.Missing && x.Cores.Equal(y.Cores) && slices.Equal(x.Links, y.Links)
}

// emptyNode is a node without jobs.
func (m *model) emptyNode(n *cluster.Node, kind int) nodeFree {
	return nodeFree{
		node: n, model: kind, class: m.emptyClass, unit: m.unit,
		cpus: m.cpus, cpuCount: m.cpus.Len(), wholeCPUs: m.wholeCPUs, allCPUs: m.wholeCPUs,
		gpus: m.gpus, gpuCount: m.gpus.Len(),
		mem: m.inventory.MemMB - m.inventory.SpecMemMB,
	}
}

// loadedNode is a node with the jobs of its load.
func (m *model) loadedNode(n *cluster.Node, kind int, l *cluster.Load) nodeFree {
	free := m.emptyNode(n, kind)
	if len(l.Jobs) > 0 {
		free.subtractLoad(l)
	}
	return free
}

// subtractLoad takes from an empty node what its jobs have.
func (free *nodeFree) subtractLoad(l *cluster.Load) {
	free.jobs = len(l.Jobs)
	free.cpus, free.gpus = free.cpus.Minus(l.CPUs), free.gpus.Minus(l.GPUs)
	free.mem -= l.MemMB
	free.onlyUser, free.gpuParts = l.Closed, l.Parts
	free.recount()
}

// withoutJobs is a copy with no jobs on the nodes.
func (fs *freeSet) withoutJobs() *freeSet {
	out := fs.clone()
	for i := range out.nodes {
		free := &out.nodes[i]
		*free = fs.models[free.model].emptyNode(free.node, free.model)
	}
	return out
}

// partitionMembers lists a partition's nodes, rising.
func (fs *freeSet) partitionMembers(part *cluster.Partition) []int {
	if part.All {
		return fs.all
	}
	list, ok := fs.partitionNodes[part]
	if !ok {
		for _, name := range part.Nodes {
			if i, ok := fs.index(name); ok {
				list = append(list, i)
			}
		}
		slices.Sort(list)
		fs.partitionNodes[part] = list
	}
	return list
}

// clone is a copy that changes on its own. Indexes and the list of changes start anew.
func (fs *freeSet) clone() *freeSet {
	own := *fs
	own.nodes, own.indexes, own.changes, own.lastChange, own.scratch = slices.Clone(fs.nodes), nil, nil, nil, nil
	return &own
}

func (fs *freeSet) takeAlloc(a *cluster.Alloc) {
	for _, sh := range a.Shares {
		if i, ok := fs.index(sh.Node); ok {
			fs.nodes[i].takeShare(sh, a.Over > 0)
			fs.noteChange(i, false)
		}
	}
}

// takeShare gives a share of the node to a job; over: the job lets others onto its CPUs.
func (free *nodeFree) takeShare(sh cluster.Share, over bool) {
	free.takeCPUs(sh.CPUs, over)
	free.gpus, free.mem, free.jobs = free.gpus.Minus(sh.GPUs), free.mem-sh.MemMB, free.jobs+1
	if sh.Part != nil {
		free.gpuParts = cluster.AddPart(free.gpuParts, *sh.Part)
		free.gpus = free.gpus.Minus(cluster.NewIDSet(sh.Part.GPU))
	}
	free.recount()
}

// startJob takes what a job gets, and remembers whose job it is.
func (fs *freeSet) startJob(a *cluster.Alloc, spec *cluster.JobSpec) {
	fs.takeAlloc(a)
	who := int64(spec.UID) + 1
	for _, sh := range a.Shares {
		i, _ := fs.index(sh.Node)
		free := &fs.nodes[i]
		if free.startedUser != 0 && free.startedUser != who {
			who = -1
		}
		if free.startedUser = who; spec.Sharing == cluster.ShareUser {
			free.onlyUser, fs.hasOneUserNodes = who, true
			fs.noteChange(i, false)
		}
	}
}

// nodeChange is one change of a node.
type nodeChange struct {
	index   int32
	more    bool
	planned uint64 // mask of planned starts beside which the node will have something else left; 0: what is free has changed
}

// noteChange records that a node has changed, and may have more free than before.
func (fs *freeSet) noteChange(i int, more bool) {
	fs.nodes[i].class = -1 // not known until it is asked for
	if fs.lastChange == nil {
		fs.lastChange = make([]int32, len(fs.nodes))
	}
	if last := fs.lastChange[i]; last > 0 && fs.changes[last-1].more {
		more = true // freshChange shows only the last one, which must not hide the gain
	}
	fs.changes = append(fs.changes, nodeChange{index: int32(i), more: more})
	fs.lastChange[i] = int32(len(fs.changes))
}

// replaceStart records that planned start k is another one now, beside which these nodes will have something else left.
func (fs *freeSet) replaceStart(k int, now *plannedStart, places []int) {
	for _, ci := range fs.indexes {
		if ci.mask>>k&1 != 0 {
			ci.planned = slices.Clone(ci.planned)
			ci.planned[k] = now
		}
	}
	for _, i := range places {
		fs.changes = append(fs.changes, nodeChange{int32(i), true, 1 << k})
	}
}

// freshChange is change n, and whether it matters to one who keeps off the planned starts of the mask: of a node that
// has changed several times only the last change does.
func (fs *freeSet) freshChange(n int, mask uint64) (nodeChange, bool) {
	ch := fs.changes[n]
	if ch.planned != 0 {
		return ch, ch.planned&mask != 0
	}
	return ch, int(fs.lastChange[ch.index]) == n+1
}

// nodesOf is the set of the allocation's nodes.
func (fs *freeSet) nodesOf(a *cluster.Alloc) nodeSet {
	set := make(nodeSet, len(fs.nodes))
	for _, sh := range a.Shares {
		if i, ok := fs.index(sh.Node); ok {
			set[i] = true
		}
	}
	return set
}

// giveBack returns the shares of a release.
func (fs *freeSet) giveBack(r release) {
	for _, sh := range r.shares {
		if i, ok := fs.index(sh.Node); ok {
			fs.nodes[i].giveBackShare(sh, r.noCPUs)
			fs.noteChange(i, true)
		}
	}
}

// giveBackShare returns a share to the node, without its CPUs if these are free already.
func (free *nodeFree) giveBackShare(sh cluster.Share, noCPUs bool) {
	free.gpus = free.gpus.Union(sh.GPUs.Intersect(free.node.Inventory.Devices()))
	free.mem += sh.MemMB
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
		free.onlyUser, free.startedUser = 0, 0
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
