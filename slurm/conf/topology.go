package conf

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// topologyLine reads a line of topology.conf: a switch, a block, or the sizes of blocks.
func (r *reader) topologyLine(file string, n int, ps []pair) {
	switch {
	case len(ps) == 0:
		r.note(file, n, "not a SwitchName, BlockName or BlockSizes line; ignored")
	case ps[0].key == "switchname":
		r.switchLine(file, n, ps)
	case ps[0].key == "blockname":
		r.blockLine(file, n, ps)
	case ps[0].key == "blocksizes":
		r.cfg.BlockSizes = nil
		for word := range strings.SplitSeq(ps[0].value, ",") {
			v, err := strconv.Atoi(word)
			if err != nil || v < 1 {
				r.note(file, n, "BlockSizes=%s: %q is not a number of nodes; ignored", ps[0].value, word)
				continue
			}
			r.cfg.BlockSizes = append(r.cfg.BlockSizes, v)
		}
		slices.Sort(r.cfg.BlockSizes)
	case ps[0].key == "ringname":
		r.note(file, n, "RingName has no effect: muster has switches and blocks")
	default:
		r.note(file, n, "%s=%s: not a SwitchName, BlockName or BlockSizes line; ignored", ps[0].key, ps[0].value)
	}
}

func (r *reader) switchLine(file string, n int, ps []pair) {
	s := cluster.Switch{Name: ps[0].value}
	for _, p := range ps[1:] {
		text := p.value
		switch p.key {
		case "switches", "nodes":
			if p.key == "switches" && strings.Contains(text, ":") {
				r.note(file, n, "Switches=%s: a colon stands between switches, read as a comma", text)
				text = strings.ReplaceAll(text, ":", ",")
			}
			names, err := hostlist.Expand(text)
			if err != nil {
				r.note(file, n, "%s=%s: %v; ignored", p.key, text, err)
				continue
			}
			for _, name := range names {
				if p.key == "nodes" {
					s.Nodes = append(s.Nodes, cluster.NodeName(name))
				} else {
					s.Switches = append(s.Switches, name)
				}
			}
		case "linkspeed":
			r.fine = append(r.fine,
				fmt.Sprintf("%s:%d: LinkSpeed=%s needs no setting: Slurm does not use it either", file, n, text))
		default:
			r.note(file, n, "%s on a switch is not known; ignored", p.key)
		}
	}
	if slices.ContainsFunc(r.cfg.Topology, func(o cluster.Switch) bool { return o.Name == s.Name }) {
		r.note(file, n, "SwitchName=%s: there is a line of that name already; ignored", s.Name)
		return
	}
	if len(s.Nodes) > 0 && len(s.Switches) > 0 {
		r.note(file, n,
			"SwitchName=%s has nodes and switches: a switch has one of them; its switches are ignored",
			s.Name)
		s.Switches = nil
	}
	r.cfg.Topology = append(r.cfg.Topology, s)
}

func (r *reader) blockLine(file string, n int, ps []pair) {
	b := cluster.Block{Name: ps[0].value}
	for _, p := range ps[1:] {
		if p.key != "nodes" {
			r.note(file, n, "%s on a block is not known; ignored", p.key)
			continue
		}
		names, err := hostlist.Expand(p.value)
		if err != nil {
			r.note(file, n, "nodes=%s: %v; ignored", p.value, err)
		}
		for _, name := range names {
			b.Nodes = append(b.Nodes, cluster.NodeName(name))
		}
	}
	if slices.ContainsFunc(r.cfg.Blocks, func(o cluster.Block) bool { return o.Name == b.Name }) {
		r.note(file, n, "BlockName=%s: there is a line of that name already; ignored", b.Name)
		return
	}
	r.cfg.Blocks = append(r.cfg.Blocks, b)
}

// plugins says which lines of topology.conf are active under a TopologyPlugin.
var plugins = map[string]struct{ tree, block bool }{
	"topology/tree": {tree: true}, "topology/block": {block: true}, "topology/default": {},
	"topology/none": {}, "topology/flat": {}, "": {},
}

