package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestQuickstart: make quickstart's script leaves a cluster that is worth looking at, and takes it away again.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // as mkdir makes it: jobs of others are there, too
		t.Fatal(err)
	}
	script, err := filepath.Abs("../examples/quickstart.sh")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "MUSTER_QUICKSTART_DIR="+dir, "MUSTER_QUICKSTART_BIN="+bin)
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{script}, args...)...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("quickstart %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			stop := exec.Command("bash", script, "stop")
			stop.Env = env
			_ = stop.Run()
		}
	})
	out := run()
	for _, want := range []string{
		`train +\S+ +COMPLETED`,
		`launch on gpu-node-002, node rank 1 of 2`,
		`1: gpu-node-\d+ sees GPUs 0,1,2,3`,
		`pretrain +\S+ +R `,
		`wide +\S+ +PD .*Resources`,
		`\(wide\) of \S+ is PENDING`,
		`\(broken\) of \S+ is FAILED`,
		`Its page: http://127\.0\.0\.1:748\d/`,
		`muster logs -f \d+`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
	if os.Getuid() == 0 && !strings.Contains(out, "nobody") {
		t.Errorf("there is no second user in\n%s", out)
	}
	if regexp.MustCompile(`(pretrain|finetune) +\S+ +(COMPLETED|FAILED)`).MatchString(out) {
		t.Errorf("jobs of the day before stand among the newcomer's own in\n%s", out)
	}
	past := exec.CommandContext(t.Context(), filepath.Join(bin, "sacct"), "-anX", "-S", "now-1days", "-o", "jobname,user,state")
	past.Env = append(os.Environ(), "MUSTER_SOCKET="+dir+"/muster.sock")
	if list, err := past.CombinedOutput(); err != nil || strings.Count(string(list), "finetune") < 5 {
		t.Errorf("the day before has no work: %v\n%s", err, list)
	}
	gone := run("stop")
	if stopped = true; !strings.Contains(gone, "removed") {
		t.Errorf("stop: %s", gone)
	}
	if pids := supervisors(t, dir+"/client"); len(pids) > 0 {
		t.Errorf("supervisors that are left: %v", pids)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
