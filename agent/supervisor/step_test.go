package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// TestNoStrangeDescriptors: what whoever started the daemon left open is not open in tasks.
func TestNoStrangeDescriptors(t *testing.T) {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD, 77)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	g := newRig(t)
	sp := g.spec("ls /proc/$$/fd; true")
	g.run(sp)
	if got := strings.Fields(g.text(sp.ID)); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("descriptors of a task: %v", got)
	}
}

// TestProgramInWorkingDirectory: a bare name that is nowhere in the path is looked for there, after the path.
func TestProgramInWorkingDirectory(t *testing.T) {
	g := newRig(t)
	for name, mode := range map[string]os.FileMode{"a.out": 0o755, "true": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(g.own, name), []byte("#!/bin/sh\nexit 7\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(g.own, "lost"), []byte("#! /no/such/sh -e\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a.out": "7 ",
		"true":  "0 ",
		"data":  "0 execve(): data: Permission denied",
		"none":  "0 execve(): none: No such file or directory",
		"lost":  "0 execve(): bad interpreter(/no/such/sh): No such file or directory",
	} {
		sp := g.spec("")
		sp.Dir, sp.Tasks[0].Argv = g.own, []string{name}
		st := g.run(sp).Tasks[0]
		if got := fmt.Sprint(st.Exit.Code, " ", st.Error); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestMaxRSS: a task's peak is its own, with that of the children that it has waited for.
func TestMaxRSS(t *testing.T) {
	g := newRig(t)
	st := g.run(g.spec("head -c 200000000 /dev/zero | tail -c 200000000 | wc -c; true"))
	if peak := st.Tasks[0].Usage.MaxRSS; peak < 200000000 || st.Usage.MaxRSS != peak {
		t.Errorf("of 200 MB: task %d, step %d", peak, st.Usage.MaxRSS)
	}
}

func TestRunsTasks(t *testing.T) {
	g := newRig(t)
	sp := g.spec("echo $A $B; echo err >&2; exit 3")
	sp.Tasks[0].Env = []string{"A=2", "B=x"}
	sp.Note = []byte("mine")
	st := g.run(sp)
	k := st.Tasks[0]
	timed := !k.Started.IsZero() && !k.Ended.Before(k.Started)
	if k.Exit != (cluster.ExitStatus{Code: 3}) || k.PID == 0 || !timed || string(st.Note) != "mine" {
		t.Errorf("status %+v", st)
	}
	if got := g.text(sp.ID); got != "2 x\nerr\n" {
		t.Errorf("output %q", got)
	}
	if k.Usage.MaxRSS != 0 { // less than the supervisor's own, with which the kernel begins to count
		t.Errorf("usage %+v", st.Usage)
	}
	if err := g.r.Start(sp); err != nil {
		t.Fatal(err)
	}
	if list, err := g.r.List(); err != nil || len(list) != 1 || list[0].State != step.Ended {
		t.Errorf("list %+v, %v", list, err)
	}
	if err := g.r.Forget(sp.ID, step.ID{Job: 99}); err != nil {
		t.Fatal(err)
	}
	if list, err := g.r.List(); err != nil || len(list) != 0 {
		t.Errorf("list after forget %+v, %v", list, err)
	}
	if err := g.r.Signal(sp.ID, syscall.SIGTERM, step.All); !errors.Is(err, step.ErrUnknown) {
		t.Errorf("signal to a forgotten step: %v", err)
	}
}

func TestManySteps(t *testing.T) {
	g := newRig(t)
	var specs []step.Spec
	for range 200 {
		sp := g.spec("exit 7")
		sp.Tasks[0].Stdout = step.IO{}
		specs = append(specs, sp)
	}
	g.start(specs...)
	for _, sp := range specs {
		if st := g.await(sp.ID, isEnded); st.Tasks[0].Exit.Code != 7 {
			t.Fatalf("%+v", st)
		}
	}
}

func TestScript(t *testing.T) {
	g := newRig(t)
	sp := g.spec("")
	sp.Script = cluster.BlobText("#!/bin/sh\necho \"$0\" $1\nid -u\nstat -c '%a %u' \"$0\"\n")
	sp.ScriptPath = filepath.Join(g.own, "spool", "job00001", "slurm_script")
	sp.Tasks[0].Argv = []string{sp.ScriptPath, "arg"}
	uid := os.Geteuid()
	if uid == 0 {
		uid = 65534
		sp.UID, sp.GID = 65534, 65534
	}
	if st := g.run(sp); st.Tasks[0].Exit.Code != 0 || st.Tasks[0].Error != "" {
		t.Fatalf("%+v", st)
	}
	want := fmt.Sprintf("%s arg\n%d\n500 %d\n", sp.ScriptPath, uid, uid)
	if got := g.text(sp.ID); got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	g.r.Forget(sp.ID)
	if _, err := os.Stat(filepath.Dir(sp.ScriptPath)); !os.IsNotExist(err) {
		t.Errorf("script's directory stays: %v", err)
	}
}

func TestAsAnotherUser(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	sp := g.spec("id -u; id -g; id -G; umask; pwd; ulimit -n; ulimit -c; echo $ME; echo $$")
	sp.UID, sp.GID, sp.Groups, sp.Umask = 65534, 65533, []uint32{65533, 1234}, 0o27
	sp.PIDEnv = "ME"
	sp.Rlimits = []cluster.Rlimit{
		{Name: "NOFILE", Soft: 77}, {Name: "CORE", Soft: 1024}, {Name: "FSIZE", Soft: 1 << 62},
	}
	sp.Dir = g.own
	path := filepath.Join(g.own, "a", "b", "out")
	sp.Tasks[0].Stdout.Path = path
	st := g.run(sp)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; %+v", err, st)
	}
	pid := st.Tasks[0].PID
	want := fmt.Sprintf("65534\n65533\n65533 1234\n0027\n%s\n77\n2\n%d\n%d\n", g.own, pid, pid)
	if string(b) != want {
		t.Errorf("got %q, want %q", b, want)
	}
	for p, mode := range map[string]uint32{
		path: 0o640, filepath.Dir(path): 0o750, filepath.Dir(filepath.Dir(path)): 0o750,
	} {
		var s unix.Stat_t
		unix.Stat(p, &s)
		if s.Uid != 65534 || s.Gid != 65533 || s.Mode&0o777 != mode {
			t.Errorf("%s: uid %d gid %d mode %o", p, s.Uid, s.Gid, s.Mode)
		}
	}
	again := g.spec("umask; ulimit -n; id -u")
	if g.run(again); strings.HasPrefix(g.text(again.ID), "0027\n77") {
		t.Errorf("a step's settings outlive it: %q", g.text(again.ID))
	}
}

func TestStartFailures(t *testing.T) {
	g := newRig(t)
	user := uint32(os.Geteuid())
	if user == 0 {
		user = 65534
	}
	nosuch := filepath.Join(g.own, "nosuch")
	missing := g.spec("")
	missing.Tasks[0].Argv = []string{nosuch + "/program"}
	bare := g.spec("")
	bare.Tasks[0].Argv = []string{"nosuchprogram"}
	dir := g.spec("")
	dir.Tasks[0].Argv = []string{"/tmp"}
	output := g.spec("true")
	output.UID, output.GID = user, user
	output.Tasks[0].Stdout.Path = "/proc/nothere/x/out"
	for name, c := range map[string]struct {
		sp    step.Spec
		errno syscall.Errno
		text  string
	}{
		"missing": {missing, syscall.ENOENT, nosuch + "/program"},
		"bare":    {bare, syscall.ENOENT, "nosuchprogram"},
		"dir":     {dir, syscall.EACCES, "/tmp"},
		"output":  {output, syscall.ENOENT, "/proc/nothere/x/out"},
	} {
		st := g.run(c.sp)
		if k := st.Tasks[0]; k.Errno != int(c.errno) || !strings.Contains(k.Error, c.text) || k.PID != 0 {
			t.Errorf("%s: %+v", name, k)
		}
	}
}

func TestMissingDirectory(t *testing.T) {
	g := newRig(t)
	sp := g.spec("pwd")
	sp.Dir = filepath.Join(g.own, "nosuch")
	g.run(sp)
	want := "slurmstepd-n1: error: couldn't chdir to `" + sp.Dir +
		"': No such file or directory: going to /tmp instead\n/tmp\n"
	if got := g.text(sp.ID); got != want {
		t.Errorf("got %q", got)
	}
}

// TestOwnName: what a task is told of its own name, as in Slurm: a program found in the path by where it was found, one
// that begins with a dot behind the working directory, any other as it was said.
func TestOwnName(t *testing.T) {
	g := newRig(t)
	script := []byte("#!/bin/sh\necho $0\n")
	for _, name := range []string{"p", "d/p", ".p", "bin/found"} {
		path := filepath.Join(g.own, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, script, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"./p":         g.own + "/./p",
		".p":          g.own + "/.p",
		"d/p":         "d/p",
		"p":           "p",
		"found":       g.own + "/bin/found",
		g.own + "/p":  g.own + "/p",
		"./d/../d//p": g.own + "/./d/../d//p",
	} {
		t.Run(name, func(t *testing.T) {
			sp := g.spec("")
			sp.Dir, sp.Tasks[0].Argv = g.own, []string{name}
			sp.Tasks[0].Env = append(sp.Tasks[0].Env, "PATH=/bin:/usr/bin:"+g.own+"/bin")
			g.run(sp)
			if got := strings.TrimSpace(g.text(sp.ID)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestBareNameAndPID(t *testing.T) {
	g := newRig(t)
	sp := g.spec("")
	sp.PIDEnv = "TASK_PID"
	sp.Tasks[0].Argv = []string{"sh", "-c", "echo $TASK_PID $$; tr '\\0' '\\n' </proc/$$/environ | grep -c TASK_PID"}
	g.run(sp)
	f := strings.Fields(g.text(sp.ID))
	if len(f) != 3 || f[0] != f[1] || f[2] != "1" {
		t.Errorf("got %q", f)
	}
}

func TestAffinity(t *testing.T) {
	var set unix.CPUSet
	unix.SchedGetaffinity(0, &set)
	if set.Count() < 2 {
		t.Skip("needs two CPUs")
	}
	g := newRig(t)
	show := "grep Cpus_allowed_list /proc/self/status"
	sp, free := g.spec(show), g.spec(show)
	sp.Tasks[0].CPUs = cluster.NewIDSet(1)
	g.run(sp)
	g.run(free)
	if got := strings.Fields(g.text(sp.ID)); got[1] != "1" {
		t.Errorf("bound: %q", got)
	}
	if got := strings.Fields(g.text(free.ID)); got[1] == "1" {
		t.Errorf("the next step is bound too: %q", got)
	}
}

// TestMemoryPolicy: a task's memory is bound to its NUMA nodes, the next one's is not, and a node that is not there
// is told.
func TestMemoryPolicy(t *testing.T) {
	if _, err := os.Stat("/proc/self/numa_maps"); err != nil {
		t.Skip("the kernel tells nothing of NUMA nodes")
	}
	g := newRig(t)
	show := "cut -d' ' -f2 /proc/self/numa_maps | sort -u | xargs echo"
	node := step.NUMANodes().First(1)
	var ids []step.ID
	for _, m := range []*step.Memory{{Nodes: node}, nil, {Nodes: node, Prefer: true}} {
		sp := g.spec(show)
		sp.Tasks[0].Memory = m
		g.run(sp)
		ids = append(ids, sp.ID)
	}
	for k, want := range []string{"bind:" + node.String(), "default", "prefer:" + node.String()} {
		if got := strings.TrimSpace(g.text(ids[k])); got != want && !(k == 2 && strings.Contains(got, "prefer")) {
			t.Errorf("step %d: %q, want %q", k, got, want)
		}
	}
	sp := g.spec("true")
	bind := cluster.BindMem("map_mem:4000")
	if sp.Tasks[0].Memory, sp.Tasks[0].Refused = step.BindMemory(bind, 0); sp.Tasks[0].Refused == "" {
		t.Fatal("node 4000 is taken for one that is there")
	}
	const want = "NUMA node 4000 does not exist; cannot bind local task 0 to it (--mem-bind=map_mem)"
	if k := g.run(sp).Tasks[0]; k.Error != want || k.PID != 0 {
		t.Errorf("%+v", k)
	}
}
