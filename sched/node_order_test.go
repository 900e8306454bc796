package sched

import (
	"fmt"
	"testing"

	"dev.muster/cluster"
)

// TestRangeOfWeights: of a range of nodes as many as there are of the lowest weights that suffice, as Slurm 22.05.
func TestRangeOfWeights(t *testing.T) {
	for line, want := range map[string]string{
		"-N2-8": "[n4 n5 n6 n7 n8]", "-N2-6": "[n4 n5 n6 n7 n8]", "-N2-3": "[n5 n6 n7]",
		"-N6-7": "[n3 n4 n5 n6 n7 n8]", "-N6-8": "[n3 n4 n5 n6 n7 n8]",
		"-N2-8 -n8": "[n4 n5 n6 n7 n8]", "-N2-8 --exclusive": "[n4 n5 n6 n7 n8]",
		"-N2-8 --spread-job": "[n1 n2 n3 n4 n5 n6 n7 n8]", "-N1-2 -wn1 -xn2,n3,n4,n5,n6,n7,n8": "[n1]", // nothing is left to choose from
	} {
		b := eight(twoLeaves, t)
		for i, w := range []int{100, 100, 50} {
			b.Apply(&cluster.NodeSet{Nodes: []cluster.NodeName{numbered(i + 1)}, Weight: &w})
		}
		id := b.Submit(ask(t, line))
		b.ScheduleAll()
		if j, _ := b.S.Job(id); fmt.Sprint(j.AllocNodes()) != want {
			t.Errorf("%s: %v, want %s", line, j.AllocNodes(), want)
		}
	}
}

// TestContiguousBesideBusy is where Slurm 22.05 puts jobs of neighbours while a node is busy.
func TestContiguousBesideBusy(t *testing.T) {
	for _, c := range []struct{ busy, nodes, first int }{
		{1, 2, 2}, {1, 3, 2}, {1, 4, 2}, {1, 5, 2}, {2, 2, 3}, {2, 3, 3}, {2, 4, 3}, {2, 5, 3},
		{3, 2, 1}, {3, 3, 4}, {3, 4, 4}, {3, 5, 4}, {4, 2, 1}, {4, 3, 1}, {4, 4, 5}, {6, 2, 7}, {6, 3, 1},
		{6, 4, 1}, {6, 5, 1},
	} {
		b := eight(twoLeaves, t)
		b.Submit(ask(t, fmt.Sprintf("-N1 --exclusive -wn%d", c.busy)))
		b.ScheduleAll()
		id := b.Submit(ask(t, fmt.Sprintf("-N%d --exclusive --contiguous", c.nodes)))
		b.ScheduleAll()
		want := fmt.Sprint(names(c.first, c.first+c.nodes-1))
		if j, _ := b.S.Job(id); fmt.Sprint(j.AllocNodes()) != want {
			t.Errorf("n%d busy, %d nodes: %v, want %s", c.busy, c.nodes, j.AllocNodes(), want)
		}
	}
}
