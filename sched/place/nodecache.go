package place

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// NodeCache is what free sets are made of: every node of the cluster, in the order of the configuration, with its
// load. From one snapshot to the next most nodes stay what they are and are not looked at again; without the cache a
// full pass would spend its time going through all of them.
type NodeCache struct {
	Unloaded    bool // every node counts, usable or not, as if nothing ran, with devices that are missing now
	since       cluster.Moment
	nodes       []cachedNode
	rankOf      map[cluster.NodeName]int32 // place of each node; free sets share it: it is never changed
	hardware    []*cluster.Inventory       // no two the same, see sameHardware
	maxHardware int                        // beyond it the cache is rebuilt: some may be no node's any more
}

// cachedNode is what the cache knows of a node.
type cachedNode struct {
	node          *cluster.Node
	load          *cluster.Load
	hardware      int32
	weight        int // see nodeWeight
	usable        bool
	mayBeTroubled bool // only then need Shaky be asked
}

var noLoad = &cluster.Load{}

// update brings the cache to a snapshot.
func (nc *NodeCache) update(s *cluster.Snapshot) {
	if !nc.updateChanged(s) {
		nc.rebuild(s)
	}
	nc.since = s.Moment()
}

// rebuild looks at every node.
func (nc *NodeCache) rebuild(s *cluster.Snapshot) {
	nc.nodes = make([]cachedNode, 0, s.NodeCount())
	nc.rankOf = make(map[cluster.NodeName]int32, s.NodeCount())
	nc.hardware = nil
	for n := range s.Nodes() {
		nc.rankOf[n.Name] = int32(len(nc.nodes))
		nc.nodes = append(nc.nodes, nc.cacheNode(s, n, max(len(nc.nodes)-1, 0)))
	}
	nc.maxHardware = 2*len(nc.hardware) + 64
}

// updateChanged looks only at what has changed; false if nodes have come or gone, or the changes are not known.
func (nc *NodeCache) updateChanged(s *cluster.Snapshot) bool {
	touched, ok := s.Since(nc.since)
	if !ok || len(nc.nodes) != s.NodeCount() || len(nc.hardware) > nc.maxHardware {
		return false
	}
	k := 0
	for n := range s.Nodes() { // records are replaced, never changed in place
		if st := &nc.nodes[k]; st.node != n {
			if st.node.Name != n.Name {
				return false
			}
			*st = nc.cacheNode(s, n, k)
		}
		k++
	}
	if !nc.Unloaded {
		nc.takeLoads(s, touched)
	}
	return true
}

// takeLoads takes over the loads that have changed.
func (nc *NodeCache) takeLoads(s *cluster.Snapshot, touched []cluster.StateChange) {
	for _, t := range touched {
		if t.Load == "" {
			continue
		}
		if k, ok := nc.rankOf[t.Load]; ok {
			nc.nodes[k].load = s.Load(t.Load)
		}
	}
}

// cacheNode looks at a node. Its hardware is most likely that of node like, which is tried first.
func (nc *NodeCache) cacheNode(s *cluster.Snapshot, n *cluster.Node, like int) cachedNode {
	st := cachedNode{
		node: n, load: noLoad, weight: nodeWeight(n),
		usable:        nc.Unloaded || n.Usable(),
		mayBeTroubled: n.Trouble != nil || len(n.Inventory.Faults) > 0,
	}
	if !nc.Unloaded {
		st.load = s.Load(n.Name)
	}
	first := 0
	if like < len(nc.nodes) {
		first = int(nc.nodes[like].hardware)
	}
	for m := range len(nc.hardware) {
		if k := (first + m) % len(nc.hardware); sameHardware(nc.hardware[k], &n.Inventory) {
			st.hardware = int32(k)
			return st
		}
	}
	st.hardware, nc.hardware = int32(len(nc.hardware)), append(nc.hardware, &n.Inventory)
	return st
}

