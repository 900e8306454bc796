package supervisor

import (
	"os"
	"path/filepath"
	"testing"
)

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
