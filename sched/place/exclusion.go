package place

import (
	"slices"

	"dev.muster/cluster"
)

// Free resources that a job must not use. A free set knows nothing of that, as it differs from job to job: nodeFit
// leaves it out.

// Exclusion is what a job must keep off.
type Exclusion struct {
	Nodes   NodeSet
	Parts   *ExcludedParts
	reduced []reducedNode // nodes of which others will have a part; in forecasts alone
}

// None reports whether nothing is excluded.
func (ex Exclusion) None() bool { return ex.Nodes == nil && ex.Parts == nil && ex.reduced == nil }

// WithNodes excludes some nodes more.
func (ex Exclusion) WithNodes(nodes NodeSet) Exclusion {
	if nodes != nil {
		ex.Nodes = ex.Nodes.Union(nodes)
	}
	return ex
}

// ExcludedParts is CPUs and GPUs of some nodes, as reservations of cores and of GPUs have them. It does not change once
// it is in use; nil is empty.
type ExcludedParts struct {
	nodes  []int32 // rising
	byNode map[int32]nodePart
}

// nodePart is CPUs and GPUs of one node.
type nodePart struct{ cpus, gpus cluster.IDSet }

func (ep *ExcludedParts) has(i int32) bool {
	if ep == nil {
		return false
	}
	_, ok := ep.byNode[i]
	return ok
}

// On returns the CPUs of a node.
func (ep *ExcludedParts) On(i int32) (none cluster.IDSet) {
	if ep == nil {
		return none
	}
	return ep.byNode[i].cpus
}

// GPUsOn returns the GPUs of a node.
func (ep *ExcludedParts) GPUsOn(i int32) (none cluster.IDSet) {
	if ep == nil {
		return none
	}
	return ep.byNode[i].gpus
}

// NodeList returns the nodes of which it has something, rising.
func (ep *ExcludedParts) NodeList() []int32 {
	if ep == nil {
		return nil
	}
	return ep.nodes
}

// Exclude adds CPUs and GPUs of a node.
func (ep *ExcludedParts) Exclude(i int32, cpus, gpus cluster.IDSet) {
	if cpus.Empty() && gpus.Empty() {
		return
	}
	if ep.byNode == nil {
		ep.byNode = map[int32]nodePart{}
	}
	if at, ok := slices.BinarySearch(ep.nodes, i); !ok {
		ep.nodes = slices.Insert(ep.nodes, at, i)
	}
	was := ep.byNode[i]
	ep.byNode[i] = nodePart{was.cpus.Union(cpus), was.gpus.Union(gpus)}
}

// union is what either has.
func (ep *ExcludedParts) union(o *ExcludedParts) *ExcludedParts {
	if o == nil {
		return ep
	}
	sum := &ExcludedParts{}
	for _, one := range [...]*ExcludedParts{ep, o} {
		for _, i := range one.NodeList() {
			sum.Exclude(i, one.On(i), one.GPUsOn(i))
		}
	}
	return sum
}

// without returns a node without its excluded CPUs and GPUs: itself if there are none, else a copy.
func (ep *ExcludedParts) without(i int32, free *NodeFree) *NodeFree {
	if !ep.has(i) {
		return free
	}
	own := *free
	own.cpus = free.cpus.Minus(ep.On(i))
	own.excludeGPUs(ep.GPUsOn(i))
	own.recount()
	return &own
}

// excludeGPUs takes GPUs away, those that jobs share included.
func (free *NodeFree) excludeGPUs(gpus cluster.IDSet) {
	if gpus.Empty() {
		return
	}
	free.gpus = free.gpus.Minus(gpus)
	free.gpuParts = slices.DeleteFunc(slices.Clone(free.gpuParts),
		func(p cluster.GPUPart) bool { return gpus.Has(p.GPU) })
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

// WithParts excludes parts of some nodes more.
func (ex Exclusion) WithParts(parts *ExcludedParts) Exclusion {
	ex.Parts = ex.Parts.union(parts)
	return ex
}

// ReduceNode has less of a node be used than is free.
func (ex Exclusion) ReduceNode(i int, free NodeFree) Exclusion {
	ex.reduced = append(ex.reduced, reducedNode{i, free})
	return ex
}
