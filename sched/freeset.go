package sched

import (
	"slices"
	"sort"
	"time"

	"dev.muster/cluster"
)

// nodeFree is what is free on one node.
type nodeFree struct {
	node        *cluster.Node
	cpus        cluster.IDSet
	gpus        cluster.IDSet
	gpuParts    []cluster.GPUPart // given out
	mem         cluster.MemMB
	model       int         // number of its make in the pool
	class       int32       // number of its state, see kindOf
	cpuCount    int         // how many CPUs are free
	gpuCount    int         // how many GPUs are free
	wholeCPUs   int         // CPUs of cores that are free as a whole
	allCPUs     int         // that, of an empty node
	jobs        int         // how many are there
	onlyUser    int64       // one more than the user for whose jobs alone it is; 0: for all
	startedUser int64       // one more than the user whose jobs start there in this cycle; -1: several
	busy        bool        // some job is there
	overlap     *cpuOverlap // nil where a CPU has one job at most
	troubled    bool        // it had trouble of late
	unit        int         // how many CPUs are given at once: a core's or a socket's
}

// recount derives the counts.
func (free *nodeFree) recount() {
	free.cpuCount, free.gpuCount, free.wholeCPUs, free.busy = free.cpus.Len(), free.gpus.Len(), freeInUnits(&free.node.Inventory, free.cpus, free.unit), free.jobs > 0
}

// limitTo takes away what another state of the node does not have free.
func (free *nodeFree) limitTo(o *nodeFree) {
	free.cpus, free.gpus, free.mem, free.jobs = free.cpus.Intersect(o.cpus), free.gpus.Intersect(o.gpus), min(free.mem, o.mem), max(free.jobs, o.jobs)
	free.recount()
}

// freeSet is what is free on every node that counts, in node order.
type freeSet struct {
	nodes          []nodeFree
	rankOf         map[cluster.NodeName]int32 // of every node of the cluster, of service or not
	indexOf        []int32                    // by rank; -1: it is not in the pool
	all            []int
	partitionNodes map[*cluster.Partition][]int // places of each partition's nodes, in node order
	models         []model
	wholeSockets   bool // CPUs are given as whole sockets
	overlaps       bool // a CPU may have several jobs
	// wholePlans says that planned starts leave nothing of their nodes.
	wholePlans      bool
	hasOneUserNodes bool // there are nodes that are for one user's jobs
	hasGPUs         bool // there are nodes with GPUs
	topology        *topology
	classes         *nodeClasses
	indexes         []*classIndex // that were asked for
	changes         []nodeChange  // of spaces since the pool was made, in turn
	lastChange      []int32       // by place, the number of its last change plus one
	scratch         []int32       // by place, scratch of allot
	ranks           []int32       // by place, its rank
}

// nodeSet is a set of places in a pool; nil is empty.
type nodeSet []bool

func (s nodeSet) has(i int) bool { return s != nil && s[i] }

// model is what nodes of one make have in common.
type model struct {
	inventory  *cluster.Inventory // of the first of them
	cpus       cluster.IDSet
	gpus       cluster.IDSet
	wholeCPUs  int
	unit       int
	emptyClass int32 // of an empty node

	types  []string // of GPUs
	typeOf []int    // by number of a GPU, that of its type
}

// sameHardware reports whether a job that may use an empty node of the one make may use one of the other.
func sameHardware(a, b *cluster.Inventory) bool {
	return a == b || a.CPUs == b.CPUs && a.MemMB == b.MemMB && a.TmpMB == b.TmpMB && a.Sockets == b.Sockets &&
		a.CoresPerSocket == b.CoresPerSocket && a.ThreadsPerCore == b.ThreadsPerCore && slices.Equal(a.Features, b.Features) &&
		a.SpecMemMB == b.SpecMemMB && slices.Equal(a.Shared, b.Shared) && a.SpecCPUs.Equal(b.SpecCPUs) &&
		slices.EqualFunc(a.GPUs, b.GPUs, func(x, y cluster.GPU) bool {
			return x.Type == y.Type && x.Missing == y.Missing && x.Cores.Equal(y.Cores) && slices.Equal(x.Links, y.Links)
		})
}

// emptyNode is the space of a node without jobs.
func (m *model) emptyNode(n *cluster.Node, kind int) nodeFree {
	return nodeFree{node: n, model: kind, class: m.emptyClass, mem: m.inventory.MemMB - m.inventory.SpecMemMB, cpus: m.cpus, gpus: m.gpus,
		unit: m.unit, cpuCount: m.cpus.Len(), allCPUs: m.wholeCPUs, gpuCount: m.gpus.Len(), wholeCPUs: m.wholeCPUs}
}

// loadedNode is the space of a node with jobs.
func (m *model) loadedNode(n *cluster.Node, kind int, l *cluster.Load) nodeFree {
	free := m.emptyNode(n, kind)
	if len(l.Jobs) > 0 {
		free.subtractLoad(l)
	}
	return free
}

// subtractLoad takes what jobs have of an empty node.
func (free *nodeFree) subtractLoad(l *cluster.Load) {
	free.jobs = len(l.Jobs)
	free.cpus, free.gpus, free.mem, free.onlyUser, free.gpuParts = free.cpus.Minus(l.CPUs), free.gpus.Minus(l.GPUs), free.mem-l.MemMB, l.Closed, l.Parts
	free.recount()
}

