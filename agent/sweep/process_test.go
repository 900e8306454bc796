package sweep

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
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
