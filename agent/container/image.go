package container

import (
	"path/filepath"
	"strings"
)

// IsPath reports whether an image is a path, which begins with / or ./ ; all else is an image of a
// registry.
func IsPath(image string) bool {
	return strings.HasPrefix(image, "/") || strings.HasPrefix(image, "./") || strings.HasPrefix(image, "../")
}

// IsSquashed reports whether an image is a file system in a file.
func IsSquashed(image string) bool {
	return IsPath(image) && (strings.HasSuffix(image, ".sqsh") || strings.HasSuffix(image, ".squashfs"))
}

// path is a user's path, seen from the step's directory.
func (s *Spec) path(dir string) string {
	if filepath.IsAbs(s.Image) {
		return filepath.Clean(s.Image)
	}
	return filepath.Join(dir, s.Image)
}
