package layers

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKeepFree: a layer that comes leaves some of a small file system to others, and so does the next one.
func TestKeepFree(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256m"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	const digest = "sha256:00"
	w, err := Folder(dir).Create(KeyOf("registry/image", digest), digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(2 * lookEvery); err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 1<<20)
	for range 2 * lookEvery / len(piece) {
		if _, err = w.Write(piece); err != nil {
			break
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%d bytes were written: %v", w.At, err)
	}
	if err := w.Abandon(); err != nil {
		t.Error(err)
	}
	for range lookEvery / len(piece) {
		err = (&Room{On: os.Stdin}).Take(1)
	}
	if err != nil {
		t.Error("small pieces are refused: ", err)
	}
}
