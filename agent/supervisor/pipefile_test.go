package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// TestOutputPipe: a task whose output is a named pipe that nobody reads begins, and can be killed; who reads later
// has its output.
func TestOutputPipe(t *testing.T) {
	g := newRig(t)
	pipe := filepath.Join(g.own, "pipe")
	if err := unix.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	unread := g.spec("head -c 1000000 /dev/zero; exit 3")
	unread.Tasks[0].Stdout = step.IO{Kind: step.File, Path: pipe}
	g.start(unread)
	g.await(unread.ID, func(st step.Status) bool { return st.Tasks[0].PID > 0 })
	if err := g.r.Signal(unread.ID, syscall.SIGKILL, step.All); err != nil {
		t.Fatal(err)
	}
	g.await(unread.ID, isEnded)

	later := g.spec("echo out; read x <" + g.fifo("go"))
	later.Tasks[0].Stdout = step.IO{Kind: step.File, Path: pipe}
	g.start(later)
	g.await(later.ID, func(st step.Status) bool { return st.Tasks[0].PID > 0 })
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 4)
	if _, err := f.Read(line); err != nil || string(line) != "out\n" {
		t.Errorf("read %q, %v", line, err)
	}
	os.WriteFile(filepath.Join(g.own, "go"), []byte("\n"), 0)
	g.await(later.ID, isEnded)
}

// TestInputPipe: a task whose input is a named pipe waits some seconds for somebody who writes into it, however
// late the first line comes, and then says why it does not begin.
func TestInputPipe(t *testing.T) {
	g := newRig(t)
	pipe := filepath.Join(g.own, "pipe")
	if err := unix.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	alone := g.spec("cat")
	alone.Tasks[0].Stdin = step.IO{Kind: step.File, Path: pipe}
	began := time.Now()
	st := g.run(alone)
	if took := time.Since(began); took > 2*userfile.WriterTime || !strings.Contains(st.Tasks[0].Error, "nobody writes into this pipe") {
		t.Errorf("after %v: %q", took, st.Tasks[0].Error)
	}
	fed := g.spec("read x; echo got $x")
	fed.Tasks[0].Stdin = step.IO{Kind: step.File, Path: pipe}
	g.start(fed)
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	g.await(fed.ID, func(st step.Status) bool { return st.Tasks[0].PID > 0 }) // though nothing is written yet
	if _, err := w.WriteString("it\n"); err != nil {
		t.Fatal(err)
	}
	g.await(fed.ID, isEnded)
	if got := g.text(fed.ID); got != "got it\n" {
		t.Errorf("output %q", got)
	}
}
