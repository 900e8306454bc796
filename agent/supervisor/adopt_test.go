package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
	"golang.org/x/sys/unix"
)

func TestAdopt(t *testing.T) {
	g := newRig(t)
	in, gone := g.fifo("in"), g.fifo("gone")
	ended := g.spec("exit 6")
	lives := g.spec("read x <" + in + "; exit 7")
	dies := g.spec("echo $$ >" + gone + "; sleep 1000")
	g.run(ended)
	g.start(lives, dies)
	pid := atoi(t, g.readFifo(gone))
	g.await(lives.ID, isRunning)
	g.await(dies.ID, isRunning)
	sup := g.supervisorPID()
	// The task dies while no supervisor is there: if init has reaped it, nobody can tell how it ended.
	syscall.Kill(sup, syscall.SIGSTOP)
	fd, err := unix.PidfdOpen(sup, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	syscall.Kill(pid, syscall.SIGKILL)
	clear(g.st)
	syscall.Kill(sup, syscall.SIGKILL)
	if st := g.await(ended.ID, isEnded); st.Tasks[0].Exit.Code != 6 {
		t.Errorf("ended: %+v", st)
	}
	if st := g.await(dies.ID, isEnded); !st.Tasks[0].Lost && st.Tasks[0].Exit.Signal != 9 {
		t.Errorf("died meanwhile: %+v", st)
	}
	if st := g.await(lives.ID, isRunning); st.Tasks[0].PID == 0 {
		t.Errorf("lives: %+v", st)
	}
	if g.supervisorPID() == sup {
		t.Error("still the old supervisor")
	}
	os.WriteFile(in, []byte("\n"), 0)
	st := g.await(lives.ID, isEnded)
	if k := st.Tasks[0]; k.Lost && kernelTells() || !k.Lost && k.Exit.Code != 7 {
		t.Errorf("lives: %+v", st)
	}
	again := g.spec("exit 1")
	if st := g.run(again); st.Tasks[0].Exit.Code != 1 {
		t.Errorf("%+v", st)
	}
}

// TestAnotherBoot: after the machine was restarted a process with a task's number is somebody else's: the task is lost.
func TestAnotherBoot(t *testing.T) {
	g := newRig(t)
	sp := g.spec("sleep 1000")
	g.start(sp)
	pid := g.await(sp.ID, isRunning).Tasks[0].PID
	sup, file := g.supervisorPID(), filepath.Join(g.dir, step.JournalName)
	syscall.Kill(sup, syscall.SIGSTOP)
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), bootID()) {
		t.Fatalf("%v, the journal does not name this boot: %s", err, text)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), bootID(), "another-boot", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	clear(g.st)
	syscall.Kill(sup, syscall.SIGKILL)
	if st := g.await(sp.ID, isEnded); !st.Tasks[0].Lost || st.Tasks[0].PID != pid {
		t.Errorf("%+v", st)
	}
}

// kernelTells reports whether the kernel tells exit codes by pidfd, and init reaps.
func kernelTells() bool {
	var u unix.Utsname
	unix.Uname(&u)
	v := unix.ByteSliceToString(u.Release[:])
	return strings.HasPrefix(v, "6.18") && os.Getenv("CI") == ""
}

func TestAdoptedIsKilled(t *testing.T) {
	g := newRig(t)
	sp := g.spec("sleep 1000 & sleep 1000")
	g.start(sp)
	g.await(sp.ID, isRunning)
	clear(g.st)
	syscall.Kill(g.supervisorPID(), syscall.SIGKILL)
	pid := g.await(sp.ID, isRunning).Tasks[0].PID
	if err := g.r.Signal(sp.ID, syscall.SIGKILL, step.All); err != nil {
		t.Fatal(err)
	}
	g.await(sp.ID, isEnded)
	if st, ok := step.ReadProcess(pid); ok && st.Alive() {
		t.Error("adopted task lives")
	}
}

// TestStreamAfterLoss: the pipes die with a supervisor; the client is still told the end.
func TestStreamAfterLoss(t *testing.T) {
	g := newRig(t)
	sp := g.streamSpec(1, "echo one; read x; exit 3")
	g.start(sp)
	s := g.stream(sp.ID)
	h := listen(t, s, func(f stream.Frame) {
		if f.Kind == stream.Stdout {
			s.Input(stream.AllTasks, nil)
			pid := g.supervisorPID()
			syscall.Kill(pid, syscall.SIGKILL)
			awaitGone(t, pid)
			g.await(sp.ID, isEnded) // and so there is a supervisor again
			s.Input(stream.AllTasks, []byte("lost\n"))
		}
	})
	if e := h.exits[10]; h.out[10] != "one\n" || !e.Lost && e.Code != 3 {
		t.Errorf("%+v", h)
	}
}

func TestUpgrade(t *testing.T) {
	g := newRig(t)
	sp := g.streamSpec(2, "while read x; do echo $x; done; exit 5")
	g.start(sp)
	s := g.stream(sp.ID)
	g.await(sp.ID, isRunning)
	sup := g.supervisorPID()
	lines := 0
	h := listen(t, s, func(f stream.Frame) {
		if f.Kind != stream.Stdout || f.Task != 10 {
			return
		}
		lines++
		switch {
		case lines < 5:
			s.Input(stream.AllTasks, []byte("more\n"))
			if err := g.r.Upgrade(""); err != nil {
				t.Errorf("upgrade: %v", err)
			}
		case lines == 5:
			s.InputEOF(stream.AllTasks)
		}
	}, func() { s.Input(stream.AllTasks, []byte("first\n")) })
	want := "first\nmore\nmore\nmore\nmore\n"
	if h.out[10] != want || h.out[11] != want || h.exits[10].Code != 5 || h.exits[11].Code != 5 {
		t.Errorf("%+v", h)
	}
	if g.supervisorPID() != sup {
		t.Error("another process")
	}
	st := g.await(sp.ID, isEnded)
	if st.Tasks[0].Lost || st.Tasks[0].Usage.UserCPU+st.Tasks[0].Usage.SystemCPU == 0 {
		t.Errorf("%+v", st)
	}
}
