package e2e

import (
	"os"
	"strings"
	"testing"
)

// startSite starts muster dev with files of enroot, and with others beside slurm.conf.
func startSite(t *testing.T, files map[string]string) *dev {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := newDev(t, dir, "dev", []string{"--hollow", "1x8c16g", "--hollow-exec", "--conf", dir + "/conf/slurm.conf"})
	d.inside = []string{"env", "ENROOT_SYSCONF_PATH=" + dir + "/enroot"}
	t.Cleanup(d.cleanup)
	for name, text := range files {
		d.file(0, name, strings.ReplaceAll(text, "DIR", dir))
		if strings.HasPrefix(text, "#!") {
			if err := os.Chmod(dir+"/"+name, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.start()
	d.wait("idle nodes", func() bool {
		out, _, code := d.run("sinfo", "-h", "-N", "-t", "idle")
		return code == 0 && out != ""
	})
	return d
}

// TestContainerSite: what plugstack.conf says of Pyxis and what a node has of enroot's files holds, and what does not is
// told.
func TestContainerSite(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startSite(t, map[string]string{
		"conf/slurm.conf":         "ClusterName=c\nPartitionName=p Nodes=ALL Default=YES\n",
		"conf/plugstack.conf":     "include DIR/conf/stack.d/*.conf\n",
		"conf/stack.d/pyxis.conf": "required /usr/lib/slurm/spank_pyxis.so execute_entrypoint=1 sbatch_support=0\noptional auks.so\n",
		"enroot/enroot.conf": "ENROOT_MOUNT_HOME y\nENROOT_ROOTFS_WRITABLE yes\n" +
			"ENROOT_DATA_PATH DIR/raid/$(id -u)\nENROOT_CACHE_PATH /x\n",
		"enroot/environ.d/50.env": "SITE=lab\nCOLOUR=site\nWHERE=${SLURM_JOB_PARTITION}/x\n",
		"enroot/mounts.d/50.fstab": "DIR/given /app/given none x-create=file,bind,ro\n" +
			"DIR/none /none none nofail\ntmpfs /scratch tmpfs mode=1777,size=1m\n",
		"enroot/hooks.d/98-nvidia.sh": "#!/bin/sh\nexit 1\n",
		"enroot/hooks.d/50-ours.sh": "#!/bin/sh -e\necho HOOKED=$ONLY.$(id -u) >>$ENROOT_ENVIRON\n" +
			"sed -i '/^GOES=/d; s/^SITE=.*/SITE=hook/' $ENROOT_ENVIRON\n" +
			"echo 'DIR/given /app/hooked none x-create=file' >>$ENROOT_MOUNTS\n" +
			"echo written >$ENROOT_ROOTFS/by-hook\ntest -e /proc/$ENROOT_PID\n",
		"given": "of the site\n",
	})
	tiny := "--container-image=" + h.host + "#lab/tiny:1 "
	for _, c := range []struct{ what, line, out, errs string }{
		{"variables", "srun --no-container-entrypoint " + tiny + "sh -c 'echo $SITE $COLOUR $WHERE'",
			"hook site p/x\n", ""},
		{"the job's wins where asked",
			"COLOUR=job srun --no-container-entrypoint --container-env=COLOUR " + tiny + "sh -c 'echo $COLOUR'",
			"job\n", ""},
		{
			"mounts",
			"srun --no-container-entrypoint " + tiny + "sh -c 'cat /app/given; grep -c \" /scratch tmpfs\" /proc/mounts; ls /none'",
			"of the site\n1\n", "/none: No such file",
		},
		{"a mount is read-only", "srun --no-container-entrypoint " + tiny + "sh -c 'echo x >/app/given'", "",
			"Read-only file system"},
		{
			"hooks",
			"GOES=x srun --no-container-entrypoint " + tiny + "sh -c 'echo $HOOKED $GOES; cat /app/hooked /by-hook'",
			"image.1\nof the site\nwritten\n", "",
		},
		{"execute_entrypoint", "srun " + tiny + "echo x", "entered\nx\n", ""},
		{"not where refused by a variable", "PYXIS_CONTAINER_ENTRYPOINT=0 srun " + tiny + "echo x", "x\n", ""},
		{"ENROOT_MOUNT_HOME", "srun --no-container-entrypoint " + tiny + "ls -d /usr/sbin/adduser",
			"/usr/sbin/adduser\n", ""},
		{"refused", "srun --no-container-mount-home --no-container-entrypoint " + tiny + "ls -d /usr/sbin/adduser",
			"", "No such file"},
		{"ENROOT_ROOTFS_WRITABLE", "srun --no-container-entrypoint " + tiny + "touch /new", "", ""},
		{"read-only", "srun --container-readonly --no-container-entrypoint " + tiny + "touch /new", "",
			"Read-only file system"},
		{"read-only by a variable", "PYXIS_CONTAINER_READONLY=1 srun --no-container-entrypoint " + tiny + "touch /new",
			"", "Read-only file system"},
		{"sbatch_support", "sbatch " + tiny + "--wrap true", "", "batch scripts run in no container here"},
	} {
		t.Run(c.what, func(t *testing.T) {
			out, errs, code := d.line(1, c.line)
			if out != c.out || !strings.Contains(errs, c.errs) || (code != 0) != (c.errs != "") {
				t.Errorf("%s\nout %q\nerr %q\ncode %d\nwant %q and %q", c.line, out, errs, code, c.out, c.errs)
			}
		})
	}
	if _, err := os.Stat(d.dir + "/raid/muster/images"); err != nil {
		t.Errorf("ENROOT_DATA_PATH: %v", err)
	}
	if left, _ := os.ReadDir(d.dir + "/raid/muster/mnt"); len(left) > 0 {
		t.Errorf("mounts are left: %v", left)
	}
	out, errs, code := d.line(0, "ENROOT_SYSCONF_PATH="+d.dir+"/enroot muster config check conf")
	for _, want := range []string{"hooks.d/98-nvidia.sh is left out: the driver's files",
		"ENROOT_CACHE_PATH has no effect: layers",
		"SPANK plugin auks.so cannot be loaded; for Kerberos tickets"} {
		if !strings.Contains(out, want) || code != 0 {
			t.Errorf("%q %q %d lacks %q", out, errs, code, want)
		}
	}
	for file, c := range map[string][2]string{
		"enroot/hooks.d/60-bad.sh": {"#!/bin/sh\necho no good >&2\nexit 3\n",
			"couldn't start container: the hook " + d.dir + "/enroot/hooks.d/60-bad.sh: no good"},
		"enroot/hooks.d/61-root.sh": {"#!/bin/sh\necho / /all none >>$ENROOT_MOUNTS\n",
			"ENROOT_MOUNTS:2: / has the store of images below it"},
		"enroot/mounts.d/bad.fstab": {"h:/x /x nfs\n", "file systems of type nfs are not mounted in a container"},
	} {
		d.file(0, file, c[0])
		if err := os.Chmod(d.dir+"/"+file, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := d.line(1, "srun "+tiny+"true"); code != 1 || !strings.Contains(errs, c[1]) {
			t.Errorf("%s: %d %s", file, code, errs)
		}
		if err := os.Remove(d.dir + "/" + file); err != nil {
			t.Fatal(err)
		}
	}
	d.file(0, "conf/muster.conf", "ContainerWritable=no\n")
	if _, errs, code := d.line(0, "scontrol reconfigure"); code != 0 {
		t.Fatal(errs)
	}
	for line, want := range map[string]string{
		"srun --no-container-entrypoint " + tiny + "touch /new":                      "Read-only file system",
		"srun --no-container-entrypoint --container-writable " + tiny + "touch /new": "read-only here (ContainerWritable=no",
	} {
		if _, errs, code := d.line(1, line); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", line, code, errs)
		}
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		for _, e := range left {
			if strings.HasPrefix(e.Name(), "muster-hooks-") {
				t.Errorf("%s is left", e.Name())
			}
		}
	}
}
