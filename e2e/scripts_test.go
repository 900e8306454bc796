package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestPrologEpilog: the cluster's scripts run as root on each node before a job begins there and when it is over; the
// job waits for the one, its CPUs for the other, over the death of the daemon; one that fails drains the node.
func TestPrologEpilog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := func(name, text string) string {
		p := dir + "/" + name
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	log := func() string {
		b, _ := os.ReadFile(dir + "/log")
		return string(b)
	}
	const line = `echo "$SLURM_SCRIPT_CONTEXT $SLURM_NODELIST $SLURM_UID $SLURM_JOB_NTASKS $SLURM_JOB_RESTART_COUNT ${SLURM_JOB_STDOUT##*/} $SLURM_JOB_DERIVED_EC $SLURM_JOB_ID $SLURMD_NODENAME $SLURM_JOB_PARTITION gpus=$CUDA_VISIBLE_DEVICES $SLURM_JOB_EXIT_CODE2 $(id -u)" >>` + "%s/log\n"
	script("prolog.1",
		fmt.Sprintf("while [ -e %s/wait ]; do sleep .05; done\n"+line+"[ ! -e %s/bad.$SLURMD_NODENAME ]\n",
			dir, dir, dir))
	script("prolog.2", fmt.Sprintf("echo second >>%s/log\n", dir))
	epilog := script("epilog",
		fmt.Sprintf("while [ -e %s/hold ]; do sleep .05; done\n"+line+"[ ! -e %s/worse ]\n", dir, dir, dir))
	conf := script("slurm.conf",
		"\nClusterName=c\nProlog="+dir+"/prolog.*\nEpilog="+epilog+"\nPartitionName=main Nodes=ALL Default=YES\n")
	d := startDev(t, "--hollow", "2x4c8g2gpu:h100", "--hollow-exec", "--conf", conf)
	d.wait("two nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "2" })
	touch := func(name string) {
		if err := os.WriteFile(dir+"/"+name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root := fmt.Sprint(os.Getuid())

	touch("wait")
	id := d.must("sbatch", "--parsable", "-w", "gpu-node-001", "--gpus=1", "-o", "o1", "--wrap",
		"echo job >>"+dir+"/log; exit 4")
	d.wait("its nodes to be given",
		func() bool { return d.must("squeue", "-h", "-j", id, "-o", "%N") == "gpu-node-001" })
	d.kill()
	d.start()
	os.Remove(dir + "/wait")
	touch("hold")
	d.wait("the job's end", func() bool {
		return strings.Contains(log(), "job") && d.must("squeue", "-h", "-j", id, "-o", "%t") == "CG"
	})
	expect(t, "the node while its epilog runs", d.must("sinfo", "-h", "-n", "gpu-node-001", "-o", "%t"), "comp")
	os.Remove(dir + "/hold")
	d.wait("all to be over", func() bool { return d.must("squeue", "-h") == "" })
	told := " gpu-node-001 " + root + " 1 0 o1 "
	expect(t, "what ran", log(),
		"prolog_slurmd"+told+" "+id+" gpu-node-001 main gpus=0  "+root+"\nsecond\njob\nepilog_slurmd"+told+"0 "+id+" gpu-node-001 main gpus=0 4:0 "+root+"\n")

	touch("bad.gpu-node-001")
	id = d.must("sbatch", "--parsable", "-w", "gpu-node-001", "-o", "o2", "--wrap", "echo never >>"+dir+"/log")
	d.wait("the job to be held", func() bool {
		return d.must("squeue", "-h", "-j", id, "-o", "%t %r") == "PD launch failed requeued held"
	})
	expect(t, "the node", d.must("sinfo", "-h", "-R", "-o", "%E|%N"), "Prolog error|gpu-node-001")
	if strings.Contains(log(), "never") {
		t.Error("the job ran although its prolog failed")
	}
	if _, errs, code := d.run("srun", "-w", "gpu-node-002", "true"); code != 0 {
		t.Errorf("srun on the other node: %d %s", code, errs)
	}
	d.must("scancel", id)
	d.wait("the epilogs to be over", func() bool { return d.must("squeue", "-h") == "" })
	touch("worse")
	d.must("sbatch", "-W", "-w", "gpu-node-002", "-o", "o3", "--wrap", "true")
	d.wait("the node to be drained", func() bool {
		return strings.Contains(d.must("sinfo", "-h", "-R", "-o", "%E|%N"), "Epilog error|gpu-node-002")
	})
}

// TestHealthCheck: the site's program looks at nodes in the states that it is for, and can drain them.
func TestHealthCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := dir + "/check"
	text := fmt.Sprintf("#!/bin/sh\necho $SLURMD_NODENAME >>%s/ran\n[ ! -e %s/bad.$SLURMD_NODENAME ] || scontrol update nodename=$SLURMD_NODENAME state=drain reason='disk is full'\n",
		dir, dir)
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/slurm.conf", []byte("HealthCheckProgram="+program+"\nHealthCheckInterval=1\nHealthCheckNodeState=IDLE\nPartitionName=main Nodes=ALL Default=YES\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/bad.node-002", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "2x4c8g", "--hollow-exec", "--conf", dir+"/slurm.conf")
	d.wait("the bad node to be drained",
		func() bool { return d.must("sinfo", "-h", "-R", "-o", "%E|%N") == "disk is full|node-002" })
	ran := func() string {
		b, _ := os.ReadFile(dir + "/ran")
		return string(b)
	}
	if !strings.Contains(ran(), "node-001") {
		t.Errorf("ran on %q", ran())
	}
}

// TestHealthCheckOfKeptCPUs: a node is in full use when jobs have all that it does not keep.
func TestHealthCheckOfKeptCPUs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/check", []byte("#!/bin/sh\necho $SLURMD_NODENAME >>"+dir+"/ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := "HealthCheckProgram=" + dir + "/check\nHealthCheckInterval=1\nHealthCheckNodeState=ALLOC\nNodeName=k[1-2] CPUs=4 RealMemory=4000 CoreSpecCount=1 State=UNKNOWN\n" +
		"PartitionName=main Nodes=ALL Default=YES\n"
	if err := os.WriteFile(dir+"/slurm.conf", []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "conf", "--hollow-exec", "--conf", dir+"/slurm.conf")
	d.must("sbatch", "-w", "k1", "-n2", "-o", "/dev/null", "--wrap", "sleep 600")
	d.must("sbatch", "-w", "k2", "-n3", "-o", "/dev/null", "--wrap", "sleep 600")
	d.wait("the full node to be looked at", func() bool { b, _ := os.ReadFile(dir + "/ran"); return len(b) > 0 })
	if b, _ := os.ReadFile(dir + "/ran"); strings.Contains(string(b), "k1") {
		t.Errorf("ran on %q, of which only k2 is full", b)
	}
}

// TestNodeTellsOfItself: root of a compute node may take that node out of service, as health checks do, and no
// other one.
func TestNodeTellsOfItself(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it acts as root of a node")
	}
	t.Parallel()
	g := fullGroup(t, 2)
	g.must("c1", "scontrol", "update", "nodename=c1-001", "state=drain", "reason=disk is full")
	g.wait("the reason",
		func() bool { return g.must("s2", "sinfo", "-h", "-R", "-o", "%E|%u|%N") == "disk is full|root|c1-001" })
	g.must("c1", "scontrol", "update", "nodename=c1-001", "state=resume")
	for _, args := range [][]string{{"update", "nodename=c2-001", "state=drain", "reason=x"},
		{"update", "nodename=c1-001,c2-001", "state=drain", "reason=x"}, {"reboot", "c1-001"},
		{"create", "nodename=z9", "cpus=1", "state=cloud"}} {
		if out, errs, code := g.run("c1", "scontrol", args...); code == 0 {
			t.Errorf("scontrol %q of another's matter: %s%s", args, out, errs)
		}
	}
	g.wait("no node to be out of service", func() bool { return g.must("s1", "sinfo", "-h", "-R") == "" })
	if _, _, code := g.at["c1"].as(1001, "scontrol", "update", "nodename=c1-001", "state=drain", "reason=x"); code == 0 {
		t.Error("an ordinary user of a node drained it")
	}
}
