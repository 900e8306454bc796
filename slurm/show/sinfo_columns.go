package show

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// allInfoFields is what %all stands for, with the blanks that Slurm's has.
const allInfoFields = "%a|%b|%c|%d|%e|%f|%g|%h|%i|%l|%m|%n|%o|%p|%r|%s|%t|%u|%v|%w|%z|%A |%B |%C |%D |%E |%F |%G |%H |%I |%L |%M |%N |%O |%P |%R |%S |%T |%U |%V |%X |%Y |%Z "

// infoColumns are the fields of sinfo: the letters of -o and the names of -O.
var infoColumns = []format.Column[InfoRow]{
	{Code: 'a', Long: "available", Head: "AVAIL", Of: func(r *InfoRow) string { return partitionWord(r) }},
	{
		Code: 'A', Long: "nodeai", Head: "NODES(A/I)",
		Of: func(r *InfoRow) string { a, i, _ := r.nodeCounts(); return slashed(a, i) },
	},
	{Code: 'b', Long: "features_act", Head: "ACTIVE_FEATURES", Of: func(r *InfoRow) string { return r.features() }},
	{
		Code: 'B', Long: "maxcpuspernode", Head: "MAX_CPUS_PER_NODE",
		Of: func(r *InfoRow) string { return UnlimitedCount(r.Part.MaxCPUsPerNode) },
	},
	{
		Code: 'c', Long: "cpus", Head: "CPUS",
		Of: func(r *InfoRow) string { return r.least(func(n *api.NodeInfo) int { return n.Inventory.CPUs }) },
	},
	{
		Code: 'C', Long: "cpusstate", Head: "CPUS(A/I/O/T)",
		Of: func(r *InfoRow) string { return slashed4(r.CPUCounts()) },
	},
	{
		Code: 'd', Long: "disk", Head: "TMP_DISK",
		Of: func(r *InfoRow) string { return r.least(func(n *api.NodeInfo) int { return int(n.Inventory.TmpMB) }) },
	},
	{Code: 'D', Long: "nodes", Head: "NODES", Of: func(r *InfoRow) string { return strconv.Itoa(len(r.Nodes)) }},
	{Code: 'e', Long: "freemem", Head: "FREE_MEM", Of: func(r *InfoRow) string {
		return r.span(func(n *api.NodeInfo) int { return int(n.Inventory.FreeMemMB) })
	}},
	{Code: 'E', Long: "reason", Head: "REASON", Of: func(r *InfoRow) string {
		return r.text("none", func(n *api.NodeInfo) string { return cmp.Or(n.Reason, "none") })
	}},
	{Code: 'f', Long: "features", Head: "AVAIL_FEATURES", Of: func(r *InfoRow) string { return r.available() }},
	{Code: 'F', Long: "nodeaiot", Head: "NODES(A/I/O/T)", Of: func(r *InfoRow) string {
		a, i, o := r.nodeCounts()
		return slashed(a, i, o, len(r.Nodes))
	}},
	{
		Code: 'g', Long: "groups", Head: "GROUPS",
		Of: func(r *InfoRow) string { return Joined(r.Part.AllowGroups, "all") },
	},
	{Code: 'G', Long: "gres", Head: "GRES", Of: func(r *InfoRow) string {
		return r.text("(null)", func(n *api.NodeInfo) string { return GRESText(&n.Inventory) })
	}},
	{
		Code: 'h', Long: "oversubscribe", Head: "OVERSUBSCRIBE",
		Of: func(r *InfoRow) string { return cmp.Or(r.Part.OverSubscribe, "NO") },
	},
	{Code: 'H', Long: "timestamp", Head: "TIMESTAMP", Of: func(r *InfoRow) string {
		return r.text("Unknown", func(n *api.NodeInfo) string { return r.v.Stamp(n.ReasonAt, "Unknown") })
	}},
	{Code: 'i', Long: "reservation", Head: "RESERVATION", Of: func(r *InfoRow) string {
		return r.text("", func(n *api.NodeInfo) string { return r.v.reservationOf(n) })
	}},
	{
		Code: 'I', Long: "priorityjobfactor", Head: "PRIO_JOB_FACTOR",
		Of: func(r *InfoRow) string { return strconv.Itoa(max(r.Part.PriorityJobFactor, 1)) },
	},
	{
		Code: 'l', Long: "time", Head: "TIMELIMIT",
		Of: func(r *InfoRow) string { return infoTime(MaxTime(r.Part.MaxTime)) },
	},
	{Code: 'L', Long: "defaulttime", Head: "DEFAULTTIME", Of: func(r *InfoRow) string {
		if r.Part.DefaultTime == 0 {
			return "n/a"
		}
		return infoTime(r.Part.DefaultTime)
	}},
	{
		Code: 'm', Long: "memory", Head: "MEMORY",
		Of: func(r *InfoRow) string { return r.least(func(n *api.NodeInfo) int { return int(n.Inventory.MemMB) }) },
	},
	{
		Code: 'M', Long: "preemptmode", Head: "PREEMPT_MODE",
		Of: func(r *InfoRow) string { return cmp.Or(r.Part.PreemptMode, "OFF") },
	},
	{Code: 'n', Long: "nodehost", Head: "HOSTNAMES", Of: func(r *InfoRow) string {
		return r.text("", func(n *api.NodeInfo) string { return cmp.Or(n.Inventory.Host, string(n.Name)) })
	}},
	{Code: 'N', Long: "nodelist", Head: "NODELIST", Of: func(r *InfoRow) string { return r.NodeList() }},
	{Code: 'o', Long: "nodeaddr", Head: "NODE_ADDR", Of: func(r *InfoRow) string {
		return r.text("", func(n *api.NodeInfo) string { return NodeAddr(n) })
	}},
	{Code: 'O', Long: "cpusload", Head: "CPU_LOAD", Of: func(r *InfoRow) string { return "N/A" }},
	{
		Code: 'p', Long: "prioritytier", Head: "PRIO_TIER",
		Of: func(r *InfoRow) string { return strconv.Itoa(max(r.Part.PriorityTier, 1)) },
	},
	{Code: 'P', Long: "partition", Head: "PARTITION", Star: true, Of: func(r *InfoRow) string {
		if r.Part.Default {
			return r.Part.Name + "*"
		}
		return r.Part.Name
	}},
	{Code: 'r', Long: "root", Head: "ROOT", Of: func(r *InfoRow) string { return YesNo(r.Part.RootOnly) }},
	{Code: 'R', Long: "partitionname", Head: "PARTITION", Of: func(r *InfoRow) string { return r.Part.Name }},
	{Code: 's', Long: "size", Head: "JOB_SIZE", Of: func(r *InfoRow) string { return jobSize(r.Part) }},
	{Code: 'S', Long: "allocnodes", Head: "ALLOCNODES", Of: func(r *InfoRow) string {
		return cmp.Or(hostlist.Compress(r.Part.AllocNodes), "all")
	}},
	{Code: 't', Long: "statecompact", Head: "STATE", Of: func(r *InfoRow) string {
		return r.text("n/a", func(n *api.NodeInfo) string { return StateWord(NodeState(n), false) })
	}},
	{Code: 'T', Long: "statelong", Head: "STATE", Of: func(r *InfoRow) string {
		return r.text("n/a", func(n *api.NodeInfo) string { return StateWord(NodeState(n), true) })
	}},
	{Code: 'u', Long: "user", Head: "USER", Of: func(r *InfoRow) string {
		return r.text("Unknown", func(n *api.NodeInfo) string { return cmp.Or(n.ReasonBy, "Unknown") })
	}},
	{Code: 'U', Long: "userlong", Head: "USER", Of: func(r *InfoRow) string {
		return r.text("Unknown", func(n *api.NodeInfo) string {
			if n.ReasonBy == "" {
				return "Unknown"
			}
			return n.ReasonBy + "(" + front.UintText(n.ReasonUID) + ")"
		})
	}},
	{Code: 'v', Long: "version", Head: "VERSION", Of: func(r *InfoRow) string {
		return r.text("", func(n *api.NodeInfo) string { return cmp.Or(n.Inventory.Version, front.SlurmVersion) })
	}},
	{Code: 'V', Long: "cluster", Head: "CLUSTER", Of: func(r *InfoRow) string { return cmp.Or(r.v.Place, "N/A") }},
	{Code: 'w', Long: "weight", Head: "WEIGHT", Of: func(r *InfoRow) string {
		return r.least(func(n *api.NodeInfo) int { return max(n.Inventory.Weight, 1) })
	}},
	{
		Code: 'X', Long: "sockets", Head: "SOCKETS",
		Of: func(r *InfoRow) string { return r.least(func(n *api.NodeInfo) int { return n.Inventory.Sockets }) },
	},
	{Code: 'Y', Long: "cores", Head: "CORES", Of: func(r *InfoRow) string {
		return r.least(func(n *api.NodeInfo) int { return n.Inventory.CoresPerSocket })
	}},
	{Code: 'Z', Long: "threads", Head: "THREADS", Of: func(r *InfoRow) string {
		return r.least(func(n *api.NodeInfo) int { return n.Inventory.ThreadsPerCore })
	}},
	{Code: 'z', Long: "socketcorethread", Head: "S:C:T", Of: func(r *InfoRow) string { return r.layout() }},

	{Long: "allocmem", Head: "ALLOCMEM", Of: func(r *InfoRow) string {
		return r.text("0", func(n *api.NodeInfo) string { return strconv.FormatInt(int64(n.Load.MemMB), 10) })
	}},
	{Long: "comment", Head: "COMMENT", Of: func(r *InfoRow) string {
		return r.text("(null)", func(n *api.NodeInfo) string { return format.Null(n.Comment) })
	}},
	{Long: "extra", Head: "EXTRA", Of: func(r *InfoRow) string {
		return r.text("(null)", func(n *api.NodeInfo) string { return format.Null(n.Extra) })
	}},
	{Long: "gresused", Head: "GRES_USED", Of: func(r *InfoRow) string { return r.text("", GRESUsed) }},
	{Long: "port", Head: "PORT", Of: func(r *InfoRow) string { return r.text("", NodePort) }},
	{Long: "statecomplete", Head: "STATECOMPLETE", Of: func(r *InfoRow) string {
		return r.text("n/a", func(n *api.NodeInfo) string { return strings.ToLower(StateFlags(NodeState(n))) })
	}},
}

