package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Which images of the store are in use: the image of a step is not removed under it.
//
//	uses/STEP    the image that a step runs in, by its folder's name in images

// Use writes down which image a step runs in, until Unuse.
func (i *Image) Use(store, step string) error {
	if i.Root == "" {
		return nil
	}
	dir := filepath.Join(store, usesName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, step), []byte(NameOf(*i)), 0o600)
}

// Unuse is the end of Use.
func Unuse(store, step string) error {
	err := os.Remove(filepath.Join(store, usesName, step))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// NameOf is the name of an image's folder in images.
func NameOf(i Image) string { return filepath.Base(filepath.Dir(i.Root)) }

// InUse are the images, by the names of their folders, of steps that run and of containers that jobs keep.
func InUse(store string) (map[string]bool, error) {
	in := map[string]bool{}
	steps, err := filepath.Glob(filepath.Join(store, usesName, "*"))
	if err != nil {
		return nil, err
	}
	for _, f := range steps {
		text, err := os.ReadFile(f)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		in[strings.TrimSpace(string(text))] = true
	}
	named, err := filepath.Glob(filepath.Join(store, "jobs", "*", "*", keptFile))
	if err != nil {
		return nil, err
	}
	for _, f := range named {
		k, err := readKept(f)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if i := (Image{Root: k.Root}); k.Root != "" {
			in[NameOf(i)] = true
		}
	}
	return in, nil
}
