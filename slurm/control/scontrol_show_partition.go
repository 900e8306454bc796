package control

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// partitionRecord writes one partition as scontrol show partition does.
func (c *control) partitionRecord(p *cluster.Partition, resp *api.NodesResponse) {
	o := c.record()
	row, of := show.InfoRow{Part: p}, make(map[cluster.NodeName]bool, len(p.Nodes))
	for _, name := range p.Nodes {
		of[name] = true
	}
	for i := range resp.Nodes {
		if n := &resp.Nodes[i]; p.All || of[n.Name] {
			row.Nodes = append(row.Nodes, n)
		}
	}
	o.line("PartitionName=", p.Name)
	o.line("AllowGroups=", show.Joined(p.AllowGroups, "ALL"), allow("Accounts", p.AllowAccounts, p.DenyAccounts), allow("Qos", p.AllowQOS, p.DenyQOS))
	o.line("AllocNodes=ALL Default=", upperYesNo(p.Default), " QoS=", cmp.Or(p.QOS, "N/A"))
	deflt := "NONE"
	if p.DefaultTime != 0 {
		deflt = format.Padded(p.DefaultTime)
	}
	o.line("DefaultTime=", deflt, " DisableRootJobs=", upperYesNo(p.DisableRootJobs), " ExclusiveUser=", upperYesNo(p.ExclusiveUser),
		" GraceTime=", strconv.Itoa(int(p.GraceTime/time.Second)), " Hidden=", upperYesNo(p.Hidden))
	o.line("MaxNodes=", show.UnlimitedCount(p.MaxNodes), " MaxTime=", format.Padded(show.MaxTime(p.MaxTime)), " MinNodes=", strconv.Itoa(p.MinNodes),
		" LLN=", upperYesNo(p.LLN), " MaxCPUsPerNode=", show.UnlimitedCount(p.MaxCPUsPerNode))
	o.line("Nodes=", format.Null(row.NodeList()))
	o.line("PriorityJobFactor=", strconv.Itoa(max(p.PriorityJobFactor, 1)), " PriorityTier=", strconv.Itoa(max(p.PriorityTier, 1)),
		" RootOnly=", upperYesNo(p.RootOnly), " ReqResv=", upperYesNo(p.ReqResv), " OverSubscribe=", cmp.Or(p.OverSubscribe, "NO"))
	o.line("OverTimeLimit=NONE PreemptMode=", cmp.Or(p.PreemptMode, "OFF"))
	_, _, _, cpus := row.CPUCounts()
	o.line("State=", cmp.Or(string(p.State), "UP"), " TotalCPUs=", strconv.Itoa(cpus), " TotalNodes=", strconv.Itoa(len(row.Nodes)), " SelectTypeParameters=NONE")
	o.line("JobDefaults=", jobDefaults(p.PerGPU))
	o.line(partitionMem("Def", p.DefMem), " ", partitionMem("Max", p.MaxMem))
	t := format.TRES{CPUs: cpus, Nodes: len(row.Nodes), Types: map[string]int64{}}
	for _, n := range row.Nodes {
		t.Mem += n.Inventory.MemMB
		gpus := n.Inventory.Found()
		t.GPUs += len(gpus)
		for _, g := range gpus {
			t.Types[g.Type]++
		}
	}
	if cpus > 0 {
		o.line("TRES=", c.billedAs(p, t))
	}
	if w := billingWeights(p); w != "" {
		o.line("TRESBillingWeights=", w)
	}
	c.print(o)
}

// billingWeights writes cpu=1,mem=0.25G,gres/gpu=2; memory is weighed by the gibibyte.
func billingWeights(p *cluster.Partition) string {
	var words []string
	for _, a := range p.BillingWeights {
		n, unit := a.N, ""
		if a.TRES == "mem" {
			n, unit = n*1024, "G"
		}
		words = append(words, a.TRES+"="+strconv.FormatFloat(n, 'f', -1, 64)+unit)
	}
	return strings.Join(words, ",")
}

// billedAs writes what a partition has, billed by its weights.
func (c *control) billedAs(p *cluster.Partition, t format.TRES) string {
	text := t.String()
	if conf, err := c.cluster(); err == nil && len(p.BillingWeights) > 0 {
		list := []cluster.Amount{{TRES: "cpu", N: float64(t.CPUs)}, {TRES: "mem", N: float64(t.Mem)}, {TRES: "node", N: float64(t.Nodes)}, {TRES: "gres/gpu", N: float64(t.GPUs)}}
		for kind, n := range t.Types {
			list = append(list, cluster.Amount{TRES: "gres/gpu:" + kind, N: float64(n)})
		}
		billing := int64(cluster.Billing(&conf.Config.Priority, p, list))
		text = strings.Replace(text, fmt.Sprintf("billing=%d", t.CPUs), fmt.Sprintf("billing=%d", billing), 1)
	}
	return text
}

func allow(name string, yes, no []string) string {
	if len(no) > 0 {
		return " Deny" + name + "=" + strings.Join(no, ",")
	}
	return " Allow" + name + "=" + show.Joined(yes, "ALL")
}

// jobDefaults is what jobs get for each GPU.
func jobDefaults(d cluster.PerGPU) string {
	var words []string
	if d.CPUs > 0 {
		words = append(words, "DefCpuPerGPU="+strconv.Itoa(d.CPUs))
	}
	if d.MemMB > 0 {
		words = append(words, "DefMemPerGPU="+strconv.FormatInt(int64(d.MemMB), 10))
	}
	return format.Null(strings.Join(words, ","))
}

func partitionMem(head string, m cluster.Mem) string {
	per := "Node"
	switch m.Per {
	case cluster.MemPerCPU:
		per = "CPU"
	case cluster.MemPerGPU:
		per = "GPU"
	}
	return head + "MemPer" + per + "=" + show.UnlimitedCount(int(m.MB))
}

// showPartitions is scontrol show partition [NAME].
func (c *control) showPartitions(arg string) int {
	resp, err := front.Call(c.sys, api.ListNodes, api.NodeQuery{})
	if err != nil {
		return show.LoadFailed(c.sys, "slurm_load_partitions error", err)
	}
	found := false
	for i := range resp.Partitions {
		if p := &resp.Partitions[i]; arg == "" || p.Name == arg {
			c.partitionRecord(p, &resp)
			found = true
		}
	}
	if !found && arg != "" {
		_, _ = c.out.WriteString("Partition " + arg + " not found\n")
		return 1
	}
	return 0
}
