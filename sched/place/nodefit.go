package place

import (
	"slices"

	"dev.muster/cluster"
)

// nodeFit is how many tasks of a demand fit on each node of a free set, for a job that keeps off some planned starts.
// It catches up with the changes of the set when it is asked.
type nodeFit struct {
	*classFit
	free          *FreeSet
	index         *classIndex // for the planned starts of the mask
	mask          uint64
	excluded      *ExcludedParts // what the job must not have of nodes
	tasks         []int32        // by index; -1: the job may not use the node
	seenChanges   int            // how many changes of the set are in it
	nodeCount     int            // nodes with room
	taskCount     int            // for which they have room
	runCount      int            // runs of consecutive nodes that they make
	firstWithRoom int32          // no place before it has room
	withRoom      []int32        // nodes with room, rising
	runsByLength  []nodeRun      // nil if not known
}

// newNodeFit works it out for all nodes of the demand's partition.
func (cf *classFit) newNodeFit(fs *FreeSet, planned []*PlannedStart, mask uint64) *nodeFit {
	d := cf.demand
	nf := &nodeFit{
		classFit: cf, free: fs, mask: mask, tasks: make([]int32, len(fs.nodes)),
		seenChanges: len(fs.changes), firstWithRoom: int32(len(fs.nodes)),
	}
	if !d.part.All {
		for i := range nf.tasks {
			nf.tasks[i] = -1
		}
	}
	nf.index = fs.classIndex(planned, mask)
	for _, i := range fs.Members(d.part) {
		n := int32(-1)
		model := fs.classes.capabilities[nf.index.classAt[i]].model
		if cf.suits(fs, model) && !d.isExcluded(fs.nodes[i].node) {
			n = nf.countOn(int32(i))
		}
		nf.tasks[i] = n
		if n > 0 {
			nf.nodeCount++
			nf.taskCount += int(n)
			nf.runCount += 1 - b2i(nf.neighbourHasRoom(int32(i)-1, int32(i), -1))
		}
	}
	nf.withRoom = make([]int32, 0, nf.nodeCount)
	for i, n := range nf.tasks {
		if n > 0 {
			nf.withRoom = append(nf.withRoom, int32(i))
		}
	}
	if len(nf.withRoom) > 0 {
		nf.firstWithRoom = nf.withRoom[0]
	}
	return nf
}

// countOn is how many tasks fit on a node that the job may use.
func (nf *nodeFit) countOn(i int32) int32 {
	if nf.excluded.has(i) || nf.mask != 0 && nf.demand.onGPUs() && nf.plannedWithout(i) {
		return int32(nf.demand.tasksOn(nf.freeOn(i)))
	}
	if nf.byNumbers {
		return nf.tasksOnSuited(nf.index.classAt[i])
	}
	if d := nf.demand; nf.mask == 0 || d.onGPUs() || len(d.counted) > 0 || d.part.LimitsCPUs() {
		return int32(nf.demand.tasksOn(nf.freeOn(i)))
	}
	own := nf.free.nodes[i]
	for k, ps := range nf.index.planned {
		left := ps.leftOn(int(i))
		if nf.mask>>k&1 == 0 || left == nil {
			continue
		}
		own.cpuCount = min(own.cpuCount, left.cpus)
		own.wholeCPUs = min(own.wholeCPUs, left.cpus)
		own.mem = min(own.mem, left.mem)
	}
	return int32(nf.demand.tasksOn(&own))
}

// plannedWithout reports whether a planned start of the mask must not have some GPUs of a node, so that it matters
// which ones the job takes.
func (nf *nodeFit) plannedWithout(i int32) bool {
	for k, ps := range nf.index.planned {
		if nf.mask>>k&1 == 1 && !ps.excluded.GPUsOn(i).Empty() {
			return true
		}
	}
	return false
}

// setExcluded replaces what the job must not have of nodes.
func (nf *nodeFit) setExcluded(ep *ExcludedParts) {
	if nf.excluded == ep {
		return
	}
	nf.catchUp()
	old := nf.excluded
	nf.excluded = ep
	for _, list := range [...][]int32{old.NodeList(), ep.NodeList()} {
		for _, i := range list {
			nf.refresh(i)
		}
	}
}

// refresh works out one node again.
func (nf *nodeFit) refresh(i int32) {
	if nf.tasks[i] < 0 {
		return
	}
	nf.setTasks(i, nf.countOn(i))
}