// gathered are the letters whose fields speak of all nodes of a line: they do not part nodes.
const gathered = "ACDFNceOdmwXYZz"

// gatheredExact are those with --exact.
const gatheredExact = "ACDFN"

func slashed4(a, b, c, d int) string { return slashed(a, b, c, d) }

func partitionWord(r *InfoRow) string {
	switch s := strings.ToLower(string(r.Part.State)); s {
	case "":
		return "up"
	case "inactive":
		return "inact"
	default:
		return s
	}
}

func (r *InfoRow) features() string {
	return r.text("(null)", func(n *api.NodeInfo) string { return Joined(n.Inventory.Features, "(null)") })
}

func (r *InfoRow) available() string {
	return r.text("(null)", func(n *api.NodeInfo) string { return Joined(n.Inventory.Available(), "(null)") })
}

func (r *InfoRow) layout() string {
	return r.least(func(n *api.NodeInfo) int { return n.Inventory.Sockets }) + ":" +
		r.least(func(n *api.NodeInfo) int { return n.Inventory.CoresPerSocket }) + ":" +
		r.least(func(n *api.NodeInfo) int { return n.Inventory.ThreadsPerCore })
}

// reservationOf names the reservation that has a node now; "" if none has.
func (v *View) reservationOf(n *api.NodeInfo) string {
	if !n.Reserved && !n.Maint {
		return ""
	}
	if v.reserved == nil {
		v.reserved = v.reservedNodes()
	}
	return v.reserved[n.Name]
}

