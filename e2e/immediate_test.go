package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// TestImmediate: srun and salloc say of --immediate what Slurm says, at once or when its seconds are over.
func TestImmediate(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "1x4c8g", "--hollow-exec")
	d.must("sbatch", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 300")
	d.wait("the node to be busy", func() bool { return d.must("squeue", "-h", "-t", "R", "-o", "%i") != "" })
	held := "Job is in held state, pending scheduler release\n"
	pending := "Pending job allocation N\n"
	queued := "job N queued and waiting for resources\n"
	busy := "error: Unable to allocate resources: Requested nodes are busy\n"
	late := "error: Unable to allocate resources: Connection timed out\n"
	revoked := "Job allocation N has been revoked.\n"
	for line, want := range map[string]string{
		"srun -I true":                      busy,
		"salloc -I true":                    busy + revoked,
		"srun -I1 -H true":                  "error: Unable to allocate resources: Job dependency problem\n",
		"salloc -I1 -H true":                "error: Job submit/allocate failed: Job dependency problem\n" + revoked,
		"salloc -I --begin=now+1hour true":  "error: Job submit/allocate failed: Job dependency problem\n" + revoked,
		"srun -I2 true":                     queued + busy,
		"salloc -I2 true":                   pending + queued + late + revoked,
		"srun -I2 -H true":                  held + queued + busy,
		"salloc -I2 -H true":                held + pending + queued + late + revoked,
		"salloc -I2 -H -Q true":             late,
		"srun -I2 -Q --begin=now+1day true": busy,
	} {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			_, errs, code := d.run(words[0], words[1:]...)
			errs = regexp.MustCompile(`(job|allocation) \d+`).ReplaceAllString(errs, "$1 N")
			if got := strings.ReplaceAll(errs, words[0]+": ", ""); code != 1 || got != want {
				t.Errorf("exit code %d\n%swant\n%s", code, got, want)
			}
		})
	}
	if left := d.must("squeue", "-h", "-t", "PD", "-o", "%i"); left != "" {
		t.Errorf("jobs wait still: %s", left)
	}
}
