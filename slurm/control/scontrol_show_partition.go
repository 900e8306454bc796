package control

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/conf"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// partitionLines are the lines of scontrol show partition. A key that is on none has a line of its own at the end.
var partitionLines = [...]string{
	"PartitionName",
	"AllowGroups AllowAccounts DenyAccounts AllowQOS DenyQOS",
	"AllocNodes Alternate Default QOS",
	"DefaultTime DisableRootJobs ExclusiveUser GraceTime Hidden",
	"MaxNodes MaxTime MinNodes LLN MaxCPUsPerNode MaxCPUsPerSocket",
	"Nodes",
	"PriorityJobFactor PriorityTier RootOnly ReqResv OverSubscribe",
	"OverTimeLimit PreemptMode",
	"State TotalCPUs TotalNodes SelectTypeParameters",
	"JobDefaults",
	"DefMemPerCPU DefMemPerNode MaxMemPerCPU MaxMemPerNode",
	"TRES",
	"TRESBillingWeights",
	"Hang",
	"IdleGPU IdleGPUTime",
}

// partitionRecord writes one partition as scontrol show partition does.
func (c *control) partitionRecord(p *cluster.Partition, resp *api.NodesResponse) {
	row := show.PartitionRow(c.view(resp.Now), p, resp.Nodes)
	_, _, _, cpus := row.CPUCounts()
	words := map[string]string{ // what is no key of slurm.conf, or of the nodes that there are
		"PartitionName":        "PartitionName=" + p.Name,
		"Nodes":                "Nodes=" + format.Null(row.NodeList()),
		"TotalCPUs":            "TotalCPUs=" + strconv.Itoa(cpus),
		"TotalNodes":           "TotalNodes=" + strconv.Itoa(len(row.Nodes)),
		"SelectTypeParameters": "SelectTypeParameters=NONE",
	}
	if cpus > 0 {
		words["TRES"] = "TRES=" + row.TRES()
	}
	lines := partitionLines[:]
	for _, k := range conf.PartitionKeys() {
		if k.Show == nil {
			continue
		}
		if text := k.Show(p); text != "" {
			words[k.Name] = cmp.Or(k.Label, k.Name) + "=" + text
		}
		if !slices.ContainsFunc(partitionLines[:], func(line string) bool { return hasWord(line, k.Name) }) {
			lines = append(lines[:len(lines):len(lines)], k.Name)
		}
	}
	o := c.record()
	for _, line := range lines {
		if text := wordsOf(line, words); text != "" {
			o.line(text)
		}
	}
	c.print(o)
}

// hasWord reports whether a line has a word.
func hasWord(line, word string) bool { return slices.Contains(strings.Fields(line), word) }

// wordsOf are the words of a line that there are.
func wordsOf(line string, words map[string]string) string {
	var out []string
	for _, name := range strings.Fields(line) {
		if text := words[name]; text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, " ")
}

// partitionMem is an amount of memory for each of something, as scontrol shows the configuration.
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
