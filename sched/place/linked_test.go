package place

import (
	"testing"

	"dev.muster/cluster"
)

// TestBridgedPairs: of GPUs that are bridged in pairs a job has whole pairs, and what it leaves are whole pairs, too.
func TestBridgedPairs(t *testing.T) {
	inv := &cluster.Inventory{}
	for i := range 8 {
		links := make([]int, 8)
		links[i^1] = 4
		inv.GPUs = append(inv.GPUs, cluster.GPU{Index: i, Links: links})
	}
	free := &NodeFree{node: &cluster.Node{Inventory: *inv}}
	for name, c := range map[string]struct {
		from []int
		n    int64
		want string
	}{
		"4 of 7":        {[]int{1, 2, 3, 4, 5, 6, 7}, 4, "2-5"},
		"2 of 7":        {[]int{1, 2, 3, 4, 5, 6, 7}, 2, "2-3"},
		"1 of 7":        {[]int{1, 2, 3, 4, 5, 6, 7}, 1, "1"},
		"3 of 7":        {[]int{1, 2, 3, 4, 5, 6, 7}, 3, "1-3"},
		"5 of 7":        {[]int{1, 2, 3, 4, 5, 6, 7}, 5, "1-5"},
		"1 of 8":        {[]int{0, 1, 2, 3, 4, 5, 6, 7}, 1, "0"},
		"4 of split":    {[]int{0, 3, 4, 5, 6, 7}, 4, "4-7"},
		"2 of strays":   {[]int{0, 3, 6, 7}, 2, "6-7"},
		"1 of strays":   {[]int{6, 7, 0}, 1, "0"},
		"3 of a stray":  {[]int{0, 2, 3, 4, 5}, 3, "0,2-3"},
		"4 without one": {[]int{0, 1, 2, 4}, 4, "0-2,4"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := pickFrom(free, c.from, []cluster.GRES{{Name: "gpu", Count: c.n}})
			if !ok || got.String() != c.want {
				t.Errorf("%v, %v, want %s", got, ok, c.want)
			}
		})
	}
}
