package place

import (
	"dev.muster/cluster"
	"dev.muster/sched/schedtest"
)

// placeAll starts what fits of what waits, in the order of the queue.
func placeAll(b *schedtest.Testbed) {
	for j := range b.S.Snapshot().Queue() {
		s := b.S.Snapshot()
		p, _ := s.Partition(j.Spec.Partitions[0])
		a := NewDemand(s, p, j.Spec, nil).FindIn(NewFreeSet(s), Exclusion{})
		if a == nil {
			continue
		}
		start := cluster.Decision{Job: j.ID, Task: cluster.TaskAny, Start: a}
		b.Apply(&cluster.Decide{Decisions: []cluster.Decision{start}})
	}
}
