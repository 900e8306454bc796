package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// TestMemlock: on a cluster without a slurm.conf, jobs may lock as much memory as the client may, which RDMA needs,
// and not only what the shell may that submits them.
func TestMemlock(t *testing.T) {
	t.Parallel()
	own, err := exec.Command("sh", "-c", "ulimit -l").Output()
	if err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "1x2c4g", "--hollow-exec")
	got := d.shell("ulimit -l 64 && srun sh -c 'ulimit -l'")
	if want := strings.TrimSpace(string(own)); strings.TrimSpace(got) != want || want == "64" {
		t.Errorf("a step may lock %q kB, its client %s", got, want)
	}
}
