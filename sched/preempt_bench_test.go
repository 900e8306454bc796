package sched_test

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
)

// BenchmarkPreempt is a pass over 20,000 pending jobs of 200 shapes on 2,000 full nodes, whose jobs they may evict
// or, half of them, may not.
func BenchmarkPreempt(b *testing.B) {
	const nodes = 2000
	bd := preemptBed(b, nodes, tiers(cluster.PreemptRequeue), nil)
	for range nodes {
		bd.Submit(at("low", 1))
	}
	for range 4 {
		bd.Apply(&cluster.Decide{Decisions: sched.Schedule(bd.S.Snapshot(), bd.Now)})
	}
	for i := range 20_000 {
		bd.Submit(at([]string{"low", "high"}[i%2], 1+i%200,
			lasts(time.Hour, func(s *cluster.JobSpec) { s.Name = fmt.Sprint(i) })))
	}
	s := bd.S.Snapshot()
	for b.Loop() {
		sched.Schedule(s, bd.Now)
	}
}
