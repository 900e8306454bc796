package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSessionPAM: the same through PAM itself, where pamtester is installed: pam_exec calls the helper, and the
// process that asked PAM is the one that becomes part of the job.
func TestSessionPAM(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pamtester"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root and pamtester")
	}
	d := startDev(t, "--node", "n1", "--conf",
		writeFile(t, "slurm.conf",
			"ClusterName=c\nNodeName=n1 RealMemory=1000\nPartitionName=p Nodes=ALL Default=YES\n"))
	services := t.TempDir()
	text := "auth required pam_permit.so\naccount required pam_exec.so quiet stdout " + filepath.Join(bin, "muster") + " pam-adopt socket=" + d.dir + "/s\nsession required pam_exec.so stdout /bin/sh -c cat</proc/$PPID/cgroup\n"
	if err := os.WriteFile(services+"/login-test", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	login := func() (string, error) {
		cmd := exec.Command("unshare", "-m", "sh", "-c",
			"mount --bind "+services+" /etc/pam.d && exec pamtester login-test daemon acct_mgmt open_session")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := login(); err == nil || !strings.Contains(out, "Access denied by muster: user daemon has no job on this node") {
		t.Errorf("without a job: %v\n%s", err, out)
	}
	job := d.submitAs(daemonUID, "-c1", "--mem=10", "--wrap", "sleep 600")
	d.wait("the job", func() bool { return d.must("squeue", "-h", "-t", "R", "-o", "%i") == job })
	if out, err := login(); err != nil || !strings.Contains(out, "/job_"+job+".1@n1/step_extern") {
		t.Errorf("with a job: %v\n%s", err, out)
	}
	d.must("scancel", job)
}
