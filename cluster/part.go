package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// GPUPart is a part of one GPU of a node: so many of its shards, or of its MPS shares. All that a job has on a node
// is of one GPU; a GPU of which parts are given out is given to nobody as a whole.
type GPUPart struct {
	Name  string `json:"name"` // shard or mps
	GPU   int    `json:"gpu"`  // device index on the node
	Count int64  `json:"count"`
	// Of is how many such parts the GPU has in all. The sums of what is given out of a GPU do not have it.
	Of int64 `json:"of,omitempty"`
}

// String names it as people do: shard:2 of GPU 0.
func (p *GPUPart) String() string {
	if p == nil {
		return "no part"
	}
	return fmt.Sprintf("%s:%d of GPU %d", p.Name, p.Count, p.GPU)
}

// PartNames are the generic resources that are parts of GPUs.
var PartNames = []string{"shard", "mps"}

// Part is what a list asks for of a GPU's parts on each node; nil if nothing.
func Part(list []GRES) *GRES {
	for k := range list {
		if slices.Contains(PartNames, list[k].Name) && list[k].Count > 0 {
			return &list[k]
		}
	}
	return nil
}

// PartsOf is how many parts of this name each GPU of the node has: they are spread evenly (gres.conf(5)).
func (inv *Inventory) PartsOf(name string) int64 {
	k := slices.IndexFunc(inv.Shared, func(g GRES) bool { return g.Name == name })
	if k < 0 || len(inv.GPUs) == 0 {
		return 0
	}
	return inv.Shared[k].Count / int64(len(inv.GPUs))
}

// FindPart picks the GPU for parts: of those from which parts of the name are given out already the fullest that has
// enough left, else the first that is free. false if there is none.
func (inv *Inventory) FindPart(want *GRES, parts []GPUPart, free IDSet) (GPUPart, bool) {
	each := inv.PartsOf(want.Name)
	best := GPUPart{Count: -1}
	for _, p := range parts {
		if p.Name == want.Name && p.Count+want.Count <= each && p.Count > best.Count && !inv.GPUs[p.GPU].Missing {
			best = p
		}
	}
	if best.Count >= 0 {
		return GPUPart{want.Name, best.GPU, want.Count, each}, true
	}
	if want.Count > each || free.Empty() {
		return GPUPart{}, false
	}
	return GPUPart{want.Name, free.Min(), want.Count, each}, true
}

// AddPart adds parts of a GPU to a sorted list of sums, or, with a count below zero, takes them off. The list given is
// not changed.
func AddPart(list []GPUPart, p GPUPart) []GPUPart {
	p.Of = 0
	sameGPU := func(a, b GPUPart) int { return cmp.Or(a.GPU-b.GPU, cmp.Compare(a.Name, b.Name)) }
	return addSum(list, p, sameGPU, func(p *GPUPart) *int64 { return &p.Count })
}

// partGPUs are the GPUs of which parts are given out.
func partGPUs(list []GPUPart) (set IDSet) {
	for _, p := range list {
		set = set.Union(NewIDSet(p.GPU))
	}
	return set
}
