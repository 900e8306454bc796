package sched

import (
	"testing"

	"dev.muster/cluster"
)

// TestObservedPlacements is what Slurm 22.05 did, in this order, every job kept running.
func TestObservedPlacements(t *testing.T) {
	b := eight(twoLeaves, t)
	for _, c := range [][2]string{
		{"-N1 -n4", "n1 0-1,8-9"},
		{"-N1 -n2", "n1 2,10"},
		{"-N1 --exclusive", "n2 0-15/0-7"},
		{"-N1 -n14", "n3 0-6,8-14"},
		{"-N2 --exclusive", "n5 0-15/0-7 n6 0-15/0-7"},
		{"-N1 -n1", "n7 0"},
		{"-N1 -n1", "n7 1"},
		{"-N1 -n3", "n1 3-4,11"},
		{"-n20", "n7 2-15 n8 0-2,8-10"},
		{"--gpus=1", "n8 3/0"},
		{"-N1 -n8 --gpus=4", "n4 0-7/0-3"},
	} {
		id := b.Submit(ask(t, c[0]))
		b.ScheduleAll()
		if got := b.Got(id); got != c[1] {
			t.Errorf("%-20s %s\nwant %16s%s", c[0], got, "", c[1])
		}
	}
}

// TestOneJobOnEmptyNodes is where Slurm 22.05 puts a job when nothing else runs.
func TestOneJobOnEmptyNodes(t *testing.T) {
	heavy := func(b *testbed) {
		for _, n := range names(1, 2) {
			weight := 50
			b.Apply(&cluster.NodeSet{Nodes: []cluster.NodeName{n}, Weight: &weight})
		}
	}
	for _, c := range []struct {
		ask, want string
		before    func(*testbed)
	}{
		{"-N2 -n20", "n1 0-15 n2 0-1,8-9", nil},
		{"-N3 -n9", "n1 0-3,8-10 n2 0 n3 0", nil},
		{"-N2 --gpus=6", "n1 0/0-3 n2 0/0-1", nil},
		{"-N2 --gpus=10", "n1 0/0-5 n2 0/0-3", nil},
		{"-N2 --gpus=12", "n1 0/0-7 n2 0/0-3", nil},
		{"-N3 --gpus=9", "n1 0/0-3 n2 0/0-3 n3 0/0", nil},
		{"-N2 -n4 --gpus=6", "n1 0-1,8/0-4 n2 0/0", nil},
		{"-n4 -c6", "n1 0-5,8-13 n2 0-5,8-13", nil},
		{"-n3 -c2", "n1 0-5", nil},
		{"-n3 -c3", "n1 0-5,8-10", nil},
		{"-c9", "n1 0-4,8-11", nil},
		{"-n4 -mblock:block", "n1 0-3", nil},
		{"-n4 -mplane=2", "n1 0-3", nil},
		{"-n3 -c3 -mblock:block", "n1 0-8", nil}, // tasks lie across sockets
		{"-n10 -mblock:block", "n1 0-9", nil},
		{"-N5", "n1 0 n2 0 n3 0 n4 0 n5 0", nil},
		{"-N1", "n3 0", heavy},
		{"-N3", "n5 0 n6 0 n7 0", heavy},
		{"-N6", "n3 0 n4 0 n5 0 n6 0 n7 0 n8 0", heavy},
		{"-N7", "n1 0 n3 0 n4 0 n5 0 n6 0 n7 0 n8 0", heavy},
		{"-N2-4", "n1 0 n2 0 n3 0 n4 0", nil},
		{"-N2-4 -n3", "n1 0 n2 0 n3 0", nil},
		{"-N2-4 -n8", "n1 0-2,8-9 n2 0 n3 0 n4 0", nil},
		{"-N2-4 --use-min-nodes", "n1 0 n2 0", nil},
		{"--spread-job -n6", "n1 0 n2 0 n3 0 n4 0 n5 0 n6 0", nil},
		{"--spread-job", "n1 0", nil},
		{"--spread-job --gpus=4", "n1 0/0-3", nil},
		{"--spread-job -wn3", "n3 0", nil},
		{"--spread-job -N2-4", "n1 0 n2 0 n3 0 n4 0", nil},
		{"--spread-job -N2-6 -n12", "n1 0-3,8-10 n2 0 n3 0 n4 0 n5 0 n6 0", nil},
		{"-wn3 -N3", "n1 0 n2 0 n3 0", nil},
		{"-wn3,n7 -N3", "n1 0 n3 0 n7 0", nil},
		{"-N2-3 -wn7", "n5 0 n6 0 n7 0", nil},
		{"-wn6 -N6 -n20", "n1 0 n2 0 n5 0 n6 0-14 n7 0 n8 0", nil},
		{"--contiguous -N3 -xn2", "n3 0 n4 0 n5 0", nil},
		{"-N3 -xn2", "n1 0 n3 0 n4 0", nil},
		{"--switches=1 -N3", "n1 0 n2 0 n3 0", nil},
		{"--switches=1 -N5", "waits Resources", nil},
		{"-n8 --gpus-per-task=1", "n1 0-3,8-11/0-7", nil},
		{"-n4 --gpus-per-task=1 --gpus-per-node=2", "n1 0-1/0-1 n2 0-1/0-1", nil},
		{"-N2 -n4 --gpus-per-task=2 --gpus-per-node=4", "n1 0-1/0-3 n2 0-1/0-3", nil},
		{"-n4 --gpus-per-node=6", "n1 0-1,8-9/0-5", nil},
		{"-N1 -n12 --gpus=2", "n1 0-11/0-1", nil},
		{"-N1 -n12 --gpus-per-node=2 --gres-flags=enforce-binding", "waits " + string(cluster.WaitNodesDown), nil},
		{"-N1 --gpus=6", "n1 0/0-5", nil},
		{"-n5 --ntasks-per-socket=1", "n1 0,8 n2 0,8 n3 0", nil}, // Slurm: n3 8
		{"-n3 --ntasks-per-socket=2", "n1 0-1,8", nil},
		{"-n4 --ntasks-per-core=1", "n1 0-1,8-9", nil},
		{"-n2 --sockets-per-node=2 --gpus-per-socket=1", "n1 0,8/0,4", nil},
		{"--sockets-per-node=1 --gpus-per-socket=2 --gpus=2", "n1 0/0-1", nil},
		{"--sockets-per-node=2 --gpus-per-socket=1 --gpus=4", "n1 0/0,4 n2 0/0,4", nil},
		{"-n4 --hint=compute_bound", "n1 0-1,8-9", nil},
		{"-n4 --hint=memory_bound", "n1 0-1,8-9", nil},
		{"--mincpus=9", "n1 0-4,8-11", nil},
		{"--cpus-per-gpu=3 --gpus=3", "n1 0-8/0-2", nil}, // Slurm: 0-4,8-11
		{"-N2 --cpus-per-gpu=4 --gpus=6", "n1 0-15/0-3 n2 0-7/0-1", nil},
		{"-Crack2", "n5 0", nil},
		{"-C(rack1|rack2)&h100 -N5", "n1 0 n2 0 n3 0 n4 0 n5 0", nil},
		{"-C[rack1|rack2] -N3", "n1 0 n2 0 n3 0", nil},
		{"-C[rack1*1&rack2*3] -N4", "n1 0 n5 0 n6 0 n7 0", nil},
		{"--prefer=rack2 -N1", "n5 0", nil},
	} {
		b := eight(twoLeaves, t)
		if c.before != nil {
			c.before(b)
		}
		id := b.Submit(ask(t, c.ask))
		b.ScheduleAll()
		if got := b.Got(id); got != c.want {
			t.Errorf("%-24s %s\nwant %20s%s", c.ask, got, "", c.want)
		}
	}
}
