package show

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
)

// PartitionRow is a partition with its nodes, of all that there are.
func PartitionRow(v *View, p *cluster.Partition, all []api.NodeInfo) InfoRow {
	row, of := InfoRow{v: v, Part: p}, make(map[cluster.NodeName]bool, len(p.Nodes))
	for _, name := range p.Nodes {
		of[name] = true
	}
	for i := range all {
		if n := &all[i]; p.All || of[n.Name] {
			row.Nodes = append(row.Nodes, n)
		}
	}
	return row
}

// TRES is what a partition's nodes have, billed by its weights.
func (r *InfoRow) TRES() string {
	_, _, _, cpus := r.CPUCounts()
	t := format.TRES{CPUs: cpus, Nodes: len(r.Nodes), Types: map[string]int64{}}
	for _, n := range r.Nodes {
		t.Mem += n.Inventory.MemMB
		gpus := n.Inventory.Found()
		t.GPUs += len(gpus)
		for _, g := range gpus {
			t.Types[g.Type]++
		}
	}
	text := t.String()
	if len(r.Part.BillingWeights) == 0 {
		return text
	}
	list := []cluster.Amount{{TRES: "cpu", N: float64(t.CPUs)}, {TRES: "mem", N: float64(t.Mem)}, {TRES: "node",
		N: float64(t.Nodes)}, {TRES: "gres/gpu", N: float64(t.GPUs)}}
	for kind, n := range t.Types {
		list = append(list, cluster.Amount{TRES: "gres/gpu:" + kind, N: float64(n)})
	}
	billing := int64(cluster.Billing(&r.v.Config().Config.Priority, r.Part, list))
	return strings.Replace(text, fmt.Sprintf("billing=%d", t.CPUs), fmt.Sprintf("billing=%d", billing), 1)
}

