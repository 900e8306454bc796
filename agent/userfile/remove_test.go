package userfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRemove: a folder goes with all that it holds, and nothing that links lead to; folders in each other take few
// descriptors.
func TestRemove(t *testing.T) {
	top := t.TempDir()
	dir, outside := filepath.Join(top, "dir"), filepath.Join(top, "outside")
	for _, d := range []string{dir, outside, filepath.Join(dir, "wide")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(outside, "kept")
	for _, f := range []string{kept, filepath.Join(dir, "wide", "a"), filepath.Join(dir, "wide", "b")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []string{"link", "wide/link"} {
		if err := os.Symlink(outside, filepath.Join(dir, l)); err != nil {
			t.Fatal(err)
		}
	}
	const deep, each = 3000, 30
	at := dir
	for range deep / each {
		at = filepath.Join(at, strings.Repeat("d/", each))
		shorter(t, &at)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	err := Remove(dir)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	for _, name := range []string{dir, kept} { // one that is not there, and a file
		if err := Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// shorter makes a folder, and replaces its path by one of a descriptor: whole paths have a bound.
func shorter(t *testing.T, at *string) {
	t.Helper()
	if err := os.MkdirAll(*at, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(*at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	*at = fmt.Sprint("/proc/self/fd/", f.Fd())
}