// setTasks sets how many tasks fit on a node, and keeps sums, list and runs in step.
func (nf *nodeFit) setTasks(i, n int32) {
	old := nf.tasks[i]
	nf.tasks[i] = n
	nf.taskCount += int(n - old)
	if n > 0 == (old > 0) {
		return
	}
	nf.runsByLength = nil
	if at := len(nf.withRoom); n > 0 && (at == 0 || nf.withRoom[at-1] < i) {
		nf.withRoom = append(nf.withRoom, i)
	} else if at, _ = slices.BinarySearch(nf.withRoom, i); n > 0 {
		nf.withRoom = slices.Insert(nf.withRoom, at, i)
	} else {
		nf.withRoom = slices.Delete(nf.withRoom, at, at+1)
	}
	beside := b2i(nf.neighbourHasRoom(i-1, i, -1)) + b2i(nf.neighbourHasRoom(i+1, i, 1))
	if n > 0 {
		nf.nodeCount++
		nf.runCount += 1 - beside
		nf.firstWithRoom = min(nf.firstWithRoom, i)
	} else {
		nf.nodeCount--
		nf.runCount -= 1 - beside
	}
}

// neighbourHasRoom reports whether node a has room and stands in the configuration right before node i (step -1) or
// right behind it (step 1).
func (nf *nodeFit) neighbourHasRoom(a, i, step int32) bool {
	return a >= 0 && int(a) < len(nf.tasks) && nf.tasks[a] > 0 && nf.free.ranks[a] == nf.free.ranks[i]+step
}

// freeOn is what the job may use of a node: a copy where planned starts or reservations take something from it.
func (nf *nodeFit) freeOn(i int32) *NodeFree {
	free := &nf.free.nodes[i]
	if nf.mask == 0 && !nf.excluded.has(i) {
		return free
	}
	trimmed := nf.excluded.without(i, free)
	for k, ps := range nf.index.planned {
		if nf.mask>>k&1 == 0 {
			continue
		}
		left := ps.leftOn(int(i))
		if left == nil {
			continue
		}
		if trimmed == free {
			own := *free
			trimmed = &own
		}
		left.limitNode(nf.free, trimmed, nf.excluded.On(i), ps.excluded.GPUsOn(i))
	}
	return trimmed
}

// catchUp takes the changes of the free set into account.
func (nf *nodeFit) catchUp() {
	nf.index.catchUp()
	for ; nf.seenChanges < len(nf.free.changes); nf.seenChanges++ {
		ch, news := nf.free.freshChange(nf.seenChanges, nf.mask)
		least := int32(1) // a node without room has none where it has lost some
		if ch.more {
			least = 0
		}
		if news && nf.tasks[ch.index] >= least {
			nf.refresh(ch.index)
		}
	}
}

// tooSmall reports that there are too few nodes with room, or too little room on them.
func (nf *nodeFit) tooSmall() bool {
	nf.catchUp()
	return nf.nodeCount < nf.demand.MinNodes || nf.taskCount < nf.demand.tasks
}

// find is an allocation that keeps off what it must, or nil.
func (nf *nodeFit) find(avoid Exclusion) *cluster.Alloc { return nf.findAmong(nil, avoid) }

// findAmong is find that takes nodes with the job's image before nodes that are equal else.
func (nf *nodeFit) findAmong(local []int32, avoid Exclusion) *cluster.Alloc {
	nf.setExcluded(avoid.Parts)
	c := nf.pickNodes(avoid.Nodes)
	if c == nil {
		return nil
	}
	if better := (exchange{c}).exchanged(local); better != nil {
		if a := nf.allotTo(better); a != nil { // which CPUs and devices are free may differ on them
			return a
		}
	}
	return nf.allotTo(c.chosen)
}

// pickNodes chooses the nodes; nil if there are not enough.
func (nf *nodeFit) pickNodes(avoid NodeSet) *choice {
	if nf.tooSmall() || nf.demand.unbounded() {
		return nil
	}
	if c := (&choice{nodeFit: nf, avoid: avoid}); c.chooseNodes() {
		return c
	}
	return nil
}

// allotTo deals out what the job gets to nodes, which come in the order of their choice; nil if devices do not come out
// even. Shares are in the order of the nodes.
func (nf *nodeFit) allotTo(places []int32) *cluster.Alloc {
	rooms := make([]nodeRoom, len(places))
	for k, i := range places {
		rooms[k] = nodeRoom{free: nf.freeOn(i), tasks: int(nf.tasks[i]), share: k}
	}
	if !slices.IsSorted(places) {
		if nf.free.scratch == nil {
			nf.free.scratch = make([]int32, len(nf.tasks))
		}
		turns := nf.free.scratch[slices.Min(places) : slices.Max(places)+1]
		at := 0
		for k, i := range places {
			nf.free.scratch[i] = int32(k + 1)
		}
		for i, k := range turns {
			if k > 0 {
				rooms[k-1].share = at
				turns[i] = 0
				at++
			}
		}
	}
	return nf.demand.allocate(rooms)
}
