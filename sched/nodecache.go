package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// nodeCache is what pools are made of: every node of the cluster, in node order, with what is given out on it. Most nodes are from
// one snapshot to the next what they were, and are not looked at again: a pass that cannot go on from the last one would
// spend its time with going through all of them.
type nodeCache struct {
	unloaded    bool // every node, of service or not, as if nothing ran; with the devices that may come back
	since       cluster.Moment
	nodes       []cachedNode
	rankOf      map[cluster.NodeName]int32 // of each node among them; never changed once all are there
	hardware    []*cluster.Inventory       // no two alike
	maxHardware int                        // of these, or it starts over: some may be none's any more
}

// cachedNode is a node in a roster.
type cachedNode struct {
	node          *cluster.Node
	load          *cluster.Load
	hardware      int32
	weight        int // see rank
	usable        bool
	mayBeTroubled bool // it may be shaky
}

var noLoad = &cluster.Load{}

// update brings the roster to a snapshot.
func (nc *nodeCache) update(s *cluster.Snapshot) {
	if !nc.updateChanged(s) {
		nc.rebuild(s)
	}
	nc.since = s.Moment()
}

// rebuild makes the roster anew.
func (nc *nodeCache) rebuild(s *cluster.Snapshot) {
	nc.nodes, nc.rankOf, nc.hardware = make([]cachedNode, 0, s.NodeCount()), make(map[cluster.NodeName]int32, s.NodeCount()), nil
	for n := range s.Nodes() {
		nc.rankOf[n.Name] = int32(len(nc.nodes))
		nc.nodes = append(nc.nodes, nc.cacheNode(s, n, max(len(nc.nodes)-1, 0)))
	}
	nc.maxHardware = 2*len(nc.hardware) + 64
}

// updateChanged looks at what has changed; false if nodes have come or gone, or too much is unknown.
func (nc *nodeCache) updateChanged(s *cluster.Snapshot) bool {
	touched, ok := s.Since(nc.since)
	if !ok || len(nc.nodes) != s.NodeCount() || len(nc.hardware) > nc.maxHardware {
		return false
	}
	k := 0
	for n := range s.Nodes() { // a record is never changed in place
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

// cacheNode is that of a node which is most likely of the same make as the one in another seat.
func (nc *nodeCache) cacheNode(s *cluster.Snapshot, n *cluster.Node, like int) cachedNode {
	st := cachedNode{node: n, load: noLoad, weight: nodeWeight(n), usable: nc.unloaded || n.Usable(), mayBeTroubled: n.Trouble != nil || len(n.Inventory.Faults) > 0}
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

// freeSet is what of the nodes is free at a snapshot.
func (nc *nodeCache) freeSet(s *cluster.Snapshot) *freeSet {
	nc.update(s)
	fs := &freeSet{rankOf: nc.rankOf, indexOf: make([]int32, len(nc.nodes)), partitionNodes: map[*cluster.Partition][]int{},
		nodes: make([]nodeFree, 0, len(nc.nodes)), all: make([]int, 0, len(nc.nodes)), ranks: make([]int32, 0, len(nc.nodes))}
	fs.classes = &nodeClasses{numberOf: map[classKey]int32{}, examples: make([]nodeFree, 0, 64), capabilities: make([]capability, 0, 64), workload: &workload{s: s}}
	fs.overlaps, fs.wholeSockets, fs.wholePlans = oversubscribed(s), s.Config().SocketAlloc, s.Config().PlanWhole
	models := make([]int, len(nc.hardware)) // by make, the number plus one
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

// addNode adds the space of a node.
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

// addModel adds the model that nodes of one make have.
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

// newFreeSet is what is free now on the nodes that may be used.
func newFreeSet(s *cluster.Snapshot) *freeSet { return new(nodeCache).freeSet(s) }

// newUnloadedSet is every node, of service or not, as if nothing ran; with the devices that may come back.
func newUnloadedSet(s *cluster.Snapshot) *freeSet { return (&nodeCache{unloaded: true}).freeSet(s) }

// index is the place of a node; false if it is not in the pool.
func (fs *freeSet) index(name cluster.NodeName) (int, bool) {
	if k, ok := fs.rankOf[name]; ok && fs.indexOf[k] >= 0 {
		return int(fs.indexOf[k]), true
	}
	return 0, false
}
