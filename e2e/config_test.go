package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestConfigCheck: a configuration is read before it is activated, and compared with what is.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	const text = "ClusterName=c\nPartitionName=main Nodes=ALL Default=YES\n"
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", writeFile(t, "old.conf", text+"KillWait=20\n"))
	file := writeFile(t, "slurm.conf",
		text+"KillWait=30\nSchedulerTyp=sched/backfill\nAuthType=auth/munge\nNodeFeaturesPlugins=knl\nFlorbl=1\nRequeueExit=300\nPartitionName=new Nodes=ALL\n")
	out := d.must("muster", "config", "check", "--all", file)
	expect(t, "what is said", strings.ReplaceAll(out, file, "F"), `F:4: SchedulerTyp is not a setting of slurm.conf: do you mean SchedulerType?
F:6: NodeFeaturesPlugins plugins of Slurm cannot be loaded
F:7: Florbl is not a setting of slurm.conf
F:8: RequeueExit=300: want exit codes from 0 to 255, as 100,120-130; ignored
F:5: AuthType needs no setting: members know each other by certificates, there is no munge
F: cluster c, 0 nodes declared, partitions main new; 4 notes`)
	if _, _, code := d.run("muster", "config", "check", "--strict", file); code != 3 {
		t.Errorf("--strict ends with %d, want 3", code)
	}
	if _, errs, code := d.run("muster", "config", "check", file+".not"); code != 1 || !strings.Contains(errs, "no such file") {
		t.Errorf("a file that is not there: %d %s", code, errs)
	}
	diff := d.must("muster", "config", "diff", file)
	for _, want := range []string{
		"- KillWait=20", "+ KillWait=30", "+ PartitionName=new Nodes=ALL", "+ AuthType=auth/munge",
	} {
		if !strings.Contains(diff, want) {
			t.Errorf("the difference lacks %q:\n%s", want, diff)
		}
	}
	expect(t, "the same file",
		d.must("muster", "config", "diff", writeFile(t, "same.conf", text+"KillWait=20\n")),
		"nothing would change")
}

// TestConfigApply: the configuration is activated, shown, and undone; only operators may, and what is shown
// reads as the same.
func TestConfigApply(t *testing.T) {
	t.Parallel()
	const text = "ClusterName=c\nPartitionName=main Nodes=ALL Default=YES\n"
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec", "--conf", writeFile(t, "old.conf", text+"KillWait=20\n"))
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/slurm.conf", []byte(text+"KillWait=40\nFlorbl=1\nPartitionName=new Nodes=ALL MaxTime=5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/cgroup.conf", []byte("ConstrainCores=no\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const change = "+ florbl=1\n- KillWait=20\n+ KillWait=40\n+ PartitionName=new Nodes=ALL MaxTime=0-00:05:00\n+ ConstrainCores=no"
	expect(t, "a dry run", d.must("muster", "config", "apply", "--dry-run", dir), change)
	expect(t, "after it", d.must("sinfo", "-h", "-o", "%P"), "main*")
	_, errs, code := d.run("muster", "config", "apply", dir)
	if code == 0 || !strings.Contains(errs, "nothing was changed: 1 unknown key; correct the file or use --force") {
		t.Errorf("an unknown key is applied: %d %s", code, errs)
	}
	expect(t, "after a refusal", d.must("sinfo", "-h", "-o", "%P"), "main*")
	out, errs, code := d.run("muster", "config", "apply", "--force", dir)
	if code != 0 || out != change+"\nactive\n" || !strings.Contains(errs, dir+"/slurm.conf:4: Florbl is not a setting of slurm.conf") || !strings.Contains(errs, "servers do not read their --conf files by themselves") {
		t.Fatalf("apply: %d\n%s%s", code, out, errs)
	}
	expect(t, "active", d.must("sinfo", "-h", "-o", "%P %l"), "main* infinite\nnew 5:00")
	d.must("scontrol", "update", "partition=new", "state=down")
	shown := t.TempDir()
	d.must("muster", "config", "show", "--dir", shown)
	expect(t, "what is shown", d.must("muster", "config", "diff", shown), "nothing would change")
	expect(t, "it", d.must("muster", "config", "show"), "ClusterName=c\nflorbl=1\nKillWait=40\nPartitionName=main Nodes=ALL Default=YES\n"+
		"PartitionName=new Nodes=ALL State=DOWN MaxTime=0-00:05:00\n\n# cgroup.conf\nConstrainCores=no")
	expect(t, "undo", d.must("muster", "config", "undo"),
		"- PartitionName=new Nodes=ALL State=DOWN MaxTime=0-00:05:00\n+ PartitionName=new Nodes=ALL MaxTime=0-00:05:00\nactive")
	expect(t, "undone", d.must("sinfo", "-h", "-p", "new", "-o", "%a"), "up")
	d.must("muster", "config", "undo", "1")
	expect(t, "the first again", d.must("sinfo", "-h", "-o", "%P"), "main*")
	if _, errs, code := d.run("muster", "config", "undo", "99"); code == 0 || !strings.Contains(errs, "configuration 99 is not remembered: want one from 0 to 5") {
		t.Errorf("undo 99: %d %s", code, errs)
	}
	if _, errs, code := d.as(1, "muster", "config", "undo", "2"); code == 0 || !strings.Contains(errs, "only operators may configure the cluster") {
		t.Errorf("a user undoes: %d %s", code, errs)
	}
	var how []string
	for _, l := range strings.Split(d.must("muster", "config", "history"), "\n")[1:] {
		w := strings.Fields(l)
		how = append(how, w[0]+" "+strings.Join(w[3:], " "))
	}
	expect(t, "history", strings.Join(how, "\n"),
		"1 muster file\n2 root apply\n3 root partition_set\n4 root undo 2\n5 root undo 1")
	expect(t, "an older one", d.must("muster", "config", "show", "1"),
		"ClusterName=c\nKillWait=20\nPartitionName=main Nodes=ALL Default=YES")
}

