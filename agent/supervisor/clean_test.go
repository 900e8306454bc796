package supervisor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// daemonise is a script whose grandchild leaves session, group and parent behind and writes
// its pid to the fifo.
const daemonise = `setsid sh -c 'sh -c "echo \$\$ >FIFO; exec sleep 1000" </dev/null >/dev/null 2>&1 &' `

func TestKillsDaemonised(t *testing.T) {
	g := newRig(t)
	f := g.fifo("pid")
	sp := g.spec(strings.ReplaceAll(daemonise, "FIFO", f) + "; sleep 1000")
	g.start(sp)
	pid := atoi(t, g.readFifo(f))
	g.await(sp.ID, isRunning)
	if err := g.r.Signal(sp.ID, syscall.SIGKILL, step.All); err != nil {
		t.Fatal(err)
	}
	st := g.await(sp.ID, isEnded)
	if st.Tasks[0].Exit.Signal != 9 {
		t.Errorf("%+v", st.Tasks[0])
	}
	if st, ok := step.ReadProcess(pid); ok && st.Alive() {
		t.Errorf("daemonised process %d lives after the end", pid)
	}
}

func TestEndKillsTheRest(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		t.Run(map[bool]string{true: "cgroup", false: "proc"}[fenced], func(t *testing.T) {
			if fenced && cgroup.Isolation() == "none" {
				t.Skip("no writable unified cgroup hierarchy")
			}
			if !fenced {
				t.Setenv(cgroup.NoGroupsEnv, "1")
			}
			g := newRig(t)
			f := g.fifo("pid")
			sp := g.spec(strings.ReplaceAll(daemonise, "FIFO", f) + "; read x <" + g.fifo("go") + "; exit 4")
			g.start(sp)
			pid := atoi(t, g.readFifo(f))
			os.WriteFile(filepath.Join(g.own, "go"), []byte("\n"), 0)
			if st := g.await(sp.ID, isEnded); st.Tasks[0].Exit.Code != 4 {
				t.Errorf("%+v", st.Tasks[0])
			}
			if st, ok := step.ReadProcess(pid); ok && st.Alive() {
				t.Errorf("daemonised process %d lives after the end", pid)
			}
		})
	}
}

func TestSignals(t *testing.T) {
	g := newRig(t)
	in := g.fifo("in")
	sp := g.spec("trap 'echo got' USR1; echo up >" + in + "; while :; do sleep 1000; done")
	g.start(sp)
	g.readFifo(in)
	g.await(sp.ID, isRunning)
	if err := g.r.Signal(sp.ID, syscall.SIGTERM, step.Leaders); err != nil {
		t.Fatal(err)
	}
	if st := g.await(sp.ID, isEnded); st.Tasks[0].Exit.Signal != 15 {
		t.Errorf("%+v", st.Tasks[0])
	}
	// The task hears it and goes on: its child has not, and ends when it is told.
	ready, hold := g.fifo("ready"), g.fifo("hold")
	own := g.spec("trap 'got=1; kill -USR2 $child' USR1; " +
		"sh -c 'trap \"exit 5\" USR2; echo up >" + ready + "; while :; do read x <" + hold + "; done' & " +
		"child=$!; read x <" + ready +
		"; echo up >" + in + "; code=200; until [ \"$got\" ] && [ $code -lt 128 ]; do wait $child; code=$?; done; exit $code")
	g.start(own)
	g.readFifo(in)
	g.await(own.ID, isRunning)
	if err := g.r.Signal(own.ID, syscall.SIGUSR1, step.Leaders); err != nil {
		t.Fatal(err)
	}
	if st := g.await(own.ID, isEnded); st.Tasks[0].Exit.Code != 5 {
		t.Errorf("%+v", st.Tasks[0])
	}
	err := g.r.Signal(own.ID, syscall.SIGUSR1, step.Leaders)
	if err != syscall.ESRCH && !strings.Contains(err.Error(), "no such process") {
		t.Errorf("signal to an ended step: %v", err)
	}
	// Told right behind the start: kept until the processes are there.
	early := g.spec("sleep 1000")
	g.start(early)
	if err := g.r.Signal(early.ID, syscall.SIGKILL, step.All); err != nil {
		t.Fatal(err)
	}
	if st := g.await(early.ID, isEnded); st.Tasks[0].Exit.Signal != 9 {
		t.Errorf("%+v", st.Tasks[0])
	}
}

