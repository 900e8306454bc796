package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Users of these tests: bob attacks, alice owns what is not for bob.
const (
	bob   = 65534
	alice = 65533
)

// asBob returns a step of bob's that runs true.
func (g *rig) asBob(change func(*step.Spec)) step.Spec {
	sp := g.spec("true")
	sp.UID, sp.GID, sp.Groups = bob, bob, nil
	change(&sp)
	return sp
}

// closedFolder makes a folder that its owner alone may enter, with a file in it that everybody might read.
func closedFolder(t *testing.T, in string, owner int) string {
	t.Helper()
	dir := filepath.Join(in, fmt.Sprintf("closed-%d", owner))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{dir, file} {
		if err := os.Chown(p, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// processIn starts a process of a user's in a folder, and returns its ID.
func processIn(t *testing.T, uid uint32, dir string) int {
	t.Helper()
	c := exec.Command("/bin/sleep", "600")
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c.Process.Pid
}

// TestUserRights: a step opens nothing that its user could not open. Each row once opened it, as root.
func TestUserRights(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	closed := closedFolder(t, g.own, alice)
	pid := processIn(t, alice, closed)
	past := fmt.Sprintf("/proc/%d/cwd", pid)
	output := func(path string) func(*step.Spec) {
		return func(sp *step.Spec) { sp.Tasks[0].Stdout.Path = path }
	}
	input := func(path string) func(*step.Spec) {
		return func(sp *step.Spec) { sp.Tasks[0].Stdin = step.IO{Kind: step.File, Path: path} }
	}
	program := func(path string) func(*step.Spec) {
		return func(sp *step.Spec) { sp.Tasks[0].Argv = []string{path} }
	}
	magic := []syscall.Errno{unix.ELOOP, unix.EACCES} // of a link that the kernel resolves by itself
	denied := []syscall.Errno{unix.EACCES, unix.EPERM}
	for name, c := range map[string]struct {
		change func(*step.Spec)
		errno  []syscall.Errno
	}{
		"setting of the kernel":        {output("/proc/sys/kernel/hostname"), denied},
		"setting by its own thread":    {output("/proc/thread-self/../../../sys/kernel/hostname"), denied},
		"input past a closed folder":   {input(past + "/data"), magic},
		"output past a closed folder":  {output(past + "/new"), magic},
		"program past a closed folder": {program(past + "/data"), magic},
		"root of another process":      {input(fmt.Sprintf("/proc/%d/root/etc/passwd", pid)), magic},
		"maps of root's process":       {input("/proc/1/maps"), denied},
		"log of the kernel":            {input("/dev/kmsg"), denied},
	} {
		t.Run(name, func(t *testing.T) {
			st := g.run(g.asBob(c.change)).Tasks[0]
			if !slices.Contains(c.errno, syscall.Errno(st.Errno)) {
				t.Errorf("started with %+v, want one of %v", st, c.errno)
			}
		})
	}
	t.Run("directory past a closed folder", func(t *testing.T) {
		sp := g.asBob(func(sp *step.Spec) { sp.Dir = past })
		sp.Tasks[0].Argv[2] = "pwd -P"
		g.run(sp)
		if got := g.text(sp.ID); !strings.Contains(got, "couldn't chdir to `"+past) || !strings.HasSuffix(got, "\n/tmp\n") {
			t.Errorf("%q", got)
		}
	})
	t.Run("device by its own number", func(t *testing.T) {
		dev := filepath.Join(g.own, "gpu")
		if err := unix.Mknod(dev, unix.S_IFCHR|0o666, int(unix.Mkdev(195, 0))); err != nil {
			t.Skip("no device files can be made here: ", err)
		}
		if err := os.Chmod(dev, 0o666); err != nil {
			t.Fatal(err)
		}
		if st := g.run(g.asBob(input(dev))).Tasks[0]; st.Errno != int(unix.EPERM) {
			t.Errorf("%+v", st)
		}
	})
}

// TestSupervisorsFiles: a step gets nothing that the supervisor has open for others.
func TestSupervisorsFiles(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	closed := closedFolder(t, g.own, alice)
	hers := g.spec("read x <" + g.fifo("hers"))
	hers.UID, hers.GID = alice, alice
	hers.Tasks[0].Stdout = step.IO{Kind: step.File, Path: filepath.Join(closed, "out"), Label: "0: "}
	g.start(hers)
	g.await(hers.ID, isRunning)
	for n := 3; n < 40; n++ {
		for _, path := range []string{fmt.Sprintf("/proc/self/fd/%d", n), fmt.Sprintf("/dev/fd/%d", n),
			fmt.Sprintf("/proc/%d/fd/%d", g.supervisorPID(), n), fmt.Sprintf("/proc/thread-self/fd/%d", n)} {
			st := g.run(g.asBob(func(sp *step.Spec) {
				sp.Tasks[0].Stdin = step.IO{Kind: step.File, Path: path}
				sp.Tasks[0].Stdout.Path = g.out(hers.ID) + "-bob"
			})).Tasks[0]
			if st.Errno == 0 {
				t.Errorf("%s was opened: %+v", path, st)
			}
		}
	}
	if err := g.r.Signal(hers.ID, unix.SIGKILL, step.All); err != nil {
		t.Fatal(err)
	}
	g.await(hers.ID, isEnded)
}

// TestNoNewPrivs: a set-uid program of root's runs as the user where the partition says so, and only there.
func TestNoNewPrivs(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	id := filepath.Join(g.own, "id")
	text, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(id, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(id, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	for forbidden, want := range map[bool]string{false: "0", true: fmt.Sprint(bob)} {
		sp := g.asBob(func(sp *step.Spec) {
			sp.NoNewPrivs = forbidden
			sp.Tasks[0].Argv = []string{id, "-u"}
		})
		if st := g.run(sp).Tasks[0]; st.Error != "" {
			t.Fatalf("%+v", st)
		}
		if got := strings.TrimSpace(g.text(sp.ID)); got != want {
			t.Errorf("no_new_privs %v: it runs as %s, want %s", forbidden, got, want)
		}
	}
	sp := g.asBob(func(sp *step.Spec) {}) // the same launchers serve other steps
	sp.Tasks[0].Argv = []string{id, "-u"}
	if g.run(sp); strings.TrimSpace(g.text(sp.ID)) != "0" {
		t.Errorf("a later step: %s", g.text(sp.ID))
	}
}

// TestStandardStreams: the supervisor's own streams are not the job's. As with slurmstepd, a job that is sent there
// runs, and its output is lost.
func TestStandardStreams(t *testing.T) {
	g := newRig(t)
	for _, path := range []string{"/dev/stdout", "/dev/stderr", "/proc/self/fd/1"} {
		sp := g.spec("echo out")
		sp.Tasks[0].Stdout.Path = path
		if st := g.run(sp).Tasks[0]; st.Exit.Code != 0 || st.Error != "" {
			t.Errorf("%s: %+v", path, st)
		}
	}
}

// TestProgramNotFound: what is said of a program that is not there is found out with the user's rights, from files
// alone, and without waiting for anybody.
func TestProgramNotFound(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	closed := closedFolder(t, g.own, 0)
	secret := filepath.Join(closed, "xyzzy")
	if err := os.WriteFile(secret, []byte("#!/opt/secret-tool\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(g.own, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_RDWR, 0) // a pipe with a writer: a read of it waits
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for name, program := range map[string]string{"a file of root's": "xyzzy", "a pipe": "../pipe-or-not"} {
		t.Run(name, func(t *testing.T) {
			sp := g.asBob(func(sp *step.Spec) { sp.Dir, sp.Tasks[0].Argv = closed, []string{program} })
			if name == "a pipe" {
				sp.Dir, sp.Tasks[0].Argv = closed+"/..", []string{"pipe"}
			}
			st := g.run(sp).Tasks[0]
			if st.PID != 0 || st.Error == "" || strings.Contains(st.Error, "secret-tool") {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestSlowFiles: steps of a user that wait for that user's files hold up nobody else's.
func TestSlowFiles(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	pipe := g.fifo("unfed") // an input that nobody writes into is waited for
	var slow []step.Spec
	for range 3 * launchThreads {
		slow = append(slow, g.asBob(func(sp *step.Spec) {
			sp.Tasks[0].Stdin = step.IO{Kind: step.File, Path: pipe}
		}))
	}
	g.start(slow...)
	his := g.asBob(func(sp *step.Spec) { // the step for his sessions, which a login waits for
		sp.ID.Step, sp.Dir, sp.Own = cluster.ExternStep, "/", true
		sp.Tasks[0] = step.Task{Argv: []string{"/bin/true"}}
	})
	hers := g.spec("true")
	hers.UID, hers.GID = alice, alice
	g.run(hers)
	if st := g.run(his).Tasks[0]; st.Error != "" {
		t.Errorf("the step for sessions: %+v", st)
	}
	for _, sp := range slow {
		if isEnded(g.st[sp.ID]) {
			t.Fatalf("step %v of bob's had to end before alice's began", sp.ID)
		}
	}
	for _, sp := range slow { // those that wait end when they are killed, and not before their time
		if err := g.r.Signal(sp.ID, unix.SIGKILL, step.All); err != nil {
			t.Fatal(err)
		}
	}
	for _, sp := range slow {
		if st := g.await(sp.ID, isEnded); st.Tasks[0].Exit.Signal != int(unix.SIGKILL) && st.Tasks[0].Error == "" {
			t.Errorf("%+v", st)
		}
	}
}

// TestThreads: steps of a user that have a thread each and wait for that user's files do not make the supervisor run out
// of threads. They hold up nobody else's, and can be killed.
func TestThreads(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	pipe := g.fifo("unfed")
	var slow []step.Spec
	for range maxApart + 20 {
		slow = append(slow, g.asBob(func(sp *step.Spec) {
			sp.NoNewPrivs = true
			sp.Tasks[0].Stdin = step.IO{Kind: step.File, Path: pipe}
		}))
	}
	g.start(slow...)
	hers := g.spec("true")
	hers.UID, hers.GID, hers.NoNewPrivs = alice, alice, true
	g.run(hers)
	openers := 0
	for range 100 {
		if openers = len(openersOf(t, g.supervisorPID(), bob)); openers >= maxApart {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", g.supervisorPID()))
	if err != nil || openers > maxApart || len(threads) < openers || len(threads) > maxApart+20 {
		t.Errorf("%d threads and %d processes for %d steps, want %d at most: %v", len(threads), openers, len(slow),
			maxApart, err)
	}
	for i := range slow {
		if err := g.r.Signal(slow[len(slow)-1-i].ID, unix.SIGKILL, step.All); err != nil {
			t.Fatal(err)
		}
	}
	for _, sp := range slow {
		g.await(sp.ID, isEnded)
	}
}

// openersOf lists the processes that open files for a user.
func openersOf(t testing.TB, parent, uid int) (pids []int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		p, ok := step.ReadProcess(atoi(t, filepath.Base(dir)))
		words, _ := os.ReadFile(dir + "/cmdline")
		if !ok || p.Ppid != parent || !strings.Contains(string(words), "userfile") {
			continue
		}
		status, _ := os.ReadFile(dir + "/status")
		if strings.Contains(string(status), fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", uid)) {
			pids = append(pids, p.Pid)
		}
	}
	return pids
}

// TestOpenerOfUser: the process that opens files has no rights but the user's. If the user kills or stops it, the step
// gets another one.
func TestOpenerOfUser(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	g.run(g.asBob(func(sp *step.Spec) { sp.Groups = []uint32{bob, 4242} }))
	pids := openersOf(t, g.supervisorPID(), bob)
	if len(pids) != 1 {
		t.Fatalf("processes %v, want one that waits for bob's next step", pids)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Gid:\t65534\t65534\t65534\t65534\n",
		"Groups:\t4242 65534 \n",
		"CapPrm:\t0000000000000000\n",
		"CapEff:\t0000000000000000\n",
		"CapInh:\t0000000000000000\n",
		"NoNewPrivs:\t1\n",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("its status lacks %q:\n%s", want, status)
		}
	}
	again := func(sp *step.Spec) { sp.Groups = []uint32{bob, 4242} }
	if err := unix.Kill(pids[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if st := g.run(g.asBob(again)).Tasks[0]; st.Error != "" {
		t.Errorf("after it was killed: %+v", st)
	}
	pids = openersOf(t, g.supervisorPID(), bob)
	if len(pids) != 1 {
		t.Fatalf("processes %v, want a new one", pids)
	}
	if err := unix.Kill(pids[0], unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if st := g.run(g.asBob(again)).Tasks[0]; st.Error != "" || st.PID == 0 { // another process takes its place
		t.Errorf("after it was stopped: %+v", st)
	}
}

// TestStepOfOthers: a supervisor that is not root's runs nothing of other users, which would have its own user's
// rights, and opens none of the files that they name.
func TestStepOfOthers(t *testing.T) {
	g := newRig(t)
	sp := g.spec("echo ran")
	if os.Geteuid() == 0 {
		asOrdinary(t, "TestStepOfOthers")
		return
	}
	sp.UID++
	st := g.run(sp)
	if k := st.Tasks[0]; !strings.Contains(k.Error, "runs no programs of user") || k.PID != 0 || k.Fault {
		t.Errorf("%+v", k)
	}
	if _, err := os.Stat(g.out(sp.ID)); !os.IsNotExist(err) {
		t.Errorf("the output of a user who is not the supervisor's: %v", err)
	}
}
