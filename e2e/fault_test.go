package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testNode is a member that is a compute node with GPUs and ports of its own, which files tell.
type testNode struct {
	*gpus
	*sysfs
}

// joinNode starts a client that is a machine with so many GPUs and an adapter beside each.
func (g *group) joinNode(name string, n int) *testNode {
	g.t.Helper()
	product, err := gpuProduct()
	if product == "" {
		g.t.Skip("the stand-in library cannot be built: ", err)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	m := &testNode{sysfs: adapters(g.t, n)}
	d := g.enrol(name, "client", "--join", g.bind("s1"), "--token",
		g.must("s1", "muster", "token", "create"), "--gpu-every", "100ms", "--sysfs", m.dir)
	m.gpus = &gpus{d, filepath.Join(g.t.TempDir(), "gpus")}
	m.gpus.set(h100(n))
	d.exe = product + "/muster"
	d.inside = []string{"env", "LD_LIBRARY_PATH=" + product, "STANDIN_NVML=" + m.file}
	g.start(name)
	g.wait(name, func() bool { return g.must("s1", "sinfo", "-h", "-n", name, "-o", "%t") == "idle" }) // nodes are listed as they came
	return m
}

// TestFaultDrill: a GPU dies under a gang of four nodes, and a moment later the job runs on four others; all is
// written down. A node whose port flaps is avoided by the next gang.
func TestFaultDrill(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	nodes := map[string]*testNode{}
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		nodes[name] = g.joinNode(name, 2)
	}
	last := ""
	defer func() {
		if t.Failed() {
			t.Logf("what was shown last:\n%s", last)
		}
	}()
	show := func(command string, args ...string) string { last = g.must("s1", command, args...); return last }
	g.wait("the nodes",
		func() bool { return show("sinfo", "-h", "-o", "%N %t %G %E") == "n[1-5] idle gpu:h100:2 none" })
	gang := func() string {
		return g.must("s1", "sbatch", "--parsable", "--requeue", "-N4", "--gpus-per-node=2", "-o",
			"/dev/null", "--wrap", "srun sleep 600")
	}
	job := gang()
	queue := func() string { return show("squeue", "-h", "-o", "%i %t %R") }
	steps := func() string { return show("squeue", "-h", "-s", "-o", "%i %N") }
	g.wait("the gang", func() bool { return queue() == job+" R n[1-4]" })
	g.wait("its step", func() bool { return strings.Contains(steps(), job+".0 n[1-4]") })

	const dead = "GPU 1 (GPU-00000001-1111-2222-3333-444455556666 0000:1c:00.0): XID 79: GPU has fallen off the bus"
	begun := time.Now()
	nodes["n2"].gpus.set(h100(2) + "xid 1 1 79\n")
	g.wait("the gang on other nodes", func() bool { return queue() == job+" R n[1,3-5]" })
	if took := time.Since(begun); took > patience(10*time.Second) {
		t.Errorf("the gang runs again after %v", took)
	} else {
		t.Logf("the gang runs again after %v", took)
	}
	g.wait("its step there", func() bool { return strings.Contains(steps(), " n[1,3-5]") })
	expect(t, "why n2 is drained", g.must("s1", "sinfo", "-h", "-R", "-o", "%N|%t|%E"), "n2|drain|"+dead)
	expect(t, "the record", g.must("s1", "sacct", "-nXPD", "-j", job, "-o", "State,NodeList,Verdict,BlameNode"),
		"NODE_FAIL|n[1-4]|platform: n2: "+dead+"|n2\nRUNNING|n[1,3-5]||")
	g.must("s1", "scancel", job)
	g.drained("s1")

	g.joinNode("n6", 2)
	g.wait("a sixth node",
		func() bool { return strings.Contains(show("sinfo", "-h", "-o", "%N %t %E"), "n[1,3-6] idle none") })
	nodes["n1"].port("mlx5_1", "counters/link_downed", "3")
	g.wait("the flaps", func() bool {
		return strings.Contains(g.must("s1", "sinfo", "-h", "-R", "-o", "%N|%E"), "n1|mlx5_1 port 1: the link flaps")
	})
	job = gang()
	g.wait("the next gang", func() bool { return strings.HasPrefix(queue(), job+" R ") })
	expect(t, "its nodes", queue(), job+" R n[3-6]")
}
