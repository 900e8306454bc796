package ui

import "testing"

// TestNodeTitle: a tile that is too small for a name is told apart by its title alone.
func TestNodeTitle(t *testing.T) {
	cpus := Gauge{Name: "CPUs", Used: 3, Have: 16}
	gpus := Gauge{Name: "GPUs", Used: 8, Have: 8}
	for _, c := range []struct {
		name string
		node Node
		want string
	}{
		{"no GPUs", Node{Name: "n1", State: "mixed", CPUs: cpus}, "n1: mixed, 3 of 16 CPUs"},
		{"GPUs", Node{Name: "n2", State: "running", CPUs: cpus, GPU: gpus},
			"n2: running, 8 of 8 GPUs, 3 of 16 CPUs"},
		{"a reason", Node{Name: "n3", State: "down", CPUs: cpus, Reason: "fan"}, "n3: down, 3 of 16 CPUs: fan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.node.Title(); got != c.want {
				t.Errorf("title %q, want %q", got, c.want)
			}
		})
	}
}
