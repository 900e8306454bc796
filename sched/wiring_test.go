package sched

import (
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestFoundLeaves: without topology.conf jobs go below one leaf switch, as the nodes found them, if they fit; a larger job
// waits for none, nor does one that needs nodes of which no leaf is known.
func TestFoundLeaves(t *testing.T) {
	var nodes []cluster.Inventory
	for _, leaf := range []string{"a", "b", "a", "b", "b", ""} {
		inv := machine()
		if leaf != "" {
			inv.NICs = []cluster.NIC{{Device: "mlx5_0", Port: 1, Leaf: leaf}}
		}
		nodes = append(nodes, inv)
	}
	for _, c := range []struct{ ask, want string }{
		{"-N2", "n1 n3"},
		{"-N3", "n2 n4 n5"},
		{"-N6", "n1 n2 n3 n4 n5 n6"},
		{"-N4 --switches=2", "n2 n4 n5 n6"},
	} {
		b := namedBed(t, nil, nodes...)
		id := b.submit(ask(t, c.ask))
		b.cycle()
		j, _ := b.s.Job(id)
		if got := words(j.AllocNodes()); got != c.want {
			t.Errorf("%s got %q, want %q", c.ask, got, c.want)
		}
	}
}

func words(names []cluster.NodeName) string {
	var out []string
	for _, n := range names {
		out = append(out, string(n))
	}
	return strings.Join(out, " ")
}
