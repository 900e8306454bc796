package e2e

import (
	"strings"
	"testing"
)

// TestNodeSet: a node is in the partitions that are told by a feature which it has: as configured, from the moment
// that it joins with it, and while an operator leaves it so; jobs run on it there.
func TestNodeSet(t *testing.T) {
	t.Parallel()
	d := &dev{t: t, dir: t.TempDir()}
	d.write("slurm.conf", "ClusterName=c\nSlurmctldHost=localhost\nNodeSet=fast Feature=h100\nNodeSet=mixed Nodes=n3 Feature=h100\n"+
		"NodeName=n[1-2] CPUs=8 RealMemory=16000 Feature=h100,ib\nNodeName=n3 CPUs=8 RealMemory=16000\n"+
		"PartitionName=all Nodes=ALL Default=YES\nPartitionName=fast Nodes=fast\nPartitionName=mixed Nodes=mixed\n")
	d = startDev(t, "--conf", d.dir+"/slurm.conf", "--hollow", "conf", "--hollow-time", "100h")
	nodes := func(partition string) string { return d.must("sinfo", "-h", "-p", partition, "-o", "%N") }
	expect(t, "by feature", nodes("fast"), "n[1-2]")
	expect(t, "by name and feature", nodes("mixed"), "n[1-3]")
	if out := d.must("scontrol", "show", "partition", "fast"); !strings.Contains(out, "Nodes=n[1-2]") || !strings.Contains(out, "TotalNodes=2") {
		t.Errorf("scontrol shows %s", out)
	}
	d.must("scontrol", "update", "nodename=n3", "features=h100")
	d.must("scontrol", "update", "nodename=n1", "features=ib", "activefeatures=ib")
	expect(t, "after a change", nodes("fast"), "n[2-3]")
	expect(t, "a named node stays", nodes("mixed"), "n[2-3]")
	d.must("sbatch", "-p", "fast", "-N2", "-o", "/dev/null", "--wrap", "true")
	d.wait("a job on what is there now", func() bool { return d.must("squeue", "-h", "-o", "%t %N") == "R n[2-3]" })
	d.must("scontrol", "reconfigure")
	expect(t, "as configured", nodes("fast"), "n[1-2]")
}

// TestNodeSetJoin: a node that joins with a feature is in the partitions of its NodeSet, and a job that waits for
// it begins.
func TestNodeSetJoin(t *testing.T) {
	t.Parallel()
	conf := &dev{t: t, dir: t.TempDir()}
	conf.write("slurm.conf",
		"ClusterName=c\nTopologyPlugin=topology/tree\nNodeSet=fast Feature=h100\nPartitionName=fast Nodes=fast Default=YES\nPartitionName=late Nodes=node-001\n")
	conf.write("topology.conf", "SwitchName=rack1\nSwitchName=rack2\nSwitchName=top Switches=rack[1-2]\n")
	g := newGroup(t, "--conf", conf.dir+"/slurm.conf")
	id := g.must("s1", "sbatch", "--parsable", "-N2", "-o", "/dev/null", "--wrap", "true")
	g.join("c1", "s1", "--hollow", "2x8c16g", "--conf", "Feature=h100,ib Topology=default:rack1 Gres=gpu:2")
	g.wait("the job to run there", func() bool {
		return g.must("s1", "squeue", "-h", "-j", id, "-t", "all", "-o", "%N") == "node-[001-002]"
	})
	if out := g.must("s1", "scontrol", "show", "partition", "fast"); !strings.Contains(out, "Nodes=node-[001-002]") {
		t.Errorf("scontrol shows %s", out)
	}
	topology := func(want string) {
		t.Helper()
		expect(t, "the topology", g.must("s1", "scontrol", "show", "topology"), want)
	}
	topology("SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=node-[001-002]\nSwitchName=rack2 Level=0 LinkSpeed=1\nSwitchName=top Level=1 LinkSpeed=1 Nodes=node-[001-002] Switches=rack[1-2]")
	expect(t, "less than it was told", g.must("s1", "sinfo", "-h", "-n", "node-001", "-o", "%E"), "gpu: 0 of 2 found")
	g.must("s1", "scontrol", "update", "nodename=node-002", "topology=rack2")
	topology("SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=node-001\nSwitchName=rack2 Level=0 LinkSpeed=1 Nodes=node-002\nSwitchName=top Level=1 LinkSpeed=1 Nodes=node-[001-002] Switches=rack[1-2]")
	g.must("s1", "scontrol", "update", "partition=late", "nodes=fast")
	expect(t, "a partition of a set", g.must("s1", "sinfo", "-h", "-p", "late", "-o", "%N"), "node-[001-002]")
	if out := g.must("s1", "muster", "config", "show"); !strings.Contains(out, "NodeSet=fast Feature=h100\n") || !strings.Contains(out, "PartitionName=late Nodes=fast\n") {
		t.Errorf("muster config show: %s", out)
	}
	g.must("s1", "scontrol", "update", "nodename=node-002", "topology=rack9")
	if out := g.must("s1", "muster", "why", "node-002"); !strings.Contains(out, "node-002 asks for Topology=rack9, but topology.conf has no such block") {
		t.Errorf("muster why: %s", out)
	}
}
