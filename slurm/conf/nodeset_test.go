package conf

import (
	"strings"
	"testing"

	"dev.muster/cluster"
)

// TestLine: what a client is told of itself goes over what it found; what is not for it is told with the way out.
func TestLine(t *testing.T) {
	was := cluster.Inventory{CPUs: 8, Sockets: 1, CoresPerSocket: 8, ThreadsPerCore: 1, MemMB: 1000}
	inv, notes := Line(`Feature=a,b Weight=5 Topology=tree:leaf7 Gres=gpu:h100:4 CPUs=9 RealMemory=2000 CoreSpecCount=1 MemSpecLimit=10`, was)
	if len(notes) > 0 || strings.Join(inv.Features, ",") != "a,b" || inv.Weight != 5 || inv.Topology != "leaf7" || inv.CPUs != 8 || len(inv.GPUs) != 0 || inv.MemMB != 1000 ||
		inv.Said != (cluster.Hardware{CPUs: 9, MemMB: 2000, GPUs: 4}) || inv.SpecCPUs.String() != "7" || inv.SpecMemMB != 10 {
		t.Errorf("%+v, %q", inv, notes)
	}
	for text, want := range map[string]string{
		"Florbl=1":               "--conf:1: Florbl is not a setting of a node",
		"Weight=x":               "--conf:1: Weight=x is not a number; ignored",
		"Feature=a b":            `--conf:1: "b" is not Key=Value; ignored`,
		"NodeName=n1":            "nodename=n1 is not for this: --node names it",
		"Sockets=2":              "sockets=2 is not for this: the machine finds it out",
		"Topology=a:b,c:d":       "--conf:1: Topology=a:b,c:d: want the switch or block that the node is in, NAME or TOPOLOGY:NAME, and one only; ignored",
		"Gres=fpga:1 Topology=x": "Gres=fpga:1 is not for this: the servers' slurm.conf or gres.conf has it",
	} {
		if _, notes := Line(text, was); strings.Join(notes, "; ") != want {
			t.Errorf("%s: %q, want %q", text, notes, want)
		}
	}
}

// TestSetsInTopology: a switch or block may name a set, or nobody; what is told of by a set is not said to hang
// nowhere.
func TestSetsInTopology(t *testing.T) {
	for _, files := range []map[string]string{
		{
			"slurm.conf":    "TopologyPlugin=topology/tree\nNodeName=n1 Feature=a\nNodeName=n2 Topology=y\nNodeSet=s Feature=a\n",
			"topology.conf": "SwitchName=x Nodes=s\nSwitchName=y\nSwitchName=t Switches=x,y\n",
		},
		{
			"slurm.conf":    "TopologyPlugin=topology/block\nNodeName=n1 Feature=a\nNodeName=n2 Topology=y\nNodeSet=s Feature=a\n",
			"topology.conf": "BlockName=x Nodes=s\nBlockName=y\n",
		},
	} {
		cfg := put(t, files)
		if out := rewritten(cfg); !strings.Contains(out["topology.conf"], "Name=x Nodes=s\n") || !strings.Contains(out["slurm.conf"], "NodeSet=s Feature=a\n") {
			t.Errorf("written as %v", out)
		}
		if _, notes, err := Load(putDir(t, files)); err != nil || len(notes) > 0 {
			t.Errorf("%v, %v", notes, err)
		}
		readsBack(t, files)
	}
}
