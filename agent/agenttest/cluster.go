// Package agenttest makes clusters and samples for tests of what reads them.
package agenttest

import (
	"fmt"
	"testing"
	"time"

	"dev.muster/cluster"
)

// Cluster is the state of a cluster of nodes with eight GPUs each, n00000 and on, and of jobs that ask for eight: the
// first of them hold a node each, the others wait.
func Cluster(t testing.TB, nodes, jobs int) *cluster.State {
	t.Helper()
	state := cluster.NewState()
	do := Doing(t, state, 0)
	inv := cluster.Inventory{Sockets: 2, CoresPerSocket: 32, ThreadsPerCore: 1, CPUs: 64, MemMB: 512_000}
	inv.SpecCPUs = inv.LastCores(4) // which jobs cannot have
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, Type: "h100", Cores: cluster.RangeIDSet(0, 63)})
	}
	for i := range nodes {
		do(&cluster.NodeUp{Name: node(i), Inventory: inv})
	}
	for i := range jobs {
		id := do(&cluster.Submit{Spec: hostile()}).(cluster.JobID)
		if i < nodes {
			start := &cluster.Alloc{
				Partition: "main", Types: map[string]int64{"h100": 8},
				Shares: []cluster.Share{
					{Node: node(i), CPUs: cluster.RangeIDSet(0, 7), GPUs: cluster.RangeIDSet(0, 7), Tasks: 1},
				},
			}
			do(&cluster.Decide{Decisions: []cluster.Decision{{Job: id, Task: cluster.TaskAny, Start: start}}})
		}
	}
	return state
}

// Doing carries out commands of the system on a state, the first as the entry behind an index. The results are
// returned; one that is refused ends the test.
func Doing(t testing.TB, state *cluster.State, index uint64) func(cluster.Command) any {
	return func(c cluster.Command) any {
		t.Helper()
		index++
		out := state.Apply(cluster.Entry{Index: index, At: time.Now(), By: cluster.Identity{System: true}, Cmd: c})
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		return out.Result
	}
}

func node(i int) cluster.NodeName { return cluster.NodeName(fmt.Sprintf("n%05d", i)) }

// hostile is a job whose name and user try to be markup.
func hostile() *cluster.JobSpec {
	return &cluster.JobSpec{
		Name: "<script>alert(1)</script>", UID: 1000, User: `a"><img src=x>`,
		Partitions: []string{"main"}, Kind: cluster.Batch, Limit: time.Hour,
		Layout: &cluster.Layout{PerNode: []cluster.GRES{{Name: "gpu", Count: 8}}},
	}
}
