package cluster

import (
	"cmp"
	"slices"
)

// Partitions, switches and blocks may be told by what nodes bring: by a feature (NodeSet=NAME Feature=F in
// slurm.conf, the set's name standing where names of nodes do), switches and blocks by their own name, too
// (Topology=NAME of a node). Their lists then have the nodes that are named, and others for as long as they bring
// it: these are in Joined, too.

// NodeGroup is a name for nodes (NodeSet=): those that are named, and those that have one of the features.
type NodeGroup struct {
	Name     string     `json:"name"`
	Nodes    []NodeName `json:"nodes,omitempty"`
	Features []string   `json:"features,omitempty"`
}

// memberList is a list of nodes that follows what they bring.
type memberList struct {
	unit          string // the switch or block that it is of, which a node may ask for; "": it is a partition's
	nodes, joined *[]NodeName
	features      *[]string
}

// rosters lists those of the configuration.
func (c *Config) rosters() (out []memberList) {
	for i := range c.Partitions {
		if p := &c.Partitions[i]; !p.All {
			out = append(out, memberList{"", &p.Nodes, &p.Joined, &p.Features})
		}
	}
	for i := range c.Topology {
		if s := &c.Topology[i]; len(s.Switches) == 0 {
			out = append(out, memberList{s.Name, &s.Nodes, &s.Joined, &s.Features})
		}
	}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		out = append(out, memberList{b.Name, &b.Nodes, &b.Joined, &b.Features})
	}
	return out
}

// named are the nodes that are there by name.
func (r memberList) named() []NodeName { return Named(*r.nodes, *r.joined) }

// Named are the nodes of a list but for those that have joined it.
func Named(nodes, joined []NodeName) []NodeName {
	if len(joined) == 0 {
		return nodes
	}
	there := make(map[NodeName]bool, len(joined))
	for _, n := range joined {
		there[n] = true
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n NodeName) bool { return there[n] })
}

// ResolveSets puts the nodes and features of sets where their names stand. A text without any of those stays as it is.
func (c *Config) ResolveSets() {
	sets := make(map[NodeName]*NodeGroup, len(c.NodeSets))
	for i := range c.NodeSets {
		sets[NodeName(c.NodeSets[i].Name)] = &c.NodeSets[i]
	}
	for _, r := range c.rosters() {
		if !slices.ContainsFunc(*r.nodes, func(n NodeName) bool { return sets[n] != nil }) {
			continue
		}
		var nodes []NodeName
		features := slices.Clone(*r.features)
		there := map[NodeName]bool{}
		add := func(list ...NodeName) {
			for _, n := range list {
				if !there[n] {
					there[n] = true
					nodes = append(nodes, n)
				}
			}
		}
		for _, name := range *r.nodes {
			if s := sets[name]; s != nil {
				add(s.Nodes...)
				features = append(features, s.Features...)
				continue
			}
			add(name)
		}
		*r.nodes = nodes
		*r.features = features
	}
}

// joins lists the rosters, by their places, that a node gets into by what it brings. Of the topology that is one at
// most: the one that it asks for, else the first with a feature of its; none if a name puts it somewhere, which
// inTopology reports.
func joins(list []memberList, n *Node, inTopology func(NodeName) bool) (out []int) {
	if n == nil {
		return nil
	}
	place := -1
	for i, r := range list {
		has := slices.ContainsFunc(*r.features, func(f string) bool { return slices.Contains(n.Inventory.Features, f) })
		if r.unit == "" {
			if has && !r.names(n.Name) {
				out = append(out, i)
			}
			continue
		}
		if r.unit == n.Inventory.Topology || has && place < 0 {
			place = i
		}
	}
	if place >= 0 && !inTopology(n.Name) {
		out = append(out, place)
	}
	return out
}

// names reports whether a node is on the list by its name, not by what it brought.
func (r *memberList) names(n NodeName) bool {
	return slices.Contains(*r.nodes, n) && !slices.Contains(*r.joined, n)
}

// inOrder compares nodes by their names; what is no node yet comes last.
func (t *tx) inOrder(a, b NodeName) int {
	_, here := t.nodes.Get(a)
	_, there := t.nodes.Get(b)
	switch {
	case here && there:
		return CompareNodes(a, b)
	case here:
		return -1
	case there:
		return 1
	}
	return 0
}

// ownRosters is a copy of the configuration whose rosters may be changed.
func (c *Config) ownRosters() *Config {
	own := *c
	own.Partitions = slices.Clone(c.Partitions)
	own.Topology = slices.Clone(c.Topology)
	own.Blocks = slices.Clone(c.Blocks)
	return &own
}

// gather makes all rosters again, after the configuration has changed.
func (t *tx) gather() {
	cfg := t.config.ownRosters()
	cfg.ResolveSets()
	list := cfg.rosters()
	home := map[NodeName]bool{}
	for _, r := range list {
		*r.nodes = r.named()
		*r.joined = nil
		for _, n := range *r.nodes {
			home[n] = home[n] || r.unit != ""
		}
	}
	for n := range t.Nodes() {
		for _, i := range joins(list, n, func(name NodeName) bool { return home[name] }) {
			*list[i].joined = append(*list[i].joined, n.Name)
		}
	}
	for _, r := range list {
		if len(*r.joined) > 0 {
			*r.nodes = slices.Concat(*r.nodes, *r.joined)
			slices.SortStableFunc(*r.nodes, t.inOrder)
		}
	}
	t.putConfig(cfg)
}

// regather lets a node that has come, changed or gone into the rosters that it now belongs to, and out of others.
func (t *tx) regather(old, n *Node) {
	if old != nil && n != nil && old.Inventory.Topology == n.Inventory.Topology && slices.Equal(old.Inventory.Features, n.Inventory.Features) {
		return
	}
	name := cmp.Or(old, n).Name
	list := t.config.rosters()
	is := joins(list, n, func(name NodeName) bool {
		return slices.ContainsFunc(list, func(r memberList) bool {
			return r.unit != "" && slices.Contains(*r.nodes, name) && !slices.Contains(*r.joined, name)
		})
	})
	var cfg *Config
	for i, r := range list {
		if slices.Contains(is, i) == slices.Contains(*r.joined, name) {
			continue
		}
		if cfg == nil {
			cfg = t.config.ownRosters()
		}
		cfg.rosters()[i].turn(name, t.inOrder)
	}
	if cfg != nil {
		t.putConfig(cfg)
	}
}

// turn puts a node in that is not there, and takes it out if it is.
func (r memberList) turn(name NodeName, inOrder func(a, b NodeName) int) {
	for _, list := range []*[]NodeName{r.nodes, r.joined} {
		nodes := slices.Clone(*list)
		if at := slices.Index(nodes, name); at >= 0 {
			nodes = slices.Delete(nodes, at, at+1)
		} else {
			to, _ := slices.BinarySearchFunc(nodes, name, inOrder)
			nodes = slices.Insert(nodes, to, name)
		}
		*list = nodes
	}
}