// TestScriptOfNextAttempt: what an attempt leaves is taken away without the script of the next one, which may run
// already: a node that comes back after a silence ends the one and begins the other.
func TestScriptOfNextAttempt(t *testing.T) {
	g := newRig(t)
	first := g.spec("")
	first.ScriptPath = filepath.Join(g.own, "spool", "job00001", "slurm_script")
	first.Tasks[0].Argv = []string{first.ScriptPath}
	first.Script = cluster.BlobText("#!/bin/sh\nexit 3\n")
	next := first
	next.ID.Attempt++
	next.Script = cluster.BlobText("#!/bin/sh\nsleep 1000\n")
	next.Tasks = slices.Clone(first.Tasks)
	g.run(first)
	g.start(next)
	g.await(next.ID, isRunning)
	if err := g.r.Forget(first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(next.ScriptPath); err != nil {
		t.Fatal(err)
	}
	if err := g.r.Signal(next.ID, syscall.SIGKILL, step.All); err != nil {
		t.Fatal(err)
	}
	g.await(next.ID, isEnded)
	if err := g.r.Forget(next.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(next.ScriptPath)); !os.IsNotExist(err) {
		t.Errorf("the script's folder is left: %v", err)
	}
}

func TestCore(t *testing.T) {
	g := newRig(t)
	sp := g.spec("ulimit -c unlimited; kill -SEGV $$")
	sp.Dir = g.own
	st := g.run(sp)
	if st.Tasks[0].Exit.Signal != 11 {
		t.Errorf("%+v", st.Tasks[0])
	}
}

func TestFreeze(t *testing.T) {
	if cgroup.Isolation() == "none" {
		t.Skip("no writable unified cgroup hierarchy")
	}
	g := newRig(t)
	in := g.fifo("in")
	sp := g.spec("echo $$ >" + in + "; while :; do :; done")
	g.start(sp)
	pid := atoi(t, g.readFifo(in))
	g.await(sp.ID, isRunning)
	if err := g.r.Freeze(sp.ID, true); err != nil {
		t.Fatal(err)
	}
	g.await(sp.ID, func(st step.Status) bool { return st.Frozen })
	awaitFrozen(t, pid, true)
	before := cpuTicks(t, pid)
	time.Sleep(50 * time.Millisecond)
	if after := cpuTicks(t, pid); after != before {
		t.Errorf("runs while frozen: %s, then %s", before, after)
	}
	if err := g.r.Freeze(sp.ID, false); err != nil {
		t.Fatal(err)
	}
	g.await(sp.ID, func(st step.Status) bool { return !st.Frozen })
	awaitFrozen(t, pid, false)
	g.r.Freeze(sp.ID, true)
	g.r.Signal(sp.ID, syscall.SIGKILL, step.All)
	g.await(sp.ID, isEnded)
	if err := g.r.Freeze(step.ID{Job: 77}, true); err != step.ErrUnknown {
		t.Errorf("unknown step: %v", err)
	}
}

func awaitFrozen(t *testing.T, pid int, want bool) {
	t.Helper()
	b, _ := os.ReadFile("/proc/" + itoa(pid) + "/cgroup")
	_, path, ok := strings.Cut(string(b), "0::")
	if !ok {
		t.Fatalf("no unified cgroup in %q", b)
	}
	path, _, _ = strings.Cut(path, "\n")
	file := filepath.Join(cgroup.Roots()[0], path, "cgroup.events")
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for range 10 {
		var buf [256]byte
		n, _ := unix.Pread(fd, buf[:], 0)
		if strings.Contains(string(buf[:n]), "frozen 1") == want {
			return
		}
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, 1000)
	}
	t.Fatalf("frozen is not %v", want)
}

func cpuTicks(t *testing.T, pid int) string {
	b, err := os.ReadFile("/proc/" + itoa(pid) + "/schedstat")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))[0]
}

func TestReopen(t *testing.T) {
	g := newRig(t)
	in := g.fifo("in")
	done, runs := g.spec("exit 9"), g.spec("read x <"+in+"; exit 8")
	runs.Note = []byte("note")
	g.run(done)
	g.start(runs)
	g.await(runs.ID, isRunning)
	g.r.Close()
	if _, open := <-g.r.Changes(); open {
		for range g.r.Changes() {
		}
	}
	if err := g.r.Start(g.spec("")); err != step.ErrClosed {
		t.Errorf("start after close: %v", err)
	}
	clear(g.st)
	g.open()
	if st := g.await(runs.ID, isRunning); string(st.Note) != "note" {
		t.Errorf("%+v", st)
	}
	if err := g.r.SetNote(runs.ID, []byte("changed")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(g.dir, step.JournalName)); err != nil {
		t.Fatal(err)
	} else if p := readJournal(bytes.NewReader(b), bootID())[runs.ID]; p == nil || string(p.spec.Note) != "changed" {
		t.Errorf("after a death of the supervisor %+v would be known", p)
	}
	os.WriteFile(in, []byte("\n"), 0)
	if st := g.await(done.ID, isEnded); st.Tasks[0].Exit.Code != 9 {
		t.Errorf("%+v", st)
	}
	if st := g.await(runs.ID, isEnded); st.Tasks[0].Exit.Code != 8 || string(st.Note) != "changed" {
		t.Errorf("%+v", st)
	}
}

