package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// nodeCache is what free sets are made of: every node of the cluster, in the order of the configuration, with its
// load. From one snapshot to the next most nodes stay what they are and are not looked at again; without the cache a
// full pass would spend its time going through all of them.
type nodeCache struct {
	unloaded    bool // every node counts, usable or not, as if nothing ran, with devices that are missing now
	since       cluster.Moment
	nodes       []cachedNode
	rankOf      map[cluster.NodeName]int32 // position of each node; free sets share it, so it is replaced and never changed
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
func (nc *nodeCache) update(s *cluster.Snapshot) {
	if !nc.updateChanged(s) {
		nc.rebuild(s)
	}
	nc.since = s.Moment()
}

// rebuild looks at every node.
func (nc *nodeCache) rebuild(s *cluster.Snapshot) {
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
func (nc *nodeCache) updateChanged(s *cluster.Snapshot) bool {
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
	for _, t := range touched {
		if k, ok := nc.rankOf[t.Load]; ok && t.Load != "" && !nc.unloaded {
			nc.nodes[k].load = s.Load(t.Load)
		}
	}
	return true
}

// cacheNode looks at a node. Its hardware is most likely that of node like, which is tried first.
func (nc *nodeCache) cacheNode(s *cluster.Snapshot, n *cluster.Node, like int) cachedNode {
	st := cachedNode{
		node: n, load: noLoad, weight: nodeWeight(n),
		usable:        nc.unloaded || n.Usable(),
		mayBeTroubled: n.Trouble != nil || len(n.Inventory.Faults) > 0,
	}
	if !nc.unloaded {
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

// freeSet is what is free at a snapshot.
func (nc *nodeCache) freeSet(s *cluster.Snapshot) *freeSet {
	nc.update(s)
	n := len(nc.nodes)
	fs := &freeSet{
		rankOf: nc.rankOf, indexOf: make([]int32, n), partitionNodes: map[*cluster.Partition][]int{},
		nodes: make([]nodeFree, 0, n), all: make([]int, 0, n), ranks: make([]int32, 0, n),
	}
	fs.classes = &nodeClasses{
		numberOf: map[classKey]int32{}, workload: &workload{s: s},
		examples: make([]nodeFree, 0, 64), capabilities: make([]capability, 0, 64),
	}
	fs.overlaps, fs.wholeSockets, fs.wholePlans = oversubscribed(s), s.Config().SocketAlloc, s.Config().PlanWhole
	models := make([]int, len(nc.hardware)) // by hardware: the model's index plus one
	weight, first := false, -1
	for k := range nc.nodes {
		st := &nc.nodes[k]
		fs.indexOf[k] = -1
		if !st.usable {
			continue
		}
		if models[st.hardware] == 0 {
			fs.addModel(&st.node.Inventory, nc.unloaded)
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
func (fs *freeSet) addNode(st *cachedNode, number int, now time.Time) {
	m, l := &fs.models[number], st.load
	if m.emptyClass < 0 {
		free := m.emptyNode(st.node, number)
		m.emptyClass = fs.classNumber(fs.classKeyOf(&free), &free)
	}
	fs.nodes = append(fs.nodes, nodeFree{})
	free := &fs.nodes[len(fs.nodes)-1]
	if *free = m.emptyNode(st.node, number); len(l.Jobs) > 0 {
		free.subtractLoad(l)
		fs.hasOneUserNodes = fs.hasOneUserNodes || l.Closed != 0
		fs.overlaps = fs.overlaps || !l.Shared.Empty()
		free.class = fs.classNumber(fs.classKeyOf(free), free)
	}
	if fs.overlaps {
		free.countOverlap(l.CPUUse, m.cpus, 1)
	}
	free.troubled = st.mayBeTroubled && st.node.Shaky(now)
}

// addModel appends the model of some hardware.
func (fs *freeSet) addModel(inv *cluster.Inventory, whole bool) {
	m := model{inventory: inv, emptyClass: -1, cpus: inv.JobCPUs(), gpus: inv.Devices()}
	if whole {
		m.gpus = cluster.RangeIDSet(0, len(inv.GPUs)-1)
	}
	m.unit = unitOf(inv, fs.wholeSockets)
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

// newFreeSet is what is free now on the usable nodes.
func newFreeSet(s *cluster.Snapshot) *freeSet { return new(nodeCache).freeSet(s) }

// newUnloadedSet is every node, usable or not, as if nothing ran, with devices that are missing now.
func newUnloadedSet(s *cluster.Snapshot) *freeSet { return (&nodeCache{unloaded: true}).freeSet(s) }

// index finds a node; false if it is not in the set.
func (fs *freeSet) index(name cluster.NodeName) (int, bool) {
	if k, ok := fs.rankOf[name]; ok && fs.indexOf[k] >= 0 {
		return int(fs.indexOf[k]), true
	}
	return 0, false
}
