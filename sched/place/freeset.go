package place

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// FreeSet is what is free on every usable node, in the order of the configuration. Everything else of this package
// names a node by its index here. It keeps a list of its changes, so that what was derived from it can catch up.
type FreeSet struct {
	nodes          []NodeFree
	rankOf         map[cluster.NodeName]int32 // place of each node in the configuration, usable or not
	indexOf        []int32                    // by rank; -1: the node is not usable
	all            []int
	partitionNodes map[*cluster.Partition][]int // indexes of each partition's nodes, rising; made when first asked for
	models         []model
	wholeSockets   bool        // CPUs are given as whole sockets
	Overlaps       bool        // a CPU may have several jobs
	limited        limitedCPUs // of a node without jobs
	// wholePlans: planned starts leave nothing of their nodes to others (plan_whole_nodes).
	wholePlans      bool
	HasOneUserNodes bool // there are nodes that are for one user's jobs
	hasGPUs         bool // there are nodes with GPUs
	topology        *topology
	classes         *nodeClasses
	indexes         []*classIndex // those that were asked for
	changes         []nodeChange  // since the set was made, oldest first
	lastChange      []int32       // by index: the number of the node's last change plus one
	scratch         []int32       // by index, all zero: see allotTo
	ranks           []int32       // by index: the rank
}

// WithoutJobs is a copy with no jobs on the nodes.
func (fs *FreeSet) WithoutJobs() *FreeSet {
	out := fs.Clone()
	for i := range out.nodes {
		free := &out.nodes[i]
		*free = fs.models[free.model].emptyNode(free.node, free.model)
	}
	return out
}

// Members lists a partition's nodes, rising.
func (fs *FreeSet) Members(part *cluster.Partition) []int {
	if part.All {
		return fs.all
	}
	list, ok := fs.partitionNodes[part]
	if !ok {
		for _, name := range part.Nodes {
			if i, ok := fs.Index(name); ok {
				list = append(list, i)
			}
		}
		slices.Sort(list)
		fs.partitionNodes[part] = list
	}
	return list
}

// Clone is a copy that changes on its own. Indexes and the list of changes start again.
func (fs *FreeSet) Clone() *FreeSet {
	own := *fs
	own.nodes = slices.Clone(fs.nodes)
	own.indexes = nil
	own.changes = nil
	own.lastChange = nil
	own.scratch = nil
	return &own
}

func (fs *FreeSet) takeAlloc(a *cluster.Alloc) {
	for _, sh := range a.Shares {
		if i, ok := fs.Index(sh.Node); ok {
			fs.nodes[i].TakeShare(sh, a.Partition, a.Over > 0)
			fs.noteChange(i, false)
		}
	}
}

// StartJob takes what a job gets, and remembers whose job it is.
func (fs *FreeSet) StartJob(a *cluster.Alloc, spec *cluster.JobSpec) {
	fs.takeAlloc(a)
	who := int64(spec.UID) + 1
	for _, sh := range a.Shares {
		i, _ := fs.Index(sh.Node)
		free := &fs.nodes[i]
		if free.startedUser != 0 && free.startedUser != who {
			who = -1
		}
		free.startedUser = who
		if spec.Sharing == cluster.ShareUser {
			free.onlyUser = who
			fs.HasOneUserNodes = true
			fs.noteChange(i, false)
		}
	}
}

// nodeChange is one change of a node.
type nodeChange struct {
	index   int32
	more    bool
	planned uint64 // mask of starts that leave something else of it; 0: what is free has changed
}