// PartitionTable makes the objects of partitions.
var PartitionTable = data.Table[InfoRow]{Schema: "partition_info", Members: []data.Member[InfoRow]{
	{Path: "nodes.allowed_allocation", Of: func(r *InfoRow) data.Value { return data.Words(r.Part.AllocNodes...) }},
	{Path: "nodes.configured", Of: func(r *InfoRow) data.Value {
		return data.Text(front.Choose(r.Part.NodesText == "", r.NodeList(), r.Part.NodesText))
	}},
	{Path: "nodes.total", Of: func(r *InfoRow) data.Value { return data.Num(len(r.Nodes)) }},
	{Path: "accounts.allowed", Of: func(r *InfoRow) data.Value { return data.Words(r.Part.AllowAccounts...) }},
	{Path: "accounts.deny", Of: func(r *InfoRow) data.Value { return data.Words(r.Part.DenyAccounts...) }},
	{Path: "groups.allowed", Of: func(r *InfoRow) data.Value { return data.Words(r.Part.AllowGroups...) }},
	{Path: "qos.allowed", Of: func(r *InfoRow) data.Value { return data.Words(r.Part.AllowQOS...) }},
	{Path: "qos.deny", Of: func(r *InfoRow) data.Value { return data.Words(r.Part.DenyQOS...) }},
	{Path: "qos.assigned", Of: func(r *InfoRow) data.Value { return data.Text(r.Part.QOS) }},
	{Path: "alternate", Of: func(r *InfoRow) data.Value { return data.Text(r.Part.Alternate) }},
	{Path: "tres.billing_weights", Of: func(r *InfoRow) data.Value {
		return data.Text(format.BillingWeights(r.Part.BillingWeights))
	}},
	{Path: "tres.configured", Of: func(r *InfoRow) data.Value { return data.Text(r.TRES()) }},
	{Path: "cluster"},
	{Path: "select_type", Of: func(*InfoRow) data.Value { return data.Words("NONE") }},
	{Path: "cpus.task_binding"},
	{Path: "cpus.total", Of: func(r *InfoRow) data.Value { _, _, _, n := r.CPUCounts(); return data.Num(n) }},
	{Path: "defaults.memory_per_cpu", Of: func(r *InfoRow) data.Value {
		return partMem(r.Part.DefMem, cluster.MemPerCPU, data.Num(0))
	}},
	{Path: "defaults.partition_memory_per_cpu", Of: func(r *InfoRow) data.Value {
		return partMem(r.Part.DefMem, cluster.MemPerCPU, data.Unset)
	}},
	{Path: "defaults.partition_memory_per_node", Of: func(r *InfoRow) data.Value {
		return partMem(r.Part.DefMem, cluster.MemPerNode, data.Num(0))
	}},
	{Path: "defaults.time", Of: func(r *InfoRow) data.Value { return Minutes(r.Part.DefaultTime) }},
	{Path: "defaults.job", Of: func(r *InfoRow) data.Value {
		return data.Text(format.JobDefaults(r.Part.PerGPU))
	}},
	{Path: "flags", Of: func(r *InfoRow) data.Value { return data.Words(partFlags(r.Part)...) }},
	{Path: "partition.exclusive", Of: func(r *InfoRow) data.Value {
		return data.Text(front.Choose(r.Part.ExclusiveUser, "USER",
			front.Choose(r.Part.OverSubscribe == "EXCLUSIVE", "NODE", "NO")))
	}},
	{Path: "partition.oversubscribe", Of: func(r *InfoRow) data.Value {
		return data.Text(front.Choose(r.Part.OverSubscribe == "", "NO", r.Part.OverSubscribe))
	}},
	{Path: "partition.state", Of: func(r *InfoRow) data.Value {
		return data.Words(front.Choose(r.Part.State == "", "UP", string(r.Part.State)))
	}},
	{Path: "grace_time", Of: func(r *InfoRow) data.Value { return Seconds(r.Part.GraceTime) }},
	{Path: "maximums.cpus_per_node", Of: func(r *InfoRow) data.Value { return data.Limit(r.Part.MaxCPUsPerNode) }},
	{Path: "maximums.cpus_per_socket", Of: func(r *InfoRow) data.Value { return data.Limit(r.Part.MaxCPUsPerSocket) }},
	{Path: "maximums.memory_per_cpu", Of: func(r *InfoRow) data.Value {
		return partMem(r.Part.MaxMem, cluster.MemPerCPU, data.Num(0))
	}},
	{Path: "maximums.partition_memory_per_cpu", Of: func(r *InfoRow) data.Value {
		return partMem(r.Part.MaxMem, cluster.MemPerCPU, data.Unset)
	}},
	{Path: "maximums.partition_memory_per_node", Of: func(r *InfoRow) data.Value {
		return partMem(r.Part.MaxMem, cluster.MemPerNode, data.Num(0))
	}},
	{Path: "maximums.nodes", Of: func(r *InfoRow) data.Value { return data.Limit(r.Part.MaxNodes) }},
	{Path: "maximums.shares", Of: func(r *InfoRow) data.Value { return data.Num(overJobs(r.Part)) }},
	{Path: "maximums.oversubscribe.jobs", Of: func(r *InfoRow) data.Value { return data.Num(overJobs(r.Part)) }},
	{Path: "maximums.oversubscribe.flags", Of: func(r *InfoRow) data.Value {
		return data.Text(front.Choose(strings.HasPrefix(r.Part.OverSubscribe, "FORCE"), "force", ""))
	}},
	{Path: "maximums.time", Of: func(r *InfoRow) data.Value { return Minutes(MaxTime(r.Part.MaxTime)) }},
	{Path: "maximums.over_time_limit", Of: func(r *InfoRow) data.Value {
		if r.Part.OverTimeLimit == nil {
			return data.Unset
		}
		return Minutes(*r.Part.OverTimeLimit)
	}},
	{Path: "minimums.nodes", Of: func(r *InfoRow) data.Value { return data.Num(r.Part.MinNodes) }},
	{Path: "name", Of: func(r *InfoRow) data.Value { return data.Text(r.Part.Name) }},
	{Path: "node_sets", Of: func(r *InfoRow) data.Value { return data.Text(r.Part.NodesText) }},
	{Path: "preempt_mode", Of: func(r *InfoRow) data.Value {
		return data.Words(front.Choose(r.Part.PreemptMode == "", "CLUSTER_GLOBAL",
			front.Choose(r.Part.PreemptMode == "OFF", "DISABLED", r.Part.PreemptMode)))
	}},
	{Path: "priority.job_factor", Of: func(r *InfoRow) data.Value {
		return data.Num(max(r.Part.PriorityJobFactor, 1))
	}},
	{Path: "priority.tier", Of: func(r *InfoRow) data.Value { return data.Num(max(r.Part.PriorityTier, 1)) }},
	{Path: "timeouts.resume", Of: func(r *InfoRow) data.Value { return timeoutOf(r.Part.ResumeTimeout) }},
	{Path: "timeouts.suspend", Of: func(r *InfoRow) data.Value { return timeoutOf(r.Part.SuspendTimeout) }},
	{Path: "topology"},
	{Path: "suspend_time", Of: func(r *InfoRow) data.Value { return timeoutOf(r.Part.SuspendTime) }},
}}

