package sweep

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestIPC: of the kernel's tables the columns are found by name, and of a folder only what the user owns goes.
func TestIPC(t *testing.T) {
	table := strings.Join([]string{
		`       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid` +
			`      atime      dtime      ctime                   rss                  swap`,
		`         0          2  1600                524288  1201  1301      2  1000  1000  1000  1000` +
			` 1732240000 1732240000 1732240000                     0                     0`,
		`        17          5   600                  4096  1201  1301      0  1001  1000  1000  1000` +
			` 1732240000 1732240000 1732240000                     0                     0`,
		`        18          9   600                  4096  1201  1301      0  1000  1000  1000  1000` +
			` 1732240000 1732240000 1732240000                     0                     0`,
	}, "\n") + "\n"
	if ids := ipcOf(table, "shmid", 1000); !slices.Equal(ids, []int{2, 9}) {
		t.Error(ids)
	}
	if ids := ipcOf("", "semid", 1000); ids != nil {
		t.Error(ids)
	}
	if os.Getuid() != 0 {
		t.Skip("files of others need root")
	}
	dir := t.TempDir()
	for name, uid := range map[string]int{"a": 1000, "b": 1001, "c": 1000} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(dir, name), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	if gone := removeShared(dir, 1000, slog.New(slog.DiscardHandler)); gone != 2 {
		t.Errorf("%d are gone", gone)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) != 1 || filepath.Base(left[0]) != "b" {
		t.Error("left:", left)
	}
}

// TestDeepShared: folders that a user has put into each other take few of the daemon's descriptors.
func TestDeepShared(t *testing.T) {
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := unix.Mkdirat(at, "d", 0o700); err != nil {
			t.Fatal(err)
		}
		below, err := unix.Openat(at, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		at = below
	}
	unix.Close(at)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	gone := removeShared(dir, uint32(os.Getuid()), slog.New(slog.DiscardHandler))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); gone != 1 || len(left) > 0 {
		t.Errorf("%d are gone, %d left", gone, len(left))
	}
}
