package e2e

import (
	"slices"
	"strings"
	"testing"
)

// TestExternalLauncher: the step of --external-launcher has a task on each node, with all CPUs and GPUs that the job has
// there, whatever else is asked for, and other steps have room beside it.
func TestExternalLauncher(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x4c8g2gpu:h100", "--hollow-exec")
	d.write("job.sh", `#!/bin/sh
srun --external-launcher -l --ntasks-per-node=2 -c1 --mem=10 --gres=gpu:1 sh -c 'echo $SLURM_NTASKS $CUDA_VISIBLE_DEVICES; until [ -e over ]; do sleep 0.1; done' &
srun -N2 -n4 --exclusive true && echo beside; touch over; wait
srun --external-launcher -N1 -l hostname
`)
	out, errs, code := d.run("salloc", "-Q", "-N2", "-n4", "--gpus-per-node=2", "sh", "job.sh")
	lines := slices.Sorted(strings.Lines(out))
	got := strings.Join(lines, "")
	if want := "0: 2 0,1\n0: gpu-node-001\n1: 2 0,1\nbeside\n"; code != 0 || got != want {
		t.Errorf("%d %q %q", code, got, errs)
	}
}
