package e2e

import (
	"strings"
	"testing"
)

// TestResize has a job of two clients' nodes give three of four back: what runs there is killed, others start
// there, steps on what it keeps go on, and history has a record for each size.
func TestResize(t *testing.T) {
	g := fullGroup(t, 2)
	id := g.must("s1", "sbatch", "--parsable", "-N4", "--exclusive", "-o", "resize.out", "--wrap", `
srun -J all -N4 -n4 --overlap -K0 sleep 600 &
srun -J gone -N1 -n1 -w c2-002 --overlap sleep 600 &
srun -J kept -N1 -n1 -w c1-001 --overlap sleep 600 &
until [ $(squeue -h -j $SLURM_JOB_ID -o %D) = 1 ]; do sleep .1; done
srun -J new -N1 -n1 --overlap sh -c 'echo on $SLURM_NODEID of $SLURM_NNODES'
sleep 600`)
	steps := func() string { return g.must("s1", "squeue", "-h", "-s", "-j", id, "-S", "j", "-o", "%j %N") }
	g.wait("its steps", func() bool { return strings.Count(steps(), " sleep") == 0 && strings.Count(steps(), "\n") >= 3 })
	g.must("s1", "scontrol", "update", "jobid="+id, "numnodes=1")
	g.wait("the step of the smaller job", func() bool { return strings.Contains(g.read(t, "resize.out"), "on 0 of 1\n") })
	if out := g.must("s2", "srun", "-N3", "--exclusive", "-x", "c1-001", "-l", "hostname"); strings.Count(out, "\n") != 2 {
		t.Errorf("the next job on what was given back: %q", out)
	}
	g.wait("the end of what ran there", func() bool {
		return strings.Count(g.read(t, "resize.out"), ": Killed") >= 2 && !strings.Contains(steps(), "gone")
	})
	if out := steps(); !strings.Contains(out, "kept c1-001") || !strings.Contains(out, "all c1-") {
		t.Errorf("steps that go on: %q", out)
	}
	expect(t, "the job", g.must("s3", "squeue", "-h", "-j", id, "-o", "%t %D %N"), "R 1 c1-001")
	g.must("s1", "scancel", id)
	g.wait("its end", func() bool { return g.must("s1", "squeue", "-h") == "" })
	expect(t, "its history", g.must("s2", "sacct", "-nXP", "-j", id, "-o", "state,nodelist,nnodes"), "RESIZING|c1-[001-002],c2-[001-002]|4\nCANCELLED by 0|c1-001|1")
	out := g.must("s2", "sacct", "-nP", "-j", id, "-o", "jobid,jobname,state")
	if strings.Count(out, ".batch|") != 1 || !strings.Contains(out, "|new|COMPLETED") {
		t.Errorf("history of its steps:\n%s", out)
	}
}
