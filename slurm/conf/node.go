package conf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
)

// Nodes reads the words of one NodeName line. The notes say what was not understood.
func Nodes(words []string) ([]cluster.Node, []string) {
	r := &reader{cfg: &cluster.Config{}}
	if ps := r.pairs("nodeline", 1, words); len(ps) > 0 && ps[0].key == "nodename" {
		r.nodeLine("nodeline", 1, ps)
	}
	return r.cfg.Declared, r.notes
}

// nodeLine declares nodes; NodeName=DEFAULT sets what later lines leave out.
func (r *reader) nodeLine(file string, n int, ps []pair) {
	if strings.EqualFold(ps[0].value, "DEFAULT") {
		r.nodeDef = append(r.nodeDef, ps[1:]...)
		return
	}
	names, err := hostlist.Expand(ps[0].value)
	if err != nil {
		r.note(file, n, "NodeName=%s: %v; ignored", ps[0].value, err)
		return
	}
	inv := cluster.Inventory{CoresPerSocket: 0, ThreadsPerCore: 1, MemMB: 1, Weight: 1}
	state, reason := "UNKNOWN", ""
	r.coreSpec = 0
	r.boards = 1
	r.perBoard = 1
	for _, p := range append(slices.Clone(r.nodeDef), ps[1:]...) {
		switch p.key {
		case "state":
			state = p.value
		case "reason":
			reason = p.value
		default:
			r.nodeKey(file, n, &inv, p)
		}
	}
	if inv.Sockets == 0 {
		inv.Sockets = max(r.boards*r.perBoard, 1)
	}
	like := cluster.Node{}
	r.setState(file, n, &like, state, reason)
	if inv.CPUs == 0 {
		inv.CPUs = max(inv.Sockets*max(inv.CoresPerSocket, 1)*inv.ThreadsPerCore, 1)
	}
	if inv.CoresPerSocket == 0 {
		inv.CoresPerSocket = max(inv.CPUs/inv.Sockets/inv.ThreadsPerCore, 1)
	}
	if r.coreSpec > 0 {
		inv.SpecCPUs = inv.SpecCPUs.Union(inv.LastCores(r.coreSpec))
	}
	if inv.SpecCPUs.Len() >= inv.CPUs || inv.SpecMemMB > 0 && inv.SpecMemMB >= inv.MemMB {
		r.note(file, n,
			"NodeName=%s: CpuSpecList, CoreSpecCount or MemSpecLimit leave nothing for jobs; ignored",
			ps[0].value)
		inv.SpecCPUs, inv.SpecMemMB = cluster.IDSet{}, 0
	}
	for _, name := range names {
		own := inv
		own.Host = name
		node := like
		node.Name, node.Inventory = cluster.NodeName(name), own
		r.cfg.Declared = append(r.cfg.Declared, node)
	}
}

func (r *reader) nodeKey(file string, n int, inv *cluster.Inventory, p pair) {
	number := func(to *int) {
		v, err := strconv.Atoi(p.value)
		if err != nil || v < 0 {
			r.note(file, n, "%s=%s is not a number; ignored", p.typed, p.value)
			return
		}
		*to = v
	}
	if to := nodeNumber(r, inv, p.key); to != nil {
		number(to)
		return
	}
	switch p.key {
	case "realmemory":
		v := 0
		number(&v)
		inv.MemMB = cluster.MemMB(v)
	case "tmpdisk":
		v := 0
		number(&v)
		inv.TmpMB = int64(v)
	case "feature", "features":
		inv.Features = strings.Split(p.value, ",")
	case "topology":
		nodeTopology(r, file, n, inv, p.value)
	case "gres":
		r.nodeGRES(file, n, inv, p.value)
	case "nodeaddr", "nodehostname", "port":
		r.fine = append(r.fine,
			fmt.Sprintf("%s:%d: %s=%s needs no setting: nodes tell where they are", file, n, p.typed, p.value))
	case "memspeclimit":
		v := 0
		number(&v)
		inv.SpecMemMB = cluster.MemMB(v)
	case "cpuspeclist":
		set, err := cluster.ParseIDSet(p.value)
		if err != nil {
			r.note(file, n, "CpuSpecList=%s: %v; ignored", p.value, err)
			return
		}
		inv.SpecCPUs = set
	case "corespeccount":
		v := 0
		number(&v)
		r.coreSpec = v
	default:
		if why := nodeNoEffect(p.key); why != "" {
			r.note(file, n, "%s on a node has no effect: %s", p.typed, why)
			return
		}
		r.note(file, n, "%s "+noKey+"a node", p.typed)
	}
}

