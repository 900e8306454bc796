package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// docBlock is a block of a page that users type: its kind and its lines.
var docBlock = regexp.MustCompile("(?s)```sh ?([a-z]*)\n(.*?)```")

// distroOf is an image in which make can be installed as in Debian's and Ubuntu's, and which has a python.
func distroOf(t *testing.T) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(imageOf(t), layerOf(t, false, "bin/apt-get=#!/bin/sh\ncase $* in\nupdate) ;;\n"+
		"'install -y make')\n\tprintf '#!/bin/sh\\necho GNU Make for tests\\n' >/bin/make\n\tchmod 755 /bin/make ;;\n"+
		"*) exit 100 ;;\nesac\n", "bin/chmod=->busybox", "bin/printf=->busybox", "bin/python=#!/bin/sh\nexec sh \"$@\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// TestContainerDocs: the commands of docs/containers.md work as they stand, with images of another registry.
func TestContainerDocs(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	if _, err := exec.LookPath("mksquashfs"); err != nil {
		t.Skip("no mksquashfs to save containers with: ", err)
	}
	page, err := os.ReadFile("../docs/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	h := startHub(t)
	h.push(t, distroOf(t), "lab/distro:1")
	d := startDev(t, "--hollow", "1x16c32g8gpu", "--hollow-exec")
	home := d.dir + "/home"
	d.file(1, "home/data/train.py", "echo \"rank $SLURM_PROCID trains\"\n")
	d.file(1, "home/job.sh", "#!/bin/sh\nmake\n")
	d.file(1, "home/bundles/tools/config.json", `{"ociVersion":"1.0.2","root":{"path":"rootfs","readonly":true},
"process":{"args":["false"],"env":["PATH=/bin"],"cwd":"/","user":{"uid":0,"gid":0}}}`)
	names := strings.NewReplacer("ubuntu:24.04", h.host+"#lab/distro:1", "nvcr.io#nvidia/pytorch:24.10-py3",
		h.host+"#lab/distro:1", "/data:/data", home+"/data:/data", "/shared/", home+"/", "$HOME", home,
		"sbatch ", "sbatch --wait --output=slurm.out ")
	made := "srun --container-image=" + h.host + "#lab/distro:1 --container-remap-root --container-writable " +
		"--container-save=tools.sqsh apt-get install -y make"
	for _, line := range []string{made, "mkdir bundles/tools/rootfs", "unsquashfs -q -n -f -d bundles/tools/rootfs tools.sqsh"} {
		if out, errs, code := d.line(1, "cd home; "+line); code != 0 {
			t.Fatalf("%s: %d %s%s", line, code, out, errs)
		}
	}
	outputs := ""
	blocks := docBlock.FindAllStringSubmatch(string(page), -1)
	for _, block := range blocks {
		text := "set -e\n" + names.Replace(block[2])
		d.write("typed", text)
		line := "cd home; sh ../typed"
		if block[1] == "salloc" {
			line = "cd home; salloc -Q -n1 sh ../typed"
		}
		out, errs, code := d.line(1, line)
		if code != 0 {
			t.Errorf("%s\n%d %s%s", text, code, out, errs)
		}
		outputs += out + d.soFar("home/slurm.out")
		_ = os.Remove(home + "/slurm.out")
	}
	for _, want := range []string{"ID=tiny", "rank 7 trains", "GNU Make for tests"} {
		if !strings.Contains(outputs, want) {
			t.Errorf("without %q:\n%s", want, outputs)
		}
	}
	if n := strings.Count(outputs, "GNU Make for tests"); len(blocks) != 4 || n != 3 {
		t.Errorf("%d blocks, make ran %d times:\n%s", len(blocks), n, outputs)
	}
}
