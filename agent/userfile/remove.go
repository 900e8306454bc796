package userfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	// maxDepth is how many folders lie in each other before those that are deeper are moved up.
	maxDepth = 32
	// maxRounds bounds how often a folder is looked at, in which the user may put more meanwhile.
	maxRounds = 100
)

// isFull are the answers of file systems to the removal of a folder that holds something.
var isFull = [...]error{unix.ENOTEMPTY, unix.EEXIST}

// Remove removes a folder that a user has filled, and follows no links. os.RemoveAll keeps a descriptor open for each
// level, so that folders in each other take all that the process may have; here what lies deep is moved up first.
func Remove(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.RemoveAll(dir) // there is none, or no folder
	}
	top := os.NewFile(uintptr(fd), dir)
	defer top.Close()
	_ = top.Chown(os.Geteuid(), -1) // whose it was puts nothing more there
	_ = top.Chmod(0o700)
	for {
		gone, err := removeIn(top, top, 0)
		if gone {
			continue
		}
		if err != nil {
			return err
		}
		return os.RemoveAll(dir)
	}
}

// removeIn removes the contents of a folder and reports whether it removed anything. Folders that it moves up to the
// top are removed in the next round.
func removeIn(top, dir *os.File, depth int) (gone bool, failed error) {
	_, _ = dir.Seek(0, io.SeekStart) // reading tells of an error
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			if err := removeOne(top, dir, name, depth); err != nil {
				failed = &os.PathError{Op: "remove", Path: dir.Name() + "/" + name, Err: err}
				continue
			}
			gone = true
		}
		if err == io.EOF {
			return gone, failed
		}
		if err != nil {
			return gone, err
		}
	}
}

// removeOne removes an entry of a folder.
func removeOne(top, dir *os.File, name string, depth int) error {
	at := int(dir.Fd())
	err := unix.Unlinkat(at, name, 0)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR); !slices.Contains(isFull[:], err) {
		return err
	}
	if depth >= maxDepth {
		up := fmt.Sprintf(".removed-%016x", rand.Uint64()) // nobody has put another there
		return unix.Renameat(at, name, int(top.Fd()), up)
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	below := os.NewFile(uintptr(fd), name)
	defer below.Close()
	for range maxRounds {
		if gone, _ := removeIn(top, below, depth+1); !gone {
			break
		}
	}
	return unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
}
