package cluster

import (
	"strings"
	"testing"
)

// TestCheckNodeUp: hardware that no machine has is refused before it is written down: the leader makes sets of its
// size, and would end as soon as it plans, and each server that leads after it.
func TestCheckNodeUp(t *testing.T) {
	snap := newWorld(t, 1).s.Snapshot()
	for name, c := range map[string]struct {
		change func(*Inventory)
		want   ErrKind
	}{
		"as it is":        {func(*Inventory) {}, ""},
		"large":           {func(inv *Inventory) { inv.Sockets, inv.CoresPerSocket, inv.CPUs = 64, 1024, 1<<16 }, ""},
		"CPUs":            {func(inv *Inventory) { inv.CPUs = 1 << 40 }, ErrTooBig},
		"CPUs below 0":    {func(inv *Inventory) { inv.CPUs = -1 }, ErrTooBig},
		"sockets":         {func(inv *Inventory) { inv.Sockets = 1 << 60 }, ErrTooBig},
		"cores":           {func(inv *Inventory) { inv.Sockets, inv.CoresPerSocket = 1<<16, 1<<16 }, ErrTooBig},
		"threads below 0": {func(inv *Inventory) { inv.ThreadsPerCore = -5 }, ErrTooBig},
		"GPUs":            {func(inv *Inventory) { inv.GPUs = make([]GPU, maxNodeParts+1) }, ErrTooBig},
		"memory":          {func(inv *Inventory) { inv.MemMB = 1 << 62 }, ErrTooBig},
		"memory below 0":  {func(inv *Inventory) { inv.MemMB = -1 }, ErrTooBig},
		"said":            {func(inv *Inventory) { inv.Said.CPUs = 1 << 40 }, ErrTooBig},
		"texts":           {func(inv *Inventory) { inv.OS = strings.Repeat("a", maxNodeBytes) }, ErrTooBig},
		"texts in a fault": {func(inv *Inventory) {
			inv.Faults = []Fault{{Text: strings.Repeat("\x01", 1<<19)}}
		}, ErrTooBig},
	} {
		up := &NodeUp{Name: "n0", Inventory: smallNode()}
		c.change(&up.Inventory)
		if got := kindOf(Check(snap, up)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
