package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dev.muster/slurm"
)

// TestJobVariables: a job finds each variable that the manuals of sbatch and srun tell of.
func TestJobVariables(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--hollow", "2x8c16g4gpu:h100", "--hollow-exec")
	d.must("sbatch", "-W", "-N2", "-n4", "-c2", "--gpus-per-node=2", "--mem=100", "-t", "10", "-a", "3", "-J", "vars",
		"-o", d.dir+"/vars", "--wrap", "env; srun env")
	text, err := os.ReadFile(filepath.Join(d.dir, "vars"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range slurm.JobVariables() {
		for name := range strings.SplitSeq(row.Word, ", ") {
			if !strings.Contains("\n"+string(text), "\n"+name+"=") {
				t.Errorf("no %s in\n%s", name, text)
			}
		}
	}
}
