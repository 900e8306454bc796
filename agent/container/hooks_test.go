package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHookFiles: a hook of the user's cannot fill its folder with so many files that the start of its step waits for
// their removal, and what it has written is gone with them.
func TestHookFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	dir := t.TempDir()
	h := hookFiles{dir: dir, rootfs: filepath.Join(dir, "rootfs")}
	own := filepath.Join(dir, "files")
	h.environ, h.mounts, h.config = filepath.Join(own, "environ"), filepath.Join(own, "mounts"), filepath.Join(own, "config")
	done := make(chan error)
	go func() { // on a thread that ends with its mounts
		runtime.LockOSThread()
		done <- func() error {
			if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "")); err != nil {
				return err
			}
			b := &build{Maker: &Maker{UID: 65534, GID: 65534}}
			if err := lay(b, h, own, []string{"A=b"}); err != nil {
				return err
			}
			var err error
			n := 0
			for ; err == nil && n <= hookNodes; n++ {
				err = os.Mkdir(filepath.Join(own, fmt.Sprint(n)), 0o700)
			}
			h.remove(own)
			if !errors.Is(err, unix.ENOSPC) {
				return fmt.Errorf("%d folders fit: %w", n, err)
			}
			return nil
		}()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}
