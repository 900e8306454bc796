package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"dev.muster/agent/step"
)

func TestApplyProlog(t *testing.T) {
	var out bytes.Buffer
	env := applyProlog("export A=1\nexport B=two words\nexport =bad\nunset USER\nprint hello  you\njunk\n",
		[]string{"USER=me", "A=0"}, &out)
	if want := []string{"A=1", "B=two words"}; !slices.Equal(env, want) {
		t.Errorf("environment %q, want %q", env, want)
	}
	if out.String() != "hello  you\n" {
		t.Errorf("output %q", out.String())
	}
}

// TestAroundTask runs tasks between scripts, as the supervisor does.
func TestAroundTask(t *testing.T) {
	g := newRig(t)
	script := func(name, text string) string {
		path := filepath.Join(g.own, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mark := filepath.Join(g.own, "mark")
	good, bad := script("good", "echo export X=$A\necho print hello\n"), script("bad", "exit 3\n")
	epi := script("epi", "echo ended >>"+mark+"; exit 1\n")
	cases := []struct {
		name          string
		pro, epi      string
		run, out      string
		code, sig     int
		epilogWasHere bool
	}{
		{"a prolog's variable", good, "", "echo $PID; echo $X", "hello\nPID\n1\n", 0, 0, false},
		{
			"a prolog that fails", bad, "", "echo not run",
			"slurmstepd-n1: error: --task-prolog failed status=3\n", 3, 0, false,
		},
		{"no such prolog", "/no-such/x", "", "echo not run",
			"slurmstepd-n1: error: run_command: user task_prolog can not be executed (/no-such/x) No such file or directory\n" +
				"slurmstepd-n1: error: user task_prolog did not exit normally. reason: Run command failed - configuration error\nslurmstepd-n1: error: --task-prolog failed status=1\n", 1,
			0, false},
		{
			"an epilog", good, epi, "echo $X; exit 4",
			"hello\n1\nslurmstepd-n1: error: TaskEpilog failed status=256\n", 4, 0, true,
		},
		{
			"a task that dies", "", epi, "kill -USR1 $$",
			"slurmstepd-n1: error: TaskEpilog failed status=256\n", 0, int(syscall.SIGUSR1), true,
		},
		{
			"an epilog without end", "", script("hangs", "sleep 600 & echo >"+mark+"; wait\n"), "exit 4",
			"slurmstepd-n1: error: TaskEpilog failed status=9\n", 4, 0, true,
		},
	}
	for _, c := range cases {
		os.Remove(mark)
		a := step.Around{Node: "n1", PIDEnv: "PID"}
		if c.pro != "" {
			a.Prologs = []step.AroundScript{{Path: c.pro}}
		}
		if c.epi != "" {
			a.Epilogs = []step.AroundScript{{Path: c.epi}}
		}
		sp := g.spec("")
		sp.PIDEnv = "PID"
		sp.Tasks[0].Argv = a.Command([]string{selfExe(t), "internal", "task"}, []string{"sh", "-c", c.run})
		k := g.run(sp).Tasks[0]
		text := strings.ReplaceAll(g.text(sp.ID), fmt.Sprint(k.PID), "PID")
		if k.Exit.Code != c.code || k.Exit.Signal != c.sig || text != c.out {
			t.Errorf("%s: %+v %q, want %q", c.name, k.Exit, text, c.out)
		}
		if _, err := os.Stat(mark); (err == nil) != c.epilogWasHere {
			t.Errorf("%s: epilog run: %v", c.name, err == nil)
		}
	}
}
