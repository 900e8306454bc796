package container

import (
	"fmt"
	"os"
	"path/filepath"

	"dev.muster/agent/container/enroot"
	"golang.org/x/sys/unix"
)

// StoreOf is the folder of images and of what containers write: below ENROOT_DATA_PATH if that is set. It is root's
// alone, so nobody else may be able to put another in its place.
func StoreOf(s *enroot.Site, usual string) string {
	if s.Data() == "" {
		return usual
	}
	dir := filepath.Join(s.Data(), "muster")
	if os.Geteuid() != 0 {
		return dir
	}
	err := os.MkdirAll(dir, 0o700)
	for at := dir; err == nil && at != "/"; at = filepath.Dir(at) {
		err = roots(at)
	}
	if err != nil {
		s.Note("ENROOT_DATA_PATH has no effect, images are in %s: %v", usual, err)
		return usual
	}
	return dir
}

// roots says why what is in a folder may be replaced by others than root.
func roots(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	const others, sticky = 0o022, unix.S_ISVTX
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Uid != 0 || st.Mode&others != 0 && st.Mode&sticky == 0 {
		return fmt.Errorf("%s is no folder of root's in which others cannot rename what is there", dir)
	}
	return nil
}
