package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSimFolder: what can not be written at the end is refused before the replay.
func TestSimFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"": "", dir + "/x-": "", dir + "/none/x-": "no such file or directory; make that folder", file + "/x-": "it is no folder"} {
		err := checkFolder("out", path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("--out %q: %v, want %q", path, err, want)
		}
	}
}
