package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestContainerBcast: a program that is sent to the nodes of a step in containers is there in place, read-only, as
// nothing else of the node is; the container is made once it has arrived.
func TestContainerBcast(t *testing.T) {
	t.Parallel()
	needsContainers(t)
	h := startHub(t)
	h.push(t, imageOf(t), "lab/tiny:1")
	d := startDev(t, "--hollow", "2x8c16g", "--hollow-exec")
	// Of the folder of the cluster containers have all, with the socket: this is one of which they have nothing.
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const prog = "#!/bin/sh\n. /etc/os-release\necho $ID $0 $*\n(echo x >>$0) 2>/dev/null || echo kept\n"
	for _, f := range []string{"mine/prog", "mine/list", "sent/beside", "over/beside"} {
		file, text := filepath.Join(dir, f), prog
		if f == "mine/list" {
			text = "#!/bin/sh\nls $1\n"
		}
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755))
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("chown", "-R", "1:1", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run := "srun --container-image=" + h.host + "#lab/tiny:1 "
	for _, c := range []struct{ what, line, out, errs string }{
		{"in place", "-N2 --bcast=DIR/sent/a ./prog x", strings.Repeat("tiny DIR/sent/a x\nkept\n", 2), ""},
		{"nothing else", "ls DIR/sent", "", "No such file"},
		{"nothing beside it", "--bcast=DIR/sent/b ./list DIR/sent", "b\n", ""},
		{"without a name", "-N1 --bcast ./prog z | sed s/bcast_.*_/bcast_ID_/", "tiny DIR/mine/slurm_bcast_ID_node-001 z\nkept\n", ""},
		{"above a mount", "--container-mounts=DIR/over:DIR/sent --bcast=DIR/sent/beside ./prog",
			"tiny DIR/sent/beside\nkept\n", ""},
		{"writable", "--container-writable --bcast=DIR/sent/c ./prog", "tiny DIR/sent/c\nkept\n", ""},
		{"entry point", "--container-entrypoint --bcast=DIR/sent/e ./prog", "entered\ntiny DIR/sent/e\nkept\n", ""},
		{"a node that cannot take it", "--bcast=/nowhere/a ./prog", "",
			"srun: fatal: Failed to broadcast 'DIR/mine/./prog'. Step launch aborted."},
		{"components", ": --container-image=" + h.host + "#lab/tiny:1 --bcast=DIR/sent/d ./prog k", "", ""},
		{"libraries", "--bcast=DIR/sent/f --send-libs ./prog", "", "--send-libs with --container-image"},
	} {
		in := strings.NewReplacer("DIR", dir)
		line := run + c.line
		if c.what == "components" {
			line = "srun echo first " + c.line
			c.out = "first\ntiny DIR/sent/d k\nkept\n"
		}
		out, errs, code := d.line(1, "cd "+dir+"/mine && "+in.Replace(line))
		if sorted(out) != sorted(in.Replace(c.out)) || !strings.Contains(errs, in.Replace(c.errs)) ||
			c.errs == "" && (errs != "" || code != 0) {
			t.Errorf("%s: %d %q %q, want %q %q", c.what, code, out, errs, c.out, c.errs)
		}
	}
	d.file(1, "jobs/job", `#!/bin/sh
srun -D / --container-name=a --container-image=`+h.host+`#lab/tiny:1 --bcast=`+dir+`/sent/n `+dir+`/mine/prog first
srun -D / --overlap --container-name=a sleep 100 &
until srun -D / --overlap --container-name=a:exec pwd >/dev/null 2>&1; do sleep 0.1; done
srun -D / --overlap --container-name=a --bcast=`+dir+`/sent/m `+dir+`/mine/prog second 2>&1
scancel $SLURM_JOB_ID
`)
	_, errs, _ := d.line(1, "cd jobs && timeout 60 sbatch -W -N1 -o out job")
	out := d.read("jobs/out")
	if !strings.HasPrefix(out, "tiny "+dir+"/sent/n first\nkept\n") || !strings.Contains(out,
		"container \"a\" is running: no program can be sent into it (--bcast)") {
		t.Errorf("a container with a name: %q %q", out, errs)
	}
}