// nodeNoEffect says why a key of nodes has no effect; "": there is no such key.
func nodeNoEffect(key string) string {
	switch key {
	case "bcastaddr":
		return "files are sent over the one address of a node"
	case "cpubind":
		return "set --cpu-bind at each srun, or SLURM_CPU_BIND"
	case "parameters":
		return "SlurmdParameters= of the cluster applies to all nodes"
	case "restrictedcorespergpu":
		return "jobs with GPUs get the free cores near to them: see --gres-flags"
	case "suspendtime":
		return "SuspendTime= of the cluster, or of a partition, applies"
	}
	return ""
}

// nodeNumber is where a key of a node that is a number belongs; nil: it is another key.
func nodeNumber(r *reader, inv *cluster.Inventory, key string) *int {
	switch key {
	case "cpus", "procs":
		return &inv.CPUs
	case "sockets":
		return &inv.Sockets
	case "socketsperboard":
		return &r.perBoard
	case "boards":
		return &r.boards
	case "corespersocket":
		return &inv.CoresPerSocket
	case "threadspercore":
		return &inv.ThreadsPerCore
	case "weight":
		return &inv.Weight
	}
	return nil
}

// nodeTopology reads which switch or block a node is in.
func nodeTopology(r *reader, file string, n int, inv *cluster.Inventory, text string) {
	unit := text[strings.LastIndexByte(text, ':')+1:]
	if strings.Contains(text, ",") || unit == "" {
		r.note(file, n,
			"Topology=%s: want the switch or block that the node is in, NAME or TOPOLOGY:NAME, and one only; ignored",
			text)
		return
	}
	inv.Topology = unit
}

// addCounted gives a node what a word of Gres= says of a resource of the site's own: NAME[:TYPE][:no_consume][:COUNT].
func addCounted(inv *cluster.Inventory, words []string) bool {
	g := cluster.GRES{Name: words[0], Count: 1, Unconsumed: slices.Contains(words, "no_consume")}
	words = slices.DeleteFunc(words[1:], func(w string) bool { return w == "no_consume" })
	if k := len(words) - 1; k >= 0 {
		n, err := gresCount(words[k])
		if err == nil {
			g.Count = int64(n)
			words = words[:k]
		}
	}
	if g.Name == "" || len(words) > 1 {
		return false
	}
	if len(words) == 1 {
		g.Type = words[0]
	}
	inv.Shared = append(inv.Shared, g)
	return true
}

// maxNodeGPUs bounds the GPUs of a node.
const maxNodeGPUs = 1024

// nodeGRES reads Gres= of a node: NAME[:TYPE][:no_consume][:COUNT],…
func (r *reader) nodeGRES(file string, n int, inv *cluster.Inventory, text string) {
	for g := range strings.SplitSeq(text, ",") {
		words := strings.Split(g, ":")
		switch words[0] {
		case "gpu":
		case "mps", "shard":
			r.fine = append(r.fine,
				fmt.Sprintf("%s:%d: Gres=%s needs no setting: gres.conf says how many there are", file, n, g))
			continue
		default:
			if !addCounted(inv, words) {
				r.note(file, n, "Gres=%s: want NAME, NAME:COUNT or NAME:TYPE:COUNT; ignored", g)
			}
			continue
		}
		words = slices.DeleteFunc(words[1:], func(w string) bool { return w == "no_consume" })
		count, kind, err := 1, "", error(nil)
		if k := len(words) - 1; k >= 0 {
			if count, err = strconv.Atoi(words[k]); err == nil {
				words = words[:k]
			} else if k == 0 { // a type alone
				count, err = 1, nil
			}
		}
		if len(words) > 0 {
			kind = words[0]
		}
		if err != nil || len(words) > 1 || count < 0 || len(inv.GPUs)+count > maxNodeGPUs {
			r.note(file, n,
				"Gres=%s: want gpu, gpu:COUNT or gpu:TYPE:COUNT, and at most %d in all; ignored", g,
				maxNodeGPUs)
			continue
		}
		for range count {
			k := len(inv.GPUs)
			inv.GPUs = append(inv.GPUs, cluster.GPU{Index: k, Minor: k, Type: kind})
		}
	}
}
