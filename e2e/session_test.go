package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// session is a process as sshd has one for each login: it calls the helper as pam_exec does, says what that
// answered, and is then the user's shell.
const session = `PAM_TYPE=account "$0" pam-adopt socket="$MUSTER_SOCKET" $OPTIONS; echo "code $?"; exec sleep 600`

// TestSession: a login on a node becomes part of the user's newest job there and ends with it; without a job there
// is none.
func TestSession(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("processes of others need root")
	}
	d := startDev(t, "--node", "n1", "--conf",
		writeFile(t, "slurm.conf",
			"ClusterName=c\nNodeName=n1 RealMemory=1000\nPartitionName=p Nodes=ALL Default=YES\n"))
	if strings.Contains(d.must("muster", "why", "n1"), "isolation: none") {
		t.Skip("no cgroups here")
	}
	login := func(name, user, options string) *exec.Cmd {
		t.Helper()
		out, err := os.Create(filepath.Join(d.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd := exec.Command("sh", "-c", session, filepath.Join(bin, "muster"))
		cmd.Env = append(d.env, "PAM_USER="+user, "OPTIONS="+options)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		d.wait("the helper", func() bool { return strings.Contains(d.read(name), "code ") })
		return cmd
	}
	group := func(cmd *exec.Cmd) string {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if _, job, ok := strings.Cut(line, "/job_"); ok && strings.HasPrefix(line, "0::") {
				return strings.TrimSpace(job)
			}
		}
		return ""
	}
	login("none", "daemon", "")
	expect(t, "without a job", d.read("none"), "Access denied by muster: user daemon has no job on this node\ncode 1\n")
	login("ignored", "daemon", "action_no_jobs=ignore")
	expect(t, "without a job, if that does not matter", d.read("ignored"), "code 0\n")
	expect(t, "root", group(login("root", "root", "")), "")
	expect(t, "its answer", d.read("root"), "code 0\n")

	first := d.submitAs(daemonUID, "-c1", "--mem=10", "--wrap", "trap '' USR1; sleep 600 & wait; wait")
	d.wait("the first job", func() bool { return d.must("squeue", "-h", "-t", "R", "-o", "%i") == first }) // its node may hear of it later
	one := login("one", "daemon", "")
	expect(t, "its answer", d.read("one"), "code 0\n")
	expect(t, "its place", group(one), first+".1@n1/step_extern")
	open := filepath.Join(d.dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	began := open + "/began"
	second := d.submitAs(daemonUID, "-c1", "--mem=10", "--wrap", "touch "+began+"; sleep 600")
	d.wait("the second job", func() bool { _, err := os.Stat(began); return err == nil })
	two := login("two", "daemon", "")
	expect(t, "the newest", group(two), second+".1@n1/step_extern")
	login("several", "daemon", "action_unknown=deny")
	expect(t, "which of several", d.read("several"),
		"Access denied by muster: user daemon has several jobs on this node\ncode 1\n")
	if _, errs, code := d.as(daemonUID, "muster", "pam-adopt"); code != 1 || !strings.Contains(errs, "PAM_USER and PAM_TYPE are not set") {
		t.Errorf("called by hand: %d %s", code, errs)
	}
	d.must("scancel", "-s", "USR1", first) // is not for sessions
	d.must("scancel", second)
	gone := func(cmd *exec.Cmd) { // without its Wait, which nothing bounds
		t.Helper()
		d.wait("the end of session "+strconv.Itoa(cmd.Process.Pid), func() bool {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
			return err != nil || strings.Contains(string(text), ") Z ")
		})
	}
	gone(two)
	if err := two.Wait(); err == nil || two.ProcessState.Sys().(syscall.WaitStatus).Signal() == 0 {
		t.Errorf("the session after its job: %v", err)
	}
	expect(t, "the session of the other job", group(one), first+".1@n1/step_extern")
	d.must("scancel", first)
	gone(one)
	_ = one.Wait()
	d.wait("the queue", func() bool { return d.must("squeue", "-h") == "" })
	expect(t, "the end of the first", d.must("sacct", "-nXP", "-j", first, "-o", "State"), "CANCELLED by 0")
}