// settleTopology keeps what TopologyPlugin activates, and tells what of it does not fit together.
func (r *reader) settleTopology() {
	cfg := r.cfg
	name := strings.ToLower(cfg.Keys["topologyplugin"])
	use, known := plugins[name]
	note := func(format string, args ...any) {
		r.notes = append(r.notes, "topology.conf: "+fmt.Sprintf(format, args...))
	}
	if !known {
		r.notes = append(r.notes,
			fmt.Sprintf("slurm.conf: TopologyPlugin=%s is not known: want topology/tree, topology/block or topology/flat; nodes are taken as flat",
				name))
	}
	if len(cfg.Topology) > 0 && !use.tree {
		note("its switches are not active: slurm.conf says TopologyPlugin=%s, not topology/tree", name)
		cfg.Topology = nil
	}
	if len(cfg.Blocks) > 0 && !use.block {
		note("its blocks are not active: slurm.conf says TopologyPlugin=%s, not topology/block", name)
		cfg.Blocks, cfg.BlockSizes = nil, nil
	}
	r.checkSwitches(note)
	r.checkBlocks(note)
}

// checkSwitches tells of switches that are named but not there, or are under two, of rings, and of nodes
// that hang nowhere or twice.
func (r *reader) checkSwitches(note func(string, ...any)) {
	cfg := r.cfg
	if len(cfg.Topology) == 0 {
		return
	}
	up, home := map[string]string{}, map[cluster.NodeName]string{}
	there := map[string]bool{}
	for _, s := range cfg.Topology {
		there[s.Name] = true
	}
	for i := range cfg.Topology {
		s := &cfg.Topology[i]
		s.Switches = slices.DeleteFunc(s.Switches, func(child string) bool {
			switch {
			case !there[child]:
				note("SwitchName=%s: there is no switch %s; ignored", s.Name, child)
			case up[child] != "":
				note("SwitchName=%s: switch %s is under %s already; ignored", s.Name, child, up[child])
			case above(up, s.Name, child):
				note("SwitchName=%s: switch %s is above it: that is a ring; ignored", s.Name, child)
			default:
				up[child] = s.Name
				return false
			}
			return true
		})
		for _, n := range s.Nodes {
			if old := home[n]; old != "" {
				note("SwitchName=%s: node %s is on %s already; it stays there", s.Name, n, old)
				continue
			}
			home[n] = s.Name
		}
	}
	r.homeless(home, "switch", note)
}

// above reports whether switch a is s or above it.
func above(up map[string]string, s, a string) bool {
	for ; s != ""; s = up[s] {
		if s == a {
			return true
		}
	}
	return false
}

// homeless tells of nodes that topology.conf names but slurm.conf does not, and the other way round.
func (r *reader) homeless(home map[cluster.NodeName]string, what string, note func(string, ...any)) {
	var without []string
	open := func(features []string) bool { // on something by one of them
		has := func(list []string) bool {
			return slices.ContainsFunc(list, func(f string) bool { return slices.Contains(features, f) })
		}
		return slices.ContainsFunc(r.cfg.Topology, func(s cluster.Switch) bool { return has(s.Features) }) ||
			slices.ContainsFunc(r.cfg.Blocks, func(b cluster.Block) bool { return has(b.Features) })
	}
	declared := map[cluster.NodeName]bool{}
	for _, d := range r.cfg.Declared {
		if declared[d.Name] = true; home[d.Name] == "" && d.Inventory.Topology == "" && !open(d.Inventory.Features) {
			without = append(without, string(d.Name))
		}
	}
	if len(without) > 0 {
		note("no %s has %s: jobs of several nodes do not mix them with others", what, hostlist.Compress(without))
	}
	var unknown []string
	for n := range home {
		if !declared[n] && len(declared) > 0 {
			unknown = append(unknown, string(n))
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		note("slurm.conf has no node %s", hostlist.Compress(unknown))
	}
}

// checkBlocks fills in the sizes and tells of what is not a power of two of the smallest.
func (r *reader) checkBlocks(note func(string, ...any)) {
	cfg := r.cfg
	if len(cfg.Blocks) == 0 {
		return
	}
	home := map[cluster.NodeName]string{}
	base := 1
	for _, b := range cfg.Blocks {
		base = max(base, len(b.Nodes))
		for _, n := range b.Nodes {
			if old := home[n]; old != "" {
				note("BlockName=%s: node %s is in %s already", b.Name, n, old)
			}
			home[n] = b.Name
		}
	}
	if len(cfg.BlockSizes) == 0 {
		cfg.BlockSizes = []int{base}
	}
	first := cfg.BlockSizes[0]
	if first > base {
		note("BlockSizes=%d: the largest block has %d nodes; the smallest size is a block's", first, base)
	}
	cfg.BlockSizes = slices.DeleteFunc(cfg.BlockSizes, func(size int) bool {
		times := size / first
		bad := size%first != 0 || bits.OnesCount(uint(times)) != 1
		if bad {
			note("BlockSizes=%d is not %d times a power of two; ignored", size, first)
		}
		return bad
	})
	r.homeless(home, "block", note)
}
