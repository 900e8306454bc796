package cluster

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// rostersOf is who is in the partitions, switches and blocks of a configuration.
func rostersOf(c *Config) string {
	var out []string
	for _, p := range c.Partitions {
		out = append(out, fmt.Sprintf("%s=%v", p.Name, p.Nodes))
	}
	for _, s := range c.Topology {
		out = append(out, fmt.Sprintf("%s=%v%v", s.Name, s.Nodes, s.Switches))
	}
	for _, b := range c.Blocks {
		out = append(out, fmt.Sprintf("%s=%v", b.Name, b.Nodes))
	}
	return strings.Join(out, " ")
}

// bringing is a small node with features, joined by commas, and a place.
func bringing(features, topology string) Inventory {
	inv := smallNode()
	inv.Features, inv.Topology = strings.FieldsFunc(features, func(r rune) bool { return r == ',' }), topology
	return inv
}

// TestRosters: nodes get into partitions and below switches by a feature or by what they ask for, stay where a name
// puts them, move when they bring something else and leave when they are gone; a snapshot and a new configuration
// keep that.
func TestRosters(t *testing.T) {
	w := newWorld(t, 0)
	cfg := DefaultConfig()
	cfg.NodeSets = []NodeGroup{
		{Name: "fast", Features: []string{"h100"}},
		{Name: "mixed", Nodes: []NodeName{"n3"}, Features: []string{"h100"}},
	}
	cfg.Partitions = []Partition{{Name: "p", Nodes: []NodeName{"fast"}}, {Name: "q", Nodes: []NodeName{"mixed"}}}
	cfg.Topology = []Switch{
		{Name: "a", Nodes: []NodeName{"n0"}}, {Name: "b", Nodes: []NodeName{"fast"}}, {Name: "c"},
		{Name: "top", Switches: []string{"a", "b", "c"}},
	}
	w.ok(root, &Configure{Config: &cfg})
	is := func(step, want string) {
		t.Helper()
		if got := rostersOf(w.s.Config()); got != want {
			t.Errorf("%s: got %s\nwant %s", step, got, want)
		}
		var b bytes.Buffer
		if err := w.s.Snapshot().Encode(&b); err != nil {
			t.Fatal(err)
		}
		read, err := Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if got := rostersOf(read.Config()); got != want {
			t.Errorf("%s, read back: %s\nwant %s", step, got, want)
		}
	}
	up := func(i int, inv Inventory) { w.ok(sys, &NodeUp{Name: nodeName(i), Inventory: inv}) }
	is("nobody", "p=[] q=[n3] a=[n0][] b=[][] c=[][] top=[][a b c]")
	up(0, bringing("h100", "c"))
	is("a name counts more", "p=[n0] q=[n0 n3] a=[n0][] b=[][] c=[][] top=[][a b c]")
	up(2, bringing("h100", "c"))
	is("a place counts more than a feature", "p=[n0 n2] q=[n0 n2 n3] a=[n0][] b=[][] c=[n2][] top=[][a b c]")
	up(1, bringing("h100", ""))
	up(3, bringing("", "a"))
	is("more of them", "p=[n0 n1 n2] q=[n0 n1 n2 n3] a=[n0 n3][] b=[n1][] c=[n2][] top=[][a b c]")
	w.ok(root, &PartitionSet{Partition: Partition{Name: "r", Nodes: []NodeName{"n3", "fast"}}})
	w.ok(root, &PartitionSet{Partition: Partition{Name: "q", Nodes: []NodeName{"n3"}}})
	place := "b"
	w.ok(root, &NodeSet{Nodes: []NodeName{"n2"}, Topology: &place, Features: &[]string{"old"}})
	is("moved", "p=[n0 n1] q=[n3] r=[n0 n1 n3] a=[n0 n3][] b=[n1 n2][] c=[][] top=[][a b c]")
	place = "nowhere"
	w.ok(root, &NodeSet{Nodes: []NodeName{"n3"}, Topology: &place})
	if got := fmt.Sprint(w.s.Misplaced()); got != "map[n0:n0 asks for Topology=c, but topology.conf names it below a "+
		"n3:n3 asks for Topology=nowhere, but topology.conf has no such block, or switch above no others]" {
		t.Error(got)
	}
	w.ok(sys, &NodeDown{Nodes: []NodeName{"n1"}})
	w.ok(root, &NodeDelete{Nodes: []NodeName{"n1"}})
	is("gone", "p=[n0] q=[n3] r=[n0 n3] a=[n0][] b=[n2][] c=[][] top=[][a b c]")
	cfg.Topology, cfg.Blocks = nil, []Block{{Name: "b"}, {Name: "x", Nodes: []NodeName{"fast"}}}
	w.ok(root, &Configure{Config: &cfg})
	is("another configuration", "p=[n0] q=[n0 n3] b=[n2] x=[n0]")
}

// TestWiringAsked: without a topology.conf what nodes say of their place is the tree, or the blocks.
func TestWiringAsked(t *testing.T) {
	w := newWorld(t, 0)
	for i, rack := range []string{"r2", "r1", "r2", ""} {
		w.ok(sys, &NodeUp{Name: nodeName(i), Inventory: bringing("", rack)})
	}
	if got := plan(w.s.Wiring()); got != "r1=[n1][] r2=[n0 n2][] unknown=[n3][] fabric=[][r1 r2 unknown]" {
		t.Error(got)
	}
	cfg := DefaultConfig()
	cfg.Keys = map[string]string{"topologyplugin": "topology/block"}
	w.ok(root, &Configure{Config: &cfg})
	if got := plan(w.s.Wiring()); got != "r1=[n1] r2=[n0 n2] unknown=[n3]" {
		t.Error(got)
	}
}

// TestSaid: a node that was told to have more than it finds says so.
func TestSaid(t *testing.T) {
	w := newWorld(t, 0)
	inv := smallNode()
	inv.Said = Hardware{CPUs: inv.CPUs + 2, GPUs: len(inv.GPUs) + 1}
	w.ok(sys, &NodeUp{Name: "n0", Inventory: inv})
	n, _ := w.s.Node("n0")
	if want := fmt.Sprintf("gpu: %d of %d found, cpu: %d of %d found", len(inv.GPUs), len(inv.GPUs)+1, inv.CPUs, inv.CPUs+2); n.Reason != want {
		t.Errorf("got %q, want %q", n.Reason, want)
	}
}