func partMem(m cluster.Mem, per cluster.MemPer, none data.Value) data.Value {
	if m.MB == 0 || m.Per != per {
		return none
	}
	return data.Num(int64(m.MB))
}

func partFlags(p *cluster.Partition) (words []string) {
	for _, f := range [...]struct {
		is   bool
		word string
	}{{p.Default, "DEFAULT"}, {p.Hidden, "HIDDEN"}, {p.DisableRootJobs, "NO_ROOT"}, {p.RootOnly,
		"ROOT_ONLY"}, {p.ReqResv, "REQ_RESV"}, {p.LLN, "LLN"}} {
		if f.is {
			words = append(words, f.word)
		}
	}
	return words
}

// overJobs is how many jobs may be on each CPU.
func overJobs(p *cluster.Partition) int {
	_, count, _ := strings.Cut(p.OverSubscribe, ":")
	n, err := strconv.Atoi(count)
	if err != nil {
		return 1
	}
	return n
}

func timeoutOf(d *time.Duration) data.Value {
	switch {
	case d == nil:
		return data.Unset
	case *d == cluster.Unlimited:
		return data.Infinite
	}
	return Seconds(*d)
}

// SinfoTable makes the objects of sinfo's lines.
var SinfoTable = data.Table[InfoRow]{Schema: "sinfo", Members: []data.Member[InfoRow]{
	{Path: "port", Of: func(r *InfoRow) data.Value {
		return r.firstValue(func(n *api.NodeInfo) data.Value { return data.Text(NodePort(n)) })
	}},
	{Path: "node.state", Of: func(r *InfoRow) data.Value {
		return r.firstValue(func(n *api.NodeInfo) data.Value {
			return data.Words(strings.Split(StateFlags(NodeState(n)), "+")...)
		})
	}},
	{Path: "nodes.allocated", Of: func(r *InfoRow) data.Value { n, _, _ := r.nodeCounts(); return data.Num(n) }},
	{Path: "nodes.idle", Of: func(r *InfoRow) data.Value { _, n, _ := r.nodeCounts(); return data.Num(n) }},
	{Path: "nodes.other", Of: func(r *InfoRow) data.Value { _, _, n := r.nodeCounts(); return data.Num(n) }},
	{Path: "nodes.total", Of: func(r *InfoRow) data.Value { return data.Num(len(r.Nodes)) }},
	{Path: "nodes.hostnames", Of: func(r *InfoRow) data.Value {
		return data.Words(r.each(func(n *api.NodeInfo) string {
			return front.Choose(n.Inventory.Host == "", string(n.Name), n.Inventory.Host)
		})...)
	}},
	{Path: "nodes.addresses", Of: func(r *InfoRow) data.Value { return data.Words(r.each(NodeAddr)...) }},
	{Path: "nodes.nodes", Of: func(r *InfoRow) data.Value {
		return data.Words(r.each(func(n *api.NodeInfo) string { return string(n.Name) })...)
	}},
	{Path: "cpus.allocated", Of: func(r *InfoRow) data.Value { n, _, _, _ := r.CPUCounts(); return data.Num(n) }},
	{Path: "cpus.idle", Of: func(r *InfoRow) data.Value { _, n, _, _ := r.CPUCounts(); return data.Num(n) }},
	{Path: "cpus.other", Of: func(r *InfoRow) data.Value { _, _, n, _ := r.CPUCounts(); return data.Num(n) }},
	{Path: "cpus.total", Of: func(r *InfoRow) data.Value { _, _, _, n := r.CPUCounts(); return data.Num(n) }},
	{Path: "cpus.minimum", Of: func(r *InfoRow) data.Value { return r.edge(false, nodeCPUs) }},
	{Path: "cpus.maximum", Of: func(r *InfoRow) data.Value { return r.edge(true, nodeCPUs) }},
	{Path: "cpus.per_node.max", Of: func(r *InfoRow) data.Value { return data.Limit(r.Part.MaxCPUsPerNode) }},
	{Path: "sockets.minimum", Of: func(r *InfoRow) data.Value { return r.edge(false, nodeSockets) }},
	{Path: "sockets.maximum", Of: func(r *InfoRow) data.Value { return r.edge(true, nodeSockets) }},
	{Path: "cores.minimum", Of: func(r *InfoRow) data.Value { return r.edge(false, nodeCores) }},
	{Path: "cores.maximum", Of: func(r *InfoRow) data.Value { return r.edge(true, nodeCores) }},
	{Path: "threads.minimum", Of: func(r *InfoRow) data.Value { return r.edge(false, nodeThreads) }},
	{Path: "threads.maximum", Of: func(r *InfoRow) data.Value { return r.edge(true, nodeThreads) }},
	{Path: "disk.minimum", Of: func(r *InfoRow) data.Value { return r.edge(false, nodeDisk) }},
	{Path: "disk.maximum", Of: func(r *InfoRow) data.Value { return r.edge(true, nodeDisk) }},
	{Path: "memory.minimum", Of: func(r *InfoRow) data.Value { return r.edge(false, nodeMemory) }},
	{Path: "memory.maximum", Of: func(r *InfoRow) data.Value { return r.edge(true, nodeMemory) }},
	{Path: "memory.free.minimum", Of: func(r *InfoRow) data.Value { return r.edge(false, nodeFree) }},
	{Path: "memory.free.maximum", Of: func(r *InfoRow) data.Value { return r.edge(true, nodeFree) }},
	{Path: "memory.allocated", Of: func(r *InfoRow) data.Value {
		sum := cluster.MemMB(0)
		for _, n := range r.Nodes {
			sum += n.Load.MemMB
		}
		return data.Num(int64(sum))
	}},
	{Path: "weight.minimum", Of: func(r *InfoRow) data.Value { return r.edge(false, nodeWeight) }},
	{Path: "weight.maximum", Of: func(r *InfoRow) data.Value { return r.edge(true, nodeWeight) }},
	{Path: "features.total", Of: func(r *InfoRow) data.Value { return data.Text(r.features()) }},
	{Path: "features.active", Of: func(r *InfoRow) data.Value {
		return r.firstValue(func(n *api.NodeInfo) data.Value { return data.Words(n.Inventory.Features...) })
	}},
	{Path: "gres.total", Of: func(r *InfoRow) data.Value {
		return data.Text(r.text("", func(n *api.NodeInfo) string { return plainGRES(&n.Inventory) }))
	}},
	{Path: "gres.used", Of: func(r *InfoRow) data.Value { return data.Text(r.text("", GRESUsed)) }},
	{Path: "comment", Of: func(r *InfoRow) data.Value {
		return data.Text(r.text("", func(n *api.NodeInfo) string { return n.Comment }))
	}},
	{Path: "extra", Of: func(r *InfoRow) data.Value {
		return data.Text(r.text("", func(n *api.NodeInfo) string { return n.Extra }))
	}},
	{Path: "reason.description", Of: func(r *InfoRow) data.Value {
		return data.Text(r.text("", func(n *api.NodeInfo) string { return n.Reason }))
	}},
	{Path: "reason.time", Of: func(r *InfoRow) data.Value {
		return r.firstValue(func(n *api.NodeInfo) data.Value { return Unix(n.ReasonAt) })
	}},
	{Path: "reason.user", Of: func(r *InfoRow) data.Value {
		return data.Text(r.text("", func(n *api.NodeInfo) string { return n.ReasonBy }))
	}},
	{Path: "reason_set_by_user", Of: func(r *InfoRow) data.Value {
		return data.Text(r.text("", func(n *api.NodeInfo) string { return n.ReasonBy }))
	}},
	{Path: "resource_spec.cpus", Of: func(r *InfoRow) data.Value {
		return data.Text(r.text("", func(n *api.NodeInfo) string { return n.Inventory.SpecCPUs.String() }))
	}},
	{Path: "resource_spec.memory", Of: func(r *InfoRow) data.Value {
		return r.firstValue(func(n *api.NodeInfo) data.Value { return data.Num(int64(n.Inventory.SpecMemMB)) })
	}},
	{Path: "partition", Of: func(r *InfoRow) data.Value { return data.Record(&PartitionTable, r) }},
	{Path: "cluster", Of: func(*InfoRow) data.Value { return data.Text("") }},     // of several, as in Slurm
	{Path: "reservation", Of: func(*InfoRow) data.Value { return data.Text("") }}, // of lines for one
	// As each node's cpu_load: loads are samples here, which muster node and the page show.
	{Path: "cpus.load.minimum", Of: func(*InfoRow) data.Value { return data.Num(0) }},
	{Path: "cpus.load.maximum", Of: func(*InfoRow) data.Value { return data.Num(0) }},
}}

