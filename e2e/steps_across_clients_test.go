package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lines are the sorted lines of a text.
func lines(text string) []string { return slices.Sorted(strings.Lines(text)) }

// unranked are the sorted lines behind their ranks: clients register in any order, and nodes rank in that.
func unranked(text string) (out []string) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, ": ")
		out = append(out, rest)
	}
	slices.Sort(out)
	return out
}

// TestAcross runs steps over the nodes of several clients: started from any server and from inside a
// job, with output, input, exit codes and signals, while daemons of first and sister nodes are killed.
func TestAcross(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 2)
	nodes := []string{"c1-001\n", "c1-002\n", "c2-001\n", "c2-002\n"}
	for _, s := range []string{"s1", "s2", "s3"} {
		if out := g.must(s, "srun", "-N4", "-l", "hostname"); !slices.Equal(unranked(out+"\n"), nodes) {
			t.Errorf("srun by %s: %q", s, out)
		}
	}
	if out, errs, rc := g.run("s2", "srun", "-N4", "-l", "sh", "-c", "exit $SLURM_PROCID"); rc != 3 || !strings.Contains(errs, "task 3: Exited with exit code 3") {
		t.Errorf("worst of four exit codes: %d\n%s%s", rc, out, errs)
	}
	id := g.must("s1", "sbatch", "--parsable", "-N4", "-o", "/dev/null", "--wrap",
		"srun -K sh -c '[ $SLURM_PROCID != 2 ] || exit 7; sleep 600'")
	g.wait("the verdict", func() bool { return g.must("s2", "sacct", "-nXP", "-j", id, "-o", "Verdict") != "" })
	expect(t, "whose fault it was",
		g.must("s2", "sacct", "-nXP", "-j", id, "-o", "State,Verdict,BlameNode"),
		"FAILED|program: task 2 of step 0 failed first, on c2-001, with exit code 7|c2-001")
	g.wait("the same in words", func() bool {
		return strings.Contains(g.must("s3", "muster", "why", id),
			"  program      task 2 of step 0 failed first, on c2-001, with exit code 7")
	})
	if out, _, rc := g.at["s3"].input("a line\n", "srun", "-N4", "cat"); rc != 0 || strings.Count(out, "a line\n") != 4 {
		t.Errorf("input to all: exit code %d, %q", rc, out)
	}
	id = g.must("s1", "sbatch", "--parsable", "-N4", "-o", "in.out", "--wrap",
		"srun -l hostname; srun -N1 -n1 -l -w c2-002 hostname; srun -O -N2 -n4 --ntasks-per-node=2 -w c1-002,c2-001 -l sh -c 'echo $SLURM_NODEID.$SLURM_LOCALID'")
	g.drained("s1")
	g.drained("s3")
	want := append(slices.Clone(nodes), "c2-002\n", "0.0\n", "0.1\n", "1.0\n", "1.1\n")
	slices.Sort(want)
	if out := g.read(t, "in.out"); !slices.Equal(unranked(out), want) {
		t.Errorf("steps inside a job: %q", out)
	}
	if out := g.must("s3", "sacct", "-nP", "-j", id, "-o", "jobid,state,ntasks"); !strings.Contains(out, id+".2|COMPLETED|4") {
		t.Errorf("history of the steps:\n%s", out)
	}
	g.survive(t, "c1")
	g.survive(t, "c2")
}

// read reads a file that a job wrote.
func (g *group) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// survive kills a client's daemon in the middle of a step of both clients: the step goes on, its output
// is whole, its exit code arrives.
func (g *group) survive(t *testing.T, client string) {
	t.Helper()
	type result struct {
		out, errs string
		code      int
	}
	done := make(chan result, 1)
	go func() {
		o, e, c := g.run("s2", "srun", "-N4", "sh", "-c",
			"touch here."+client+".$SLURM_PROCID; for i in 1 2 3 4 5 6; do echo $SLURM_PROCID-$i; sleep 0.2; done; exit 5")
		done <- result{o, e, c}
	}()
	g.wait("four tasks", func() bool {
		found, _ := filepath.Glob(filepath.Join(g.dir, "here."+client+".*"))
		return len(found) == 4
	})
	g.at[client].kill()
	g.start(client)
	r := <-done
	if n := strings.Count(r.out, "\n"); n != 24 || r.code != 5 {
		t.Errorf("the daemon of %s was killed: exit code %d, %d lines of output, want 5 and 24\n%s%s",
			client, r.code, n, r.out, r.errs)
	}
	g.drained("s2")
}

// TestAcrossLoss loses a node for good in the middle of a step: the others end too.
func TestAcrossLoss(t *testing.T) {
	t.Parallel()
	g := fullGroup(t, 2)
	id := g.must("s1", "sbatch", "--parsable", "--no-requeue", "-N4", "-o", "out", "--wrap",
		"srun sh -c 'echo $$ >pid.$SLURM_PROCID; exec sleep 1000'")
	g.wait("four tasks", func() bool {
		found, _ := filepath.Glob(filepath.Join(g.dir, "pid.*"))
		return len(found) == 4
	})
	g.at["c2"].kill() // and it does not come back
	g.wait("the job to fail with its node", func() bool {
		out, _, _ := g.run("s2", "sacct", "-nXP", "-j", id, "-o", "state")
		return strings.TrimSpace(out) == "NODE_FAIL"
	})
	for _, rank := range []int{0, 1} {
		pid := strings.TrimSpace(g.read(t, fmt.Sprintf("pid.%d", rank)))
		g.wait("rank "+fmt.Sprint(rank)+" to be gone",
			func() bool { _, err := os.Stat("/proc/" + pid); return err != nil })
	}
	g.wait("the lost nodes to be down", func() bool {
		out, _, _ := g.run("s3", "sinfo", "-hN", "-t", "down", "-o", "%N")
		return strings.Count(out, "\n") == 2
	})
	if out := g.must("s2", "srun", "-N2", "hostname"); !slices.Equal(lines(out+"\n"), []string{"c1-001\n", "c1-002\n"}) {
		t.Errorf("the nodes that are left: %q", out)
	}
}
