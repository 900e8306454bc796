package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// declaredNode is what a NodeName line says.
func declaredNode(cpus int, mem MemMB, gpus ...string) Inventory {
	inv := Inventory{Sockets: 2, CoresPerSocket: 4, ThreadsPerCore: 1, CPUs: cpus, MemMB: mem}
	for i, kind := range gpus {
		inv.GPUs = append(inv.GPUs, GPU{Index: i, Minor: i, Type: kind})
	}
	return inv
}

// TestDeclaredLimits: what a NodeName line declares below what the node finds is what jobs may have; what it declares
// above it is not there, and the node's reason says so.
func TestDeclaredLimits(t *testing.T) {
	for name, c := range map[string]struct {
		said   Inventory
		gres   []GRESLine
		want   string // CPUs, memory, types of GPUs; n0 finds 8, 8000 MB and two of h100
		reason string
	}{
		"nothing said":    {declaredNode(1, 1), nil, "8 8000 h100 h100", ""},
		"the same":        {declaredNode(8, 8000, "h100", "h100"), nil, "8 8000 h100 h100", ""},
		"fewer CPUs":      {declaredNode(6, 1), nil, "6 8000 h100 h100", ""},
		"less memory":     {declaredNode(1, 6000), nil, "8 6000 h100 h100", ""},
		"fewer GPUs":      {declaredNode(1, 1, "h100"), nil, "8 8000 h100", ""},
		"GPUs of no type": {declaredNode(1, 1, ""), nil, "8 8000 h100", ""},
		"more CPUs":       {declaredNode(16, 1), nil, "8 8000 h100 h100", "cpu: 8 of 16 found"},
		"more memory":     {declaredNode(1, 16000), nil, "8 8000 h100 h100", "memory: 8000 of 16000 MB found"},
		"more GPUs": {declaredNode(1, 1, "h100", "h100", "h100"), nil, "8 8000 h100 h100",
			"gpu: 2 of 3 found, Gres=gpu:h100:3: 2 of 3 found of Type=h100"},
		"another type": {declaredNode(1, 1, "a100", "a100"), nil, "8 8000 h100 h100",
			"Gres=gpu:a100:2: found 2 of type h100"},
		"gres.conf says it": {declaredNode(1, 1, "h100"), []GRESLine{{At: "gres.conf:1", Name: "gpu", Count: 2}},
			"8 8000 h100 h100", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0)
			cfg := DefaultConfig()
			cfg.Declared = []Node{{Name: "n0", Inventory: c.said}}
			cfg.GRES = c.gres
			w.ok(root, &Configure{Config: &cfg})
			w.ok(sys, &NodeUp{Name: "n0", Inventory: machine("a", "b")})
			n, _ := w.s.Node("n0")
			got := fmt.Sprint(n.Inventory.CPUs, " ", n.Inventory.MemMB)
			for _, g := range n.Inventory.Found() {
				got += " " + g.Type
			}
			if got != c.want || n.Reason != c.reason || !n.Usable() {
				t.Errorf("%s, reason %q; want %s, reason %q", got, n.Reason, c.want, c.reason)
			}
		})
	}
}

// TestDeclaredLater: a line that comes to limit a node counts when that registers again, and so does its end.
func TestDeclaredLater(t *testing.T) {
	w := newWorld(t, 0)
	has := func(said Inventory, cpus int, reason string) {
		t.Helper()
		cfg := DefaultConfig()
		cfg.Declared = []Node{{Name: "n0", Inventory: said}}
		w.ok(root, &Configure{Config: &cfg})
		w.ok(sys, &NodeUp{Name: "n0", Inventory: machine("a", "b"), Again: true})
		if n, _ := w.s.Node("n0"); n.Inventory.CPUs != cpus || !strings.Contains(n.Reason, reason) {
			t.Errorf("%d CPUs, reason %q; want %d, %q", n.Inventory.CPUs, n.Reason, cpus, reason)
		}
	}
	has(declaredNode(1, 1), 8, "")
	has(declaredNode(4, 1), 4, "")
	has(declaredNode(8, 1), 8, "")
	has(declaredNode(9, 1), 8, "cpu: 8 of 9 found")
	has(declaredNode(4, 1), 4, "")
}

// TestDeclaredThreads: a line that has one CPU for each core of several threads means the whole machine.
func TestDeclaredThreads(t *testing.T) {
	for said, want := range map[int]int{8: 16, 16: 16, 6: 6} {
		t.Run(fmt.Sprint(said), func(t *testing.T) {
			h := Hardware{CPUs: said}
			inv := Inventory{Sockets: 2, CoresPerSocket: 4, ThreadsPerCore: 2, CPUs: 16}
			h.limit(&inv)
			if inv.CPUs != want {
				t.Errorf("%d CPUs, want %d", inv.CPUs, want)
			}
		})
	}
}
