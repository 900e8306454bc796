package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestContainerGlobal: with container_scope=global a container with a name is its user's, for all jobs on its node; one
// that runs in another job is entered. Others have containers of that name of their own, and root takes them away.
func TestContainerGlobal(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startSite(t, map[string]string{
		"conf/slurm.conf":     "ClusterName=c\nPartitionName=p Nodes=ALL Default=YES OverSubscribe=FORCE\n",
		"conf/plugstack.conf": "required spank_pyxis.so container_scope=global\n",
	})
	const keep = "srun -D / --container-name=keep "
	try := func(uid uint32, line, out, errs string) {
		t.Helper()
		got, said, code := d.line(uid, line)
		if got != out || !strings.Contains(said, errs) || code != 0 && errs == "" {
			t.Errorf("%d: %s: %d %q %q", uid, line, code, got, said)
		}
	}
	const none = "a container with name \"pyxis_keep\" does not exist, and --container-image is not set"
	try(1, keep+"true", "", none)
	try(1, keep+"--container-writable --container-image="+h.host+"#lab/tiny:1 sh -c 'echo one >/new'", "", "")
	try(1, keep+"cat /new", "one\n", "")
	try(2, keep+"true", "", none)
	try(1,
		keep+"--container-writable --container-image="+h.host+"#lab/tiny:1 sh -c 'echo two >>/new; cat /new'",
		"one\ntwo\n", "")
	try(2, keep+"--container-image="+h.host+"#lab/tiny:1 ls /new", "", "No such file")

	d.file(1, "jobs/here", "")
	d.line(1, "cd "+d.dir+"/jobs && sbatch -n1 -o out --wrap '"+keep+"sh -c \"echo three >/tmp/mine; sleep 100\"'")
	d.wait("the container to be entered", func() bool {
		out, _, _ := d.line(1, "srun -n1 -D / --container-name=keep:exec cat /tmp/mine")
		return out == "three\n"
	})
	d.must("scancel", "-u", "daemon")
	d.wait("the job's end", func() bool { return d.must("squeue", "-h") == "" })
	try(1, keep+"cat /new", "one\ntwo\n", "")

	image := func(words ...string) string {
		out, errs, _ := d.run("muster", append(append([]string{"image"}, words...), "--data", d.dir+"/d")...)
		return out + errs
	}
	if out := image("containers"); !strings.Contains(out, "daemon/keep") || !strings.Contains(out, "bin/keep") {
		t.Errorf("muster image containers: %s", out)
	}
	if out := image("drop", "daemon/other"); !strings.Contains(out, "daemon/other: no such container") {
		t.Errorf("muster image drop: %s", out)
	}
	if out := image("drop", "daemon/keep", "bin/keep"); strings.Count(out, "removed ") != 2 {
		t.Errorf("muster image drop: %s", out)
	}
	if left, _ := filepath.Glob(d.dir + "/d/containers/jobs/*/*"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	try(1, keep+"true", "", none)
}
