package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func TestReplace(t *testing.T) {
	ways := map[string]func(path string, text []byte, mode fs.FileMode) error{"WriteFile": WriteFile, "Swap": Swap}
	for name, put := range ways {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "key")
			for _, text := range []string{"old", "new and longer", ""} {
				if err := put(path, []byte(text), 0o640); err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(path)
				if err != nil || string(got) != text {
					t.Fatalf("%q, %v; want %q", got, err, text)
				}
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode() != 0o640 {
				t.Fatalf("mode %v, %v; want 0640 whatever the umask", info.Mode(), err)
			}
			if left := names(t, dir); len(left) != 1 {
				t.Errorf("left beside it: %q", left)
			}
		})
	}
}

// breaking gives some text and then an error.
type breaking struct{ said bool }

var errBroken = errors.New("the other side hung up")

func (b *breaking) Read(p []byte) (int, error) {
	if b.said {
		return 0, errBroken
	}
	b.said = true
	return copy(p, "half"), nil
}

// TestBroken: a text that does not come whole leaves the old file, and nothing beside it.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	var from io.Reader = &breaking{}
	err := Write(path, from, 0o600)
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v; want the cause and the path", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("the file holds %q", got)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("left beside it: %q", left)
	}
}

func TestNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "key")
	if err := WriteFile(path, nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the folder is not there", err)
	}
}

func TestRename(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "part"), filepath.Join(dir, "whole")
	if err := os.WriteFile(from, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if left := names(t, dir); len(left) != 1 || left[0] != "whole" {
		t.Errorf("the folder holds %q", left)
	}
	if err := Rename(from, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v for a file that is not there", err)
	}
}
