package slurm

import (
	"cmp"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// allInfoFields is what %all stands for, with the blanks that Slurm's has.
const allInfoFields = "%a|%b|%c|%d|%e|%f|%g|%h|%l|%m|%n|%o|%p|%r|%s|%t|%u|%v|%w|%z|%A |%B |%C |%D |%E |%F |%G |%H |%I |%L |%M |%N |%O |%P |%R |%S |%T |%U |%V |%X |%Y |%Z "

// infoColumns are the fields of sinfo: the letters of -o and the names of -O.
var infoColumns = []format.Column[infoRow]{
	{Code: 'a', Long: "available", Head: "AVAIL", Of: func(r *infoRow) string { return partitionWord(r) }},
	{Code: 'A', Long: "nodeai", Head: "NODES(A/I)", Of: func(r *infoRow) string { a, i, _ := r.nodeCounts(); return slashed(a, i) }},
	{Code: 'b', Long: "features_act", Head: "ACTIVE_FEATURES", Of: func(r *infoRow) string { return r.features() }},
	{Code: 'B', Long: "maxcpuspernode", Head: "MAX_CPUS_PER_NODE", Of: func(r *infoRow) string { return unlimitedCount(r.part.MaxCPUsPerNode) }},
	{Code: 'c', Long: "cpus", Head: "CPUS", Of: func(r *infoRow) string { return r.least(func(n *api.NodeInfo) int { return n.Inventory.CPUs }) }},
	{Code: 'C', Long: "cpusstate", Head: "CPUS(A/I/O/T)", Of: func(r *infoRow) string { return slashed4(r.cpuCounts()) }},
	{Code: 'd', Long: "disk", Head: "TMP_DISK", Of: func(r *infoRow) string { return r.least(func(n *api.NodeInfo) int { return int(n.Inventory.TmpMB) }) }},
	{Code: 'D', Long: "nodes", Head: "NODES", Of: func(r *infoRow) string { return strconv.Itoa(len(r.nodes)) }},
	{Code: 'e', Long: "freemem", Head: "FREE_MEM", Of: func(r *infoRow) string {
		return r.span(func(n *api.NodeInfo) int { return int(n.Inventory.FreeMemMB) })
	}},
	{Code: 'E', Long: "reason", Head: "REASON", Of: func(r *infoRow) string {
		return r.text("none", func(n *api.NodeInfo) string { return cmp.Or(n.Reason, "none") })
	}},
	{Code: 'f', Long: "features", Head: "AVAIL_FEATURES", Of: func(r *infoRow) string { return r.available() }},
	{Code: 'F', Long: "nodeaiot", Head: "NODES(A/I/O/T)", Of: func(r *infoRow) string {
		a, i, o := r.nodeCounts()
		return slashed(a, i, o, len(r.nodes))
	}},
	{Code: 'g', Long: "groups", Head: "GROUPS", Of: func(r *infoRow) string { return joined(r.part.AllowGroups, "all") }},
	{Code: 'G', Long: "gres", Head: "GRES", Of: func(r *infoRow) string {
		return r.text("(null)", func(n *api.NodeInfo) string { return gresText(&n.Inventory) })
	}},
	{Code: 'h', Long: "oversubscribe", Head: "OVERSUBSCRIBE", Of: func(r *infoRow) string { return cmp.Or(r.part.OverSubscribe, "NO") }},
	{Code: 'H', Long: "timestamp", Head: "TIMESTAMP", Of: func(r *infoRow) string {
		return r.text("Unknown", func(n *api.NodeInfo) string { return format.Stamp(n.ReasonAt, "Unknown") })
	}},
	{Code: 'I', Long: "priorityjobfactor", Head: "PRIO_JOB_FACTOR", Of: func(r *infoRow) string { return strconv.Itoa(max(r.part.PriorityJobFactor, 1)) }},
	{Code: 'l', Long: "time", Head: "TIMELIMIT", Of: func(r *infoRow) string { return infoTime(maxTime(r.part.MaxTime)) }},
	{Code: 'L', Long: "defaulttime", Head: "DEFAULTTIME", Of: func(r *infoRow) string {
		if r.part.DefaultTime == 0 {
			return "n/a"
		}
		return infoTime(r.part.DefaultTime)
	}},
	{Code: 'm', Long: "memory", Head: "MEMORY", Of: func(r *infoRow) string { return r.least(func(n *api.NodeInfo) int { return int(n.Inventory.MemMB) }) }},
	{Code: 'M', Long: "preemptmode", Head: "PREEMPT_MODE", Of: func(r *infoRow) string { return cmp.Or(r.part.PreemptMode, "OFF") }},
	{Code: 'n', Long: "nodehost", Head: "HOSTNAMES", Of: func(r *infoRow) string {
		return r.text("", func(n *api.NodeInfo) string { return cmp.Or(n.Inventory.Host, string(n.Name)) })
	}},
	{Code: 'N', Long: "nodelist", Head: "NODELIST", Of: func(r *infoRow) string { return r.nodeList() }},
	{Code: 'o', Long: "nodeaddr", Head: "NODE_ADDR", Of: func(r *infoRow) string {
		return r.text("", func(n *api.NodeInfo) string { return nodeAddr(n) })
	}},
	{Code: 'O', Long: "cpusload", Head: "CPU_LOAD", Of: func(r *infoRow) string { return "N/A" }},
	{Code: 'p', Long: "prioritytier", Head: "PRIO_TIER", Of: func(r *infoRow) string { return strconv.Itoa(max(r.part.PriorityTier, 1)) }},
	{Code: 'P', Long: "partition", Head: "PARTITION", Of: func(r *infoRow) string {
		if r.part.Default {
			return r.part.Name + "*"
		}
		return r.part.Name
	}},
	{Code: 'r', Long: "root", Head: "ROOT", Of: func(r *infoRow) string { return yesNo(r.part.RootOnly) }},
	{Code: 'R', Long: "partitionname", Head: "PARTITION", Of: func(r *infoRow) string { return r.part.Name }},
	{Code: 's', Long: "size", Head: "JOB_SIZE", Of: func(r *infoRow) string { return jobSize(r.part) }},
	{Code: 'S', Long: "allocnodes", Head: "ALLOCNODES", Of: func(*infoRow) string { return "all" }},
	{Code: 't', Long: "statecompact", Head: "STATE", Of: func(r *infoRow) string {
		return r.text("n/a", func(n *api.NodeInfo) string { return stateWord(nodeState(n), false) })
	}},
	{Code: 'T', Long: "statelong", Head: "STATE", Of: func(r *infoRow) string {
		return r.text("n/a", func(n *api.NodeInfo) string { return stateWord(nodeState(n), true) })
	}},
	{Code: 'u', Long: "user", Head: "USER", Of: func(r *infoRow) string {
		return r.text("Unknown", func(n *api.NodeInfo) string { return cmp.Or(n.ReasonBy, "Unknown") })
	}},
	{Code: 'U', Long: "userlong", Head: "USER", Of: func(r *infoRow) string {
		return r.text("Unknown", func(n *api.NodeInfo) string {
			if n.ReasonBy == "" {
				return "Unknown"
			}
			return n.ReasonBy + "(" + front.UintText(n.ReasonUID) + ")"
		})
	}},
	{Code: 'v', Long: "version", Head: "VERSION", Of: func(r *infoRow) string {
		return r.text("", func(n *api.NodeInfo) string { return cmp.Or(n.Inventory.Version, front.SlurmVersion) })
	}},
	{Code: 'V', Long: "cluster", Head: "CLUSTER", Of: func(*infoRow) string { return "N/A" }},
	{Code: 'w', Long: "weight", Head: "WEIGHT", Of: func(r *infoRow) string {
		return r.least(func(n *api.NodeInfo) int { return max(n.Inventory.Weight, 1) })
	}},
	{Code: 'X', Long: "sockets", Head: "SOCKETS", Of: func(r *infoRow) string { return r.least(func(n *api.NodeInfo) int { return n.Inventory.Sockets }) }},
	{Code: 'Y', Long: "cores", Head: "CORES", Of: func(r *infoRow) string {
		return r.least(func(n *api.NodeInfo) int { return n.Inventory.CoresPerSocket })
	}},
	{Code: 'Z', Long: "threads", Head: "THREADS", Of: func(r *infoRow) string {
		return r.least(func(n *api.NodeInfo) int { return n.Inventory.ThreadsPerCore })
	}},
	{Code: 'z', Long: "socketcorethread", Head: "S:C:T", Of: func(r *infoRow) string { return r.layout() }},

	{Long: "allocmem", Head: "ALLOCMEM", Of: func(r *infoRow) string {
		return r.text("0", func(n *api.NodeInfo) string { return strconv.FormatInt(int64(n.Load.MemMB), 10) })
	}},
	{Long: "comment", Head: "COMMENT", Of: func(r *infoRow) string {
		return r.text("(null)", func(n *api.NodeInfo) string { return format.Null(n.Comment) })
	}},
	{Long: "extra", Head: "EXTRA", Of: func(r *infoRow) string {
		return r.text("(null)", func(n *api.NodeInfo) string { return format.Null(n.Extra) })
	}},
	{Long: "gresused", Head: "GRES_USED", Of: func(r *infoRow) string { return r.text("", gresUsed) }},
	{Long: "port", Head: "PORT", Of: func(r *infoRow) string { return r.text("", nodePort) }},
	{Long: "statecomplete", Head: "STATECOMPLETE", Of: func(r *infoRow) string {
		return r.text("n/a", func(n *api.NodeInfo) string { return strings.ToLower(stateFlags(nodeState(n))) })
	}},
}

// gathered are the letters whose fields speak of all nodes of a line: they do not part nodes.
const gathered = "ACDFNceOdmwXYZz"

// gatheredExact are those with --exact.
const gatheredExact = "ACDFN"

func slashed4(a, b, c, d int) string { return slashed(a, b, c, d) }

func partitionWord(r *infoRow) string {
	switch s := strings.ToLower(string(r.part.State)); s {
	case "":
		return "up"
	case "inactive":
		return "inact"
	default:
		return s
	}
}

func (r *infoRow) features() string {
	return r.text("(null)", func(n *api.NodeInfo) string { return joined(n.Inventory.Features, "(null)") })
}

func (r *infoRow) available() string {
	return r.text("(null)", func(n *api.NodeInfo) string { return joined(n.Inventory.Available(), "(null)") })
}

func (r *infoRow) layout() string {
	return r.least(func(n *api.NodeInfo) int { return n.Inventory.Sockets }) + ":" +
		r.least(func(n *api.NodeInfo) int { return n.Inventory.CoresPerSocket }) + ":" +
		r.least(func(n *api.NodeInfo) int { return n.Inventory.ThreadsPerCore })
}

// nodeAddr is a node's address without the port, or its name.
func nodeAddr(n *api.NodeInfo) string {
	addr := n.Inventory.Addr
	if i := strings.LastIndexByte(addr, ':'); i > 0 {
		addr = addr[:i]
	}
	return cmp.Or(addr, string(n.Name))
}

func nodePort(n *api.NodeInfo) string {
	if i := strings.LastIndexByte(n.Inventory.Addr, ':'); i > 0 {
		return n.Inventory.Addr[i+1:]
	}
	return "6818"
}
