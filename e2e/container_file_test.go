package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestContainerFile: an image may be a layout of the OCI, an archive of one, what docker save writes, or a bundle. It
// is unpacked once, and nobody has more of it than the files show.
func TestContainerFile(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	img := imageOf(t)
	at, err := layout.Write(d.dir+"/oci", empty.Index)
	if err == nil {
		err = at.AppendImage(img,
			layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "tiny"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chmod", "-R", "a+rX", d.dir+"/oci").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	if out, err := exec.Command("tar", "-C", d.dir+"/oci", "-cf", d.dir+"/oci.tar", ".").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	ref, err := name.NewTag("lab/tiny:1")
	if err == nil {
		err = tarball.WriteToFile(d.dir+"/saved.tar", ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", d.dir+"/oci", d.dir+"/liar").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	blobs, err := filepath.Glob(d.dir + "/liar/blobs/sha256/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs { // of the layers only the names are left
		if info, err := os.Stat(b); err != nil {
			t.Fatal(err)
		} else if info.Size() > 4096 {
			if err := os.WriteFile(b, []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.file(0, "closed.tar", "x")
	d.file(1, "plain.txt", "no image at all\n")
	if err := os.Chmod(d.dir+"/closed.tar", 0o600); err != nil {
		t.Fatal(err)
	}
	d.file(1, "bundle/config.json", `{"ociVersion":"1.0.2","process":{"args":["false"],"env":["PATH=/bin","COLOUR=bundle"],"cwd":"/deep","user":{"uid":0,"gid":0}},
"root":{"path":"rootfs","readonly":true},"hooks":{"prestart":[]},"mounts":[{"destination":"/proc","type":"proc","source":"proc"},
{"destination":"/data","type":"bind","source":"data","options":["rbind","ro"]},{"destination":"/fast","type":"tmpfs","source":"tmpfs","options":["size=1m","mode=1777"]}]}`)
	d.file(1, "bundle/data/x", "of the bundle\n")
	d.file(1, "bundle/rootfs/deep/here", "")
	text, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	d.file(1, "bundle/rootfs/bin/busybox", string(text))
	if err := os.Chmod(d.dir+"/bundle/rootfs/bin/busybox", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range tools {
		if err := os.Symlink("busybox", d.dir+"/bundle/rootfs/bin/"+n); err != nil {
			t.Fatal(err)
		}
	}
	const second = "cat /etc/second; echo $ONLY; pwd"
	for _, c := range []struct{ what, image, out, errs string }{
		{"a layout", "--container-image=" + d.dir + "/oci", "2\nimage\n/app\n", ""},
		{"a layout, from here", "--container-image=./oci", "2\nimage\n/app\n", ""},
		{"a layout, by tag", "--container-image=oci:" + d.dir + "/oci:tiny", "2\nimage\n/app\n", ""},
		{"an archive", "--container-image=./oci.tar", "2\nimage\n/app\n", ""},
		{"an archive, by scheme", "--container-image=oci-archive:" + d.dir + "/oci.tar", "2\nimage\n/app\n", ""},
		{"of docker save", "--container-image=" + d.dir + "/saved.tar", "2\nimage\n/app\n", ""},
		{"of docker save, by tag", "--container-image=docker-archive:./saved.tar:1", "2\nimage\n/app\n", ""},
		{"with a name", "--container-name=n --container-image=./oci.tar", "2\nimage\n/app\n", ""},
		{"no such tag", "--container-image=oci:./oci:none", "",
			"pyxis: failed to import docker image: " + d.dir + "/oci: it has no image none"},
		{"no such file", "--container-image=oci:./none", "", "no such file"},
		{"closed", "--container-image=docker-archive:./closed.tar", "", "permission denied"},
		{"no image", "--container-image=./plain.txt", "", "it is no archive of an image"},
		{"one that has the names of the layers alone", "--container-image=./liar", "", "is not what its digest"},
	} {
		t.Run(c.what, func(t *testing.T) {
			line := "srun " + c.image + " sh -c '" + second + "'"
			out, errs, code := d.line(1, line)
			if out != c.out || !strings.Contains(errs, c.errs) || (code != 0) != (c.errs != "") {
				t.Errorf("%s\nout %q\nerr %q\ncode %d\nwant %q and %q", line, out, errs, code, c.out, c.errs)
			}
		})
	}
	if out, _, _ := d.run("muster", "image", "ls", "--data", d.dir+"/d"); !strings.Contains(out, "2 images") {
		t.Errorf("the image is in the store by its manifest and by what docker save has of it: %s", out)
	}
	for _, c := range []struct{ what, line, out, errs string }{
		{"a bundle",
			"srun --container=bundle sh -c 'pwd; ls; cat /data/x; echo $COLOUR $SLURM_CONTAINER; id -u; touch /fast/x && echo fast'",
			"/deep\nhere\nof the bundle\nbundle " + d.dir + "/bundle\n1\nfast\n",
			"the hooks of " + d.dir + "/bundle are not run"},
		{"it is read-only", "srun --container=bundle touch /x", "", "Read-only file system"},
		{"its mounts, too", "srun --container=bundle touch /data/y", "", "Read-only file system"},
		{"salloc", "salloc -Q --container=bundle srun pwd", "/deep\n", ""},
		{"no bundle", "srun --container=/none true", "",
			"--container: stat /none/config.json: no such file or directory"},
		{"sbatch", "sbatch -W -o batch.out --container=" + d.dir + "/bundle --wrap pwd >/dev/null; cat batch.out",
			"/deep\n", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			if c.what == "sbatch" {
				d.file(1, "batch.out", "")
			}
			out, errs, _ := d.line(1, c.line)
			if out != c.out || !strings.Contains(errs, c.errs) {
				t.Errorf("%s\nout %q\nerr %q\nwant %q and %q", c.line, out, errs, c.out, c.errs)
			}
		})
	}
}
