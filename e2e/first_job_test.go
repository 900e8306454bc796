package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestFirstJob types the commands of docs/first-job.md, block by block in one shell, and looks at what each shows.
func TestFirstJob(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/first-job.md")
	if err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "2x16c64g8gpu:h100", "--hollow-exec")
	const mark = "=== "
	script := "set -e\n"
	for i, section := range strings.Split(string(text), "\n## ") {
		title, rest, _ := strings.Cut(section, "\n")
		for j, block := range strings.Split(rest, "```") {
			if code, found := strings.CutPrefix(block, "sh\n"); found && i > 0 && j%2 == 1 {
				script += "echo '" + strings.ReplaceAll(mark+title, "'", "") + "'\n" + code
			}
		}
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = d.work, d.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shown := map[string]string{}
	for part := range strings.SplitSeq(string(out), mark) {
		title, rest, _ := strings.Cut(part, "\n")
		shown[title] += rest
	}
	for title, want := range map[string][]string{
		"Look at the cluster":                     {"PARTITION", "idle"},
		"Write a script":                          {"Submitted batch job 1"},
		"Follow the job":                          {"job 2 on gpu-node-00", ", GPU ", "COMPLETED"},
		"Use several nodes":                       {"0: node 0 of 2, rendezvous ", "1: node 1 of 2, rendezvous "},
		"Run many tasks, then another job":        {"Submitted batch job"},
		"Work interactively":                      {"Granted job allocation"},
		"Find out why a job is pending or failed": {"it is held", "ended with exit code 3"},
	} {
		for _, w := range want {
			if !strings.Contains(shown[title], w) {
				t.Errorf("%s does not show %q:\n%s", title, w, shown[title])
			}
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
