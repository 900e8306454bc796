package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCast: sbcast puts a file on each node of a job as the job's user, while its steps have all CPUs; the books
// know nothing of that, and a node that cannot take it leaves the others as they were. sgather fetches what the
// nodes have. srun --bcast runs a program from where it has put it.
func TestCast(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("folders of a job's own need root")
	}
	dir, err := os.MkdirTemp("/var/tmp", "m")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "slurm.conf")
	rewrite(t, conf, "ClusterName=c", "JobContainerType=job_container/tmpfs")
	rewrite(t, filepath.Join(dir, "job_container.conf"), "AutoBasePath=true", "BasePath="+dir+"/jobs", "Dirs=/mnt")
	d := startDevAt(t, dir, "--hollow", "3x2c4g", "--hollow-exec", "--conf", conf)
	d.write("job.sh", "#!/bin/sh\nsrun sleep 600 & echo ready >"+dir+"/ready; wait\n")
	if err := os.Mkdir(dir+"/u", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir+"/u", daemonUID, daemonUID); err != nil {
		t.Fatal(err)
	}
	d.work = dir + "/u"
	job := d.submitAs(daemonUID, "-N3", "-n6", "-o", "/dev/null", dir+"/job.sh")
	d.wait("the job's step",
		func() bool { return strings.Contains(d.must("squeue", "-h", "-s", "-o", "%i"), job+".0") })
	source := strings.Repeat("a line of a file of some length\n", 100_000)
	d.write("u/src", source)
	if err := os.Chmod(dir+"/u/src", 0o754); err != nil {
		t.Fatal(err)
	}
	on := func(line string) string {
		t.Helper()
		out, errs, code := d.as(daemonUID, "srun", "--jobid", job, "--overlap", "-N3", "-n3", "-l", "sh", "-c", line)
		if code != 0 {
			t.Errorf("%s: %s", line, errs)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		slices.Sort(lines)
		for i := range lines {
			_, lines[i], _ = strings.Cut(lines[i], ": ")
		}
		return strings.Join(lines, "|")
	}
	cast := func(wantErr string, wantCode int, name string, args ...string) {
		t.Helper()
		out, errs, code := d.as(daemonUID, name, append([]string{"-j", job}, args...)...)
		if out != "" || errs != wantErr || code != wantCode {
			t.Errorf("%s %q: %q %q %d", name, args, out, errs, code)
		}
	}
	cast("", 0, "sbcast", "src", "/mnt/a")
	expect(t, "the file", on("stat -c '%a %u %s' /mnt/a; cmp "+dir+"/u/src /mnt/a"),
		"754 1 3200000|754 1 3200000|754 1 3200000")
	on("[ $SLURM_NODEID = 1 ] && touch /mnt/b; :")
	cast("sbcast: error: REQUEST_FILE_BCAST(node-002): File exists\n", 17, "sbcast", "src", "/mnt/b")
	on("[ $SLURM_NODEID = 2 ] && mkdir /mnt/d; :")
	cast("sbcast: error: REQUEST_FILE_BCAST(node-001): No such file or directory\n"+
		"sbcast: error: REQUEST_FILE_BCAST(node-002): No such file or directory\n", 2, "sbcast", "src", "/mnt/d/f")
	expect(t, "after failures", on("echo $(ls -A /mnt)"), "a|a b|a d")
	cast("", 0, "sbcast", "-fp", "src", "/mnt/b")
	cast("", 0, "sgather", "-k", "/mnt/b", "got")
	expect(t, "gathered", d.read("u/got.node-003"), source)
	cast("sgather: error: REQUEST_FILE_BCAST(node-001): File exists\n"+
		"sgather: error: REQUEST_FILE_BCAST(node-002): File exists\n"+
		"sgather: error: REQUEST_FILE_BCAST(node-003): File exists\n", 17, "sgather", "/mnt/b", "got")
	cast("", 0, "sgather", "-f", "/mnt/b", "got")
	expect(t, "after sgather", on("echo $(ls -A /mnt)"), "a|a|a d")
	d.write("u/prog", "#!/bin/sh\necho $0 $*\n")
	if err := os.Chmod(dir+"/u/prog", 0o755); err != nil {
		t.Fatal(err)
	}
	out, errs, code := d.as(daemonUID, "srun", "--jobid", job, "--overlap", "-N3", "-n3", "--bcast=/mnt/",
		"./prog", "x")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	for i, n := range []string{"node-001", "node-002", "node-003"} {
		if !slices.ContainsFunc(lines, func(l string) bool {
			return strings.HasPrefix(l, "/mnt/slurm_bcast_"+job+".") && strings.HasSuffix(l, "_"+n+" x")
		}) {
			t.Errorf("task %d: %q %s %d", i, lines, errs, code)
		}
	}
	if out, errs, code := d.as(daemonUID, "srun", "--jobid", job, "--overlap", "-N3", "-n3", "--bcast=/mnt/d/f", "./prog"); out != "" || code != 1 || errs !=
		"srun: error: REQUEST_FILE_BCAST(node-001): No such file or directory\n"+
			"srun: error: REQUEST_FILE_BCAST(node-002): No such file or directory\n"+
			"srun: fatal: Failed to broadcast '"+dir+"/u/./prog'. Step launch aborted.\n" {
		t.Errorf("a program that cannot be put everywhere: %q %q %d", out, errs, code)
	}
	d.wait("the end of the step without a program", func() bool {
		return d.must("squeue", "-h", "-s", "-o", "%i") == job+".0\n"+job+".batch"
	})
	if _, errs, code := d.as(binUID, "sbcast", "-j", job, "/etc/passwd", "/mnt/c"); code != 255 ||
		errs != "sbcast: error: Slurm job "+job+" lookup error: Invalid user id\n" {
		t.Errorf("another user: %q %d", errs, code)
	}
	d.must("scancel", job)
	if out := d.must("sacct", "-nP", "-j", job, "-o", "jobid"); strings.Contains(out, "10737") {
		t.Errorf("the books: %q", out)
	}
}