func TestGarbage(t *testing.T) {
	g := newRig(t)
	for _, b := range [][]byte{
		[]byte("GET / HTTP/1.0\r\n\r\n"), {0xff, 0xff, 0xff, 0xff, 1}, {0, 0, 0, 0, 0},
		step.AppendMessage(nil, 99), {0, 0, 0, 5, step.MsgAttach, 1, 2, 3, 4},
		step.AppendMessage(step.AppendMessage(nil, step.MsgHello), step.MsgStart, step.Number(1),
			[]byte{0xff, 0xff, 0xff, 0xff}),
		step.AppendMessage(step.AppendMessage(nil, step.MsgHello), 77, step.Number(1)),
		append(step.AppendMessage(nil, step.MsgHello), 0x7f, 0xff, 0xff, 0xff, 1),
	} {
		c, err := step.DialSock(g.dir)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(b)
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		for err == nil {
			if _, err = c.Read(make([]byte, 4096)); err != nil && os.IsTimeout(err) {
				t.Errorf("%q: connection stays open", b)
			}
		}
		c.Close()
	}
	sp := g.spec("exit 2")
	if st := g.run(sp); st.Tasks[0].Exit.Code != 2 {
		t.Errorf("%+v", st)
	}
}

func TestOrdinaryUser(t *testing.T) {
	needRoot(t)
	asOrdinary(t, "Test(RunsTasks|Script|StartFailures|BareNameAndPID|KillsDaemonised|EndKillsTheRest|Signals|"+
		"Reopen|Stream|StreamCuts|Terminal|Adopt)")
}

// asOrdinary runs tests as nobody.
func asOrdinary(t *testing.T, tests string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "user")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755)
	exe := filepath.Join(dir, "step.test")
	b, err := os.ReadFile(selfExe(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+tests+"$")
	cmd.Dir = "/tmp"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func TestHostName(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	show := "uname -n; getent hosts node7 | tr -s ' '; getent hosts other | tr -s ' '; cat /proc/sys/kernel/hostname"
	var ids []step.ID
	for _, host := range []string{"node7", "other"} {
		sp := g.spec(show)
		sp.HostName, sp.Hosts = host, []cluster.NodeName{"node7", "other"}
		g.run(sp)
		ids = append(ids, sp.ID)
	}
	want := "node7\n127.0.0.1 node7\n127.0.0.1 other\nnode7\n"
	if got := g.text(ids[0]); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := g.text(ids[1]); !strings.HasPrefix(got, "other\n") {
		t.Errorf("got %q", got)
	}
	late := g.spec("getent hosts third | tr -s ' '")
	late.HostName, late.Hosts = "node7", []cluster.NodeName{"third"}
	g.run(late)
	if got := g.text(late.ID); got != "127.0.0.1 third\n" {
		t.Errorf("grown hosts: %q", got)
	}
	plain := g.spec("uname -n")
	g.run(plain)
	if name, _ := os.Hostname(); g.text(plain.ID) != name+"\n" {
		t.Errorf("plain step sees %q", g.text(plain.ID))
	}
}

// TestTracedFromOutside: a step ends though another process of its user, outside of it, traces its tasks: the kernel
// tells their end to that process alone, for as long as it lives.
func TestTracedFromOutside(t *testing.T) {
	runtime.LockOSThread() // which is the tracer
	defer runtime.UnlockOSThread()
	g := newRig(t)
	sp := g.spec("sleep 1000")
	sp.Tasks[0].Argv = []string{"/bin/sleep", "1000"}
	g.start(sp)
	pid := g.await(sp.ID, isRunning).Tasks[0].PID
	if _, _, no := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0); no != 0 {
		t.Skipf("no process can be traced here: %v", no)
	}
	defer func() { _, _ = unix.Wait4(pid, nil, unix.WALL, nil) }()
	if err := g.r.Signal(sp.ID, syscall.SIGKILL, step.All); err != nil {
		t.Fatal(err)
	}
	if st := g.await(sp.ID, isEnded); st.Tasks[0].Exit.Signal != 9 {
		t.Errorf("%+v", st.Tasks[0])
	}
}
