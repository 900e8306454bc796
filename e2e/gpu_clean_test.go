package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// settled are two H100s with settings of a careful operator.
func settled() string {
	var b strings.Builder
	b.WriteString(h100(2))
	for i := range 2 {
		fmt.Fprintf(&b,
			"gpu %d persistence 1\ngpu %d power_limit 650\ngpu %d mem_clock 2619\ngpu %d sm_clock 1980\n",
			i, i, i, i)
	}
	return b.String()
}

// TestGPUSettings: what a job sets of its GPUs is put back when it is over, also by another daemon than the one
// under which it began; what cannot be put back drains the node until it can.
func TestGPUSettings(t *testing.T) {
	t.Parallel()
	g := startGPUs(t, settled())
	run := func(meanwhile func()) {
		t.Helper()
		id := g.must("sbatch", "--parsable", "--gres=gpu:2", "-c1", "--mem=10", "-o", "/dev/null", "--wrap",
			"sleep 600")
		g.wait("the job", func() bool { return g.must("squeue", "-h", "-j", id, "-o", "%t") == "R" })
		g.wait("what the GPUs are set to",
			func() bool { return strings.Count(g.soFar("d/client/gpu-settings"), "compute mode") == 2 })
		meanwhile()
		g.must("scancel", id)
		g.wait("its end", func() bool { return g.must("squeue", "-h") == "" })
	}
	const changed = "gpu 1 compute_mode 3\ngpu 1 persistence 0\ngpu 1 power_limit 300\ngpu 1 mem_clock 1593\ngpu 1 sm_clock 345\n"
	const restored = "gpu 1 mem_clock 2619\ngpu 1 sm_clock 1980\ngpu 1 compute_mode 0\ngpu 1 persistence 1\ngpu 1 power_limit 650\n"
	run(func() { g.set(settled() + changed) })
	expect(t, "what was set", g.read("gpus"), settled()+changed+restored)
	expect(t, "the node", g.node(), "idle|gpu:h100:2|none")

	run(func() {
		g.kill()
		g.set(settled() + changed)
		g.start()
		g.wait("the daemon", func() bool { _, _, code := g.run("sinfo"); return code == 0 })
	})
	expect(t, "what was set by another daemon", g.read("gpus"), settled()+changed+restored)

	run(func() { g.set(settled() + "gpu 1 compute_mode 3\ngpu 1 denied 1\n") })
	expect(t, "the node", g.node(),
		"drain|gpu:h100:2|GPU 1 (GPU-00000001-1111-2222-3333-444455556666): after job 3 its compute mode is [3] and could not be set to [0]: Insufficient Permissions")
	g.set(settled() + "gpu 1 compute_mode 3\n")
	g.wait("the return", func() bool { return g.node() == "idle|gpu:h100:2|none" })
	expect(t, "what was set in the end", g.read("gpus"), settled()+"gpu 1 compute_mode 3\ngpu 1 compute_mode 0\n")
	run(func() {})
	expect(t, "what a job sets that sets nothing", g.read("gpus"),
		settled()+"gpu 1 compute_mode 3\ngpu 1 compute_mode 0\n")
}

// TestGPUSliceLeft: what a job leaves in a slice of a GPU drains its node, by that slice; what runs in another
// slice is no matter.
func TestGPUSliceLeft(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("processes of others need root")
	}
	g := startGPUs(t, mixed)
	var stays [2]*exec.Cmd
	run := func() (lines string) {
		id := g.submitAs(daemonUID, "--gres=gpu:a100_3g.20gb:1", "-c1", "--mem=10", "--wrap", "sleep 600")
		g.wait("the job", func() bool { return g.must("squeue", "-h", "-o", "%t") == "R" })
		for i := range stays {
			stays[i] = exec.Command("sleep", "600")
			if err := stays[i].Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = stays[i].Process.Kill(); _ = stays[i].Wait() })
			lines += fmt.Sprintf("proc 0/%d %d 4000 0\n", i, stays[i].Process.Pid)
		}
		g.set(mixed + lines)
		g.must("scancel", id)
		g.wait("its end", func() bool { return g.must("squeue", "-h") == "" })
		return lines
	}
	lines := run()
	if n := g.node(); !strings.HasPrefix(n, "drain|") || !strings.Contains(n, fmt.Sprintf("GPU 0 (MIG-a1): process %d (sleep, user 0) of job 1 still holds 4000 MB", stays[0].Process.Pid)) ||
		strings.Contains(n, fmt.Sprint(stays[1].Process.Pid)) {
		t.Errorf("the node: %s", n)
	}
	g.set(mixed + lines[strings.Index(lines, "\n")+1:])
	g.wait("the return", func() bool { return strings.HasSuffix(g.node(), "|none") })
	if err := syscall.Kill(stays[1].Process.Pid, 0); err != nil {
		t.Errorf("the process in the other slice: %v", err)
	}
}