func nodeCPUs(n *api.NodeInfo) int    { return n.Inventory.CPUs }
func nodeSockets(n *api.NodeInfo) int { return n.Inventory.Sockets }
func nodeCores(n *api.NodeInfo) int   { return n.Inventory.CoresPerSocket }
func nodeThreads(n *api.NodeInfo) int { return n.Inventory.ThreadsPerCore }
func nodeDisk(n *api.NodeInfo) int    { return int(n.Inventory.TmpMB) }
func nodeMemory(n *api.NodeInfo) int  { return int(n.Inventory.MemMB) }
func nodeFree(n *api.NodeInfo) int    { return int(n.Inventory.FreeMemMB) }
func nodeWeight(n *api.NodeInfo) int  { return max(n.Inventory.Weight, 1) }

// edge is the least or the greatest of the nodes' numbers.
func (r *InfoRow) edge(most bool, of func(*api.NodeInfo) int) data.Value {
	if len(r.Nodes) == 0 {
		return data.Num(0)
	}
	n := of(r.Nodes[0])
	for _, x := range r.Nodes[1:] {
		if most {
			n = max(n, of(x))
		} else {
			n = min(n, of(x))
		}
	}
	return data.Num(n)
}

func (r *InfoRow) firstValue(of func(*api.NodeInfo) data.Value) data.Value {
	if n := r.first(); n != nil {
		return of(n)
	}
	return data.Unset
}

func (r *InfoRow) each(of func(*api.NodeInfo) string) []string {
	list := make([]string, len(r.Nodes))
	for i, n := range r.Nodes {
		list[i] = of(n)
	}
	return list
}
