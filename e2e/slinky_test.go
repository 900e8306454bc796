package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSlinky: the client library of the Slinky operators watches, submits, changes, cancels and drains by v0.0.44, and
// lists everything by the two versions before. It is a module of its own, since nothing of it is for muster.
func TestSlinky(t *testing.T) {
	if !*readREST {
		t.Skip("needs -restclient, and the module proxy the first time")
	}
	addr := freeAddr(t)
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, []byte("ClusterName=c\nPriorityType=priority/multifactor\n"+
		"PartitionName=main Nodes=ALL Default=YES\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--hollow", "2x16c16g2gpu:h100", "--hollow-exec", "--http", addr, "--conf", conf)
	d.must("sbatch", "-H", "--wrap", "true")
	cmd := exec.Command("go", "run", ".", "http://"+addr, "gpu-node-002")
	cmd.Dir = "testdata/slinky"
	cmd.Env = append(os.Environ(), "SLURM_JWT="+tokenOf(t, d, 0))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
