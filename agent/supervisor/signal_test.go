package supervisor

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSignalListed: a process is signalled only while its number is listed, since that may be another process's by then.
func TestSignalListed(t *testing.T) {
	begin := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	in, moved, spared := begin(), begin(), begin()
	pids := []int{in.Process.Pid, spared.Process.Pid, moved.Process.Pid}
	looks := 0
	list := func() []int { looks++; return slices.Clone(pids[:len(pids)-min(looks-1, 1)]) }
	sent := map[int]bool{}
	except := func(pid int) bool { return pid == spared.Process.Pid }
	if !signalListed(list, unix.SIGTERM, sent, except) {
		t.Error("it has found none")
	}
	if err := in.Wait(); in.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGTERM {
		t.Errorf("the one that is listed: %v", err)
	}
	time.Sleep(50 * time.Millisecond) // for what is not to happen
	for name, cmd := range map[string]*exec.Cmd{"not listed any more": moved, "excepted": spared} {
		var ws unix.WaitStatus
		if pid, err := unix.Wait4(cmd.Process.Pid, &ws, unix.WNOHANG, nil); pid != 0 || err != nil {
			t.Errorf("the one that is %s: %v, %v", name, ws.Signal(), err)
		}
	}
	if signalListed(list, unix.SIGTERM, sent, except) {
		t.Error("it has found one a second time")
	}
}
