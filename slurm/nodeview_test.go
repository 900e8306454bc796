package slurm

import (
	"strings"
	"testing"

	"dev.muster/cluster"
	"dev.muster/slurm/slurmtest"
)

// TestSpecNode shows what nodes keep from jobs. The lines are Slurm's.
func TestSpecNode(t *testing.T) {
	for _, c := range []struct {
		cpus  cluster.IDSet
		mem   cluster.MemMB
		lines string // of scontrol show node
	}{
		{lines: "CPUEfctv=16 CPUTot=16 |Boards=1\n   State=|CfgTRES=cpu=16,mem=62.50G,billing=16,"},
		{
			cpus:  cluster.NewIDSet(7, 15),
			lines: "CPUEfctv=14 CPUTot=16 |Boards=1\n   CoreSpecCount=2 CPUSpecList=7,15 \n   State=|CfgTRES=cpu=14,mem=62.50G,billing=14,",
		},
		{
			cpus:  cluster.NewIDSet(0, 8, 9),
			lines: "CPUEfctv=13 CPUTot=16 |\n   CoreSpecCount=3 CPUSpecList=0,8-9 \n   State=",
		},
		{
			mem:   1000,
			lines: "CPUEfctv=16 CPUTot=16 |Boards=1\n   MemSpecLimit=1000\n   State=|CfgTRES=cpu=16,mem=62.50G",
		},
		{
			cpus: cluster.NewIDSet(15), mem: 2000,
			lines: "Boards=1\n   CoreSpecCount=1 CPUSpecList=15 MemSpecLimit=2000\n   State=",
		},
	} {
		f := slurmtest.New()
		n := &f.Nodes[7].Inventory
		n.SpecCPUs, n.SpecMemMB = c.cpus, c.mem
		out := runLine(f, t, 0, nil, "scontrol", "show", "node", "gpu-node-008")
		for line := range strings.SplitSeq(c.lines, "|") {
			if !strings.Contains(out, line) {
				t.Errorf("keeps %s and %d MB: no %q in\n%s", c.cpus, c.mem, line, out)
			}
		}
	}
	f := slurmtest.New()
	n := &f.Nodes[7].Inventory
	n.SpecCPUs, n.SpecMemMB = cluster.NewIDSet(7, 15), 2000
	out := runLine(f, t, 0, nil, "sinfo", "--json")
	for _, want := range []string{`"effective_cpus": 14,`, `"specialized_cores": 2,`, `"specialized_cpus": "7,15",`, `"specialized_memory": 2000,`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

// TestSpecNodeState: a node whose CPUs for jobs are all given out is allocated, though some are not given to anybody.
func TestSpecNodeState(t *testing.T) {
	for _, c := range []struct {
		used                cluster.IDSet
		word, counts, nodes string
	}{
		{cluster.IDSet{}, "idle", "0/16/0/16", "0/1/0/1"},
		{cluster.RangeIDSet(0, 1), "mixed", "2/14/0/16", "1/0/0/1"},
		{cluster.RangeIDSet(0, 6).Union(cluster.RangeIDSet(8, 14)), "allocated", "14/2/0/16", "1/0/0/1"},
	} {
		f := slurmtest.New()
		f.Nodes[7].Inventory.SpecCPUs, f.Nodes[7].Load.CPUs, f.Nodes[7].Drain = cluster.NewIDSet(7, 15), c.used, false
		if got, want := runLine(f, t, 0, nil, "sinfo", "-h", "-p", "train", "-n", "gpu-node-008", "-o", "%T %C %F"), c.word+" "+c.counts+" "+c.nodes+"\n"; got != want {
			t.Errorf("%s in use: got %q, want %q", c.used, got, want)
		}
	}
}