// noteChange records that a node has changed, and may have more free than before.
func (fs *FreeSet) noteChange(i int, more bool) {
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

// ReplaceStart records that planned start k is another one now, beside which these nodes will have something else left.
func (fs *FreeSet) ReplaceStart(k int, now *PlannedStart, places []int) {
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
func (fs *FreeSet) freshChange(n int, mask uint64) (nodeChange, bool) {
	ch := fs.changes[n]
	if ch.planned != 0 {
		return ch, ch.planned&mask != 0
	}
	return ch, int(fs.lastChange[ch.index]) == n+1
}

// NodesOf is the set of the allocation's nodes.
func (fs *FreeSet) NodesOf(a *cluster.Alloc) NodeSet {
	set := make(NodeSet, len(fs.nodes))
	for _, sh := range a.Shares {
		if i, ok := fs.Index(sh.Node); ok {
			set[i] = true
		}
	}
	return set
}

// GiveBack returns the shares of a release.
func (fs *FreeSet) GiveBack(r Release) {
	for _, sh := range r.Shares {
		if i, ok := fs.Index(sh.Node); ok {
			fs.nodes[i].giveBackShare(sh, r.NoCPUs)
			fs.noteChange(i, true)
		}
	}
}

// Release is a moment at which an allocation becomes free.
type Release struct {
	At     time.Time
	Shares []cluster.Share
	NoCPUs bool // the job is suspended: its CPUs are free already
}

// replaceNode sets what is free on a node; it reports whether that has changed.
func (fs *FreeSet) replaceNode(i int, free NodeFree) bool {
	was := &fs.nodes[i]
	if was.sameAs(&free) {
		return false
	}
	*was = free
	fs.noteChange(i, true)
	return true
}

// MarkNodes puts nodes into a set or takes them out.
func (fs *FreeSet) MarkNodes(set NodeSet, names []cluster.NodeName, in bool) {
	for _, n := range names {
		if i, ok := fs.Index(n); ok {
			set[i] = in
		}
	}
}

// TroubleOver reports whether trouble that some node had is long enough ago by now.
func (fs *FreeSet) TroubleOver(now time.Time) bool {
	return fs.topology.troubled &&
		slices.ContainsFunc(fs.nodes, func(free NodeFree) bool { return free.troubled && !free.node.Shaky(now) })
}

// LowestCores is so many whole cores of a node, the lowest that others do not have; with firsts the lowest that jobs
// may have at all. False if they are not free.
func (fs *FreeSet) LowestCores(i, cores int, taken Exclusion, firsts bool) (cluster.IDSet, bool) {
	all := &fs.nodes[i]
	free := taken.Parts.without(int32(i), all)
	t := max(all.node.Inventory.ThreadsPerCore, 1)
	of := free
	if firsts {
		of = all
	}
	set := wholeUnits(&all.node.Inventory, of.cpus, t).First(cores * t)
	return set, set.Len() == cores*t && free.cpus.Contains(set)
}

// WholeCores returns the CPUs of the cores of a node that nothing taken has a part of.
func (fs *FreeSet) WholeCores(i int, taken Exclusion) cluster.IDSet {
	free := taken.Parts.without(int32(i), &fs.nodes[i])
	inv := &free.node.Inventory
	return wholeUnits(inv, free.cpus, max(inv.ThreadsPerCore, 1))
}

// NoNodes is an empty set to which nodes can be added.
func (fs *FreeSet) NoNodes() NodeSet { return make(NodeSet, len(fs.nodes)) }

// AllNodes is the set of all nodes.
func (fs *FreeSet) AllNodes() NodeSet { return slices.Repeat(NodeSet{true}, len(fs.nodes)) }

// Size is how many nodes there are.
func (fs *FreeSet) Size() int { return len(fs.nodes) }

// Growth is how much has gathered since the set was made: changes of nodes, and classes.
func (fs *FreeSet) Growth() int { return len(fs.changes) + len(fs.classes.examples) }

// Follow has the recent jobs be those of another snapshot.
func (fs *FreeSet) Follow(s *cluster.Snapshot) { fs.classes.workload = &workload{s: s} }

// WithOverlap is a copy in which a CPU with fewer jobs than this is free.
func (fs *FreeSet) WithOverlap(jobs int) *FreeSet {
	out := fs.Clone()
	for i := range out.nodes {
		if free := &out.nodes[i]; free.overlap != nil {
			free.countOverlap(free.overlap.CPUUse, free.overlap.all, jobs)
			free.class = -1
		}
	}
	return out
}

// Reload takes over what is given out on a node; it reports whether that has changed.
func (fs *FreeSet) Reload(i int, load *cluster.Load) bool {
	free := &fs.nodes[i]
	now := fs.models[free.model].loadedNode(free.node, free.model, load, fs.classes.workload.s)
	now.troubled = free.troubled
	free.startedUser = 0
	return fs.replaceNode(i, now)
}

// RetakeCPUs takes the CPUs of a job that is resumed.
func (fs *FreeSet) RetakeCPUs(a *cluster.Alloc) {
	for _, sh := range a.Shares {
		if i, ok := fs.Index(sh.Node); ok {
			fs.nodes[i].takeCPUs(sh.CPUs, a.Over > 0)
			fs.nodes[i].limited = fs.nodes[i].limited.with(a.Partition, sh.CPUs)
			fs.nodes[i].recount()
			fs.noteChange(i, false)
		}
	}
}

// GiveBackCPUs returns the CPUs of a job that is suspended.
func (fs *FreeSet) GiveBackCPUs(shares []cluster.Share) {
	for _, sh := range shares {
		if i, ok := fs.Index(sh.Node); ok {
			fs.nodes[i].giveBackCPUs(sh.CPUs)
			fs.nodes[i].recount()
			fs.noteChange(i, true)
		}
	}
}

// NoteReleases notes that the holder of shares may give them back at another time than was planned.
func (fs *FreeSet) NoteReleases(shares []cluster.Share) {
	for _, sh := range shares {
		if i, ok := fs.Index(sh.Node); ok {
			fs.noteChange(i, false)
		}
	}
}

// TakesWhole reports whether a share, of a job that shares nodes with its user's jobs alone or not, leaves nothing
// of a node to others.
func (fs *FreeSet) TakesWhole(i int, sh *cluster.Share, forUser bool) bool {
	free := &fs.nodes[i]
	return anyOf(
		fs.Overlaps,
		fs.wholePlans,
		forUser,
		sh.Part != nil,
		len(free.gpuParts) > 0,
		sh.CPUs.Len() == fs.models[free.model].cpus.Len(),
	)
}

// Node is a copy of what is free on a node.
func (fs *FreeSet) Node(i int) NodeFree { return fs.nodes[i] }

// CPUsTaken is which of some CPUs of a node are not free.
func (fs *FreeSet) CPUsTaken(i int, cpus cluster.IDSet) cluster.IDSet {
	return cpus.Minus(fs.nodes[i].cpus)
}

// CPUsOf is all CPUs of a node, whoever may use them.
func (fs *FreeSet) CPUsOf(i int) cluster.IDSet {
	return cluster.RangeIDSet(0, fs.nodes[i].node.Inventory.CPUs-1)
}

// GPUsOf returns the numbers of all GPUs of a node, whoever may use them.
func (fs *FreeSet) GPUsOf(i int) cluster.IDSet {
	return cluster.RangeIDSet(0, len(fs.nodes[i].node.Inventory.GPUs)-1)
}
