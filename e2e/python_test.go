package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPython: the Python client does with jobs, nodes and partitions what it says, on a live cluster, and the examples
// of its README run.
func TestPython(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	addr := freeAddr(t)
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec", "--http", addr)
	source, err := filepath.Abs("../python")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "MUSTER_URL=http://"+addr, d.must("scontrol", "token"),
		"PYTHONPATH="+filepath.Join(source, "src"), "PYTHONDONTWRITEBYTECODE=1")
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "python3", args...)
		cmd.Env, cmd.Dir = env, dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("python3 %s: %v\n%s", args[0], err, out)
		}
		return string(out)
	}
	if out := run(source, "-W", "error::SyntaxWarning", "tests/test_client.py"); !strings.Contains(out, "\nOK") {
		t.Errorf("the tests print\n%s", out)
	}
	text, err := os.ReadFile(filepath.Join(source, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("the README has %d examples", len(blocks))
	}
	for i, want := range []string{"COMPLETED\n", "['COMPLETED', 'COMPLETED', 'COMPLETED']"} {
		if out := run(t.TempDir(), "-c", blocks[i][1]); !strings.Contains(out, want) {
			t.Errorf("example %d prints\n%s", i, out)
		}
	}
}
