package supervisor

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
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
	o.addSource(&source{fd: 1, f: ours, labelled: &labelledFile{f: file, label: "0: "}})
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
	w := &labelledFile{f: file, label: "0: "}
	defer w.end()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.write([]byte(strings.Repeat("\n", stream.MaxData)))
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 100*stream.MaxData {
		t.Errorf("%d bytes of memory for %d bytes of output", took, stream.MaxData)
	}
}
