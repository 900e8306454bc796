package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestHollowLoad: with --hollow-load the GPUs of hollow nodes do something while a job has them, and some do nothing:
// samples, the list of idle GPUs and the job's usage have data.
func TestHollowLoad(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "4x4c8g8gpu:h100", "--hollow-exec", "--hollow-load",
		"--sample-span", "1s", "--http", freeAddr(t))
	job := d.must("sbatch", "--parsable", "-N3", "--gpus-per-node=8", "-o", "/dev/null", "--wrap", "srun sleep 600")
	ask := func(q string) string { return strings.TrimSpace(d.must("muster", "sql", "--csv", "--noheader", q)) }
	d.wait("GPUs that work and GPUs that do not", func() bool {
		return ask("SELECT count(DISTINCT node || gpu) > 12 FROM job_gpu_samples WHERE util > 50 AND job = "+job) == "1" &&
			ask("SELECT count(*) > 0 FROM job_gpu_samples WHERE util = 0 AND mem_mb > 0 AND job = "+job) == "1"
	})
	expect(t, "GPUs that no job has",
		ask("SELECT DISTINCT util, mem_mb, power_w FROM gpu_samples WHERE node = 'gpu-node-004'"), "0,0,70")
	d.wait("idle GPUs",
		func() bool { return strings.Contains(d.must("muster", "idle", "--for", "1s"), "\n"+job+" ") })
	usage := regexp.MustCompile(`gres/gpumem=[1-9]\d*[KMG]?,gres/gpuutil=[1-9]`)
	d.wait("the job's usage", func() bool {
		out, _, _ := d.run("sstat", "-nP", "-a", "-j", job, "-o", "tresusageinave")
		return usage.MatchString(out)
	})
	d.must("scancel", job)
	d.wait("the job's end", func() bool { return d.must("squeue", "-h") == "" })
	d.wait("GPU lines in seff", func() bool { return strings.Contains(d.must("seff", job), "GPU") })
}
