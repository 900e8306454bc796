// Package durable puts files where others stood. Whoever reads the path sees the old file whole or the
// new one whole, also after a crash of this program.
//
// Write, WriteFile and Rename hold that through a crash of the machine too: the text is on the disk before
// the name is, and the name before they return. They wait for the disk, which may hang: call them with no
// lock held that others need. Swap does not wait; it is for what a machine that crashed has lost anyway.
//
// It knows nothing of what it writes and imports no other package of ours.
package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile puts a text at the path, on the disk for good. The folder must be there.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	return Write(path, bytes.NewReader(text), mode)
}

// Write puts all that a reader gives at the path, on the disk for good. The folder must be there.
func Write(path string, from io.Reader, mode fs.FileMode) error {
	return replace(path, from, mode, true)
}

// Swap puts a text at the path without waiting for the disk: a crash of the machine may lose it.
func Swap(path string, text []byte, mode fs.FileMode) error {
	return replace(path, bytes.NewReader(text), mode, false)
}

// Rename gives a file that is on the disk its place, for good.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// replace writes beside the path and moves that there. It removes a file that it cannot finish.
func replace(path string, from io.Reader, mode fs.FileMode, wait bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(fill(f, from, mode, wait), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	if !wait {
		return nil
	}
	return syncFolder(filepath.Dir(path))
}

func fill(f *os.File, from io.Reader, mode fs.FileMode, wait bool) error {
	if _, err := io.Copy(f, from); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if !wait {
		return nil
	}
	return f.Sync()
}

// syncFolder has the names in a folder written.
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
