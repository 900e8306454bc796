package place

import (
	"slices"

	"dev.muster/cluster"
)

// Fit is what is known of where a demand fits: by class of node, and by node in the free sets that were asked about.
type Fit struct {
	classFit
	nodeFits []*nodeFit // one for each free set and mask of planned starts
}

// NewFit knows nothing yet of where a demand fits in a free set, and the like of it.
func NewFit(d *Demand, fs *FreeSet) *Fit { return &Fit{classFit: classFitOf(d, fs)} }

// Find is an allocation in a free set that keeps off the planned starts of the mask and what is excluded, or nil.
func (f *Fit) Find(fs *FreeSet, planned []*PlannedStart, mask uint64, avoid Exclusion) *cluster.Alloc {
	return f.FindNear(nil, fs, planned, mask, avoid)
}

// FindNear is find that takes nodes with the job's image before nodes that are equal else.
func (f *Fit) FindNear(
	local []int32, fs *FreeSet, planned []*PlannedStart, mask uint64, avoid Exclusion,
) *cluster.Alloc {
	at := slices.IndexFunc(f.nodeFits, func(nf *nodeFit) bool { return nf.mask == mask && nf.free == fs })
	known := at >= 0
	if known {
		f.nodeFits[at].setExcluded(avoid.Parts)
		if f.nodeFits[at].tooSmall() {
			return nil
		}
	}
	sumsTell := !known || len(f.demand.gpuJob) > 0
	if sumsTell && f.hopeless(fs.classIndex(planned, mask)) {
		return nil
	}
	if !known {
		f.nodeFits = append(f.nodeFits, f.newNodeFit(fs, planned, mask))
		at = len(f.nodeFits) - 1
	}
	return f.nodeFits[at].findAmong(local, avoid)
}

// ObviouslyPossible reports whether the job could start if nothing ran, where that is easy to tell: all its nodes are
// of one model and it does not matter how they lie. If not, ask possible.
func (f *Fit) ObviouslyPossible(fs *FreeSet) bool {
	d := f.demand
	list := fs.Members(d.part)
	unclear := anyOf(len(list) == 0, len(fs.models) != 1, fs.topology.levels != nil, d.unbounded(), d.isParticular())
	if unclear || !f.suits(fs, 0) {
		return false
	}
	empty := fs.models[0].emptyNode(fs.nodes[list[0]].node, 0)
	tasks := d.tasksOn(&empty)
	if tasks == 0 {
		return false
	}
	nodes := max(d.MinNodes, (d.tasks+tasks-1)/tasks)
	for _, g := range d.gpuJob {
		if nodes*d.gpusGivenBy(&empty, g.Type) < int(g.Count) {
			return false // with more nodes, perhaps
		}
	}
	if nodes > min(d.mostNodes(len(list)), len(list)) {
		return false
	}
	byNumbers := !anyOf(d.gpus, d.tasksPerSocket > 0, d.flags.has(overcommit), d.mem.Per == cluster.MemPerGPU)
	if byNumbers {
		return true // CPUs and memory can be dealt out if there are enough
	}
	rooms := make([]nodeRoom, nodes)
	for k := range rooms {
		rooms[k] = nodeRoom{free: &empty, tasks: tasks, share: k}
	}
	return d.allocate(rooms) != nil
}

// GainsFrom reports whether a job can use some of the nodes, and there is enough together with what else
// is free.
func (f *Fit) GainsFrom(fs *FreeSet, nodes []int) bool {
	useful := false
	for _, i := range nodes {
		n := f.TasksOn(fs, ClassedNode{i, fs.classOf(&fs.nodes[i])})
		if n <= 0 {
			continue
		}
		if n >= f.demand.tasks && f.demand.MinNodes <= 1 {
			return true
		}
		useful = true
	}
	return useful && !f.hopeless(fs.classIndex(nil, 0))
}

// TasksOn is how many tasks fit on a node.
func (f *Fit) TasksOn(fs *FreeSet, node ClassedNode) int {
	if f.byNumbers {
		return int(f.tasksOnClass(fs, node.class))
	}
	if free := &fs.nodes[node.index]; f.suits(fs, free.model) {
		return f.demand.tasksOn(free)
	}
	return 0
}

// HopelessIn reports that the demand does not fit beside the planned starts of the mask, whichever nodes it takes.
func (f *Fit) HopelessIn(fs *FreeSet, planned []*PlannedStart, mask uint64) bool {
	return f.hopeless(fs.classIndex(planned, mask))
}

// FindOnce is find in a free set that is not asked about again.
func (f *Fit) FindOnce(fs *FreeSet, planned []*PlannedStart, mask uint64, avoid Exclusion) *cluster.Alloc {
	return f.newNodeFit(fs, planned, mask).find(avoid)
}
