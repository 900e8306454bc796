package sweep

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"dev.muster/gpu"
)

// TestProcess: of a process the name, the user and the beginning are known; of one that is gone nothing is.
func TestProcess(t *testing.T) {
	begun := time.Now()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	name, user, at, ok := process(cmd.Process.Pid)
	forked := strings.HasPrefix(name, "sleep") || strings.Contains(name, "test")
	if !ok || !forked || user != uint32(os.Getuid()) {
		t.Errorf("%q of %d, %v", name, user, ok)
	}
	if at.Before(begun.Add(-time.Second)) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("it began at %v, not %v", at, begun)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, _, _, ok := process(cmd.Process.Pid); ok {
		t.Error("it is gone, and is told of")
	}
}

// TestFalseServer: a process that only calls itself the service of the GPUs is left of its job like any other.
func TestFalseServer(t *testing.T) {
	cmd := exec.Command("sh", "-c", "echo nvidia-cuda-mps >/proc/$$/comm; echo; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	l := &GPU{Job: 7, User: uint32(os.Getuid())}
	got := l.processes([]gpu.Proc{{PID: cmd.Process.Pid}}, false)
	if !strings.Contains(got, "nvidia-cuda-mps") {
		t.Errorf("of the process is said: %q", got)
	}
}