// withoutJobs is the same nodes without any job.
func (fs *freeSet) withoutJobs() *freeSet {
	out := fs.clone()
	for i := range out.nodes {
		free := &out.nodes[i]
		*free = fs.models[free.model].emptyNode(free.node, free.model)
	}
	return out
}

// partitionMembers lists the places of a partition's nodes.
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

// clone is a pool of the same nodes that changes by itself; what was derived from their states stays behind.
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

// takeShare gives a share of the node away, to a job that may let others beside it.
func (free *nodeFree) takeShare(sh cluster.Share, over bool) {
	free.takeCPUs(sh.CPUs, over)
	free.gpus, free.mem, free.jobs = free.gpus.Minus(sh.GPUs), free.mem-sh.MemMB, free.jobs+1
	if sh.Part != nil {
		free.gpuParts, free.gpus = cluster.AddPart(free.gpuParts, *sh.Part), free.gpus.Minus(cluster.NewIDSet(sh.Part.GPU))
	}
	free.recount()
}

// startJob takes what a job gets, and notes whose it is.
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

// nodeChange tells that a node has more free than before, or less.
type nodeChange struct {
	index   int32
	more    bool
	planned uint64 // not 0: what it will have left beside these planned starts is something else, not what is free
}

// noteChange tells that a node has changed.
func (fs *freeSet) noteChange(i int, more bool) {
	fs.nodes[i].class = -1 // till it is asked for
	if fs.lastChange == nil {
		fs.lastChange = make([]int32, len(fs.nodes))
	}
	if last := fs.lastChange[i]; last > 0 && fs.changes[last-1].more {
		more = true // who sees only the last change must look
	}
	fs.changes = append(fs.changes, nodeChange{index: int32(i), more: more})
	fs.lastChange[i] = int32(len(fs.changes))
}

// replaceStart tells that one of the planned starts is another now, of which these nodes will have something else left.
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

// freshChange is one of the changes, if who keeps off the planned starts of the mask has to look at its node: a node that has changed
// more often is looked at for the last time alone.
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

// giveBack returns shares to the pool.
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
	free.gpus, free.mem, free.jobs = free.gpus.Union(sh.GPUs.Intersect(free.node.Inventory.Devices())), free.mem+sh.MemMB, free.jobs-1
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

// plannedStart is the planned start of a job at the head of the queue.
type plannedStart struct {
	job   cluster.JobID
	at    time.Time
	nodes nodeSet // where it will run
	names []cluster.NodeName
	alloc *cluster.Alloc // as it would be then
	// rests is what those nodes will have left beside it, for jobs that will still run then; by place, rising.
	leftovers []leftover
	reduced   bool // less of it than when it was planned
	// barred is CPUs that were kept from it: others may have them meanwhile and then.
	excluded    *excludedCPUs
	components  []*component // of a heterogeneous job, whose start this is
	free        *freeSet     // as it will be then
	seenChanges int          // changes of it that were known
}

// newPlannedStart keeps an allocation of a pool, which stays as it is. Where nothing has changed since an earlier one for the
// same time, if there is one, that tells what is left.
func newPlannedStart(fs *freeSet, at time.Time, a *cluster.Alloc, last *plannedStart) *plannedStart {
	n := len(a.Shares)
	ps := &plannedStart{at: at, nodes: make(nodeSet, len(fs.nodes)), alloc: a, names: make([]cluster.NodeName, n), leftovers: make([]leftover, n), free: fs, seenChanges: len(fs.changes)}
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
		l := leftover{index: i, share: sh, cpus: free.wholeCPUs, cpuIDs: free.cpus, mem: free.mem, gpus: make([]int, len(m.types))}
		for id := range free.gpus.All() {
			l.gpus[m.typeOf[id]]++
		}
		ps.leftovers[k] = l
	}
	ps.sortLeftovers()
	return ps
}

// sortLeftovers puts what is left into the order of the nodes' places.
func (ps *plannedStart) sortLeftovers() {
	slices.SortFunc(ps.leftovers, func(a, b leftover) int { return a.index - b.index })
}

// leftOn is what will be left on a node of the reservation, nil on others.
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

// leftIfUnchanged is what will be left on a node beside the same share, if the node is as it was.
func (ps *plannedStart) leftIfUnchanged(i int, sh *cluster.Share) *leftover {
	if ps == nil || ps.changed(int32(i)) {
		return nil
	}
	left := ps.leftOn(i)
	if left == nil || left.share.MemMB != sh.MemMB || left.share.Part != nil || sh.Part != nil || !left.share.CPUs.Equal(sh.CPUs) || !left.share.GPUs.Equal(sh.GPUs) {
		return nil
	}
	return left
}

// leftover is a part of a node, by amounts: which CPUs and GPUs it will be is open, but for those that are kept for jobs of
// reservations. Of CPUs those of cores that are free as a whole count.
type leftover struct {
	index  int
	share  *cluster.Share // what the planned start takes there
	cpus   int
	cpuIDs cluster.IDSet // the CPUs, as planned
	gpus   []int         // by type, see model
	mem    cluster.MemMB
}

// limitNode takes from a space of the pool what is more than the rest, for a job that some CPUs are kept from.
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
	free.gpus, free.mem, free.gpuParts = gpus, min(free.mem, left.mem), nil // whole GPUs alone are spared
	free.recount()
}

// lowestOf is the n lowest of the set that count.
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

// reduceFor notes that a job with these shares still runs when the reserved start comes.
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
		if ps.excluded != nil { // for those of its own that are gone it will have others
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
