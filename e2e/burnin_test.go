package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// burnin calls muster burnin with the program that can ask the stand-in library, and what GPU programs a test has.
func (g *gpus) burnin(args ...string) (out string, code int) {
	g.t.Helper()
	cmd := exec.Command(g.exe, append([]string{"burnin"}, args...)...)
	cmd.Env = append(os.Environ(), g.inside[1:]...)
	cmd.Env = append(cmd.Env, "MUSTER_SOCKET="+g.dir+"/s", "PATH="+g.dir+"/tools:"+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	if err != nil {
		if _, ran := err.(*exec.ExitError); !ran {
			g.t.Fatal(err)
		}
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// row is the line of a table that has some words.
func row(table string, words ...string) string {
	for line := range strings.Lines(table) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// TestBurnin: a test of a node is a job of the whole node; it says what it could not test, keeps its results by
// UUID, and drains the node for a part that fails until that passes.
func TestBurnin(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("tests of nodes are root's")
	}
	good := strings.ReplaceAll(h100(2), "gpu 1 minor 1\n", "gpu 1 minor 1\ngpu 1 serial 1650922000123\ngpu 1 temp 55\n")
	g := startGPUs(t, good)
	if out, code := g.burnin("--show"); code != 0 || out != "nothing was tested yet; muster burnin NODES does\n" {
		t.Errorf("before: %d %s", code, out)
	}
	test := func(want int) (shown string) {
		t.Helper()
		out, code := g.burnin("--seconds", "1", "--memory", "16", "--disk", "4", "--output", g.dir+"/log-%j", "n1")
		id := out[strings.LastIndex(strings.TrimSpace(out), " ")+1:]
		if code != 0 || !strings.HasPrefix(out, "node n1 is tested by job ") {
			t.Fatalf("muster burnin: %d %s", code, out)
		}
		g.wait("its end", func() bool { return g.must("squeue", "-h") == "" })
		shown, code = g.burnin("--show", "n1")
		if code != want {
			t.Fatalf("muster burnin --show: %d\n%s\nthe job's output:\n%s", code, shown,
				g.read("log-"+strings.TrimSpace(id)))
		}
		return shown
	}
	shown := test(0)
	for _, words := range [][]string{{"cpu", "passed", "slowest CPU"},
		{"memory", "passed", "memory tested 16 MB"}, {"disk", "passed", "MB/s"},
		{"GPU-00000000-1111-2222-3333-444455556666", "passed", "at rest: its counters alone", "NVLinks 18"},
		{"GPU-00000001-1111", "1650922000123", "passed", "highest temperature 55 C"},
		{"load", "not tested", "dcgmi, gpu-burn, nvbandwidth and all_reduce_perf are not installed"}} {
		if row(shown, words...) == "" {
			t.Errorf("no line with %q:\n%s", words, shown)
		}
	}
	expect(t, "the node", g.node(), "idle|gpu:h100:2|none")
	if spec := g.must("sacct", "-nXP", "-j", "1", "-o", "AllocTRES,State,Priority,User"); !strings.Contains(spec, "gres/gpu=2") || !strings.Contains(spec, "COMPLETED|1|root") {
		t.Errorf("its job: %s", spec)
	}

	if err := os.Mkdir(g.dir+"/tools", 0o755); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, g.dir+"/tools", "gpu_burn",
		"#!/bin/sh\necho 'Tested 2 GPUs:'\necho '\tGPU 0: OK'\necho '\tGPU 1: FAULTY'\n")
	writeProgram(t, g.dir+"/tools", "all_reduce_perf",
		"#!/bin/sh\necho '# Out of bounds values : 0 OK'\necho '# Avg bus bandwidth    : 361.2'\n")
	shown = test(1)
	const evidence = "GPU 1 (GPU-00000001-1111-2222-3333-444455556666): gpu_burn: it computes wrong"
	if row(shown, "GPU-00000001-1111", "failed", evidence) == "" || row(shown, "load", "passed", "all-reduce bus bandwidth 361.2 GB/s") == "" {
		t.Errorf("with programs:\n%s", shown)
	}
	expect(t, "the node", g.node(), "drain|gpu:h100:2|burnin: "+evidence)
	if health, _, code := g.run("muster", "health"); code != 1 || !strings.Contains(health, "reset or replace the GPU; then resume the node, and test it again by muster burnin") {
		t.Errorf("muster health: %d\n%s", code, health)
	}
	if out, _ := g.burnin("n1"); !strings.Contains(out, ", once the node is resumed: it is drained") {
		t.Errorf("of a drained node: %s", out)
	}
	g.must("scancel", "--user=root")
	g.wait("the queue", func() bool { return g.must("squeue", "-h") == "" })

	g.kill() // what was found survives
	g.start()
	g.wait("the node", func() bool {
		out, _, _ := g.run("sinfo", "-h", "-N", "-o", "%t")
		return out == "drain\n"
	})
	if again, code := g.burnin("--show", "1650922000123"); code != 1 || strings.Count(again, "\n") != 3 || row(again, "failed", evidence) == "" {
		t.Errorf("by its serial number, after a crash: %d\n%s", code, again)
	}
	if err := os.RemoveAll(g.dir + "/tools"); err != nil {
		t.Fatal(err)
	}
	g.must("scontrol", "update", "node=n1", "state=resume")
	g.set(strings.ReplaceAll(good, "gpu 0 minor 0\n", "gpu 0 minor 0\ngpu 0 throttle 0x40\n"))
	if shown = test(1); row(shown, "GPU-00000000-1111", "failed", "slowed by heat") == "" {
		t.Errorf("with a GPU that is too hot:\n%s", shown)
	}
}
