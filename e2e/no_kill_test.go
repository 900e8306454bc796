package e2e

import (
	"os"
	"strings"
	"testing"
	"time"
)

// failing is a server with three clients, which are given up after three seconds of silence.
func failing(t *testing.T) *group {
	t.Helper()
	conf := t.TempDir() + "/slurm.conf"
	rewrite(t, conf, "ClusterName=c", "SlurmdTimeout=3", "PartitionName=p Nodes=ALL Default=YES")
	return launching(t, 3, "--conf", conf)
}

// TestNoKill: a job of --no-kill goes on when a node fails that is not its first, without it. A step that had a part
// there ends, one of srun --no-kill goes on. As a real Slurm does, which says the same words.
func TestNoKill(t *testing.T) {
	t.Parallel()
	g := failing(t)
	script := writeProgram(t, g.dir, "job", `#!/bin/bash
#SBATCH -N3 -n3 --no-kill -o `+g.dir+`/out
srun --overlap --no-kill -o keeps.%t sh -c '
	echo up
	until [ -e end ]; do sleep .1; done
	echo over on $SLURMD_NODENAME' &
keeps=$!
srun --overlap -o ends.%t sh -c 'echo up; exec sleep 1000'
echo ends $?
squeue -h -j $SLURM_JOB_ID -o '%D %N %t'
srun --overlap -l -N2 -n2 sh -c 'echo $SLURMD_NODENAME of $SLURM_NNODES'
echo next $?
touch end
wait $keeps
echo keeps $?
`)
	id := g.must("s1", "sbatch", "--parsable", script)
	g.wait("both steps", func() bool {
		for _, file := range []string{"keeps.0", "keeps.1", "keeps.2", "ends.0", "ends.1", "ends.2"} {
			if text, err := os.ReadFile(g.dir + "/" + file); err != nil || string(text) != "up\n" {
				return false
			}
		}
		return true
	})
	began := time.Now()
	g.at["c3"].kill()
	g.at["c3"].killSupervisor()
	g.drained("s1")
	if took := time.Since(began); took > patience(30*time.Second) {
		t.Errorf("that took %v", took)
	}
	out := g.read(t, "out")
	for _, want := range []string{
		"srun: error: Node failure on c3-001\n",
		"srun: error: c1-001: task 0: Killed\n",
		"srun: error: c2-001: task 1: Killed\n",
		"srun: error: c3-001: task 2: Killed\n",
		"ends 137\n", // the other srun may write between these
		"2 c1-001,c2-001 R\n",
		"0: c1-001 of 2\n",
		"1: c2-001 of 2\n",
		"next 0\n",
		"keeps 137\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	if n := strings.Count(out, "Node failure on c3-001"); n != 2 {
		t.Errorf("%d steps tell of the node", n)
	}
	expect(t, "a step that goes on", g.read(t, "keeps.0")+g.read(t, "keeps.1"),
		"up\nover on c1-001\nup\nover on c2-001\n")
	expect(t, "history", g.must("s1", "sacct", "-nXPD", "-j", id, "-o", "state,nodelist"),
		"RESIZING|c1-001,c2-001,c3-001\nCOMPLETED|c1-001,c2-001")
}

// TestNoKillShell: so does an allocation of salloc, which tells of it. With its first node it ends, and what runs in it.
func TestNoKillShell(t *testing.T) {
	t.Parallel()
	g := failing(t)
	type end struct{ out, errs string }
	over := make(chan end)
	go func() {
		out, errs, _ := g.run("s1", "salloc", "--no-kill", "--kill-command", "-N3", "-n3", "sh", "-c", `
touch granted
until [ "$(squeue -h -j $SLURM_JOB_ID -o %D)" = 2 ]; do sleep .1; done
srun -N2 -n2 sh -c 'echo $SLURMD_NODENAME'
touch smaller
exec sleep 600`)
		over <- end{out, errs}
	}()
	is := func(file string) func() bool {
		return func() bool { _, err := os.Stat(g.dir + "/" + file); return err == nil }
	}
	g.wait("the allocation", is("granted"))
	g.at["c3"].kill()
	g.wait("the smaller one", is("smaller"))
	g.at["c1"].kill()
	e := <-over
	expect(t, "its step", sorted(e.out), "c1-001\nc2-001\n")
	for _, want := range []string{
		"salloc: error: Node failure on c3-001\n",
		"salloc: Job allocation 1 has been revoked.\n",
	} {
		if !strings.Contains(e.errs, want) {
			t.Errorf("no %q of\n%s", want, e.errs)
		}
	}
	g.drained("s1")
	expect(t, "history", g.must("s1", "sacct", "-nXPD", "-o", "state,nodelist"),
		"RESIZING|c1-001,c2-001,c3-001\nNODE_FAIL|c1-001,c2-001")
}