// TestConfigWins: what was applied stays through changes of leader and restarts, whatever the servers' files say,
// until somebody has them read.
func TestConfigWins(t *testing.T) {
	t.Parallel()
	const text = "ClusterName=c\nPartitionName=main Nodes=ALL Default=YES "
	file := writeFile(t, "s.conf", text+"MaxTime=10\n")
	g := fullGroup(t, 0, "--conf", file)
	limit := func(at, want string) {
		t.Helper()
		g.wait("MaxTime="+want+" at "+at, func() bool {
			return strings.Contains(g.must(at, "scontrol", "show", "partition", "main"), " MaxTime="+want+" ")
		})
	}
	leader := g.awaitLeader("s1")
	g.must("s2", "muster", "config", "apply", writeFile(t, "slurm.conf", text+"MaxTime=20\n"))
	rewrite(t, file, text+"MaxTime=30")
	other := g.others(leader)[0]
	g.must("s1", "muster", "server", "transfer", other)
	g.wait("the lead to move", func() bool { return g.leader("s1") == other })
	g.must(other, "sbatch", "-H", "-o", "/dev/null", "--wrap", "true") // a write, so it leads
	limit(other, "00:20:00")
	if _, errs, code := g.run("s1", "scontrol", "reconfigure"); code != 0 || !strings.Contains(errs, "the file replaces the configuration that muster config apply had set; muster config undo brings it back") {
		t.Errorf("reconfigure: %d %s", code, errs)
	}
	limit("s1", "00:30:00")
	g.must("s3", "muster", "config", "undo")
	limit("s3", "00:20:00")
}

// TestLintAsks: with a cluster that answers a script is compared with its nodes and partitions.
func TestLintAsks(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x4c8g2gpu:h100", "--conf",
		writeFile(t, "s.conf", "PartitionName=main Nodes=ALL Default=YES DefaultTime=5\n"))
	file := writeFile(t, "job.sh", "#!/bin/sh\n#SBATCH --gres=gpu:h100:4\ntrue\n")
	out, _, code := d.run("muster", "lint", file)
	if code != 1 {
		t.Errorf("exit code %d of a mistake", code)
	}
	expect(t, "notes", strings.ReplaceAll(strings.TrimSpace(out), file, "F"),
		"F:2: asks for 4 h100 GPUs on a node, no node of this cluster has more than 2")
}
