package rest

import (
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
)

// notRunning is Slurm's number of a job that has no resources.
const notRunning = 2085

// layout is what a job has on a node.
type layout struct {
	*cluster.Share
	node *cluster.Node
}

var layoutTable = data.Table[layout]{Schema: "node_resource_layout", Members: []data.Member[layout]{
	{Path: "node", Of: func(l *layout) data.Value { return data.Text(l.Share.Node) }},
	{Path: "sockets_per_node", Of: func(l *layout) data.Value { return data.Num(l.node.Inventory.Sockets) }},
	{Path: "cores_per_socket", Of: func(l *layout) data.Value { return data.Num(l.node.Inventory.CoresPerSocket) }},
	{Path: "mem_alloc", Of: func(l *layout) data.Value { return data.Num(int64(l.MemMB)) }},
	{Path: "core_bitmap", Of: func(l *layout) data.Value { return data.Text(coreMask(l)) }},
	{Path: "gres", Of: func(l *layout) data.Value {
		if l.GPUs.Empty() {
			return data.Unset
		}
		return data.Records(&layoutGPUTable, []layout{*l})
	}},
}}

var layoutGPUTable = data.Table[layout]{Schema: "node_gres_layout", Members: []data.Member[layout]{
	{Path: "name", Of: func(*layout) data.Value { return data.Text("gpu") }},
	{Path: "type", Of: func(l *layout) data.Value {
		if k := l.GPUs.Min(); k < len(l.node.Inventory.GPUs) {
			return data.Text(l.node.Inventory.GPUs[k].Type)
		}
		return data.Unset
	}},
	{Path: "count", Of: func(l *layout) data.Value { return data.Num(l.GPUs.Len()) }},
	{Path: "index", Of: func(l *layout) data.Value { return data.Text(l.GPUs.String()) }},
}}

// coreMask are the cores of a share in hexadecimal, all cores of its node wide.
func coreMask(l *layout) string {
	inv := &l.node.Inventory
	cores := inv.CoresOf(l.CPUs)
	digits := make([]byte, (inv.Sockets*inv.CoresPerSocket+3)/4)
	for i := range digits {
		n := 0
		for k := range 4 {
			if cores.Has(i*4 + k) {
				n |= 1 << k
			}
		}
		digits[len(digits)-1-i] = "0123456789ABCDEF"[n]
	}
	return "0x" + string(digits)
}

// resources tells what a running job has, to its user and to operators.
func resources(x *request) {
	if !x.jobID() {
		return
	}
	id := x.vars["job_id"]
	what := "Unable to query JobId=" + id
	sys := x.sys("scontrol", nil, nil)
	target, _ := front.ParseTarget(id)
	jobs, err := front.Call(sys, api.ListJobs, api.JobQuery{Refs: []cluster.Ref{target.Ref}})
	switch {
	case err != nil:
		x.failed = err
		x.write(statusOf(x.fail(what, err.Error()).Number))
		return
	case len(jobs.Jobs) == 0:
		x.refuse(2017, "Invalid job id specified", what)
		return
	case jobs.Jobs[0].Spec.UID != x.Who.UID && !x.Who.Operator():
		x.refuse(2010, "Invalid user id", what)
		return
	case jobs.Jobs[0].Alloc == nil || jobs.Jobs[0].Phase == cluster.Ended:
		x.refuse(notRunning, "Job is not running", what)
		return
	}
	shares := jobs.Jobs[0].Alloc.Shares
	var q api.NodeQuery
	for i := range shares {
		q.Names = append(q.Names, shares[i].Node)
	}
	nodes, err := front.Call(sys, api.ListNodes, q)
	if err != nil {
		x.failed = err
		x.write(statusOf(x.fail(what, err.Error()).Number))
		return
	}
	known := map[cluster.NodeName]*cluster.Node{}
	for i := range nodes.Nodes {
		known[nodes.Nodes[i].Name] = &nodes.Nodes[i].Node
	}
	var rows []layout
	for i := range shares {
		if n := known[shares[i].Node]; n != nil {
			rows = append(rows, layout{&shares[i], n})
		}
	}
	x.write(200, data.Each("nodes", &layoutTable, rows))
}
