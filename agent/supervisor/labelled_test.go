package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
	"golang.org/x/sys/unix"
)

// TestLabelledFile: tasks that share a file write whole lines into it, each with its label, though the supervisor
// is replaced in the middle of one; a line without an end gets one.
func TestLabelledFile(t *testing.T) {
	g := newRig(t)
	in := g.fifo("in")
	path := filepath.Join(g.own, "out")
	sp := g.spec("")
	sp.Tasks = []step.Task{
		{Rank: 0, Argv: []string{"sh", "-c", "printf half; read x <" + in + "; echo ' whole'; printf 'no end' >&2"},
			Stdout: step.IO{Kind: step.File, Path: path, Label: "0: "}, Stderr: step.IO{Kind: step.Same}},
		{Rank: 1, Argv: []string{"sh", "-c", "printf 'a\nb\n'"},
			Stdout: step.IO{Kind: step.File, Path: path, Label: "1: "}, Stderr: step.IO{Kind: step.Same}},
	}
	g.start(sp)
	g.await(sp.ID, func(st step.Status) bool { return !st.Tasks[1].Ended.IsZero() })
	if err := g.r.Upgrade(""); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(in, []byte("go on\n"), 0)
	listen(t, g.stream(sp.ID), func(stream.Frame) {}, func() {}) // to the end of all output
	b, err := os.ReadFile(path)
	if want := "1: a\n1: b\n0: half whole\n0: no end\n"; err != nil || string(b) != want {
		t.Errorf("%q, %v, want %q", b, err, want)
	}
}

// TestAwaitFiles: once a step is said to be over, what its tasks wrote last is in their labelled file.
func TestAwaitFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	ours, tasks, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := newOutput(&run{})
	o.addSource(&source{fd: 1, f: ours, labelled: &labelledFile{f: file, label: "0: ", longest: longestLine}})
	if _, err := tasks.WriteString("first\nlast"); err != nil {
		t.Fatal(err)
	}
	tasks.Close()
	o.awaitFiles()
	if text, err := os.ReadFile(name); string(text) != "0: first\n0: last\n" {
		t.Errorf("%q %v", text, err)
	}
}

// TestManyLines: lines of a task that are short cost the supervisor about what they are long.
func TestManyLines(t *testing.T) {
	file, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &labelledFile{f: file, label: "0: ", longest: longestLine}
	defer w.end(nil, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := w.write([]byte(strings.Repeat("\n", stream.MaxData)), nil, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 100*stream.MaxData {
		t.Errorf("%d bytes of memory for %d bytes of output", took, stream.MaxData)
	}
}

// TestFullPipes: labelled files that take nothing hold no threads of the supervisor, whose program the runtime would end
// if they were many, and neither its replacement nor the end of their step.
func TestFullPipes(t *testing.T) {
	needRoot(t)
	g := newRig(t)
	pipe := g.fifo("full") // which the supervisor has open itself, so it stays full
	const tasks = 200
	sp := g.asBob(func(sp *step.Spec) {
		sp.Tasks = nil
		for rank := range tasks {
			link := fmt.Sprintf("%s-%d", pipe, rank)
			if err := os.Symlink(pipe, link); err != nil {
				t.Fatal(err)
			}
			sp.Tasks = append(sp.Tasks, step.Task{Rank: rank, Argv: []string{"sh", "-c", "exec yes"},
				Stdout: step.IO{Kind: step.File, Path: link, Label: "x: "}, Stderr: step.IO{Kind: step.Same}})
		}
	})
	g.start(sp)
	g.await(sp.ID, isRunning)
	threads := func() int {
		t.Helper()
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", g.supervisorPID()))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	end, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	awaitFull(t, end)
	if n := threads(); n > maxWriting {
		t.Errorf("%d threads for %d tasks", n, tasks)
	}
	began := time.Now()
	if err := g.r.Upgrade(""); err != nil {
		t.Fatal(err)
	}
	if n, took := threads(), time.Since(began); n > maxWriting || took > pauseTime {
		t.Errorf("an upgrade takes %v, then there are %d threads for %d tasks", took, n, tasks)
	}
	if err := g.r.Signal(sp.ID, unix.SIGKILL, step.All); err != nil {
		t.Fatal(err)
	}
	g.await(sp.ID, isEnded)
}

// awaitFull waits until a pipe takes no more.
func awaitFull(t *testing.T, pipe *os.File) {
	t.Helper()
	for range 400 {
		ready := []unix.PollFd{{Fd: int32(pipe.Fd()), Events: unix.POLLOUT}}
		if n, err := unix.Poll(ready, 0); err == nil && n == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the pipe does not become full")
}

// TestGateOfUser: of writes that hold their threads a user has only some at a time, and the others end with the output.
func TestGateOfUser(t *testing.T) {
	var all gates
	mine := all.ofUser(bob)
	for range maxWriting {
		mine <- struct{}{}
	}
	halt, done := make(chan struct{}), make(chan error, 1)
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	w := newLabelledFile(fd, file.Name(), "0: ", 1)
	go func() { done <- w.write([]byte("line\nhalf"), mine, halt) }()
	other := newLabelledFile(int(file.Fd()), file.Name(), "1: ", 1)
	if err := other.write([]byte("hers\n"), all.ofUser(alice), halt); err != nil {
		t.Error(err)
	}
	close(halt)
	if err := <-done; !errors.Is(err, errHalted) {
		t.Error(err)
	}
	<-mine
	if begun, late := w.state(); string(begun) != "half" || string(late) != "0: line\n" {
		t.Errorf("%q and %q are kept", begun, late)
	}
	w.end(mine, nil)
	if text, err := os.ReadFile(file.Name()); string(text) != "1: hers\n0: line\n0: half\n" {
		t.Errorf("%q %v", text, err)
	}
}

// TestLongestOf: lines without an end take the supervisor about as much for many tasks as for one.
func TestLongestOf(t *testing.T) {
	for files, want := range map[int]int{0: longestLine, 1: longestLine, 2: longestLine, 100: lineBytes / 100, 10000: shortestLine} {
		if got := longestOf(files); got != want {
			t.Errorf("%d files: %d, want %d", files, got, want)
		}
	}
}
