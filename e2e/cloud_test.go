package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestCloudNodes: nodes of the cloud come when jobs want them and go when they have been idle, by the site's own
// programs; a provider that fails is a reason of the node, not a loop. The test is the provider.
func TestCloudNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string { return writeProgram(t, dir, name, text) }
	resume := write("resume", "#!/bin/sh\n[ ! -e "+dir+"/quota ] || { echo no more GPUs in this region; exit 1; }\n"+
		"PATH="+bin+":$PATH\nfor n in $(scontrol show hostnames $1); do scontrol update nodename=$n nodeaddr=127.0.0.1; echo $n; done >>"+dir+"/on\ncat $SLURM_RESUME_FILE >"+dir+"/file\n")
	suspend := write("suspend", "#!/bin/sh\necho $1 >>"+dir+"/off\n")
	conf := write("slurm.conf", "ClusterName=c\nSlurmctldHost=s1\nResumeProgram="+resume+"\nSuspendProgram="+suspend+"\nResumeTimeout=60\nSuspendTimeout=1\nSuspendTime=3\n"+
		"NodeName=cloud-00[1-2] CPUs=8 RealMemory=16000 State=CLOUD Feature=spot\nPartitionName=main Nodes=cloud-00[1-2] Default=YES\n")
	g := newGroup(t, "--conf", conf)
	node := func(format string) string { return g.must("s1", "sinfo", "-h", "-n", "cloud-001", "-o", format) }
	expect(t, "nodes that are off", g.must("s1", "sinfo", "-h", "-t", "powered_down", "-o", "%n %t"),
		"cloud-001 idle~\ncloud-002 idle~")

	id := g.must("s1", "sbatch", "--parsable", "-C", "spot", "-o", dir+"/out", "--wrap", "echo ran on $SLURMD_NODENAME")
	g.wait("ResumeProgram", func() bool { return textOf(dir+"/on") == "cloud-001\n" })
	expect(t, "the job meanwhile", g.must("s1", "squeue", "-h", "-j", id, "-o", "%t %N"), "CF cloud-001")
	expect(t, "the node meanwhile", node("%t %T"), "mix# mixed#")
	g.wait("the file for the program", func() bool { return strings.Contains(textOf(dir+"/file"), `"all_nodes_resume":"cloud-001"`) })
	if f := textOf(dir + "/file"); !strings.Contains(f, `"job_id":`+id) {
		t.Errorf("SLURM_RESUME_FILE holds %s", f)
	}
	vm := g.join("vm1", "s1", "--hollow", "1x8c16g", "--hollow-prefix", "cloud-", "--hollow-exec")
	g.wait("the job's end", func() bool { return textOf(dir+"/out") == "ran on cloud-001\n" })
	g.wait("SuspendProgram", func() bool { return textOf(dir+"/off") == "cloud-001\n" })
	expect(t, "the node then", node("%t"), "idle%")
	vm.stop()
	g.wait("the node to be off", func() bool {
		return g.must("s1", "sinfo", "-h", "-t", "powered_down", "-o", "%n %t") == "cloud-001 idle~\ncloud-002 idle~"
	})
	expect(t, "as scontrol has it",
		strings.Fields(g.must("s1", "scontrol", "show", "node", "cloud-001"))[0], "NodeName=cloud-001")
	if !strings.Contains(g.must("s1", "scontrol", "show", "node", "cloud-001"), "State=IDLE+CLOUD+POWERED_DOWN") {
		t.Error(g.must("s1", "scontrol", "show", "node", "cloud-001"))
	}

	write("quota", "")
	id = g.must("s1", "sbatch", "--parsable", "-N2", "-o", dir+"/never", "--wrap", "true")
	g.wait("the reason", func() bool {
		return strings.Contains(g.must("s1", "scontrol", "show", "node", "cloud-002"),
			"Reason=ResumeProgram failed: "+resume+": exit status 1: no more GPUs in this region")
	})
	g.wait("the job to wait", func() bool { return g.must("s1", "squeue", "-h", "-j", id, "-o", "%t") == "PD" })
	expect(t, "the node that was refused", node("%t"), "down~")
	g.must("s1", "scancel", id)
	os.Remove(dir + "/quota")
	g.must("s1", "scontrol", "update", "nodename=cloud-002", "state=resume")
	g.must("s1", "scontrol", "update", "nodename=cloud-002", "state=power_up")
	g.wait("ResumeProgram", func() bool { return strings.HasSuffix(textOf(dir+"/on"), "cloud-002\n") })
}
