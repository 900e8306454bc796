package cluster

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkReport is what a node says, to a state of 10,000 of which somebody has a snapshot.
func BenchmarkReport(b *testing.B) {
	s, at := NewState(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	index := uint64(0)
	apply := func(c Command) {
		index++
		if out := s.Apply(Entry{Index: index, At: at, By: Identity{System: true}, Cmd: c}); out.Err != nil {
			b.Fatal(out.Err)
		}
	}
	name := func(i int) NodeName { return NodeName(fmt.Sprintf("n%05d", i)) }
	const nodes = 10_000
	for i := range nodes {
		apply(&NodeUp{
			Name:      name(i),
			Inventory: Inventory{CPUs: 64, Sockets: 2, CoresPerSocket: 32, ThreadsPerCore: 1, MemMB: 128000},
		})
	}
	n := 0
	for b.Loop() {
		s.Snapshot()
		apply(&Report{Node: name(n * 7 % nodes), Seq: uint64(1 + n/nodes)})
		n++
	}
}
