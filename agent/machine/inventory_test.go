package machine

import "testing"

// TestParseHollow: descriptions of hollow nodes, good and bad.
func TestParseHollow(t *testing.T) {
	nodes, err := ParseHollow("2x16c64g8gpu:h100")
	if err != nil || len(nodes) != 2 || nodes[1].Name != "gpu-node-002" {
		t.Fatalf("%v %+v", err, nodes)
	}
	inv := nodes[0].Inventory
	if inv.CPUs != 16 || inv.MemMB != 65536 || len(inv.GPUs) != 8 {
		t.Fatalf("%+v", inv)
	}
	if g := inv.GPUs[7]; g.Type != "h100" || g.Cores.String() != "8-15" {
		t.Errorf("%+v", g)
	}
	for _, bad := range []string{"", "8", "x16c1g", "8x16c", "0x1c1g", "8x16c64gpu", "99999x1c1g", "1x1c1g99gpu"} {
		if _, err := ParseHollow(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
