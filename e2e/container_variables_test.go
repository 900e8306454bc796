package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestContainerVariables has a row for each variable of Pyxis: what it stands for is done, and is not without it.
func TestContainerVariables(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	d.write("given", "of the node\n")
	d.file(1, "mine/keep", "k\n")
	const prefix = "PYXIS_CONTAINER_"
	image := prefix + "IMAGE=" + h.host + "#lab/tiny:1"
	rows := []struct {
		set     string // the variable, behind its prefix
		script  string // runs in an allocation; what it prints on standard output counts
		with    string
		without string
	}{
		{"MOUNTS=" + d.dir + "/given:/in", "srun cat /in || echo none", "of the node\n", "none\n"},
		{"WORKDIR=/etc", "srun pwd", "/etc\n", "/app\n"},
		{"ENV=COLOUR", "COLOUR=job srun sh -c 'echo $COLOUR'", "job\n", "image\n"},
		{"MOUNT_HOME=1", "srun ls -d /usr/sbin/adduser || echo none", "/usr/sbin/adduser\n", "none\n"},
		{"ENTRYPOINT=1", "srun echo x", "entered\nx\n", "x\n"},
		{"WRITABLE=1", "srun touch /new && echo made || echo none", "made\n", "none\n"},
		{"REMAP_ROOT=1", "srun id -u", "0\n", "1\n"},
		{"NAME=box", "srun id >/dev/null; unset " + prefix + "IMAGE; srun cat /etc/second || echo none", "2\n", "none\n"},
		{"SAVE=" + d.dir + "/mine/saved", "srun id >/dev/null; rm mine/saved && echo saved || echo none",
			"saved\n", "none\n"},
		{"UNSHARE=net", "srun sh -c 'grep -c : /proc/net/dev' | grep -x 1 || echo more", "1\n", "more\n"},
	}
	tried := []string{"IMAGE", "READONLY"}  // in all rows, and by TestContainerSite
	tried = append(tried, "ENTRYPOINT_LOG") // what an entry point prints is always shown
	for _, c := range rows {
		name, _, _ := strings.Cut(c.set, "=")
		tried = append(tried, name)
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("mksquashfs"); err != nil && name == "SAVE" {
				t.Skip("no mksquashfs to save containers with: ", err)
			}
			for set, want := range map[string]string{"export " + prefix + c.set: c.with, "": c.without} {
				d.file(1, "mine/script", "export "+image+"\n"+set+"\n"+c.script+"\n")
				out, errs, _ := d.line(1, "salloc -Q sh mine/script")
				if out != want {
					t.Errorf("%q: %q, want %q; errors %q", set, out, want, errs)
				}
			}
		})
	}
	page, err := os.ReadFile("../docs/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	told := regexp.MustCompile("`"+prefix+"([A-Z_]+)`").FindAllStringSubmatch(string(page), -1)
	if len(told) == 0 {
		t.Error("docs/containers.md tells of no variable")
	}
	for _, m := range told {
		if !slices.Contains(tried, m[1]) {
			t.Errorf("%s%s of docs/containers.md is not tried", prefix, m[1])
		}
	}
}

// TestContainerBatchVariable: a batch script runs in the image that a variable of Pyxis names.
func TestContainerBatchVariable(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "1x8c16g", "--hollow-exec")
	d.file(1, "mine/job", "#!/bin/sh\ncat /etc/os-release\n")
	line := "cd mine && PYXIS_CONTAINER_IMAGE=" + h.host + "#lab/tiny:1 sbatch -W -o out job"
	if _, errs, code := d.line(1, line); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
	expect(t, "output", d.read("mine/out"), "ID=tiny\n")
}
