package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// launching is a server and clients of one node each, c1-001, c2-001, …, in this order.
func launching(t *testing.T, clients int, args ...string) *group {
	t.Helper()
	g := newGroup(t, args...)
	for i := range clients {
		name := fmt.Sprintf("c%d", i+1)
		g.join(name, "s1", "--hollow", "1x8c16g", "--hollow-prefix", name+"-", "--hollow-exec")
		g.wait(name+" to be idle", func() bool { return g.state(name+"-001") == "idle" })
	}
	return g
}

// nothingLeft wants no trace of launches that were undone.
func (g *group) nothingLeft() {
	g.t.Helper()
	g.wait("no gang to be staged", func() bool {
		found, _ := filepath.Glob(g.dir + "/*/d/client/staged/*")
		return len(found) == 0
	})
}

// A node whose spool takes no script launches nothing: it is drained with the reason, and its jobs run
// elsewhere, each once.
func TestLaunchRefused(t *testing.T) {
	t.Parallel()
	g := launching(t, 2)
	spool := g.at["c1"].dir + "/d/spool"
	if err := os.RemoveAll(spool); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spool, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--wrap",
		"echo $SLURMD_NODENAME $SLURM_RESTART_COUNT >>ran")
	g.drained("s1")
	if out := g.read(t, "ran"); out != "c2-001 1\n" {
		t.Errorf("the job ran like this: %q", out)
	}
	if s := g.state("c1-001"); s != "drain" {
		t.Errorf("the node that launches nothing is %q", s)
	}
	if out := g.must("s1", "sinfo", "-R", "-h", "-o", "%E|%u"); !strings.HasPrefix(out, "Launch failed: open "+spool) || !strings.Contains(out, "|slurm") {
		t.Errorf("the reason: %q", out)
	}
	if out := g.must("s1", "sacct", "-nXPD", "-j", id, "-o", "state,nodelist"); out != "NODE_FAIL|c1-001\nCOMPLETED|c2-001" {
		t.Errorf("the history:\n%s", out)
	}
	if err := os.Remove(spool); err != nil {
		t.Fatal(err)
	}
	g.must("s1", "scontrol", "update", "nodename=c1-001", "state=resume")
	g.must("s1", "sbatch", "-W", "-w", "c1-001", "-o", "/dev/null", "--wrap", "true")
	g.nothingLeft()
}

// A node that says nothing to a launch holds it up only for the launch timeout: batch job and srun go
// where somebody answers. The node gets no jobs until it is heard of again.
func TestLaunchSilent(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=c\nBatchStartTimeout=1\nSlurmdTimeout=60\nPartitionName=p Nodes=ALL Default=YES\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := launching(t, 3, "--conf", conf)
	stopped := g.at["c1"].pause()
	defer func() { _ = stopped.Signal(syscall.SIGCONT) }()
	batch := g.must("s1", "sbatch", "--parsable", "-N2", "-o", "/dev/null", "--wrap", "srun -l hostname >>ran")
	g.drained("s1")
	if out := g.read(t, "ran"); fmt.Sprint(unranked(out)) != fmt.Sprint([]string{"c2-001\n", "c3-001\n"}) {
		t.Errorf("the job ran like this: %q", out)
	}
	if s, why := g.state("c1-001"), g.must("s1", "sinfo", "-R", "-h", "-o", "%E"); !strings.HasPrefix(s, "drain") || why != "Launch not confirmed" {
		t.Errorf("the silent node is %q: %q", s, why)
	}
	if err := stopped.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	g.wait("the node to be heard of", func() bool { return g.state("c1-001") == "idle" })
	if out := g.must("s1", "sacct", "-nXP", "-j", batch, "-o", "state,nodelist"); out != "COMPLETED|c[2-3]-001" && out != "COMPLETED|c2-001,c3-001" {
		t.Errorf("the history: %q", out)
	}

	g.at["c1"].pause()
	if out, errs, code := g.run("s1", "srun", "-N2", "-l", "hostname"); code != 0 || fmt.Sprint(unranked(out)) != fmt.Sprint([]string{"c2-001\n", "c3-001\n"}) {
		t.Errorf("srun: %d, %q, %q", code, out, errs)
	}
	if err := stopped.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	g.wait("the node to be heard of", func() bool { return g.state("c1-001") == "idle" })
	g.nothingLeft()
}

