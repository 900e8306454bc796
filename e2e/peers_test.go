package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startCluster starts a cluster of a name, with the page on a port.
func startCluster(t *testing.T, name, addr string, hollow string) *dev {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName="+name+"\nPartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return startDevAt(t, dir, "--hollow", hollow, "--hollow-exec", "--http", addr, "--conf", conf)
}

// TestPeers: two clusters that have exchanged tokens act for each other's users by -M, and one that hangs costs nothing
// but its own jobs.
func TestPeers(t *testing.T) {
	t.Parallel()
	addrA, addrB := freeAddr(t), freeAddr(t)
	a, b := startCluster(t, "alpha", addrA, "2x8c16g"), startCluster(t, "beta", addrB, "4x8c16g")
	token := strings.TrimSpace(b.must("muster", "peer", "invite", "alpha", "--root"))
	if out := a.must("muster", "peer", "add", "--root", "--token", token, "http://"+addrB); out != "beta" {
		t.Fatalf("added %q", out)
	}
	for _, d := range []*dev{a, b} {
		if out := d.must("muster", "peer", "ls"); !strings.Contains(out, "http://") || !strings.Contains(out, "yes") {
			t.Errorf("peers:\n%s", out)
		}
	}

	out := a.must("sbatch", "-M", "beta", "-N3", "--wrap", "sleep 300")
	if !strings.HasSuffix(out, " on cluster beta") {
		t.Fatalf("sbatch -M beta says %q", out)
	}
	far := strings.Fields(out)[3]
	if got := a.must("sbatch", "-M", "alpha,beta", "-N3", "--parsable", "--wrap", "sleep 300"); !strings.HasSuffix(got, ";beta") {
		t.Errorf("a job that fits beta alone went to %q", got)
	}
	near, _, ok := strings.Cut(strings.TrimSpace(a.must("sbatch", "-M", "all", "-N2", "--exclusive",
		"--parsable", "--wrap", "sleep 300")),
		";alpha")
	if !ok {
		t.Errorf("a job that starts first on alpha went to %q", near)
	}
	list := a.must("squeue", "-M", "all", "-o", "%i %T")
	if !strings.HasPrefix(list, "CLUSTER: alpha\nJOBID STATE\n"+near+" ") || !strings.Contains(list, "\n\nCLUSTER: beta\nJOBID STATE\n") {
		t.Errorf("squeue -M all:\n%s", list)
	}
	if out := a.must("sinfo", "-M", "beta", "-h", "-o", "%D"); out != "4" {
		t.Errorf("sinfo -M beta: %q", out)
	}
	if out := b.must("squeue", "-h", "-M", "alpha", "-o", "%i"); out != near {
		t.Errorf("alpha's jobs as beta sees them: %q", out)
	}
	if out := a.must("scontrol", "-M", "beta", "show", "job", far); !strings.Contains(out, "JobId="+far+" ") {
		t.Errorf("scontrol -M beta show job: %s", out)
	}
	if out := a.must("srun", "-M", "beta", "-n1", "hostname"); out == "" {
		t.Error("srun -M beta prints nothing")
	}
	if out := a.must("sacct", "-M", "beta", "-nXPo", "jobid", "-j", far); out != far {
		t.Errorf("sacct -M beta: %q", out)
	}
	if out := a.must("sacctmgr", "-nP", "show", "cluster", "format=cluster,controlhost"); out != "alpha|\nbeta|127.0.0.1" {
		t.Errorf("sacctmgr show cluster: %q", out)
	}
	for _, name := range []string{"squeue", "sinfo", "sprio", "sacct"} {
		_, errs, code := a.run(name, "-M", "beta,nosuch")
		if code != 1 || !strings.Contains(errs, name+": error: No cluster 'nosuch' known by database.\n") {
			t.Errorf("%s of a cluster that is not: %d %q", name, code, errs)
		}
	}
	a.must("scancel", "-M", "beta", far)
	a.wait("the end of the job at beta", func() bool {
		return !strings.Contains(a.must("squeue", "-h", "-M", "beta", "-o", "%i"), far)
	})

	// Another user is that user there, and root of a cluster without that right is nobody.
	if out, errs, code := a.as(daemonUID, "sbatch", "-M", "beta", "-o", "/dev/null", "--wrap", "true"); code != 0 {
		t.Errorf("daemon at beta: %q %q", out, errs)
	}
	token = strings.TrimSpace(b.must("muster", "peer", "invite", "alpha"))
	if _, errs, code := a.run("squeue", "-M", "beta"); code != 1 || errs == "" {
		t.Errorf("with a token of before: %d %q", code, errs)
	}
	a.must("muster", "peer", "add", "--token", token, "http://"+addrB)
	if _, errs, code := a.run("squeue", "-M", "beta"); code != 1 || !strings.Contains(errs, "root of cluster alpha has no rights here") {
		t.Errorf("root without rights: %d %q", code, errs)
	}
	if _, errs, code := a.as(daemonUID, "squeue", "-M", "beta"); code != 0 {
		t.Errorf("a user besides: %q", errs)
	}
	b.must("sacctmgr", "-i", "add", "account", "sys")
	b.must("sacctmgr", "-i", "add", "user", "daemon", "account=sys", "adminlevel=operator")
	if _, errs, code := a.as(daemonUID, "squeue", "-M", "beta"); code != 1 || !strings.Contains(errs, "daemon of cluster alpha has no rights here") {
		t.Errorf("an operator of beta, from alpha: %d %q", code, errs)
	}
	b.must("sacctmgr", "-i", "modify", "user", "daemon", "set", "adminlevel=none")

	// A cluster that hangs.
	b.pause()
	began := time.Now()
	out, errs, code := a.as(daemonUID, "squeue", "-h", "-M", "all", "-o", "%i")
	if code != 1 || !strings.Contains(out, near+"\n") || !strings.Contains(errs, "Unable to contact slurm controller") {
		t.Errorf("while beta hangs: %d %q %q", code, out, errs)
	}
	got, errs, code := a.as(daemonUID, "sbatch", "-M", "all", "--parsable", "-o", "/dev/null", "--wrap", "true")
	if code != 0 || !strings.HasSuffix(got, ";alpha\n") {
		t.Errorf("sbatch while beta hangs: %d %q %q", code, got, errs)
	}
	if took := time.Since(began); took > patience(15*time.Second) {
		t.Errorf("a cluster that hangs costs %v", took)
	}
	if err := b.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.must("muster", "peer", "rm", "alpha")
	if _, errs, code := a.as(daemonUID, "squeue", "-M", "beta"); code != 1 || errs == "" {
		t.Errorf("after it was removed: %d %q", code, errs)
	}
}

// TestClusterDocs: the examples of docs/clusters.md work as they stand.
func TestClusterDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/clusters.md")
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	at := map[string]*dev{
		"alpha": startCluster(t, "alpha", freeAddr(t), "1x8c16g"),
		"beta":  startCluster(t, "beta", addr, "1x8c16g"),
	}
	dir, err := os.MkdirTemp("", "m")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	lines := 0
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "on ")
		if !ok {
			continue
		}
		name, command, _ := strings.Cut(strings.TrimSpace(rest), ": ")
		cmd := exec.Command("sh", "-c", command)
		if !strings.HasPrefix(command, "muster peer") { // root has no rights at a peer
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: daemonUID, Gid: daemonUID}}
		}
		cmd.Dir, cmd.Env = dir, append(at[name].env, "BETA=http://"+addr)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "error") {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		lines++
	}
	if lines != 6 {
		t.Errorf("%d examples", lines)
	}
}
