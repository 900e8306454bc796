package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestContainerTraining: a whole training script runs in an image on four nodes: a launcher a node, a rank a GPU, its
// data and checkpoints mounted. The image has no Python: the machine's is mounted, too.
func TestContainerTraining(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("the ranks are Python programs: ", err)
	}
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "4x4c8g2gpu", "--hollow-exec")
	d.file(1, "ckpt/none", "")
	for name, to := range map[string]string{
		"../examples/container.sbatch": "train.sbatch", "testdata/train/train.py": "data/train.py",
		"testdata/train/torchrun": "bin/torchrun",
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d.file(1, to, string(text))
	}
	sum := 0
	var numbers strings.Builder
	for n := range 1000 {
		sum += n
		fmt.Fprintln(&numbers, n)
	}
	d.file(1, "data/numbers", numbers.String())
	host, port, _ := strings.Cut(freeAddr(t), ":")
	mounts := "," + d.dir + "/bin/torchrun:/bin/torchrun:ro,/usr:/usr:ro,/lib:/lib:ro,/lib64:/lib64:ro"
	set := fmt.Sprintf("IMAGE='%s#lab/tiny:1' DATA=%s/data CKPT=%[2]s/ckpt MOUNTS=%s MASTER_ADDR=%s MASTER_PORT=%s",
		h.host, d.dir, mounts, host, port)
	out, errs, code := d.line(1, "cd ckpt; export "+set+"; "+"sbatch --parsable --wait --output=train.out ../train.sbatch")
	if code != 0 {
		t.Fatalf("%d %s%s\n%s", code, out, errs, d.soFar("ckpt/train.out"))
	}
	log := d.read("ckpt/train.out")
	total := 0
	for range 3 {
		total = sum + total/8*8
	}
	for rank := range 8 {
		want := fmt.Sprintf("rank %d of 8, GPU %d, image 2: %d\n", rank, rank%2, total)
		if !strings.Contains(log, want) {
			t.Errorf("without %q:\n%s", want, log)
		}
	}
	if kept, err := os.ReadFile(filepath.Join(d.dir, "ckpt/last")); err != nil || string(kept) != fmt.Sprintln(total) {
		t.Errorf("the checkpoint: %q, %v", kept, err)
	}
}
