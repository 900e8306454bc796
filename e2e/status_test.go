package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatus: muster status says how the cluster is, and fails when a server is down; muster top follows it.
func TestStatus(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 1)
	out, errs, code := g.run("s1", "muster", "status")
	if code != 0 || !strings.Contains(out, "3 of 3 up") || !strings.Contains(out, "nothing needs attention") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	watched, watching := g.at["s1"].lines("muster", "status", "--json", "--watch")
	if line := next(t, watched); !strings.Contains(line, `"drained":0`) {
		t.Fatalf("watched: %s", line)
	}
	g.must("s1", "scontrol", "update", "nodename=c1-002", "state=drain", "reason=bad fan")
	for line := next(t, watched); !strings.Contains(line, `"drained":1`); line = next(t, watched) {
		if line == "(end)" {
			t.Fatal("--watch ended by itself")
		}
	}
	if err := watching.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := watching.Wait(); err != nil {
		t.Errorf("--watch, interrupted: %v", err)
	}
	lead := g.leader("s1")
	by := g.others(lead)[0]
	g.at[lead].kill()
	g.wait("another leader, and what the old one had agreed", func() bool {
		out, _, code = g.run(by, "muster", "status", "--json")
		var st struct {
			Quorum    bool
			Leader    string
			Attention []string
			Aside     []string
			Nodes     struct{ Total, Drained int }
		}
		if err := json.Unmarshal([]byte(out), &st); err != nil {
			t.Fatal(err, out)
		}
		says := strings.Join(st.Attention, "\n")
		return code == 1 && st.Quorum && st.Leader != lead && st.Nodes.Drained == 1 && strings.Contains(says, "server "+lead) && strings.Contains(strings.Join(st.Aside, ""),
			"c1-002 drained: bad fan")
	})
	for _, s := range g.others(lead) {
		if s != by {
			g.at[s].kill()
		}
	}
	g.wait("no quorum", func() bool {
		out, _, code := g.run(by, "muster", "status")
		return code == 1 && strings.Contains(out, "no leader")
	})
}

// TestTop: live in a terminal, once elsewhere.
func TestTop(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	d := startDev(t, "--hollow", "2x8c16g4gpu:h100", "--hollow-time", "100h")
	if out := d.must("muster", "top"); !strings.Contains(out, "0 running") || strings.Contains(out, "\x1b") {
		t.Errorf("not on a terminal: %q", out)
	}
	mux := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("tmux", append([]string{"-S", filepath.Join(d.dir, "tmux")}, args...)...)
		cmd.Env = d.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	mux("new-session", "-d", "-x", "100", "-y", "20", "sh", "-c", "muster top; echo left-$?; sleep 1000")
	t.Cleanup(func() { mux("kill-server") })
	seen := ""
	shows := func(text string) {
		t.Helper()
		d.wait(text, func() bool { seen = mux("capture-pane", "-p"); return strings.Contains(seen, text) })
	}
	shows("0 running")
	d.must("sbatch", "-N1", "--gpus-per-node=3", "-J", "seen", "-o", "/dev/null", "--wrap", "true")
	shows("seen")
	shows("3 of 8")
	mux("send-keys", "u")
	shows("sorted by user")
	mux("send-keys", "/", "see", "Enter", "w")
	shows("why 1")
	shows("job 1 (seen) of root is RUNNING")
	mux("send-keys", "Escape")
	shows("jobs sorted by user with see")
	mux("send-keys", "4")
	shows("gpus with see")
	mux("send-keys", "Escape", "2")
	shows("3/4")
	mux("send-keys", "1", "c")
	shows("cancel job 1 (seen) of root? y/n")
	mux("send-keys", "y")
	shows("0 running")
	mux("send-keys", "q")
	shows("left-0")
}
