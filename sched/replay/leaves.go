package replay

import (
	"cmp"
	"slices"

	"dev.muster/cluster"
)

// wired reports whether the trace says how its nodes hang together.
func (t *Trace) wired() bool {
	return slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.Switch != "" })
}

// Wire notes which leaf switch each node is at.
func (t *Trace) Wire(switches []cluster.Switch) {
	leaves := map[cluster.NodeName]string{}
	for _, s := range switches {
		for _, n := range s.Nodes {
			leaves[n] = s.Name
		}
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		n.Switch = cmp.Or(n.Switch, leaves[cluster.NodeName(n.Name)])
	}
}

// wire makes the switches of the nodes leaves under one other switch.
func (r *real) wire(cfg *cluster.Config) {
	if !r.wired() {
		return
	}
	var names []string
	leaves := map[string][]cluster.NodeName{}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Switch == "" {
			continue
		}
		if leaves[n.Switch] == nil {
			names = append(names, n.Switch)
		}
		leaves[n.Switch] = append(leaves[n.Switch], cluster.NodeName(n.Name))
	}
	top := "above"
	for leaves[top] != nil {
		top += "-all"
	}
	cfg.Blocks, cfg.BlockSizes = nil, nil
	cfg.Topology = []cluster.Switch{{Name: top, Switches: names}}
	for _, name := range names {
		cfg.Topology = append(cfg.Topology, cluster.Switch{Name: name, Nodes: leaves[name]})
	}
}

// spread counts the jobs on several nodes, and of these the ones on more leaves than so many nodes of the partition
// need. Nodes that no switch names count as one leaf.
func (t *Trace) spread(runs []Run) (gangs, wide int) {
	parts := t.parts()
	sizes := map[*part][]int{}
	for _, p := range parts {
		sizes[p] = t.leafSizes(p)
	}
	for i := range runs {
		r := &runs[i]
		if len(r.Nodes) < 2 {
			continue
		}
		gangs++
		met := map[string]bool{}
		for _, n := range r.Nodes {
			met[t.Nodes[n].Switch] = true
		}
		if len(met) > leavesFor(len(r.Nodes), sizes[home(parts, r.Job)]) {
			wide++
		}
	}
	return gangs, wide
}

// leafSizes are how many nodes of a part each leaf has, the most first.
func (t *Trace) leafSizes(p *part) (sizes []int) {
	count := map[string]int{}
	for _, i := range p.nodes {
		count[t.Nodes[i].Switch]++
	}
	for _, n := range count {
		sizes = append(sizes, n)
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	return sizes
}

// leavesFor is how many leaves so many nodes need at least.
func leavesFor(nodes int, sizes []int) (leaves int) {
	for _, n := range sizes {
		if nodes <= 0 {
			break
		}
		nodes -= n
		leaves++
	}
	return leaves
}
