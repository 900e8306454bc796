package place

import (
	"slices"

	"dev.muster/cluster"
)

// What a job must not use though it is free. A free set knows nothing of that, as it differs from job to job: nodeFit
// leaves it out.

// Exclusion is what a job must keep off.
type Exclusion struct {
	Nodes   NodeSet
	CPUs    *ExcludedCPUs
	reduced []reducedNode // nodes of which others will have a part; in forecasts alone
}

// None reports whether nothing is excluded.
func (ex Exclusion) None() bool { return ex.Nodes == nil && ex.CPUs == nil && ex.reduced == nil }

// WithNodes excludes some nodes more.
func (ex Exclusion) WithNodes(nodes NodeSet) Exclusion {
	if nodes != nil {
		ex.Nodes = ex.Nodes.Union(nodes)
	}
	return ex
}

// ExcludedCPUs is CPUs of some nodes, as reservations of cores have them. It does not change once it is in use; nil
// is empty.
type ExcludedCPUs struct {
	nodes  []int32 // rising
	byNode map[int32]cluster.IDSet
}

func (ec *ExcludedCPUs) has(i int32) bool {
	if ec == nil {
		return false
	}
	_, ok := ec.byNode[i]
	return ok
}

// On is the CPUs of a node.
func (ec *ExcludedCPUs) On(i int32) (none cluster.IDSet) {
	if ec == nil {
		return none
	}
	return ec.byNode[i]
}

// NodeList are the nodes of which it has CPUs, rising.
func (ec *ExcludedCPUs) NodeList() []int32 {
	if ec == nil {
		return nil
	}
	return ec.nodes
}

// Exclude adds CPUs of a node.
func (ec *ExcludedCPUs) Exclude(i int32, cpus cluster.IDSet) {
	if cpus.Empty() {
		return
	}
	if ec.byNode == nil {
		ec.byNode = map[int32]cluster.IDSet{}
	}
	if at, ok := slices.BinarySearch(ec.nodes, i); !ok {
		ec.nodes = slices.Insert(ec.nodes, at, i)
	}
	ec.byNode[i] = ec.byNode[i].Union(cpus)
}

// union is the CPUs of both.
func (ec *ExcludedCPUs) union(o *ExcludedCPUs) *ExcludedCPUs {
	if o == nil {
		return ec
	}
	sum := &ExcludedCPUs{}
	for _, one := range [...]*ExcludedCPUs{ec, o} {
		for _, i := range one.NodeList() {
			sum.Exclude(i, one.On(i))
		}
	}
	return sum
}

// without is a node without its excluded CPUs: itself if there are none, else a copy.
func (ec *ExcludedCPUs) without(i int32, free *NodeFree) *NodeFree {
	if !ec.has(i) {
		return free
	}
	own := *free
	own.cpus = free.cpus.Minus(ec.On(i))
	own.recount()
	return &own
}

// reducedNode is a node of which less may be used than is free.
type reducedNode struct {
	index int
	NodeFree
}

// reduceNodes replaces nodes, and returns what they were, to be put back the same way.
func (fs *FreeSet) reduceNodes(list []reducedNode) (had []reducedNode) {
	for k := range list {
		i := list[k].index
		had = append(had, reducedNode{i, fs.nodes[i]})
		fs.replaceNode(i, list[k].NodeFree)
	}
	return had
}

// WithoutUnusable excludes unusable nodes, too.
func (fs *FreeSet) WithoutUnusable(ex Exclusion) Exclusion {
	ex.Nodes = slices.Clone(ex.Nodes)
	for i := range fs.nodes {
		ex.Nodes[i] = ex.Nodes[i] || !fs.nodes[i].node.Usable()
	}
	return ex
}

// WithCPUs excludes some CPUs more.
func (ex Exclusion) WithCPUs(cpus *ExcludedCPUs) Exclusion {
	ex.CPUs = ex.CPUs.union(cpus)
	return ex
}

// ReduceNode has less of a node be used than is free.
func (ex Exclusion) ReduceNode(i int, free NodeFree) Exclusion {
	ex.reduced = append(ex.reduced, reducedNode{i, free})
	return ex
}
