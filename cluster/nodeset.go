package cluster

import (
	"cmp"
	"slices"
)

// A partition may be told by features of nodes (NodeSet=… Feature=… in slurm.conf): then its list of nodes has those that
// are named, and a node for as long as it has one of the features.

// joins reports whether a node is in a partition by what it is.
func (p *Partition) joins(n *Node) bool {
	return n != nil && slices.ContainsFunc(p.Features, func(f string) bool { return slices.Contains(n.Inventory.Features, f) })
}

// inOrder compares nodes by their order; what is no node yet comes last.
func (t *tx) inOrder(a, b NodeName) int {
	x, here := t.nodes.Get(a)
	y, there := t.nodes.Get(b)
	switch {
	case here && there:
		return cmp.Compare(x.Order, y.Order)
	case here:
		return -1
	case there:
		return 1
	}
	return 0
}

// gather makes the lists of nodes of all such partitions anew, after the configuration has changed.
func (t *tx) gather() {
	cfg := *t.config
	cfg.Partitions = slices.Clone(cfg.Partitions)
	found := false
	for i := range cfg.Partitions {
		p := &cfg.Partitions[i]
		if len(p.Features) == 0 {
			continue
		}
		found, p.Nodes = true, slices.Clone(p.Named)
		named := make(map[NodeName]bool, len(p.Named))
		for _, name := range p.Named {
			named[name] = true
		}
		for n := range t.Nodes() {
			if p.joins(n) && !named[n.Name] {
				p.Nodes = append(p.Nodes, n.Name)
			}
		}
		slices.SortStableFunc(p.Nodes, t.inOrder)
	}
	if found {
		t.putConfig(&cfg)
	}
}

// regather lets a node that has come, changed or gone into the partitions that its features tell, and out of others.
func (t *tx) regather(old, n *Node) {
	if old != nil && n != nil && slices.Equal(old.Inventory.Features, n.Inventory.Features) {
		return
	}
	var cfg *Config
	for i := range t.config.Partitions {
		p := &t.config.Partitions[i]
		was, is := p.joins(old), p.joins(n)
		if was == is {
			continue
		}
		name := cmp.Or(old, n).Name
		at := slices.Index(p.Nodes, name)
		if is == (at >= 0) || slices.Contains(p.Named, name) {
			continue
		}
		if cfg == nil {
			c := *t.config
			c.Partitions, cfg = slices.Clone(c.Partitions), &c
		}
		nodes := slices.Clone(p.Nodes)
		if is {
			to, _ := slices.BinarySearchFunc(nodes, name, t.inOrder)
			nodes = slices.Insert(nodes, to, name)
		} else {
			nodes = slices.Delete(nodes, at, at+1)
		}
		cfg.Partitions[i].Nodes = nodes
	}
	if cfg != nil {
		t.putConfig(cfg)
	}
}
