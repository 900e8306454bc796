package place

import (
	"testing"

	"dev.muster/cluster"
)

// TestExternalDemand: an external job that names more nodes than it asks for takes some of them, and one that names as
// many takes all; other jobs do not fit on external nodes.
func TestExternalDemand(t *testing.T) {
	named := []cluster.NodeName{"n1", "n2", "n3"}
	node := func(name cluster.NodeName, external bool) *cluster.Node {
		return &cluster.Node{Name: name, Inventory: cluster.Inventory{External: external}}
	}
	for _, c := range []struct {
		kind        cluster.Kind
		most        int
		wanted      int
		outside, in bool // a node that is not named, an external one that is
	}{
		{cluster.External, 2, 0, false, true},
		{cluster.External, 3, 3, true, true},
		{cluster.Batch, 2, 3, true, false},
	} {
		spec := &cluster.JobSpec{Kind: c.kind, Layout: &cluster.Layout{NodeList: named, MaxNodes: c.most}}
		d := &Demand{flags: FlagsOf(spec), wanted: spec.Wanted(), excluded: nodeRule{only: onlyNodes(spec)}}
		if len(d.wanted) != c.wanted {
			t.Errorf("kind %d, at most %d nodes: it must have %v", c.kind, c.most, d.wanted)
		}
		if may := d.mayUse(node("n9", false)); may != c.outside {
			t.Errorf("kind %d, at most %d nodes: may use n9: %v", c.kind, c.most, may)
		}
		if may := d.mayUse(node("n1", true)); may != c.in {
			t.Errorf("kind %d, at most %d nodes: may use an external node: %v", c.kind, c.most, may)
		}
	}
}
