package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"dev.muster/cluster"
	"dev.muster/pmi"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "supervisor" {
		if err := Main(context.Background(), os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 3 && os.Args[1] == "internal" && os.Args[2] == "task" {
		os.Exit(TaskMain(os.Args[:3], os.Args[3:]))
	}
	if len(os.Args) == 2 && os.Args[1] == "reference" {
		os.Exit(referenceMain())
	}
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "userfile" {
		os.Exit(userfile.Serve())
	}
	if len(os.Args) > 2 && os.Args[1] == "internal" && os.Args[2] == "pmi" {
		os.Exit(pmi.ServerMain(nil))
	}
	if !open(os.TempDir()) { // other users' processes are part of these tests
		os.Setenv("TMPDIR", "/tmp")
	}
	os.Exit(m.Run())
}

// open reports whether every user may make files in a folder.
func open(dir string) bool {
	for need := os.FileMode(0o3); ; need = 0o1 {
		st, err := os.Stat(dir)
		if err != nil || st.Mode().Perm()&need != need {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

// rig is a Remote with its supervisor, and what its Changes said.
type rig struct {
	t   testing.TB
	dir string
	r   *step.Remote
	st  map[step.ID]step.Status
	n   cluster.JobID
	own string // a directory every user may write
}

func selfExe(t testing.TB) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func newRig(t testing.TB) *rig {
	dir, err := os.MkdirTemp("", "step")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	g := &rig{t: t, dir: filepath.Join(dir, "sup"), own: filepath.Join(dir, "out"), st: map[step.ID]step.Status{}}
	os.Mkdir(g.own, 0o777)
	os.Chmod(g.own, 0o777)
	g.open()
	t.Cleanup(func() {
		if err := g.r.Shutdown(); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if b, _ := os.ReadFile(filepath.Join(g.dir, step.LogName)); len(b) > 0 && t.Failed() {
			t.Logf("supervisor's log:\n%s", b)
		}
		os.RemoveAll(dir)
	})
	return g
}

func (g *rig) open() {
	g.t.Helper()
	r, err := step.Open(g.dir, []string{selfExe(g.t), "supervisor", g.dir})
	if err != nil {
		g.t.Fatal(err)
	}
	g.r = r
}

func (g *rig) id() step.ID {
	g.n++
	return step.ID{Job: g.n, Attempt: 1, Step: cluster.BatchStep, Node: "n1"}
}

// spec is one task running sh -c script, its output in a file.
func (g *rig) spec(script string) step.Spec {
	id := g.id()
	return step.Spec{ID: id, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Dir: "/", Umask: 0o22,
		Env: cluster.BlobText("PATH=/usr/bin:/bin\x00A=1\x00"),
		Tasks: []step.Task{
			{Argv: []string{"/bin/sh", "-c", script}, Stdout: step.IO{Kind: step.File, Path: g.out(id)}, Stderr: step.IO{Kind: step.Same}},
		}}
}

func (g *rig) out(id step.ID) string { return filepath.Join(g.own, fmt.Sprintf("out-%d", id.Job)) }

func (g *rig) start(specs ...step.Spec) {
	g.t.Helper()
	if err := g.r.Start(specs...); err != nil {
		g.t.Fatal(err)
	}
}

// await takes changes until ok says so of the step.
func (g *rig) await(id step.ID, ok func(step.Status) bool) step.Status {
	g.t.Helper()
	late := time.After(20 * time.Second)
	for {
		if st, have := g.st[id]; have && ok(st) {
			return st
		}
		select {
		case st, open := <-g.r.Changes():
			if !open {
				g.t.Fatal("changes closed")
			}
			g.st[st.ID] = st
		case <-late:
			g.t.Fatalf("step %v: waited in vain; last %+v", id, g.st[id])
		}
	}
}

func isEnded(st step.Status) bool   { return st.State == step.Ended }
func isRunning(st step.Status) bool { return st.State == step.Running }

func (g *rig) run(sp step.Spec) step.Status {
	g.t.Helper()
	g.start(sp)
	return g.await(sp.ID, isEnded)
}

func (g *rig) text(id step.ID) string {
	g.t.Helper()
	b, err := os.ReadFile(g.out(id))
	if err != nil {
		g.t.Fatal(err)
	}
	return string(b)
}

// fifo makes a named pipe whose readers wait for the step's word.
func (g *rig) fifo(name string) string {
	p := filepath.Join(g.own, name)
	if err := unix.Mkfifo(p, 0o666); err != nil {
		g.t.Fatal(err)
	}
	os.Chmod(p, 0o666)
	return p
}

func (g *rig) readFifo(p string) string {
	g.t.Helper()
	b, err := os.ReadFile(p)
	if err != nil {
		g.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func (g *rig) supervisorPID() int {
	g.t.Helper()
	c, err := step.DialSock(g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	raw, _ := c.(syscall.Conn).SyscallConn()
	pid := 0
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// awaitGone waits until a process that is not ours has ended.
func awaitGone(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n == 0 {
		t.Fatalf("process %d still lives", pid)
	}
}

func needRoot(t testing.TB) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: runs tasks as another user")
	}
}

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func itoa(n int) string { return strconv.Itoa(n) }
