package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSimulatePast: a site's own past is replayed under its leaf switches, told in words and drawn.
func TestSimulatePast(t *testing.T) {
	t.Parallel()
	conf := writeFile(t, "slurm.conf",
		"ClusterName=c\nTopologyPlugin=topology/tree\nPartitionName=main Nodes=ALL Default=YES\n")
	tree := "SwitchName=l1 Nodes=gpu-node-00[1-2]\nSwitchName=l2 Nodes=gpu-node-00[3-4]\nSwitchName=top Switches=l1,l2\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(conf), "topology.conf"), []byte(tree), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, "--conf", conf, "--hollow", "4x8c16g4gpu:h100", "--hollow-exec")
	d.wait("four nodes", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "4" })
	for _, args := range []string{"-N1 --gres=gpu:1 -t5", "-N2 --gres=gpu:4 -t5", "-N4 --gres=gpu:4 -t10"} {
		d.must("sbatch", append(strings.Fields("-o /dev/null "+args), "--wrap", "sleep 1")...)
	}
	d.wait("their ends", func() bool { return d.must("squeue", "-h") == "" })
	d.wait("history of them", func() bool {
		return strings.Count(d.must("sacct", "-X", "-n", "-o", "state"), "COMPLETED") == 3
	})
	text := d.must("muster", "sim", "--quiet", "--from", "accounting", "--compare")
	for _, want := range []string{
		"accounting: 3 jobs, 1 user, 4 nodes.",
		"strict order", "conservative",
		"jobs wait, on average", "jobs on more leaf switches than they need",
		"Beside EASY, with the default:",
		"The picture of it: muster-sim.svg",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	picture, err := os.ReadFile(d.work + "/muster-sim.svg")
	if err != nil || !strings.Contains(string(picture), "GPUs in use") {
		t.Errorf("the picture: %v", err)
	}
}
