package conf

import (
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// nodeSetLine reads a line NodeSet=NAME Nodes=… Feature=…
func (r *reader) nodeSetLine(file string, n int, ps []pair) {
	s := cluster.NodeGroup{Name: ps[0].value}
	if s.Name == "" || strings.EqualFold(s.Name, "ALL") || slices.ContainsFunc(r.cfg.NodeSets, func(o cluster.NodeGroup) bool { return o.Name == s.Name }) {
		r.note(file, n, "NodeSet=%s: a set needs a name of its own; ignored", s.Name)
		return
	}
	for _, p := range ps[1:] {
		switch p.key {
		case "nodes":
			names, err := hostlist.Expand(p.value)
			if err != nil {
				r.note(file, n, "NodeSet=%s: nodes=%s: %v", s.Name, p.value, err)
			}
			for _, one := range names {
				s.Nodes = append(s.Nodes, cluster.NodeName(one))
			}
		case "feature":
			s.Features = []string{p.value}
		default:
			r.note(file, n, "NodeSet=%s: %s is neither Nodes nor Feature; ignored", s.Name, p.key)
		}
	}
	r.cfg.NodeSets = append(r.cfg.NodeSets, s)
}

// settleNodeSets puts what the sets stand for where their names stand; a switch or block keeps how that was written.
func (r *reader) settleNodeSets() {
	text := func(nodes []cluster.NodeName) string {
		if slices.ContainsFunc(r.cfg.NodeSets, func(s cluster.NodeGroup) bool { return slices.Contains(nodes, cluster.NodeName(s.Name)) }) {
			return hosts(nodes)
		}
		return ""
	}
	for i := range r.cfg.Topology {
		r.cfg.Topology[i].NodesText = text(r.cfg.Topology[i].Nodes)
	}
	for i := range r.cfg.Blocks {
		r.cfg.Blocks[i].NodesText = text(r.cfg.Blocks[i].Nodes)
	}
	r.cfg.ResolveSets()
}

func nodeSetLines(list []cluster.NodeGroup) (out []string) {
	for _, s := range list {
		out = append(out,
			line(word("NodeSet", s.Name), word("Nodes", hosts(s.Nodes)),
				word("Feature", strings.Join(s.Features, ","))))
	}
	return out
}

// notInLine are keys of a NodeName line that a client is not told by it, and how it is.
var notInLine = [...]struct{ keys, why string }{
	{"nodename", "--node names it"}, {"nodehostname", "the machine has its own"},
	{"nodeaddr", "--advertise tells it"}, {"port", "--bind tells it"},
	{"comment", "scontrol update nodename=NAME comment=TEXT tells it"},
	{"state reason", "it is there when it has joined"},
	{"boards socketsperboard sockets corespersocket threadspercore tmpdisk", "the machine finds it out"},
}

// Line reads the words of a NodeName line without the name, KEY=VALUE …, over what a machine has found itself to be:
// CPUs, RealMemory and Gres are what it should have at least. The notes say what was not understood.
func Line(text string, inv cluster.Inventory) (cluster.Inventory, []string) {
	r := &reader{cfg: &cluster.Config{}}
	said := inv
	said.GPUs, said.CPUs, said.MemMB, said.Shared = nil, 0, 0, nil
	ps := r.pairs("--conf", 1, strings.Fields(text))
	for _, p := range ps {
		i := slices.IndexFunc(notInLine[:],
			func(k struct{ keys, why string }) bool { return slices.Contains(strings.Fields(k.keys), p.key) })
		if i >= 0 {
			r.notes = append(r.notes, p.key+"="+p.value+" is not for this: "+notInLine[i].why)
			continue
		}
		r.nodeKey("--conf", 1, &said, p)
	}
	for _, g := range cluster.CountedIn(said.Shared) {
		r.notes = append(r.notes,
			"Gres="+g.Declaration()+" is not for this: the servers' slurm.conf or gres.conf has it")
	}
	inv.Said = cluster.Hardware{CPUs: said.CPUs, MemMB: said.MemMB, GPUs: len(said.GPUs)}
	inv.Features = said.Features
	inv.Weight = said.Weight
	inv.Topology = said.Topology
	inv.SpecCPUs = said.SpecCPUs
	inv.SpecMemMB = said.SpecMemMB
	if r.coreSpec > 0 {
		inv.SpecCPUs = inv.SpecCPUs.Union(inv.LastCores(r.coreSpec))
	}
	return inv, r.notes
}
