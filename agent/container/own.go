package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dev.muster/agent/container/enroot"
	"golang.org/x/sys/unix"
)

// Users' own files of enroot, in ENROOT_CONFIG_PATH or ~/.config/enroot: variables, mounts and
// hooks, which come after the site's. All of it is opened with their rights, and no link of /proc is followed.

// maxOwn bounds the files of a kind.
const maxOwn = 64

// readOwn has the Spec go by the user's files, too.
func readOwn(b *build) error {
	dir := b.get("ENROOT_CONFIG_PATH")
	if dir == "" {
		home := b.get("HOME")
		if home == "" {
			home = b.Spec.Home
		}
		dir = filepath.Join(home, ".config", "enroot")
	}
	if !filepath.IsAbs(dir) || b.Spec.Bundle {
		return nil
	}
	site := *b.Spec.site()
	own, left := enroot.Site{}, maxOwnBytes
	for _, kind := range enroot.Kinds {
		if err := readOwnKind(b, &own, kind, filepath.Join(dir, kind.Dir), &left); err != nil {
			return err
		}
	}
	site.Environ = slices.Concat(site.Environ, own.Environ)
	site.Mounts = slices.Concat(site.Mounts, own.Mounts)
	site.Hooks = slices.Concat(site.Hooks, own.Hooks)
	b.Spec.Site = &site
	return nil
}

// readOwnKind reads a folder of files of one kind, of at most left bytes; one that is not there says nothing.
func readOwnKind(b *build, own *enroot.Site, kind enroot.Kind, dir string, left *int) error {
	fd, err := b.openAs(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return nil // a home that the user has no access to either has none
	}
	if err != nil {
		return err
	}
	f, err := duplicate(fd, dir)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxOwnNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(names) > maxOwnNames {
		return fmt.Errorf("%s has more than %d names", dir, maxOwnNames)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, kind.Ending) })
	slices.Sort(names)
	if len(names) > maxOwn {
		return fmt.Errorf("%s has more than %d files", dir, maxOwn)
	}
	for _, n := range names {
		path := filepath.Join(dir, n)
		if kind.Add == nil {
			if err := ownHook(b, own, path); err != nil {
				return err
			}
			continue
		}
		text, err := readHook(b, path, 0)
		if err != nil {
			return err
		}
		if *left -= len(text); *left < 0 {
			return fmt.Errorf("%s: with it your files of enroot have more than %d bytes", path, maxOwnBytes)
		}
		if err := kind.Add(own, path, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// ownHook takes a program that is run before the container is entered, unless it is one of enroot's own.
func ownHook(b *build, own *enroot.Site, path string) error {
	fd, err := b.openAs(path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o111 != 0 && !enroot.Stock(path) {
		own.Hooks = append(own.Hooks, path)
	}
	return nil
}