// FreeSet is what is free at a snapshot.
func (nc *NodeCache) FreeSet(s *cluster.Snapshot) *FreeSet {
	nc.update(s)
	n := len(nc.nodes)
	fs := &FreeSet{
		rankOf: nc.rankOf, indexOf: make([]int32, n), partitionNodes: map[*cluster.Partition][]int{},
		nodes: make([]NodeFree, 0, n), all: make([]int, 0, n), ranks: make([]int32, 0, n),
	}
	fs.classes = &nodeClasses{
		numberOf: map[classKey]int32{}, workload: &workload{s: s},
		examples: make([]NodeFree, 0, 64), capabilities: make([]Capability, 0, 64),
	}
	fs.limited = newLimitedCPUs(s.Config())
	fs.Overlaps, fs.wholeSockets, fs.wholePlans = oversubscribed(s), s.Config().SocketAlloc, s.Config().PlanWhole
	models := make([]int, len(nc.hardware)) // by hardware: the model's index plus one
	weight := false
	first := -1
	for k := range nc.nodes {
		st := &nc.nodes[k]
		fs.indexOf[k] = -1
		if !st.usable {
			continue
		}
		if models[st.hardware] == 0 {
			fs.addModel(&st.node.Inventory, nc.Unloaded)
			models[st.hardware] = len(fs.models)
		}
		fs.addNode(st, models[st.hardware]-1, s.Now)
		if first < 0 {
			first = st.weight
		}
		weight = weight || st.weight != first
		fs.indexOf[k] = int32(len(fs.all))
		fs.all = append(fs.all, len(fs.all))
		fs.ranks = append(fs.ranks, int32(k))
	}
	fs.topology = newTopology(s.Wiring(), fs, weight)
	return fs
}

// addNode appends a node.
func (fs *FreeSet) addNode(st *cachedNode, number int, now time.Time) {
	m := &fs.models[number]
	l := st.load
	if m.emptyClass < 0 {
		free := m.emptyNode(st.node, number)
		m.emptyClass = fs.classNumber(fs.classKeyOf(&free), &free)
	}
	fs.nodes = append(fs.nodes, NodeFree{})
	free := &fs.nodes[len(fs.nodes)-1]
	*free = m.emptyNode(st.node, number)
	if len(l.Jobs) > 0 {
		free.subtractLoad(l, fs.classes.workload.s)
		fs.HasOneUserNodes = fs.HasOneUserNodes || l.Closed != 0
		fs.Overlaps = fs.Overlaps || !l.Shared.Empty()
		free.class = fs.classNumber(fs.classKeyOf(free), free)
	}
	if fs.Overlaps {
		free.countOverlap(l.CPUUse, m.cpus, 1)
	}
	free.troubled = st.mayBeTroubled && st.node.Shaky(now)
}

// addModel appends the model of some hardware.
func (fs *FreeSet) addModel(inv *cluster.Inventory, whole bool) {
	m := model{inventory: inv, emptyClass: -1, cpus: inv.JobCPUs(), gpus: inv.Devices()}
	if whole {
		m.gpus = cluster.RangeIDSet(0, len(inv.GPUs)-1)
	}
	m.unit = unitOf(inv, fs.wholeSockets)
	m.limited = fs.limited
	m.wholeCPUs = freeInUnits(inv, m.cpus, m.unit)
	for _, g := range inv.GPUs {
		k := slices.Index(m.types, g.Type)
		if k < 0 {
			k, m.types = len(m.types), append(m.types, g.Type)
		}
		m.typeOf = append(m.typeOf, k)
	}
	fs.classes.tooManyTypes = fs.classes.tooManyTypes || len(m.types) > len(classKey{}.gpus)
	fs.hasGPUs = fs.hasGPUs || len(inv.GPUs) > 0
	fs.models = append(fs.models, m)
}

// NewFreeSet is what is free now on the usable nodes.
func NewFreeSet(s *cluster.Snapshot) *FreeSet { return new(NodeCache).FreeSet(s) }

// NewUnloadedSet is every node, usable or not, as if nothing ran, with devices that are missing now.
func NewUnloadedSet(s *cluster.Snapshot) *FreeSet { return (&NodeCache{Unloaded: true}).FreeSet(s) }

// Index finds a node; false if it is not in the set.
func (fs *FreeSet) Index(name cluster.NodeName) (int, bool) {
	if k, ok := fs.rankOf[name]; ok && fs.indexOf[k] >= 0 {
		return int(fs.indexOf[k]), true
	}
	return 0, false
}

// oversubscribed reports whether several jobs may be on one CPU of the cluster, or are.
func oversubscribed(s *cluster.Snapshot) bool {
	parts := s.Config().Partitions
	return slices.ContainsFunc(parts, func(p cluster.Partition) bool { return p.Oversubscribes() })
}
