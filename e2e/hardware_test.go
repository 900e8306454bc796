package e2e

import (
	"os"
	"testing"
)

// hollow are the arguments of a client of hollow nodes that execute.
func hollow(nodes, prefix string) []string {
	return []string{"--hollow", nodes, "--hollow-prefix", prefix, "--hollow-exec"}
}

// TestLostGPU restarts a client that finds fewer GPUs than before: the node serves on with them and says
// what it lacks; the job on the lost one runs on, and nothing else gets it.
func TestLostGPU(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	const node = "c1-001"
	g.join("c1", "s1", hollow("1x16c64g8gpu:h100", "c1-")...)
	g.wait("the node", func() bool { return g.state(node) == "idle" })
	all := g.must("s1", "sbatch", "--parsable", "--gpus=8", "-c1", "-o", "/dev/null", "--wrap",
		"until [ -e go ]; do sleep 0.05; done; exit 7")
	g.wait("the job", func() bool { return g.state(node) == "mix" })

	restart := func(nodes string) {
		t.Helper()
		d := g.at["c1"]
		for i, a := range d.args {
			if a == "--hollow" {
				d.args[i+1] = nodes
			}
		}
		d.stop()
		g.start("c1")
	}
	reasons := func() string { return g.must("s1", "sinfo", "-h", "-R", "-o", "%E|%U|%t|%N") }
	restart("1x16c64g7gpu:h100")
	g.wait("the reason", func() bool { return reasons() != "" })
	expect(t, "the reason", reasons(), "gpu: 7 of 8 found|slurm(0)|mix|c1-001")
	expect(t, "the job that holds all", g.must("s1", "squeue", "-h", "-o", "%i %t"), all+" R")
	if err := os.WriteFile(g.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g.drained("s1")
	expect(t, "its end", g.must("s1", "sacct", "-nXP", "-j", all, "-o", "State,ExitCode"), "FAILED|7:0")
	expect(t, "GPUs of the node", g.must("s1", "sinfo", "-h", "-o", "%G"), "gpu:h100:7(S:0-1)")
	if out, errs, code := g.run("s1", "srun", "--gpus=7", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"); out != "0,1,2,3,4,5,6\n" {
		t.Errorf("a job with what is left: %d, %q, %s", code, out, errs)
	}
	waits := g.must("s1", "sbatch", "--parsable", "--gpus=8", "-o", "/dev/null", "--wrap", "true")
	why := ""
	g.wait("the job to wait", func() bool {
		why = g.must("s1", "squeue", "-h", "-j", waits, "-o", "%t %r")
		return why != "PD None"
	})
	expect(t, "why it waits", why,
		"PD Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions")
	restart("1x16c64g8gpu:h100")
	g.drained("s1")
	expect(t, "all are back", g.must("s1", "sacct", "-nXP", "-j", waits, "-o", "State")+reasons(), "COMPLETED")
}
