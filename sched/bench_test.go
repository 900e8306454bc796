package sched

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

// crowd is 1,000 nodes and a queue of mixed shapes.
func crowd(b testing.TB, pending int) *bed {
	bed := newBed(b, 1000)
	for i := range pending {
		bed.submit(func(s *cluster.JobSpec) {
			s.Limit = time.Duration(10+i%50) * time.Minute
			switch i % 7 {
			case 0:
				s.MinNodes = 2 << (i % 5)
				s.MaxNodes, s.TasksPerNode = s.MinNodes, 4
			case 1, 2:
				s.PerNode = []cluster.GRES{{Name: "gpu", Count: int64(1 + i%4)}}
				s.CPUsPerTask = 2
			case 3:
				s.Tasks = 1 + i%40
			default:
				s.CPUsPerTask, s.Mem = 1+i%16, cluster.Mem{Per: cluster.MemPerCPU, MB: cluster.MemMB(1000 * (1 + i%3))}
			}
		})
	}
	return bed
}

// BenchmarkSchedule measures one cycle on an empty cluster, and one with nothing left to do.
func BenchmarkSchedule(b *testing.B) {
	for _, pending := range []int{10_000, 100_000} {
		bed := crowd(b, pending)
		snap := bed.s.Snapshot()
		b.Run(fmt.Sprintf("first/%d", pending), func(b *testing.B) {
			for b.Loop() {
				Schedule(snap, bed.now)
			}
		})
		bed.cycle()
		snap = bed.s.Snapshot()
		b.Run(fmt.Sprintf("idle/%d", pending), func(b *testing.B) {
			for b.Loop() {
				Schedule(snap, bed.now)
			}
		})
	}
}

const cycleBar = 20 * time.Millisecond

// TestCycleIsQuick holds the aim: a cycle over 10,000 pending jobs on 1,000 nodes within 20 ms,
// measured 4 to 5 ms. The best of several counts: the machine may be busy.
func TestCycleIsQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	bed := crowd(t, 10_000)
	for _, what := range []string{"first", "with nothing left to do"} {
		snap, best := bed.s.Snapshot(), time.Hour
		for tries := 0; tries < 100 && best > cycleBar; tries++ {
			began := time.Now()
			Schedule(snap, bed.now)
			best = min(best, time.Since(began))
		}
		t.Logf("cycle %s: %s", what, best)
		if best > cycleBar {
			t.Errorf("a cycle (%s) takes %s", what, best)
		}
		bed.cycle()
	}
}
