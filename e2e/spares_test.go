package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestSpareStep: a spare takes the place of a node that fails, and srun starts its step again there. The script runs on.
func TestSpareStep(t *testing.T) {
	t.Parallel()
	g := failing(t)
	script := writeProgram(t, g.dir, "job", `#!/bin/bash
#SBATCH -N2 --ntasks-per-node=1 --spare=1 -o `+g.dir+`/out
echo $SLURM_JOB_NODELIST $SLURM_NNODES $SLURM_NTASKS
srun -l sh -c '
	echo $SLURMD_NODENAME of $SLURM_NNODES
	[ $SLURMD_NODENAME != c2-001 ] || exec sleep 1000
	until [ -e again ]; do sleep .1; done'
echo step $?
`)
	id := g.must("s1", "sbatch", "--parsable", script)
	g.wait("the step", func() bool { return strings.Contains(g.soFar("out"), "1: c2-001 of 2\n") })
	if out := g.must("s1", "scontrol", "show", "job", id); !strings.Contains(out,
		"SpareNodes=1 SpareNodeList=c3-001 SpareRestart=step") || !strings.Contains(out, "NumNodes=2 ") {
		t.Errorf("show job: %s", out)
	}
	if s := g.state("c3-001"); s != "mix" {
		t.Errorf("the spare is %s", s)
	}
	g.at["c2"].kill()
	g.at["c2"].killSupervisor()
	g.wait("the step again", func() bool { return strings.Contains(g.soFar("out"), "1: c3-001 of 2\n") })
	if out := g.must("s1", "scontrol", "show", "job", id); !strings.Contains(out,
		"SpareNodes=1 SpareNodeList=(null) SpareRestart=step\n   LostNodes=c2-001 ReplacedBy=c3-001") {
		t.Errorf("show job after the swap: %s", out)
	}
	if out := g.must("s1", "muster", "why", id); !strings.Contains(out, "spare nodes                none left of 1\n") ||
		!strings.Contains(out, "lost nodes                 c2-001, replaced by c3-001") {
		t.Errorf("why: %s", out)
	}
	writeProgram(t, g.dir, "again", "")
	g.drained("s1")
	out := g.read(t, "out")
	for _, want := range []string{
		"c[1-2]-001 2 2\n",
		"srun: error: Node failure on c2-001\n",
		"starts again on c1-001,c3-001: node c2-001 was replaced\n",
		"1: c3-001 of 2\n",
		"step 0\n",
	} {
		if !strings.Contains(strings.ReplaceAll(out, "c1-001,c2-001 2 2", "c[1-2]-001 2 2"), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	expect(t, "history", g.must("s1", "sacct", "-nXPD", "-j", id, "-o", "state,nodelist"),
		"RESIZING|c1-001,c2-001\nCOMPLETED|c1-001,c3-001")
}

// TestSpareFirst: when the first node fails, the job starts again at once on the nodes that it has kept, before a job
// that waits for them.
func TestSpareFirst(t *testing.T) {
	t.Parallel()
	g := failing(t)
	script := writeProgram(t, g.dir, "job", `#!/bin/bash
#SBATCH -N2 --exclusive --ntasks-per-node=1 --spare=1 --open-mode=append -o `+g.dir+`/out
srun -l sh -c 'echo $SLURMD_NODENAME $SLURM_RESTART_COUNT'
echo began
[ "$SLURM_RESTART_COUNT" = 1 ] && exit
exec sleep 1000
`)
	id := g.must("s1", "sbatch", "--parsable", script)
	g.wait("the job", func() bool { return strings.Contains(g.soFar("out"), "began\n") })
	other := g.must("s1", "sbatch", "--parsable", "-N1", "--exclusive", "-o", g.dir+"/other", "--wrap", "date +%s.%N")
	g.at["c1"].kill()
	g.at["c1"].killSupervisor()
	g.drained("s1")
	out := g.read(t, "out")
	if !strings.Contains(out, "0: c2-001 1\n") || !strings.Contains(out, "1: c3-001 1\n") {
		t.Errorf("output: %s", out)
	}
	start := func(id string) string { return g.must("s1", "sacct", "-nXP", "-j", id, "-o", "start") }
	if a, b := start(id), start(other); a > b {
		t.Errorf("the other job began first: %s, %s", b, a)
	}
}

// soFar is what a file has until now; "" if there is none.
func (g *group) soFar(name string) string {
	text, _ := os.ReadFile(g.dir + "/" + name)
	return string(text)
}
