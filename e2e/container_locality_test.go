package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestImageLocality: where nodes are equal a job goes to the one that has its image, and to another at once if that one
// is full.
func TestImageLocality(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	const nodes = 4
	g := newGroup(t)
	for i := range nodes {
		c := fmt.Sprintf("c%d", i+1)
		g.join(c, "s1", "--hollow", "1x2c1g", "--hollow-prefix", c+"-", "--hollow-exec")
	}
	g.wait("all nodes", func() bool {
		return strings.Count(g.must("s1", "sinfo", "-hN", "-t", "idle", "-o", "%N"), "-001") == nodes
	})
	where := func(args ...string) string {
		t.Helper()
		args = append([]string{"-Q", "--container-image=" + h.host + "#lab/tiny:1"}, args...)
		return g.must("s1", "srun", append(args, "sh", "-c", "echo $SLURMD_NODENAME")...)
	}
	idle := func() {
		t.Helper()
		g.wait("idle nodes", func() bool {
			return strings.Count(g.must("s1", "sinfo", "-hN", "-t", "idle", "-o", "%N"), "-001") == nodes
		})
	}
	if got := where("-w", "c3-001"); got != "c3-001" {
		t.Fatal(got)
	}
	idle()
	if got := where(); got != "c3-001" {
		t.Errorf("the second job of the image runs on %s, not where that is", got)
	}
	idle()
	job := g.must("s1", "sbatch", "--parsable", "-o", "/dev/null", "--container-image=docker://"+h.host+"/lab/tiny:1",
		"--exclusive", "--wrap", "sleep 60")
	g.wait("the job to run", func() bool { return g.must("s1", "squeue", "-h", "-j", job, "-o", "%T %N") == "RUNNING c3-001" })
	if got := where(); got == "c3-001" {
		t.Errorf("a job runs on %s, which another has for itself", got)
	}
	g.must("s1", "scancel", job)
}
