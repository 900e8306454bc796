package control

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// partitionRecord writes one partition as scontrol show partition does.
func (c *control) partitionRecord(p *cluster.Partition, resp *api.NodesResponse) {
	o, row := c.record(), show.PartitionRow(c.view(resp.Now), p, resp.Nodes)
	o.line("PartitionName=", p.Name)
	o.line("AllowGroups=", show.Joined(p.AllowGroups, "ALL"),
		allow("Accounts", p.AllowAccounts, p.DenyAccounts), allow("Qos", p.AllowQOS, p.DenyQOS))
	o.line("AllocNodes=", cmp.Or(hostlist.Compress(p.AllocNodes), "ALL"),
		front.Choose(p.Alternate == "", "", " Alternate="+p.Alternate),
		" Default=", upperYesNo(p.Default), " QoS=", cmp.Or(p.QOS, "N/A"))
	deflt := front.Choose(p.DefaultTime == 0, "NONE", format.Padded(p.DefaultTime))
	o.line("DefaultTime=", deflt, " DisableRootJobs=", upperYesNo(p.DisableRootJobs), " ExclusiveUser=", upperYesNo(p.ExclusiveUser),
		" GraceTime=", strconv.Itoa(int(p.GraceTime/time.Second)), " Hidden=", upperYesNo(p.Hidden))
	// 22.05, whose lines these are, has no limit for a socket.
	perSocket := front.Choose(p.MaxCPUsPerSocket == 0, "", " MaxCPUsPerSocket="+strconv.Itoa(p.MaxCPUsPerSocket))
	o.line("MaxNodes=", show.UnlimitedCount(p.MaxNodes), " MaxTime=", format.Padded(show.MaxTime(p.MaxTime)), " MinNodes=", strconv.Itoa(p.MinNodes),
		" LLN=", upperYesNo(p.LLN), " MaxCPUsPerNode=", show.UnlimitedCount(p.MaxCPUsPerNode), perSocket)
	o.line("Nodes=", format.Null(row.NodeList()))
	o.line("PriorityJobFactor=", strconv.Itoa(max(p.PriorityJobFactor, 1)), " PriorityTier=", strconv.Itoa(max(p.PriorityTier, 1)),
		" RootOnly=", upperYesNo(p.RootOnly), " ReqResv=", upperYesNo(p.ReqResv), " OverSubscribe=", cmp.Or(p.OverSubscribe, "NO"))
	o.line("OverTimeLimit=", conf.OverTimeText(p, "NONE"), " PreemptMode=", cmp.Or(p.PreemptMode, "OFF"))
	_, _, _, cpus := row.CPUCounts()
	o.line("State=", cmp.Or(string(p.State), "UP"), " TotalCPUs=", strconv.Itoa(cpus), " TotalNodes=",
		strconv.Itoa(len(row.Nodes)), " SelectTypeParameters=NONE")
	o.line("JobDefaults=", format.Null(show.JobDefaults(p.PerGPU)))
	o.line(partitionMem("Def", p.DefMem), " ", partitionMem("Max", p.MaxMem))
	if cpus > 0 {
		o.line("TRES=", row.TRES())
	}
	if w := show.BillingWeights(p); w != "" {
		o.line("TRESBillingWeights=", w)
	}
	if p.Hang != "" {
		o.line("Hang=", p.Hang)
	}
	if p.IdleGPU != "" {
		o.line("IdleGPU=", string(p.IdleGPU), " IdleGPUTime=", format.Padded(p.IdleTime()))
	}
	if p.NoNewPrivs {
		o.line("NoNewPrivs=YES")
	}
	c.print(o)
}

func allow(name string, yes, no []string) string {
	if len(no) > 0 {
		return " Deny" + name + "=" + strings.Join(no, ",")
	}
	return " Allow" + name + "=" + show.Joined(yes, "ALL")
}

func partitionMem(head string, m cluster.Mem) string {
	per := map[cluster.MemPer]string{cluster.MemPerCPU: "CPU", cluster.MemPerGPU: "GPU"}[m.Per]
	return head + "MemPer" + cmp.Or(per, "Node") + "=" + show.UnlimitedCount(int(m.MB))
}

// showPartitions is scontrol show partition [NAME].
func (c *control) showPartitions(arg string) int {
	resp, err := front.Call(c.sys, api.ListNodes, api.NodeQuery{Listed: !c.all})
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_partitions error", err)
	}
	found := false
	var rows []show.InfoRow
	for i := range resp.Partitions {
		p := &resp.Partitions[i]
		switch {
		case arg != "" && p.Name != arg:
		case c.data.On:
			rows = append(rows, show.PartitionRow(c.view(resp.Now), p, resp.Nodes))
		default:
			c.partitionRecord(p, &resp)
			found = true
		}
	}
	if c.data.On {
		return show.WritePartitions(c.out, c.view(resp.Now), &c.data, rows)
	}
	if !found && arg != "" {
		_, _ = c.out.WriteString("Partition " + arg + " not found\n")
		return 1
	}
	return 0
}
