package sched

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

// BenchmarkPreempt is a pass over 20,000 pending jobs of 200 shapes on 2,000 full nodes, whose jobs they may evict
// or, half of them, may not.
func BenchmarkPreempt(b *testing.B) {
	const nodes = 2000
	bd := preemptBed(b, nodes, tiers(cluster.PreemptRequeue), nil)
	for range nodes {
		bd.submit(at("low", 1))
	}
	for range 4 {
		bd.apply(&cluster.Decide{Decisions: Schedule(bd.s.Snapshot(), bd.now)})
	}
	for i := range 20_000 {
		bd.submit(at([]string{"low", "high"}[i%2], 1+i%200,
			lasts(time.Hour, func(s *cluster.JobSpec) { s.Name = fmt.Sprint(i) })))
	}
	s := bd.s.Snapshot()
	for b.Loop() {
		Schedule(s, bd.now)
	}
}
