package cluster

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// wired is a small node with a port on each leaf.
func wired(leaves ...string) Inventory {
	inv := smallNode()
	for i, l := range leaves {
		inv.NICs = append(inv.NICs, NIC{
			Device: fmt.Sprintf("mlx5_%d", i), Port: 1, Link: "InfiniBand", State: PortActive, Leaf: l,
		})
	}
	return inv
}

// plan is a wiring in a line.
func plan(w Wiring) string {
	var out []string
	for _, s := range w.Switches {
		out = append(out, fmt.Sprintf("%s=%v%v", s.Name, s.Nodes, s.Switches))
	}
	for _, b := range w.Blocks {
		out = append(out, fmt.Sprintf("%s=%v", b.Name, b.Nodes))
	}
	return strings.Join(out, " ")
}

// TestWiring: nodes that share their leaves are below one switch, all switches below one; it follows the nodes,
// outlives a snapshot and yields to topology.conf and TopologyPlugin.
func TestWiring(t *testing.T) {
	w := newWorld(t, 0)
	is := func(want string) {
		t.Helper()
		if got := plan(w.s.Wiring()); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		var b bytes.Buffer
		if err := w.s.Snapshot().Encode(&b); err != nil {
			t.Fatal(err)
		}
		read, err := Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got := plan(read.Wiring()); got != want {
			t.Errorf("read back: %s\nwant %s", got, want)
		}
	}
	up := func(i int, inv Inventory) { w.ok(sys, &NodeUp{Name: nodeName(i), Inventory: inv}) }
	for i := range 4 {
		up(i, smallNode())
	}
	is("")
	up(0, wired("leaf2"))
	up(1, wired("leaf1"))
	up(2, wired("leaf1"))
	is("leaf1=[n1 n2][] leaf2=[n0][] unknown=[n3][] fabric=[][leaf1 leaf2 unknown]")
	up(0, wired("rail1", "rail0"))
	up(3, wired("rail0", "rail1", "rail1"))
	is("leaf1=[n1 n2][] rail0+rail1=[n0 n3][] fabric=[][leaf1 rail0+rail1]")
	inv := wired("leaf1")
	inv.NICs = append(inv.NICs, NIC{Device: "mlx5_bond", Port: 1, Link: "Ethernet", Leaf: "storage"})
	up(1, inv)
	is("leaf1=[n1 n2][] rail0+rail1=[n0 n3][] fabric=[][leaf1 rail0+rail1]")
	cfg := DefaultConfig()
	cfg.Keys = map[string]string{"topologyplugin": "topology/flat"}
	w.ok(root, &Configure{Config: &cfg})
	is("")
	cfg.Keys = map[string]string{"topologyplugin": "topology/block"}
	w.ok(root, &Configure{Config: &cfg})
	is("")
	inv = wired("leaf1")
	inv.GPUs[0].Fabric = "f7.1"
	up(1, inv)
	up(3, inv)
	is("f7.1=[n1 n3] unknown=[n0 n2]")
	if !w.s.HasBlocks() {
		t.Error("there are blocks")
	}
	cfg.Keys = nil
	cfg.Topology = []Switch{{Name: "s1", Nodes: []NodeName{"n0"}}}
	w.ok(root, &Configure{Config: &cfg})
	is("s1=[n0][]")
}

// TestMisplaced: a topology.conf that contradicts what ports say, by the names of switches or by who is with whom.
func TestMisplaced(t *testing.T) {
	w := newWorld(t, 0)
	for i, leaf := range []string{"leaf1", "leaf1", "leaf1", "leaf2", "leaf2"} {
		w.ok(sys, &NodeUp{Name: nodeName(i), Inventory: wired(leaf)})
	}
	w.ok(sys, &NodeUp{Name: "n5", Inventory: smallNode()})
	cfg := DefaultConfig()
	for _, c := range []struct {
		switches []Switch
		want     string
	}{
		{
			[]Switch{
				{Name: "leaf1", Nodes: []NodeName{"n0", "n1", "n2", "n5"}},
				{Name: "leaf2", Nodes: []NodeName{"n3", "n4"}},
			},
			"map[]",
		},
		{[]Switch{{Name: "leaf1", Nodes: []NodeName{"n0", "n1", "n2", "n3"}}, {Name: "leaf2", Nodes: []NodeName{"n4"}}},
			"map[n3:topology.conf places n3 under leaf1, but its ports report leaf2]"},
		{[]Switch{{Name: "s1", Nodes: []NodeName{"n0", "n1", "n2", "n3"}}, {Name: "s2", Nodes: []NodeName{"n4"}}},
			"map[n3:topology.conf places n3 under s1, whose other nodes are on leaf1, but its ports report leaf2]"},
		{[]Switch{{Name: "s1", Nodes: []NodeName{"n0", "n3"}}}, "map[]"},
	} {
		cfg.Topology = c.switches
		w.ok(root, &Configure{Config: &cfg})
		if got := fmt.Sprint(w.s.Misplaced()); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", plan(w.s.Wiring()), got, c.want)
		}
	}
}
