package sched

import (
	"slices"

	"dev.muster/cluster"
)

// Reservations of cores keep CPUs of a node from some jobs and leave them the others. A pool knows nothing of that: who
// looks at a node for such a job leaves them out, and so do views, see there.

// exclusion is what a job must keep off: nodes, CPUs of others, and what else has been planned on some.
type exclusion struct {
	nodes   nodeSet
	cpus    *excludedCPUs
	reduced []reducedNode // what is left of these; in forecasts alone
}

// none reports whether it may use all.
func (ex exclusion) none() bool { return ex.nodes == nil && ex.cpus == nil && ex.reduced == nil }

// withNodes is that and some nodes more.
func (ex exclusion) withNodes(nodes nodeSet) exclusion {
	if nodes != nil {
		ex.nodes = unionOf(ex.nodes, nodes)
	}
	return ex
}

// excludedCPUs is CPUs of some nodes. It does not change once it is in use; nil is empty.
type excludedCPUs struct {
	nodes  []int32 // rising
	byNode map[int32]cluster.IDSet
}

func (ec *excludedCPUs) has(i int32) bool {
	if ec == nil {
		return false
	}
	_, ok := ec.byNode[i]
	return ok
}

// on is the CPUs of a node.
func (ec *excludedCPUs) on(i int32) (none cluster.IDSet) {
	if ec == nil {
		return none
	}
	return ec.byNode[i]
}

func (ec *excludedCPUs) nodeList() []int32 {
	if ec == nil {
		return nil
	}
	return ec.nodes
}

// exclude bars CPUs of a node, of none if there are none.
func (ec *excludedCPUs) exclude(i int32, cpus cluster.IDSet) {
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

// union is it and the CPUs of another one.
func (ec *excludedCPUs) union(o *excludedCPUs) *excludedCPUs {
	if o == nil {
		return ec
	}
	sum := &excludedCPUs{}
	for _, one := range [...]*excludedCPUs{ec, o} {
		for _, i := range one.nodeList() {
			sum.exclude(i, one.on(i))
		}
	}
	return sum
}

// without is a space without the CPUs that are barred there: itself, or a copy.
func (ec *excludedCPUs) without(i int32, free *nodeFree) *nodeFree {
	if !ec.has(i) {
		return free
	}
	own := *free
	own.cpus = free.cpus.Minus(ec.on(i))
	own.recount()
	return &own
}