// A node that never hears of a launch, since its call for work was lost while it said nothing, gets jobs again as
// soon as it calls.
func TestLaunchUnheard(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=c\nBatchStartTimeout=1\nSlurmdTimeout=60\nPartitionName=p Nodes=ALL Default=YES\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := launching(t, 2, "--conf", conf)
	stopped := g.at["c1"].pause()
	defer func() { _ = stopped.Signal(syscall.SIGCONT) }()
	g.at["s1"].kill() // and its connections
	g.start("s1")
	g.wait("c2 to be heard of", func() bool { return g.state("c2-001") == "idle" })
	g.must("s1", "sbatch", "-W", "-o", "/dev/null", "--wrap", "true")
	if s, why := g.state("c1-001"), g.must("s1", "sinfo", "-R", "-h", "-o", "%E"); !strings.HasPrefix(s, "drain") || why != "Launch not confirmed" {
		t.Errorf("the silent node is %q: %q", s, why)
	}
	if err := stopped.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	g.wait("the node to be heard of", func() bool { return g.state("c1-001") == "idle" })
	g.must("s1", "sbatch", "-W", "-w", "c1-001", "-o", "/dev/null", "--wrap", "true")
	g.nothingLeft()
}

// A node without a supervisor, where none can be started either, confirms nothing: its jobs go elsewhere,
// until somebody has repaired it.
func TestLaunchWithoutSupervisor(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=c\nBatchStartTimeout=1\nSlurmdTimeout=60\nPartitionName=p Nodes=ALL Default=YES\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := launching(t, 3, "--conf", conf)
	journal := g.at["c1"].dir + "/d/client/journal"
	if err := os.RemoveAll(journal); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(journal, 0o700); err != nil {
		t.Fatal(err)
	}
	g.at["c1"].killSupervisor()
	g.at["c1"].tells(`(no supervisor)`)
	g.must("s1", "sbatch", "-N2", "-o", "/dev/null", "--wrap", "srun -l hostname >>ran")
	g.drained("s1")
	if out := g.read(t, "ran"); fmt.Sprint(unranked(out)) != fmt.Sprint([]string{"c2-001\n", "c3-001\n"}) {
		t.Errorf("the job ran like this: %q", out)
	}
	if s := g.state("c1-001"); s != "drain" {
		t.Errorf("the node without a supervisor is %q", s)
	}
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	g.must("s1", "scontrol", "update", "nodename=c1-001", "state=resume")
	g.must("s1", "sbatch", "-W", "-w", "c1-001", "-o", "/dev/null", "--wrap", "true")
	g.nothingLeft()
}

// A step one of whose nodes does not get ready starts on none of them, and leaves nothing behind: the
// next one runs.
func TestStepNotReady(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=c\nSlurmdTimeout=60\nPartitionName=p Nodes=ALL Default=YES\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := launching(t, 3, "--conf", conf)
	id := g.must("s1", "sbatch", "--parsable", "-N3", "-o", "/dev/null", "--wrap", "sleep 600")
	g.wait("the job to run", func() bool { return g.must("s1", "squeue", "-h", "-o", "%t") == "R" })
	step := []string{"--jobid", id, "-N3", "sh", "-c", "echo $SLURM_STEP_ID >>ran"}
	g.at["c3"].kill() // its supervisor runs on: the job too
	if out, errs, code := g.run("s1", "srun", step...); code != 1 || !strings.Contains(errs, "Unable to create step for job "+id) || !strings.Contains(errs, "start on c3-001") {
		t.Errorf("a step without one of its nodes: %d, %q, %q", code, out, errs)
	}
	if ran, err := os.ReadFile(g.dir + "/ran"); err == nil {
		t.Errorf("some of its tasks ran: %q", ran)
	}
	g.start("c3")
	g.answers("c3")
	g.must("s1", "srun", step...)
	if out := g.read(t, "ran"); out != "1\n1\n1\n" {
		t.Errorf("the next step, after one that was tried once: %q", out)
	}
	g.must("s1", "scancel", id)
	g.drained("s1")
}
