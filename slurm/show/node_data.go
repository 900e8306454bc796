package show

import (
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// NodeRow is a node with what is around it.
type NodeRow struct {
	*api.NodeInfo
	Parts []string // the partitions that it is in
	Resv  string   // the reservation that has it now
}

// NodeRows are nodes with their partitions.
func NodeRows(resp *api.NodesResponse, resvs []cluster.Reservation) []NodeRow {
	rows := make([]NodeRow, len(resp.Nodes))
	at := make(map[cluster.NodeName]*NodeRow, len(rows))
	for i := range rows {
		rows[i].NodeInfo = &resp.Nodes[i]
		at[resp.Nodes[i].Name] = &rows[i]
	}
	for i := range resp.Partitions {
		p := &resp.Partitions[i]
		for k := range rows {
			if p.All {
				rows[k].Parts = append(rows[k].Parts, p.Name)
			}
		}
		for _, name := range p.Nodes {
			if r := at[name]; r != nil && !p.All {
				r.Parts = append(r.Parts, p.Name)
			}
		}
	}
	for i := range resvs {
		for _, name := range resvs[i].Nodes {
			if r := at[name]; r != nil && resvs[i].Active(resp.Now) {
				r.Resv = resvs[i].Name
			}
		}
	}
	return rows
}

// NodeTable makes the objects of nodes.
var NodeTable = data.Table[NodeRow]{Schema: "node", Members: []data.Member[NodeRow]{
	{Path: "architecture", Of: func(n *NodeRow) data.Value { return data.Text(n.Inventory.Arch) }},
	{Path: "burstbuffer_network_address"},
	{Path: "boards", Of: func(*NodeRow) data.Value { return data.Num(1) }},
	{Path: "boot_time", Of: func(n *NodeRow) data.Value { return Unix(n.Inventory.Boot) }},
	{Path: "tls_cert_last_renewal", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "cert_flags"},
	{Path: "cluster_name"},
	{Path: "cores", Of: func(n *NodeRow) data.Value { return data.Num(n.Inventory.CoresPerSocket) }},
	{Path: "specialized_cores", Of: func(n *NodeRow) data.Value {
		return data.Num(n.Inventory.CoresOf(n.Inventory.SpecCPUs).Len())
	}},
	{Path: "cpu_binding", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "cpu_load", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "free_mem", Of: func(n *NodeRow) data.Value { return data.Or(int64(n.Inventory.FreeMemMB)) }},
	{Path: "cpus", Of: func(n *NodeRow) data.Value { return data.Num(n.Inventory.CPUs) }},
	{Path: "effective_cpus", Of: func(n *NodeRow) data.Value { return data.Num(n.Inventory.JobCPUCount()) }},
	{Path: "specialized_cpus", Of: func(n *NodeRow) data.Value { return data.Text(n.Inventory.SpecCPUs.String()) }},
	{Path: "energy.average_watts", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "energy.base_consumed_energy", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "energy.consumed_energy", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "energy.current_watts", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "energy.previous_consumed_energy", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "energy.last_collected", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "external_sensors", Of: func(*NodeRow) data.Value { return data.Raw("{}") }},
	{Path: "extra", Of: func(n *NodeRow) data.Value { return data.Text(n.Extra) }},
	{Path: "power", Of: func(*NodeRow) data.Value { return data.Raw("{}") }},
	{Path: "features", Of: func(n *NodeRow) data.Value { return data.Words(n.Inventory.Available()...) }},
	{Path: "active_features", Of: func(n *NodeRow) data.Value { return data.Words(n.Inventory.Features...) }},
	{Path: "gpu_spec"},
	{Path: "gres", Of: func(n *NodeRow) data.Value { return data.Text(plainGRES(&n.Inventory)) }},
	{Path: "gres_drained", Of: func(*NodeRow) data.Value { return data.Text("N/A") }},
	{Path: "gres_used", Of: func(n *NodeRow) data.Value { return data.Text(GRESUsed(n.NodeInfo)) }},
	{Path: "instance_id"},
	{Path: "instance_type"},
	{Path: "last_busy", Of: func(n *NodeRow) data.Value { return Unix(n.LastBusy) }},
	{Path: "mcs_label"},
	{Path: "specialized_memory", Of: func(n *NodeRow) data.Value { return data.Num(int64(n.Inventory.SpecMemMB)) }},
	{Path: "name", Of: func(n *NodeRow) data.Value { return data.Text(n.Name) }},
	{Path: "next_state_after_reboot", Of: func(n *NodeRow) data.Value { return data.Words(nextStates(n.Reboot)...) }},
	{Path: "address", Of: func(n *NodeRow) data.Value { return data.Text(NodeAddr(n.NodeInfo)) }},
	{Path: "hostname", Of: func(n *NodeRow) data.Value {
		return data.Text(front.Choose(n.Inventory.Host == "", string(n.Name), n.Inventory.Host))
	}},
	{Path: "state", Of: func(n *NodeRow) data.Value {
		return data.Words(strings.Split(StateFlags(NodeState(n.NodeInfo)), "+")...)
	}},
	{Path: "operating_system", Of: func(n *NodeRow) data.Value { return data.Text(n.Inventory.OS) }},
	{Path: "owner", Of: func(n *NodeRow) data.Value {
		if n.Load.Closed == 0 {
			return data.Unset
		}
		return data.Num(n.Load.Closed - 1)
	}},
	{Path: "partitions", Of: func(n *NodeRow) data.Value { return data.Words(n.Parts...) }},
	{Path: "port", Of: func(n *NodeRow) data.Value { return data.Text(NodePort(n.NodeInfo)) }},
	{Path: "real_memory", Of: func(n *NodeRow) data.Value { return data.Num(int64(n.Inventory.MemMB)) }},
	{Path: "res_cores_per_gpu", Of: func(*NodeRow) data.Value { return data.Num(0) }},
	{Path: "comment", Of: func(n *NodeRow) data.Value { return data.Text(n.Comment) }},
	{Path: "reason", Of: func(n *NodeRow) data.Value { return data.Text(n.Reason) }},
	{Path: "reason_changed_at", Of: func(n *NodeRow) data.Value { return Unix(n.ReasonAt) }},
	{Path: "reason_set_by_user", Of: func(n *NodeRow) data.Value { return data.Text(n.ReasonBy) }},
	{Path: "resume_after", Of: func(n *NodeRow) data.Value { return Unix(n.ResumeAt) }},
	{Path: "reservation", Of: func(n *NodeRow) data.Value { return data.Text(n.Resv) }},
	{Path: "suspend_time", Of: func(*NodeRow) data.Value { return data.Infinite }},
	{Path: "alloc_memory", Of: func(n *NodeRow) data.Value { return data.Num(int64(n.Load.MemMB)) }},
	{Path: "alloc_cpus", Of: func(n *NodeRow) data.Value { return data.Num(n.Load.CPUs.Len()) }},
	{Path: "alloc_idle_cpus", Of: func(n *NodeRow) data.Value {
		return data.Num(n.Inventory.CPUs - n.Load.CPUs.Len())
	}},
	{Path: "tres_used", Of: func(n *NodeRow) data.Value { return data.Text(NodeTRES(n.NodeInfo, true)) }},
	{Path: "tres_weighted", Of: func(*NodeRow) data.Value { return data.Float(0) }},
	{Path: "slurmd_start_time", Of: func(n *NodeRow) data.Value { return Unix(n.Registered) }},
	{Path: "sockets", Of: func(n *NodeRow) data.Value { return data.Num(n.Inventory.Sockets) }},
	{Path: "threads", Of: func(n *NodeRow) data.Value { return data.Num(n.Inventory.ThreadsPerCore) }},
	{Path: "temporary_disk", Of: func(n *NodeRow) data.Value { return data.Num(n.Inventory.TmpMB) }},
	{Path: "weight", Of: func(n *NodeRow) data.Value { return data.Num(max(n.Inventory.Weight, 1)) }},
	{Path: "topology", Of: func(n *NodeRow) data.Value { return data.Text(n.Inventory.Topology) }},
	{Path: "tres", Of: func(n *NodeRow) data.Value { return data.Text(NodeTRES(n.NodeInfo, false)) }},
	{Path: "version", Of: func(n *NodeRow) data.Value { return data.Text(n.Inventory.Version) }},
}, Also: []data.Member[NodeRow]{
	{Path: "nics", Of: func(n *NodeRow) data.Value {
		text, err := wire.Marshal(NICList(&n.Inventory))
		if err != nil {
			return data.Raw("[]")
		}
		return data.Raw(string(text))
	}},
}}

// plainGRES is GRESText, empty where there is none.
func plainGRES(inv *cluster.Inventory) string {
	if text := GRESText(inv); text != "(null)" {
		return text
	}
	return ""
}

// nextStates is the state of a node after the reboot that is asked for.
func nextStates(r *cluster.Reboot) []string {
	switch {
	case r == nil:
		return []string{"INVALID"}
	case r.Next == cluster.NodeSetDown:
		return []string{"DOWN"}
	case r.Asap || r.Next == cluster.NodeResume:
		return []string{"RESUME"}
	}
	return []string{"INVALID"}
}

// LicenseRow is a license with what is in use.
type LicenseRow struct {
	cluster.License
	Used, Reserved int
}

// LicenseRows are the cluster's licenses.
func LicenseRows(conf *api.ClusterResponse) []LicenseRow {
	rows := make([]LicenseRow, 0, len(conf.Config.Licenses))
	for _, l := range conf.Config.Licenses {
		rows = append(rows, LicenseRow{l, conf.LicensesUsed[l.Name], conf.LicensesReserved[l.Name]})
	}
	return rows
}

// LicenseTable makes the objects of licenses.
var LicenseTable = data.Table[LicenseRow]{Schema: "license", Members: []data.Member[LicenseRow]{
	{Path: "LicenseName", Of: func(l *LicenseRow) data.Value { return data.Text(l.Name) }},
	{Path: "Total", Of: func(l *LicenseRow) data.Value { return data.Num(l.Total) }},
	{Path: "Used", Of: func(l *LicenseRow) data.Value { return data.Num(l.Used) }},
	{Path: "Free", Of: func(l *LicenseRow) data.Value { return data.Num(max(l.Total-l.Used, 0)) }},
	{Path: "Remote", Of: func(*LicenseRow) data.Value { return data.Bool(false) }},
	{Path: "Reserved", Of: func(l *LicenseRow) data.Value { return data.Num(l.Reserved) }},
	{Path: "LastConsumed", Of: func(*LicenseRow) data.Value { return data.Num(0) }},
	{Path: "LastDeficit", Of: func(*LicenseRow) data.Value { return data.Num(0) }},
	{Path: "LastUpdate", Of: func(*LicenseRow) data.Value { return data.Num(0) }},
	{Path: "Nodes"},
}}

// ResvRow is a reservation with what it has.
type ResvRow struct {
	*cluster.Reservation
	Cores, CPUs int
	CoreIDs     []cluster.IDSet
}

// ResvRows are reservations with what they have.
func ResvRows(resp *api.ReservationsResponse) []ResvRow {
	rows := make([]ResvRow, len(resp.Reservations))
	for i := range rows {
		r := &resp.Reservations[i]
		rows[i] = ResvRow{Reservation: r, CoreIDs: resp.CoreIDs[r.Name]}
		if i < len(resp.Cores) && i < len(resp.CPUs) {
			rows[i].Cores, rows[i].CPUs = resp.Cores[i], resp.CPUs[i]
		}
	}
	return rows
}

// ResvTable makes the objects of reservations.
var ResvTable = data.Table[ResvRow]{Schema: "reservation_info", Members: []data.Member[ResvRow]{
	{Path: "accounts", Of: func(r *ResvRow) data.Value { return signed(r.Accounts, r.AccountsNot) }},
	{Path: "burst_buffer"},
	{Path: "core_count", Of: func(r *ResvRow) data.Value { return data.Num(r.Cores) }},
	{Path: "core_specializations", Of: func(r *ResvRow) data.Value { return data.Records(&coreTable, r.cores()) }},
	{Path: "end_time", Of: func(r *ResvRow) data.Value { return Unix(r.End) }},
	{Path: "features", Of: func(r *ResvRow) data.Value { return data.Text(r.Features) }},
	{Path: "flags", Of: func(r *ResvRow) data.Value {
		var words []string
		for word := range strings.SplitSeq(ResvText(r.Reservation), ",") {
			word, _, _ = strings.Cut(word, "=")
			words = append(words, word)
		}
		return data.Words(words...)
	}},
	{Path: "groups", Of: func(r *ResvRow) data.Value { return data.Words(r.Groups...) }},
	{Path: "licenses", Of: func(r *ResvRow) data.Value { return data.Text(r.Licenses) }},
	{Path: "max_start_delay", Of: func(r *ResvRow) data.Value { return Seconds(r.MaxStartDelay) }},
	{Path: "name", Of: func(r *ResvRow) data.Value { return data.Text(r.Name) }},
	{Path: "node_count", Of: func(r *ResvRow) data.Value { return data.Num(len(r.Nodes)) }},
	{Path: "node_list", Of: func(r *ResvRow) data.Value { return data.Text(front.NodeText(r.Nodes)) }},
	{Path: "partition", Of: func(r *ResvRow) data.Value { return data.Text(r.Partition) }},
	{Path: "purge_completed.time", Of: func(r *ResvRow) data.Value {
		if r.PurgeAfter == 0 {
			return data.Num(300)
		}
		return Seconds(r.PurgeAfter)
	}},
	{Path: "start_time", Of: func(r *ResvRow) data.Value { return Unix(r.Start) }},
	{Path: "watts"},
	{Path: "tres", Of: func(r *ResvRow) data.Value { return data.Text(format.ReservationTRES(r.Reservation, r.CPUs)) }},
	{Path: "users", Of: func(r *ResvRow) data.Value { return signed(r.Users, r.UsersNot) }},
}}

// signed is a list of those who may, or with a minus before each of those who may not.
func signed(names []string, not bool) data.Value {
	if !not {
		return data.Words(names...)
	}
	out := slices.Clone(names)
	for i := range out {
		out[i] = "-" + out[i]
	}
	return data.Words(out...)
}

// resvCore is what a reservation of cores has of a node.
type resvCore struct{ node, cores string }

func (r *ResvRow) cores() (list []resvCore) {
	for i, ids := range r.CoreIDs {
		if i < len(r.Nodes) {
			list = append(list, resvCore{string(r.Nodes[i]), ids.String()})
		}
	}
	return list
}

var coreTable = data.Table[resvCore]{Schema: "reservation_core_spec", Members: []data.Member[resvCore]{
	{Path: "node", Of: func(c *resvCore) data.Value { return data.Text(c.node) }},
	{Path: "core", Of: func(c *resvCore) data.Value { return data.Text(c.cores) }},
}}
