package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// Wiring is how nodes hang together: as topology.conf says, or as they found out themselves.
type Wiring struct {
	Switches   []Switch
	Blocks     []Block
	BlockSizes []int // nodes, rising
	Found      bool  // by the nodes
}

// A wiring that was found has one switch above all leaves: which of these are nearer to each other is not known,
// and no job is to wait for that. Nodes of which no leaf or no NVLink domain is known are together.
const (
	foundTop     = "fabric"
	foundUnknown = "unknown"
)

// groupKey puts a node into a group: of those with the same leaves, or of an NVLink domain.
type groupKey struct {
	group string
	node  NodeName
}

func groupLess(x, y groupKey) bool {
	if c := cmp.Compare(x.group, y.group); c != 0 {
		return c < 0
	}
	return CompareNodes(x.node, y.node) < 0
}

// Leaves names the leaf switches of a machine's ports, each once, in order: of its InfiniBand ports if any leaf of
// theirs is known. A machine with one port on each rail has as many.
func (inv *Inventory) Leaves() (names []string) {
	for _, link := range []string{"InfiniBand", ""} {
		for i := range inv.NICs {
			if n := &inv.NICs[i]; n.Leaf != "" && (link == "" || n.Link == link) {
				names = append(names, n.Leaf)
			}
		}
		if names != nil {
			break
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Clique is the NVLink domain of a machine's GPUs that reaches beyond it; "" if there is none.
func (inv *Inventory) Clique() string {
	for i := range inv.GPUs {
		if g := &inv.GPUs[i]; g.Fabric != "" && !g.Missing {
			return g.Fabric
		}
	}
	return ""
}

// ports names the set of leaves that the ports lead to: nodes with the same one are under the same switch, or on
// the same rails.
func (inv *Inventory) ports() string { return strings.Join(inv.Leaves(), "+") }

// leafGroup is the leaf that the node says it is under, or the set of them that its ports lead to.
func (n *Node) leafGroup() string { return cmp.Or(n.Inventory.Topology, n.Inventory.ports()) }

// block is the block that the node says it is in, or its NVLink domain.
func (n *Node) block() string { return cmp.Or(n.Inventory.Topology, n.Inventory.Clique()) }

// regroup keeps the groups of nodes in step with a node's record.
func (t *tables) regroup(old, n *Node) {
	move := func(in *btree.BTreeG[groupKey], same func(a, b *Inventory) bool, group func(*Node) string) {
		if old != nil && n != nil && old.Inventory.Topology == n.Inventory.Topology && same(&old.Inventory, &n.Inventory) {
			return
		}
		if old != nil {
			in.Delete(groupKey{group(old), old.Name})
		}
		if n != nil {
			in.Set(groupKey{group(n), n.Name})
		}
	}
	// A list is never changed in place: the same one has the same content.
	move(t.leaves, func(a, b *Inventory) bool { return sameList(a.NICs, b.NICs) }, (*Node).leafGroup)
	move(t.cliques, func(a, b *Inventory) bool { return sameList(a.GPUs, b.GPUs) }, (*Node).block)
}

func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// plugin is the TopologyPlugin that is asked for, in small letters.
func (c *Config) plugin() string { return strings.ToLower(c.Keys["topologyplugin"]) }

// HasBlocks reports whether the nodes lie in blocks.
func (t *tables) HasBlocks() bool {
	return len(t.config.Blocks) > 0 || t.blocksFound()
}

func (t *tables) blocksFound() bool {
	k, ok := t.cliques.Max()
	return ok && k.group != "" && t.config.plugin() == "topology/block" && len(t.config.Topology) == 0
}

// treeFound reports whether leaves are known, and to be used.
func (t *tables) treeFound() bool {
	k, ok := t.leaves.Max()
	p := t.config.plugin()
	return ok && k.group != "" && (p == "" || p == "topology/tree")
}

// Wiring is how the nodes hang together: by topology.conf if there is one, else by what they found, unless
// TopologyPlugin forbids it (topology/flat, default or none). Blocks are found only with topology/block.
func (t *tables) Wiring() Wiring {
	switch {
	case len(t.config.Topology)+len(t.config.Blocks) > 0:
		return Wiring{Switches: t.config.Topology, Blocks: t.config.Blocks, BlockSizes: t.config.BlockSizes}
	case t.blocksFound():
		w := Wiring{Found: true, BlockSizes: []int{0}}
		groups(t.cliques, func(name string, nodes []NodeName) {
			w.Blocks = append(w.Blocks, Block{Name: cmp.Or(name, foundUnknown), Nodes: nodes})
			if name != "" {
				w.BlockSizes[0] = max(w.BlockSizes[0], len(nodes))
			}
		})
		return w
	case t.treeFound():
		w := Wiring{Found: true}
		top := Switch{Name: foundTop}
		groups(t.leaves, func(name string, nodes []NodeName) {
			s := Switch{Name: cmp.Or(name, foundUnknown), Nodes: nodes}
			w.Switches = append(w.Switches, s)
			top.Switches = append(top.Switches, s.Name)
		})
		w.Switches = append(w.Switches, top)
		return w
	}
	return Wiring{}
}

// groups calls for each group with its nodes in their order, last for the nodes of none.
func groups(in *btree.BTreeG[groupKey], each func(name string, nodes []NodeName)) {
	var none []NodeName
	name := ""
	nodes := []NodeName(nil)
	in.Scan(func(k groupKey) bool {
		if k.group == "" {
			none = append(none, k.node)
			return true
		}
		if k.group != name && nodes != nil {
			each(name, nodes)
			nodes = nil
		}
		name = k.group
		nodes = append(nodes, k.node)
		return true
	})
	if nodes != nil {
		each(name, nodes)
	}
	if none != nil {
		each("", none)
	}
}

// Misplaced says of each node what it says of its place that topology.conf contradicts: its ports lead to a switch
// that is there under another name, or elsewhere than those of most of the nodes on its switch, or it asks for a
// switch or block that is not there.
func (t *tables) Misplaced() map[NodeName]string {
	out := map[NodeName]string{}
	t.askElsewhere(out)
	switches := map[string]bool{}
	for i := range t.config.Topology {
		switches[t.config.Topology[i].Name] = true
	}
	for i := range t.config.Topology {
		s := &t.config.Topology[i]
		usual := t.usualLeaves(s.Nodes)
		for _, name := range s.Nodes {
			n, ok := t.nodes.Get(name)
			if !ok {
				continue
			}
			leaves := n.Inventory.Leaves()
			text := strings.Join(leaves, ", ")
			switch named := slices.ContainsFunc(leaves, func(l string) bool { return switches[l] }); {
			case len(leaves) == 0, slices.Contains(leaves, s.Name):
			case named:
				out[name] = fmt.Sprintf("topology.conf places %s under %s, but its ports report %s", name, s.Name, text)
			case usual != "" && n.Inventory.ports() != usual:
				out[name] = fmt.Sprintf(
					"topology.conf places %s under %s, whose other nodes are on %s, but its ports report %s",
					name, s.Name, strings.ReplaceAll(usual, "+", ", "), text)
			}
		}
	}
	return out
}

// usualLeaves are those of more than half of some nodes; "" if there are none.
func (t *tables) usualLeaves(names []NodeName) string {
	count := map[string]int{}
	known := 0
	for _, name := range names {
		if n, ok := t.nodes.Get(name); ok && n.Inventory.ports() != "" {
			count[n.Inventory.ports()]++
			known++
		}
	}
	for _, name := range names {
		if n, ok := t.nodes.Get(name); ok && 2*count[n.Inventory.ports()] > known {
			return n.Inventory.ports()
		}
	}
	return ""
}

// askElsewhere tells of nodes that say that they are in another place than they are, where topology.conf has places.
func (t *tables) askElsewhere(out map[NodeName]string) {
	if len(t.config.Topology)+len(t.config.Blocks) == 0 {
		return
	}
	var home map[NodeName]string
	for n := range t.Nodes() {
		if n.Inventory.Topology == "" {
			continue
		}
		if home == nil {
			home = t.config.home()
		}
		switch asks, is := n.Inventory.Topology, home[n.Name]; is {
		case asks:
		case "":
			out[n.Name] = fmt.Sprintf("%s asks for Topology=%s, but topology.conf has no such block, or switch above no others",
				n.Name, asks)
		default:
			out[n.Name] = fmt.Sprintf("%s asks for Topology=%s, but topology.conf names it below %s", n.Name, asks, is)
		}
	}
}

// home is the switch or block of each node.
func (c *Config) home() map[NodeName]string {
	home := map[NodeName]string{}
	for _, r := range c.rosters() {
		for _, name := range *r.nodes {
			if r.unit != "" && home[name] == "" {
				home[name] = r.unit
			}
		}
	}
	return home
}
