package packaging

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"dev.muster/durable"
)

// action is one thing that an installation does. It is idempotent: what is done already is not done again.
type action struct {
	text string
	// group is what is told once for many actions, but in a dry run.
	group string
	done  func() (bool, error)
	do    func() error
}

// of puts an action into a group.
func (a action) of(group string) action {
	a.group = group
	return a
}

// disk is the machine's files, or those below a folder that will be a machine's.
type disk struct{ root string }

func (d disk) path(p string) string { return filepath.Join(d.root, p) }

func (d disk) exists(p string) bool {
	_, err := os.Lstat(d.path(p))
	return err == nil
}

// regular reports whether there is a plain file of these permissions.
func (d disk) regular(p string, mode fs.FileMode) (bool, error) {
	st, err := os.Lstat(d.path(p))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Mode().IsRegular() && st.Mode().Perm() == mode, err
}

// file is an action that makes a file what it should be, in one moment.
func (d disk) file(p string, mode fs.FileMode, text []byte) action {
	return action{text: "write " + p, done: func() (bool, error) {
		if ok, err := d.regular(p, mode); !ok {
			return false, err
		}
		have, err := os.ReadFile(d.path(p))
		return bytes.Equal(have, text), err
	}, do: func() error { return d.write(p, mode, bytes.NewReader(text)) }}
}

// copied is an action that makes a file the same as another one of this machine.
func (d disk) copied(p string, mode fs.FileMode, from string) action {
	return action{text: "write " + p, done: func() (bool, error) {
		if ok, err := d.regular(p, mode); !ok {
			return false, err
		}
		return sameContent(d.path(p), from)
	}, do: func() error {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		return errors.Join(d.write(p, mode, f), f.Close())
	}}
}

// write puts a file beside its place, on the disk for good, and moves it there: a program that runs from the old one
// goes on, and nobody sees half of the new one.
func (d disk) write(p string, mode fs.FileMode, from io.Reader) error {
	to := d.path(p)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return durable.Write(to, from, mode)
}

// link is an action that makes a symbolic link.
func (d disk) link(p, target string) action {
	return action{text: "link " + p + " to " + target, done: func() (bool, error) {
		have, err := os.Readlink(d.path(p))
		return err == nil && have == target, nil
	}, do: func() error {
		to := d.path(p)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		fresh := filepath.Join(filepath.Dir(to), ".muster-link")
		if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Symlink(target, fresh); err != nil {
			return err
		}
		return durable.Rename(fresh, to)
	}}
}

// folder is an action that makes a folder.
func (d disk) folder(p string, mode fs.FileMode) action {
	return action{text: "make folder " + p, done: func() (bool, error) { return d.exists(p), nil }, do: func() error {
		if err := os.MkdirAll(d.path(p), mode); err != nil {
			return err
		}
		return os.Chmod(d.path(p), mode)
	}}
}

// removed is an action that takes a file or an empty folder away.
func (d disk) removed(p string) action {
	return action{
		text: "remove " + p, done: func() (bool, error) { return !d.exists(p), nil },
		do: func() error { return os.Remove(d.path(p)) },
	}
}

// cleared is an action that takes a folder away with all that is in it.
func (d disk) cleared(p string) action {
	return action{
		text: "remove " + p + " and all in it", done: func() (bool, error) { return !d.exists(p), nil },
		do: func() error { return os.RemoveAll(d.path(p)) },
	}
}

// moved is an action that gives a file another name.
func (d disk) moved(from, to string) action {
	return action{text: "move " + from + " to " + to, done: func() (bool, error) { return !d.exists(from), nil },
		do: func() error { return durable.Rename(d.path(from), d.path(to)) }}
}

// sameContent compares two files.
func sameContent(a, b string) (bool, error) {
	x, err := digest(a)
	if err != nil {
		return false, err
	}
	y, err := digest(b)
	return x == y, err
}

func digest(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, fmt.Errorf("read %s: %w", path, err)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}
