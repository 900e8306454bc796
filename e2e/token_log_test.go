package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTokensStayOutOfLogs founds a cluster, makes and uses tokens, and looks for them in logs and environments.
func TestTokensStayOutOfLogs(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	c := g.enrol("c1", "client", "--join", g.bind("s1"), "--hollow", "2x8c16g", "--hollow-prefix", "c1-",
		"--hollow-exec")
	c.inside = []string{"env", "MUSTER_TOKEN=" + g.joins["node"]}
	g.start("c1")
	g.wait("its nodes", func() bool { return strings.Contains(g.must("s1", "sinfo", "-hN", "-t", "idle"), "c1-") })
	out := g.must("s1", "srun", "-D", "/tmp", "sh", "-c", "env; tr '\\0' '\\n' < /proc/$PPID/environ")
	if strings.Contains(out, "mst1.") {
		t.Error("a job, or what started it, has a token in its environment")
	}
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range processes {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), g.joins["node"]) {
			t.Errorf("%s has the token", file)
		}
	}
	for name, d := range g.at {
		log, err := os.ReadFile(filepath.Join(d.dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(log), "mst1.") {
			t.Errorf("the log of %s has a token", name)
		}
	}
	file := g.at["s1"].tells(`others join it by the commands in (\S+)`)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || info.Mode() != 0o600 || strings.Count(string(text), "mst1.") != 2 {
		t.Errorf("%s: %v, %v, %q", file, info.Mode(), err, text)
	}
}
