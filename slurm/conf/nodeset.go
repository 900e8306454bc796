package conf

import (
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// nodeSet is a line NodeSet=NAME Nodes=… Feature=…: the nodes that are named, and those that have the feature.
type nodeSet struct {
	nodes    []cluster.NodeName
	features []string
}

// nodeSetLine reads such a line.
func (r *reader) nodeSetLine(file string, n int, ps []pair) {
	name, s := ps[0].value, nodeSet{}
	if _, twice := r.sets[name]; twice || name == "" || strings.EqualFold(name, "ALL") {
		r.note(file, n, "NodeSet=%s: a set needs a name of its own; ignored", name)
		return
	}
	for _, p := range ps[1:] {
		switch p.key {
		case "nodes":
			names, err := hostlist.Expand(p.value)
			if err != nil {
				r.note(file, n, "NodeSet=%s: nodes=%s: %v", name, p.value, err)
			}
			for _, one := range names {
				s.nodes = append(s.nodes, cluster.NodeName(one))
			}
		case "feature":
			s.features = []string{p.value}
		default:
			r.note(file, n, "NodeSet=%s: %s is neither Nodes nor Feature; ignored", name, p.key)
		}
	}
	if r.sets == nil {
		r.sets = map[string]nodeSet{}
	}
	r.sets[name] = s
}

// settleNodeSets puts what the sets stand for into the partitions that name them.
func (r *reader) settleNodeSets() {
	if len(r.sets) == 0 {
		return
	}
	for i := range r.cfg.Partitions {
		p := &r.cfg.Partitions[i]
		names := p.Nodes
		p.Nodes = nil
		add := func(list ...cluster.NodeName) {
			for _, name := range list {
				if !slices.Contains(p.Nodes, name) {
					p.Nodes = append(p.Nodes, name)
				}
			}
		}
		for _, name := range names {
			s, ok := r.sets[string(name)]
			if !ok {
				add(name)
				continue
			}
			add(s.nodes...)
			p.Features = append(p.Features, s.features...)
		}
		if len(p.Features) > 0 {
			p.Named = p.Nodes
		}
	}
}
