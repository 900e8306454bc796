package e2e

import (
	"strings"
	"syscall"
	"testing"
)

// TestDevEnds: muster dev and its supervisor end together when no job runs. With jobs the supervisor goes on, and dev
// says so; once the jobs have ended, the next end of dev ends it, too.
func TestDevEnds(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x4c4g", "--hollow-exec", "--http", freeAddr(t)) // the usual one is the quick start's
	gone := func(pid int) {
		t.Helper()
		d.wait("the supervisor to end", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	}
	d.must("srun", "true")
	d.wait("the job to end", func() bool { return d.must("squeue", "-h") == "" })
	first := d.supervisor()
	d.stop()
	gone(first)
	if log := d.read("log"); strings.Contains(log, "keep running") {
		t.Errorf("without jobs:\n%s", log)
	}

	d.start()
	d.wait("the node", func() bool { out, _, _ := d.run("sinfo", "-h", "-o", "%T"); return out == "idle\n" })
	job := d.must("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "sleep 600")
	d.wait("the job", func() bool { return d.must("squeue", "-h", "-o", "%t") == "R" })
	second := d.supervisor()
	d.stop()
	if err := syscall.Kill(second, 0); err != nil {
		t.Fatalf("the supervisor of a job that runs: %v", err)
	}
	if log := d.read("log"); !strings.Contains(log, "muster: jobs that keep running: 1; to manage or cancel them, ") {
		t.Errorf("with a job:\n%s", log)
	}

	d.start()
	d.wait("the daemon", func() bool { _, _, code := d.run("squeue"); return code == 0 })
	expect(t, "the job goes on", d.must("squeue", "-h", "-o", "%i %t"), job+" R")
	d.must("scancel", job)
	d.wait("the job's end", func() bool { return d.must("squeue", "-h") == "" })
	d.stop()
	gone(second)
}
