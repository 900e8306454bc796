package cluster

import (
	"slices"
	"testing"
)

func lscratch(kind string, n int64) GRES { return GRES{Name: "lscratch", Type: kind, Count: n} }

// TestFindCounted: a request without a type takes of all types in turn, and what is not consumed is only compared.
func TestFindCounted(t *testing.T) {
	inv := &Inventory{Shared: []GRES{
		{Name: "shard", Count: 4}, lscratch("ssd", 10), lscratch("hdd", 5), {Name: "bw", Count: 4, Unconsumed: true},
	}}
	for _, c := range []struct {
		name        string
		wants, used []GRES
		out         []GRES
		refused     bool
	}{
		{name: "by type", wants: []GRES{lscratch("hdd", 5)}, out: []GRES{lscratch("hdd", 5)}},
		{name: "of both types", wants: []GRES{lscratch("", 12)}, out: []GRES{lscratch("hdd", 2), lscratch("ssd", 10)}},
		{name: "beside others", wants: []GRES{lscratch("", 12)}, used: []GRES{lscratch("ssd", 3)},
			out: []GRES{lscratch("hdd", 5), lscratch("ssd", 7)}},
		{name: "too many", wants: []GRES{lscratch("", 13)}, used: []GRES{lscratch("ssd", 3)}, refused: true},
		{name: "twice", wants: []GRES{lscratch("ssd", 6), lscratch("ssd", 5)}, refused: true},
		{name: "not consumed", wants: []GRES{{Name: "bw", Count: 4}}, used: []GRES{{Name: "bw", Count: 4}}},
		{name: "more than there is of what is not consumed", wants: []GRES{{Name: "bw", Count: 5}}, refused: true},
		{name: "not there", wants: []GRES{{Name: "tape", Count: 1}}, refused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, ok := inv.FindCounted(c.wants, c.used)
			if ok == c.refused || !slices.Equal(out, c.out) {
				t.Errorf("%v, %t", out, ok)
			}
		})
	}
}

// TestCountText: multiples of 1024 have a unit, as Slurm writes them.
func TestCountText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 1000: "1000", 1024: "1K", 1536: "1536", 4 << 30: "4G", 1 << 62: "4096P",
	} {
		if got := (&GRES{Count: n}).CountText(); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}

// TestCountedReconfigured: a new count holds for nodes that are up at once.
func TestCountedReconfigured(t *testing.T) {
	w := newWorld(t, 0)
	w.ok(sys, &NodeUp{Name: "n0", Inventory: smallNode()})
	for _, count := range []int{10, 4} {
		cfg := *w.s.Config()
		cfg.GRES = []GRESLine{{Name: "lscratch", Count: count}}
		w.ok(sys, &Configure{Config: &cfg})
		n, _ := w.s.Node("n0")
		if !slices.Equal(n.Inventory.Shared, []GRES{lscratch("", int64(count))}) {
			t.Errorf("the node has %v", n.Inventory.Shared)
		}
	}
}
