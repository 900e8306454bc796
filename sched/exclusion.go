package sched

import (
	"slices"

	"dev.muster/cluster"
)

// What a job must not use though it is free. A free set knows nothing of that, as it differs from job to job: nodeFit
// leaves it out.

// exclusion is what a job must keep off.
type exclusion struct {
	nodes   nodeSet
	cpus    *excludedCPUs
	reduced []reducedNode // nodes of which others will have a part; in forecasts alone
}

// none reports whether nothing is excluded.
func (ex exclusion) none() bool { return ex.nodes == nil && ex.cpus == nil && ex.reduced == nil }

// withNodes excludes some nodes more.
func (ex exclusion) withNodes(nodes nodeSet) exclusion {
	if nodes != nil {
		ex.nodes = unionOf(ex.nodes, nodes)
	}
	return ex
}

// excludedCPUs is CPUs of some nodes, as reservations of cores have them. It does not change once it is in use; nil
// is empty.
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

// exclude adds CPUs of a node.
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

// union is the CPUs of both.
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

// without is a node without its excluded CPUs: itself if there are none, else a copy.
func (ec *excludedCPUs) without(i int32, free *nodeFree) *nodeFree {
	if !ec.has(i) {
		return free
	}
	own := *free
	own.cpus = free.cpus.Minus(ec.on(i))
	own.recount()
	return &own
}
