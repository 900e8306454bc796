package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// actionFile is a composite action of GitHub.
type actionFile struct {
	Name, Description string
	Inputs            map[string]struct{ Description, Default string }
	Outputs           map[string]struct{ Description, Value string }
	Runs              struct {
		Using string
		Steps []struct {
			Name, ID, Shell, Run string
			Env                  map[string]string
		}
	}
}

// runner runs the steps of a job as GitHub's runner does.
type runner struct {
	t   *testing.T
	dir string
	env []string // what steps have set
}

// expression matches the only expressions that the action uses in a step.
var expression = regexp.MustCompile(`\$\{\{ inputs\.(\w+) \}\}`)

// step runs a script in the runner's shell.
func (r *runner) step(script string, env ...string) (string, error) {
	file := filepath.Join(r.dir, "step.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience(3*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", file)
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), r.env...), env...)
	cmd.WaitDelay = time.Second // the cluster runs on
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// use runs the steps of the action with some inputs; later steps find what they have set.
func (r *runner) use(inputs map[string]string) (string, error) {
	r.t.Helper()
	text, err := os.ReadFile("../packaging/action/action.yml")
	if err != nil {
		r.t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var action actionFile
	if err := d.Decode(&action); err != nil || action.Runs.Using != "composite" || len(action.Runs.Steps) != 1 {
		r.t.Fatalf("action.yml: %v, %d steps", err, len(action.Runs.Steps))
	}
	for name := range inputs {
		if _, known := action.Inputs[name]; !known {
			r.t.Fatalf("the action has no input %s", name)
		}
	}
	step := action.Runs.Steps[0]
	if step.Shell != "bash" || strings.Contains(step.Run, "${{") {
		r.t.Errorf("the step uses %s, or an expression in its script", step.Shell)
	}
	path, err := filepath.Abs("../packaging/action")
	if err != nil {
		r.t.Fatal(err)
	}
	env := []string{"GITHUB_ACTION_PATH=" + path, "RUNNER_TEMP=" + r.dir}
	for _, f := range []string{"ENV", "PATH", "OUTPUT"} {
		env = append(env, "GITHUB_"+f+"="+r.dir+"/"+f)
	}
	for name, value := range step.Env {
		env = append(env, name+"="+expression.ReplaceAllStringFunc(value, func(e string) string {
			input := expression.FindStringSubmatch(e)[1]
			if v, given := inputs[input]; given {
				return v
			}
			return action.Inputs[input].Default
		}))
	}
	out, err := r.step(step.Run, env...)
	for line := range strings.Lines(textOf(r.dir + "/PATH")) {
		r.env = append(r.env, "PATH="+strings.TrimSpace(line)+":"+os.Getenv("PATH"))
	}
	for line := range strings.Lines(textOf(r.dir + "/ENV")) {
		r.env = append(r.env, strings.TrimSpace(line))
	}
	r.t.Cleanup(func() {
		pid := regexp.MustCompile(`(?m)^pid=(\d+)$`).FindStringSubmatch(textOf(r.dir + "/OUTPUT"))
		if pid == nil {
			return
		}
		if n, err := strconv.Atoi(pid[1]); err == nil {
			_ = syscall.Kill(n, syscall.SIGTERM)
		}
	})
	return out, err
}

// newRunner makes a runner with a short folder: a socket's path has 108 bytes.
func newRunner(t *testing.T) *runner {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &runner{t: t, dir: dir}
}

// TestAction runs the steps of the GitHub action as a runner does, and then those of a job that uses the cluster.
func TestAction(t *testing.T) {
	t.Parallel()
	program := filepath.Join(bin, "muster")
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.FileServer(http.Dir(bin)))
	defer web.Close()
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	for name, c := range map[string]struct {
		inputs map[string]string
		fails  string
	}{
		"built":          {inputs: map[string]string{}},
		"program":        {inputs: map[string]string{"program": program, "nodes": "2x8c16g4gpu:a100"}},
		"fetched":        {inputs: map[string]string{"url": web.URL + "/muster", "sha256": sum}},
		"wrong checksum": {map[string]string{"url": web.URL + "/muster", "sha256": strings.Repeat("0", 64)}, "does not have the given SHA-256"},
		"no checksum":    {map[string]string{"url": web.URL + "/muster"}, "sha256: want the SHA-256"},
		"two sources":    {map[string]string{"url": web.URL + "/muster", "program": program}, "give one of them"},
		"wrong nodes":    {map[string]string{"program": program, "nodes": "many"}, "the cluster did not become ready"},
		"wrong timeout":  {map[string]string{"program": program, "timeout": "long"}, "timeout: long: want seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			out, err := r.use(c.inputs)
			if c.fails != "" {
				if err == nil || !strings.Contains(out, "::error::muster: ") || !strings.Contains(out, c.fails) {
					t.Errorf("%v, want %q\n%s", err, c.fails, out)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			r.checkCluster()
		})
	}
}

// TestActionPage: the inputs exist that docs/automation.md gives to the action.
func TestActionPage(t *testing.T) {
	var page struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(fenced(t, "automation.md", "yaml github")[0]), &page); err != nil {
		t.Fatal(err)
	}
	var action actionFile
	if err := yaml.Unmarshal([]byte(textOf("../packaging/action/action.yml")), &action); err != nil {
		t.Fatal(err)
	}
	given := 0
	for _, step := range page.Jobs["test"].Steps {
		if !strings.Contains(step.Uses, "/packaging/action@") {
			continue
		}
		for name := range step.With {
			given++
			if _, known := action.Inputs[name]; !known {
				t.Errorf("the action has no input %s", name)
			}
		}
	}
	if given == 0 {
		t.Error("the page gives no input")
	}
}

// checkCluster runs the steps of a job with the cluster.
func (r *runner) checkCluster() {
	r.t.Helper()
	for script, want := range map[string]string{
		"sbatch --parsable --wait --gpus-per-node=4 -o out --wrap 'echo $SLURM_GPUS_ON_NODE' && cat out": "\n4\n",
		"squeue -h && sinfo -hN -t idle -o %N | sort -u | head -n 1":                                     "gpu-node-001\n",
	} {
		out, err := r.step(script)
		if err != nil || !strings.HasSuffix(out, want) {
			r.t.Errorf("%s: %v, want %q\n%s", script, err, want, out)
		}
	}
}
