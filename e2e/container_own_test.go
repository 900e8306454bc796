package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestContainerOwn: variables, mounts and hooks of enroot that users have themselves hold for their containers, with
// their rights on files and after the site's; what is wrong with them is told.
func TestContainerOwn(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startSite(t, map[string]string{
		"conf/slurm.conf":         "ClusterName=c\nPartitionName=p Nodes=ALL Default=YES\n",
		"enroot/environ.d/50.env": "SITE=lab\nWHOSE=site\n",
		"given":                   "mine\n",
	})
	own := func(name, text string, mode os.FileMode) {
		t.Helper()
		d.file(1, name, text)
		if err := os.Chmod(d.dir+"/"+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	own("home/.config/enroot/environ.d/a.env", "WHOSE=${SLURM_JOB_USER}\n", 0o600)
	own("home/.config/enroot/mounts.d/a.fstab", d.dir+"/given /app/given none x-create=file,ro\n", 0o600)
	own("home/.config/enroot/hooks.d/10-localtime.sh", "#!/bin/sh\nexit 1\n", 0o700)
	own("home/.config/enroot/hooks.d/a.sh", "#!/bin/sh\necho HOOK=$(id -u) >>$ENROOT_ENVIRON\n", 0o700)
	own("home/.config/enroot/hooks.d/b.sh", "#!/bin/sh\nexit 1\n", 0o600)
	own("else/environ.d/a.env", "WHOSE=else\n", 0o600)
	tiny := " srun --container-image=" + h.host + "#lab/tiny:1 "
	home := "HOME=" + d.dir + "/home"
	try := func(line, out, errs string) {
		t.Helper()
		got, said, code := d.line(1, line)
		if got != out || !strings.Contains(said, errs) || code != 0 && errs == "" {
			t.Errorf("%s: %d %q %q, want %q %q", line, code, got, said, out, errs)
		}
	}
	try(home+tiny+"sh -c 'echo $SITE $WHOSE $HOOK; cat /app/given'", "lab daemon 1\nmine\n", "")
	try(home+" ENROOT_CONFIG_PATH="+d.dir+"/else"+tiny+"sh -c 'echo $SITE $WHOSE $HOOK'", "lab else\n", "")
	try("HOME=/none"+tiny+"sh -c 'echo $SITE $WHOSE'", "lab site\n", "")

	own("bad/mounts.d/a.fstab", d.dir+"/secret /app/secret none x-create=file\n", 0o600)
	d.file(0, "secret", "of root\n")
	if err := os.Chmod(d.dir+"/secret", 0o600); err != nil {
		t.Fatal(err)
	}
	bad := "ENROOT_CONFIG_PATH=" + d.dir + "/bad"
	try(bad+tiny+"cat /app/secret", "", "bad/mounts.d/a.fstab:1: read "+d.dir+"/secret: permission denied")
	own("bad/mounts.d/a.fstab", "x\n", 0o600)
	try(bad+tiny+"true", "", "bad/mounts.d/a.fstab:1: \"x\" is not SOURCE TARGET TYPE OPTIONS")
	for name, link := range map[string]string{"proc": "/proc/self/fd/3", "root": d.dir + "/secret"} {
		file := d.dir + "/bad/mounts.d/a.fstab"
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(link, file); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := d.line(1, bad+tiny+"true"); code == 0 || strings.Contains(errs, "SOURCE TARGET") {
			t.Errorf("a link to %s: %q %q", name, out, errs)
		}
	}
	if err := os.Remove(d.dir + "/bad/mounts.d/a.fstab"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(d.dir+"/bad/mounts.d/a.fstab", 0o666); err != nil {
		t.Fatal(err)
	}
	try(bad+tiny+"true", "", "is no small file")
}
