package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// nodeRecord writes one node as scontrol show node does.
func (c *control) nodeRecord(n *api.NodeInfo, parts []cluster.Partition) {
	o, inv := c.record(), &n.Inventory
	o.line("NodeName=", string(n.Name), arch(inv.Arch), " CoresPerSocket=", strconv.Itoa(inv.CoresPerSocket), " ")
	o.line("CPUAlloc=", strconv.Itoa(n.Load.CPUs.Len()), " CPUEfctv=", strconv.Itoa(inv.JobCPUCount()),
		" CPUTot=", strconv.Itoa(inv.CPUs), " CPULoad=N/A")
	o.line("AvailableFeatures=", show.Joined(inv.Available(), "(null)"))
	o.line("ActiveFeatures=", show.Joined(inv.Features, "(null)"))
	o.line("Gres=", show.GRESText(inv))
	if c.details {
		o.line("GresDrain=N/A")
		o.line("GresUsed=", show.GRESUsed(n))
		if len(inv.NICs) > 0 {
			o.line("NICs=", show.NICText(inv))
		}
	}
	o.line("NodeAddr=", show.NodeAddr(n), " NodeHostName=", cmp.Or(inv.Host, string(n.Name)), " Port=",
		show.NodePort(n), " Version=", cmp.Or(inv.Version, front.SlurmVersion))
	if inv.OS != "" {
		o.line("OS=", inv.OS, " ")
	}
	free := "N/A"
	if inv.FreeMemMB > 0 {
		free = strconv.FormatInt(int64(inv.FreeMemMB), 10)
	}
	o.line("RealMemory=", strconv.FormatInt(int64(inv.MemMB), 10), " AllocMem=", strconv.FormatInt(int64(n.Load.MemMB), 10), " FreeMem=", free,
		" Sockets=", strconv.Itoa(inv.Sockets), " Boards=1")
	if kept := keptText(inv); kept != "" {
		o.line(kept)
	}
	o.line("State=", show.StateFlags(show.NodeState(n)), " ThreadsPerCore=", strconv.Itoa(inv.ThreadsPerCore), " TmpDisk=", strconv.FormatInt(inv.TmpMB, 10),
		" Weight=", strconv.Itoa(max(inv.Weight, 1)), " Owner=N/A MCS_label=N/A", nextState(n))
	var names []string
	for i := range parts {
		if parts[i].All || slices.Contains(parts[i].Nodes, n.Name) {
			names = append(names, parts[i].Name)
		}
	}
	if len(names) > 0 {
		o.line("Partitions=", strings.Join(names, ","), " ")
	}
	o.line("BootTime=", stamp(c, inv.Boot, "None"), " SlurmdStartTime=", stamp(c, n.Registered, "None"))
	busy := []string{"LastBusyTime=", stamp(c, n.LastBusy, "Unknown")}
	if !n.ResumeAt.IsZero() {
		busy = append(busy, " ResumeAfterTime=", stamp(c, n.ResumeAt, "None"))
	}
	o.line(busy...)
	o.line("CfgTRES=", show.NodeTRES(n, false))
	o.line("AllocTRES=", show.NodeTRES(n, true))
	o.line("CapWatts=n/a")
	o.line("CurrentWatts=0 AveWatts=0")
	o.line("ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s")
	if n.Comment != "" {
		o.line("Comment=", n.Comment)
	}
	if n.Extra != "" {
		o.line("Extra=", n.Extra)
	}
	if n.Reason != "" {
		o.line("Reason=", n.Reason, " [", n.ReasonBy, "@", stamp(c, n.ReasonAt, "Unknown"), "]")
	}
	c.print(o)
}

// keptText is what a node keeps from jobs.
func keptText(inv *cluster.Inventory) (text string) {
	if !inv.SpecCPUs.Empty() {
		text = "CoreSpecCount=" + strconv.Itoa(inv.CoresOf(inv.SpecCPUs).Len()) + " CPUSpecList=" + inv.SpecCPUs.String() + " "
	}
	if inv.SpecMemMB > 0 {
		text += "MemSpecLimit=" + strconv.FormatInt(int64(inv.SpecMemMB), 10)
	}
	return text
}

// maxSwitchWait is the longest wait for switches unless a cluster says otherwise, and the default.
const maxSwitchWait = 5 * time.Minute

// nextState is the state in which a node is after the reboot that is asked for.
func nextState(n *api.NodeInfo) string {
	switch {
	case n.Reboot == nil:
	case n.Reboot.Next == cluster.NodeSetDown:
		return " NextState=DOWN"
	case n.Reboot.Asap || n.Reboot.Next == cluster.NodeResume:
		return " NextState=RESUME"
	}
	return ""
}

func arch(text string) string {
	if text == "" {
		return ""
	}
	return " Arch=" + text
}

// showNodes is scontrol show node [LIST].
func (c *control) showNodes(arg string) int {
	q := api.NodeQuery{Listed: !c.all}
	all := arg == "" || strings.EqualFold(arg, "ALL")
	names, bad := hostlist.Expand(arg)
	if !all && bad == nil {
		for _, name := range names {
			q.Names = append(q.Names, cluster.NodeName(name))
		}
	}
	resp, err := front.Call(c.sys, api.ListNodes, q)
	switch {
	case err != nil:
		return show.LoadFailed(c.sys, "slurm_load_node error", err)
	case c.data.On && bad == nil:
		return c.nodesData(&resp)
	case all:
		if len(resp.Nodes) == 0 {
			_, _ = c.out.WriteString("No nodes in the system\n")
		}
		for i := range resp.Nodes {
			if n := &resp.Nodes[i]; c.future || !show.Hidden(show.NodeState(n)) {
				c.nodeRecord(n, resp.Partitions)
			}
		}
		return 0
	case bad != nil:
		return c.complain("Node " + arg + " not found")
	}
	found := make(map[cluster.NodeName]*api.NodeInfo, len(resp.Nodes))
	for i := range resp.Nodes {
		found[resp.Nodes[i].Name] = &resp.Nodes[i]
	}
	code := 0
	for _, name := range q.Names {
		n, ok := found[name]
		if !ok {
			_, _ = c.out.WriteString("Node " + string(name) + " not found\n")
			code = 1
			continue
		}
		c.nodeRecord(n, resp.Partitions)
	}
	return code
}

// nodesData prints the nodes as objects, with the reservations that have them.
func (c *control) nodesData(resp *api.NodesResponse) int {
	resvs, _ := front.Call(c.sys, api.ListReservations, api.ReservationQuery{}) // who may see none sees none here
	rows := show.NodeRows(resp, resvs.Reservations)
	rows = slices.DeleteFunc(rows,
		func(n show.NodeRow) bool { return !c.future && n.Expected == cluster.ExpectedFuture })
	return show.WriteNodes(c.out, c.view(resp.Now), &c.data, rows)
}

func upperYesNo(b bool) string { return strings.ToUpper(show.YesNo(b)) }
