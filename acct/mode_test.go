package acct

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"dev.muster/cluster"
)

// TestFilesAreClosedToOthers opens a new history and one whose files others could read.
func TestFilesAreClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	modes := func(what string) {
		t.Helper()
		n := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			n++
			info, err := d.Info()
			if err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has mode %v", what, path, info.Mode())
			}
			return err
		})
		if err != nil || n < 3 {
			t.Errorf("%s: %d files, %v", what, n, err)
		}
	}
	open := func(index uint64) *DB {
		d, err := Open(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		d.Apply(index, []cluster.Event{})
		if err := d.write(index); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := open(1)
	modes("new")
	for _, name := range []string{"history.db", "history.db-wal", "history.db-shm"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old := open(2) // beside, as after a kill: the files are there
	modes("old")
	if err := d.Restored(100); err != nil {
		t.Fatal(err)
	}
	modes("set aside")
	d.close()
	old.close()
}
