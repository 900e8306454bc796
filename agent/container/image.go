package container

import (
	"fmt"
	"path/filepath"
	"strings"

	"dev.muster/agent/container/enroot"
	"dev.muster/agent/userfile"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// IsPath reports whether an image is a path, which begins with / or ./ ; all else is an image of a
// registry.
func IsPath(image string) bool {
	return strings.HasPrefix(image, "/") || strings.HasPrefix(image, "./") || strings.HasPrefix(image, "../")
}

// PlainRef is what an image was asked for as, as one word that controls no terminal: a path may have any characters.
func PlainRef(image string) string {
	return strings.Join(strings.Fields(cluster.PlainLine(image)), "?")
}

// path is a user's path, seen from the step's directory.
func (s *Spec) path(dir string) string {
	return filepath.Clean(seenFrom(dir, s.Image))
}

// archives are the schemes of images in files that have to be unpacked.
var archives = []string{"oci:", "oci-archive:", "docker-archive:"}

// FileOf is the image that a text names, seen from a directory, if it is one in files.
func FileOf(image, dir string) (f File, ok bool) {
	for _, scheme := range archives {
		if rest, found := strings.CutPrefix(image, scheme); found {
			f.Packed = true
			image, f.Tag, _ = strings.Cut(rest, ":")
			break
		}
	}
	if !IsPath(image) && !f.Packed {
		return f, false
	}
	f.Path = filepath.Clean(seenFrom(dir, image))
	return f, true
}

// layoutFile is in each layout of the OCI.
const layoutFile = "oci-layout"

// squashMagic begins a squashfs.
const squashMagic = "hsqs"

// Look finds out whether it is to be unpacked, with the rights of the calling thread. Errors are reported when it is
// opened.
func (f *File) Look() {
	if f.Packed {
		return
	}
	st, err := userfile.Stat(f.Path)
	if err != nil {
		return
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		_, err := userfile.Stat(filepath.Join(f.Path, layoutFile))
		f.Packed = err == nil
		return
	}
	file, err := userfile.OpenRegular(f.Path)
	if err != nil {
		return
	}
	defer file.Close()
	var magic [len(squashMagic)]byte
	n, _ := file.ReadAt(magic[:], 0)
	f.Packed = n == len(magic) && string(magic[:]) != squashMagic && !strings.HasSuffix(f.Path, ".sqsh")
}

// Unbundle reads the bundle that the Spec names, with the user's rights, and has the Spec go by it; said is what of it
// has no effect.
func (s *Spec) Unbundle(dir string) (image Image, said string, err error) {
	b, err := readBundle(s.path(dir))
	if err != nil {
		return image, "", fmt.Errorf("--container: %w", err)
	}
	if b.Hooks {
		said = fmt.Sprintf("container: the hooks of %s are not run", s.Image)
	}
	s.Image = b.Root
	s.Writable = s.Writable || !b.ReadOnly
	site := enroot.Site{}
	if s.Site != nil {
		site = *s.Site
	}
	site.Mounts = append(site.Mounts[:len(site.Mounts):len(site.Mounts)], b.Mounts...)
	s.Site = &site
	return Image{Told: true, Config: Config{Env: b.Env, WorkDir: b.Dir}}, said, nil
}
