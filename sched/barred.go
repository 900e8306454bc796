package sched

import (
	"slices"

	"dev.muster/cluster"
)

// Reservations of cores keep CPUs of a node from some jobs and leave them the others. A pool knows nothing of that: who
// looks at a node for such a job leaves them out, and so do views, see there.

// off is what a job must keep off: nodes, CPUs of others, and what else has been planned on some.
type off struct {
	nodes nodeSet
	cpus  *barred
	less  []lessened // what is left of these; in forecasts alone
}

// none reports whether it may use all.
func (o off) none() bool { return o.nodes == nil && o.cpus == nil && o.less == nil }

// and is that and some nodes more.
func (o off) and(nodes nodeSet) off {
	if nodes != nil {
		o.nodes = union(o.nodes, nodes)
	}
	return o
}

// barred is CPUs of some nodes. It does not change once it is in use; nil is empty.
type barred struct {
	places []int32 // rising
	cpus   map[int32]cluster.IDSet
}

func (b *barred) has(i int32) bool {
	if b == nil {
		return false
	}
	_, ok := b.cpus[i]
	return ok
}

// on is the CPUs of a node.
func (b *barred) on(i int32) (none cluster.IDSet) {
	if b == nil {
		return none
	}
	return b.cpus[i]
}

func (b *barred) list() []int32 {
	if b == nil {
		return nil
	}
	return b.places
}

// add bars CPUs of a node, of none if there are none.
func (b *barred) add(i int32, cpus cluster.IDSet) {
	if cpus.Empty() {
		return
	}
	if b.cpus == nil {
		b.cpus = map[int32]cluster.IDSet{}
	}
	if at, ok := slices.BinarySearch(b.places, i); !ok {
		b.places = slices.Insert(b.places, at, i)
	}
	b.cpus[i] = b.cpus[i].Union(cpus)
}

// with is it and the CPUs of another one.
func (b *barred) with(o *barred) *barred {
	if o == nil {
		return b
	}
	sum := &barred{}
	for _, one := range [...]*barred{b, o} {
		for _, i := range one.list() {
			sum.add(i, one.on(i))
		}
	}
	return sum
}

// within is a space without the CPUs that are barred there: itself, or a copy.
func (b *barred) within(i int32, sp *space) *space {
	if !b.has(i) {
		return sp
	}
	own := *sp
	own.cpus = sp.cpus.Minus(b.on(i))
	own.settle()
	return &own
}
