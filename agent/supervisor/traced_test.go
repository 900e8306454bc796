package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// heldPipe is a pipe whose end for writing somebody else holds open for good.
func heldPipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

// TestHeldStub: a stub that is dead is waited for no longer, though another process holds its pipe open.
func TestHeldStub(t *testing.T) {
	read, _ := heldPipe(t)
	fd, err := unix.Dup(int(read.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- execError(fd, cmd.Process.Pid, -1) }()
	select {
	case err := <-done:
		t.Errorf("the wait ends before the process: %v", err)
	case <-time.After(2 * deadPause):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * deadPause):
		t.Error("the wait goes on though the process is dead")
	}
	_ = cmd.Wait()
}

// TestHeldHelper: a helper that has ended is waited for no longer, though another process of its user holds its output
// open, which /proc/PID/fd gives to any of them.
func TestHeldHelper(t *testing.T) {
	s := &supervisor{stops: map[int]chan earlyWait{}, early: map[int]earlyWait{}, pids: map[int]*task{},
		born: make(chan struct{}, 1)}
	go func() { // the reaper of this test's child
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			s.mu.Lock()
			for pid := range s.stops {
				var e earlyWait
				if got, err := unix.Wait4(pid, &e.ws, unix.WNOHANG, &e.ru); err == nil && got == pid {
					s.reaped(pid, e)
				}
			}
			s.mu.Unlock()
		}
	}()
	file := filepath.Join(t.TempDir(), "pid")
	held := make(chan *os.File, 1)
	go func() {
		for range 1000 {
			time.Sleep(5 * time.Millisecond)
			var pid int
			text, _ := os.ReadFile(file)
			if _, err := fmt.Sscan(string(text), &pid); err == nil {
				f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", pid), os.O_WRONLY, 0)
				if err != nil {
					t.Error(err)
				}
				held <- f
				return
			}
		}
	}()
	r := &run{sup: s, spec: step.Spec{}}
	j := &job{l: &launcher{sup: s}, r: r}
	began := time.Now()
	argv := []string{"/bin/sh", "-c", "echo $$ >" + file + "; echo said; sleep 1; exit 3"}
	said, ws, err := j.helper(argv, []string{"PATH=/usr/bin:/bin"}, "/", 0)
	if took := time.Since(began); err != nil || ws.ExitStatus() != 3 || string(said) != "said\n" || took > 10*time.Second {
		t.Errorf("after %v: %q, %v, %v", took, said, ws, err)
	}
	(<-held).Close()
}
