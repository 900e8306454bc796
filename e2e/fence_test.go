package e2e

import (
	"os"
	"strings"
	"testing"
)

// eats is a process with more than 100 MB.
const eats = `x=$(head -c 100000000 /dev/zero | tr "\0" a); echo ${#x}`

// TestFence: whichever way a process is started, it is in its job's cgroup; what needs more memory than the job has is killed,
// and all commands say so.
func TestFence(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("limits on memory need root")
	}
	d := startDev(t)
	node := ""
	d.wait("a node", func() bool {
		node, _, _ = strings.Cut(d.must("sinfo", "-h", "-N", "-o", "%N"), "\n")
		return node != ""
	})
	if !strings.Contains(d.must("muster", "why", node), "memory") {
		t.Skip("this machine has no memory controller for us")
	}
	const where = `grep -h "memory\|^0::" /proc/self/cgroup`
	ways := map[string]func() string{
		"sbatch": func() string {
			d.must("sbatch", "-W", "--mem=100", "-o", d.dir+"/out", "--wrap", where)
			return d.read("out")
		},
		"srun": func() string { return d.must("srun", "--mem=100", "sh", "-c", where) },
		"a step of a batch job": func() string {
			d.must("sbatch", "-W", "--mem=100", "-o", d.dir+"/out2", "--wrap", "srun sh -c '"+where+"'")
			return d.read("out2")
		},
		"a step that overlaps": func() string {
			return d.must("salloc", "-Q", "--mem=100", "srun", "--overlap", "sh", "-c", where)
		},
		"a terminal": func() string { return d.must("srun", "--pty", "--mem=100", "sh", "-c", where) },
	}
	for name, run := range ways {
		if out := run(); strings.Count(out, "/job_") != strings.Count(strings.TrimSpace(out), "\n")+1 {
			t.Errorf("%s: a process outside the job's cgroup:\n%s", name, out)
		}
	}

	_, errs, code := d.run("srun", "--mem=50", "sh", "-c", eats)
	if code != 1 || !strings.Contains(errs, "task 0: Out Of Memory") || !strings.Contains(errs, "oom-kill event(s) in StepId=") {
		t.Errorf("srun ends with %d: %s", code, errs)
	}
	id := d.must("sbatch", "--parsable", "--mem=50", "-o", d.dir+"/out3", "--wrap", "(sleep 0; "+eats+"); echo last")
	d.wait("the job to end", func() bool {
		return d.must("squeue", "-h", "-j", id) == "" || strings.Contains(d.must("sacct", "-nXP", "-j", id, "-o", "End"), "-")
	})
	expect(t, "its end", d.must("sacct", "-nP", "-j", id, "-o", "JobID,State,ExitCode"), id+"|OUT_OF_MEMORY|0:125\n"+id+".batch|OUT_OF_MEMORY|0:125")
	if out := d.read("out3"); !strings.Contains(out, "StepId="+id+".batch. Some of your processes may have been killed by the cgroup out-of-memory handler.") {
		t.Errorf("its output:\n%s", out)
	}
}
