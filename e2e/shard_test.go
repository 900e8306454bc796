package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestShards: jobs share a GPU by parts, see it and nothing else, and books say what they had.
func TestShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slurm.conf": "GresTypes=gpu,shard\nPartitionName=main Nodes=ALL Default=YES\n",
		"gres.conf":  "Name=shard Count=8\n",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := startDev(t, "--hollow", "1x8c16g2gpu:l40s", "--hollow-exec", "--conf", dir+"/slurm.conf")
	d.wait("the node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	const see = "echo $CUDA_VISIBLE_DEVICES $SLURM_SHARDS_ON_NODE; "
	wait := "until [ -e go ]; do sleep .05; done"
	one := d.must("sbatch", "--parsable", "--gres=shard:2", "-o", "one", "--wrap", see+"srun sh -c '"+see+"'; "+wait)
	two := d.must("sbatch", "--parsable", "--gres=shard:2", "-o", "two", "--wrap", see+wait)
	d.must("sbatch", "--gres=gpu:1", "-o", "three", "--wrap", see+wait)
	four := d.must("sbatch", "--parsable", "--gres=gpu:1", "-o", "/dev/null", "--wrap", "true")
	d.wait("three jobs to say what they see", func() bool {
		return strings.Count(d.soFar("one"), "\n") == 2 && d.soFar("two") != "" && d.soFar("three") != ""
	})
	expect(t, "what they see", d.read("one")+d.read("two")+d.read("three"), "0 2\n0 2\n0 2\n1\n")
	d.wait("the fourth to wait",
		func() bool { return d.must("squeue", "-h", "-j", four, "-o", "%t %r") == "PD Resources" })
	if _, errs, code := d.run("sbatch", "--gres=shard:5", "--wrap", "true"); code == 0 || !strings.Contains(errs, "Invalid generic resource") {
		t.Errorf("more than a GPU has: %d %s", code, errs)
	}
	if err := os.WriteFile(d.dir+"/go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d.wait("all to end", func() bool { return d.must("squeue", "-h") == "" })
	expect(t, "how they ended", d.must("sacct", "-nXP", "-o", "State", "-j", one+","+two+","+four),
		"COMPLETED\nCOMPLETED\nCOMPLETED")
}

// TestMPSShares: a job with MPS shares sees its GPU, and its programs get the percentage of threads that the shares are.
func TestMPSShares(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slurm.conf": "GresTypes=gpu,mps\nPartitionName=main Nodes=ALL Default=YES\n",
		"gres.conf":  "Name=mps Count=400\n",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := startDev(t, "--hollow", "1x8c16g2gpu:l40s", "--hollow-exec", "--conf", dir+"/slurm.conf")
	d.wait("the node", func() bool { return d.must("sinfo", "-h", "-t", "idle", "-o", "%D") == "1" })
	const see = "echo $CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	d.must("sbatch", "-W", "--gres=mps:50", "-o", "batch", "--wrap", see+"; srun sh -c '"+see+"'")
	expect(t, "what a script and its step see", d.read("batch"), "0 25\n0 25\n")
	expect(t, "what srun sees", d.must("srun", "--gres=mps:200", "sh", "-c", see), "0 100")
}