// reservedNodes asks which reservation has which node now.
func (v *View) reservedNodes() map[cluster.NodeName]string {
	resp, err := front.Call(v.Sys, api.ListReservations, api.ReservationQuery{})
	if err != nil { // the state of a node says that there is one
		return map[cluster.NodeName]string{}
	}
	return namesByNode(resp.Reservations, v.Now)
}

// namesByNode names the reservation of each node that one has at a time.
func namesByNode(list []cluster.Reservation, now time.Time) map[cluster.NodeName]string {
	names := map[cluster.NodeName]string{}
	for i := range list {
		if !list[i].Active(now) {
			continue
		}
		for _, node := range list[i].Nodes {
			names[node] = list[i].Name
		}
	}
	return names
}

// NodeAddr is a node's address without the port, or its name.
func NodeAddr(n *api.NodeInfo) string {
	addr := n.Inventory.Addr
	if i := strings.LastIndexByte(addr, ':'); i > 0 {
		addr = addr[:i]
	}
	return cmp.Or(addr, string(n.Name))
}

// NodePort is the port of a node's address.
func NodePort(n *api.NodeInfo) string {
	if i := strings.LastIndexByte(n.Inventory.Addr, ':'); i > 0 {
		return n.Inventory.Addr[i+1:]
	}
	return "6818"
}