// TestBcastComponents: each component of a step gets its own program, and all begin together; where one program does
// not arrive no task runs. With --multi-prog it is the file of programs that is sent.
func TestBcastComponents(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	for _, name := range []string{"one", "two"} {
		d.write(name, "#!/bin/sh\necho "+name+" $0 $* $SLURM_PROCID >>"+d.dir+"/ran; echo "+name+" $0 $* $SLURM_PROCID\n")
		if err := os.Chmod(d.dir+"/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.write("programs", "0 ./one a%t\n* ./two b%o\n")
	for _, c := range []struct {
		args, out, errs string
		code            int
	}{
		{"-N2 --bcast=DIR/x ./one x : -N1 --bcast=DIR/y ./two y",
			"one DIR/x x 0\none DIR/x x 1\ntwo DIR/y y 2\n", "", 0},
		{"-N1 --bcast=DIR/v ./one x : -N1 ./two y", "one DIR/v x 0\ntwo DIR/./two y 1\n", "", 0},
		{"-w gpu-node-001 ./one x : -w gpu-node-002 --bcast=DIR/none/y ./two y", "",
			"srun: error: REQUEST_FILE_BCAST(gpu-node-002): No such file or directory\n" +
				"srun: fatal: Failed to broadcast 'DIR/./two'. Step launch aborted.\n", 1},
		{"-N1 ./one : -N1 --bcast=DIR/z ./nothere", "", "srun: fatal: Can not execute ./nothere\n", 1},
		{"-N2 -n3 --bcast=DIR/list --multi-prog programs",
			"one DIR/./one a0 0\ntwo DIR/./two b0 1\ntwo DIR/./two b1 2\n", "", 0},
		{"-N1 --bcast=DIR/list2 --send-libs --multi-prog programs", "one DIR/./one a0 0\n",
			"srun: error: Cannot autodetect libraries for 'programs' with ldd command; " +
				"still sending the file but ignoring send_libs\n", 0},
		{"-w gpu-node-001 --bcast=DIR/none/x --multi-prog programs", "",
			"srun: error: REQUEST_FILE_BCAST(gpu-node-001): No such file or directory\n" +
				"srun: fatal: Failed to broadcast 'programs'. Step launch aborted.\n", 1},
	} {
		in := strings.NewReplacer("DIR", d.dir)
		_ = os.Remove(d.dir + "/ran")
		out, errs, code := d.run("srun", strings.Fields(in.Replace(c.args))...)
		if sorted(out) != in.Replace(c.out) || errs != in.Replace(c.errs) || code != c.code {
			t.Errorf("srun %s: %d %q %q, want %d %q %q", c.args, code, out, errs, c.code, c.out, c.errs)
		}
		if ran := d.soFar("ran"); sorted(ran) != in.Replace(c.out) {
			t.Errorf("srun %s: ran %q", c.args, ran)
		}
	}
	expect(t, "the file of programs", d.read("list"), d.read("programs"))
	expect(t, "a program", d.read("y"), d.read("two"))
}
