package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Restrictions of the node's mounts in a container, in addition to those on the node.
const (
	quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	still = unix.MOUNT_ATTR_RDONLY
)

// node opens something of the node, as root.
func (b *build) node(path string, s source) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := b.clone(b.keep(fd), path, &s, s.deep); err != nil {
		return err
	}
	b.sys = append(b.sys, s)
	return nil
}

// clone makes a mount of what is open, yet without a place, and with the rights that it shall have. It
// is made before the image is mounted, so that nothing of that is ever seen in it.
func (b *build) clone(fd int, path string, s *source, deep bool) (err error) {
	fail := func(err error) error { return &os.PathError{Op: "mount", Path: path, Err: err} }
	if s.dir, err = isDir(fd); err != nil {
		return fail(err)
	}
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH)
	if deep && s.dir {
		flags |= unix.AT_RECURSIVE
	}
	tree, err := unix.OpenTree(fd, "", flags)
	if err != nil {
		return fail(err)
	}
	s.fd = b.keep(tree)
	attr := unix.MountAttr{Attr_set: s.attr, Propagation: s.spread}
	if attr == (unix.MountAttr{}) {
		return nil
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	if err == unix.ENOSYS {
		err = errOld
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

func isDir(fd int) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

// openReadable opens what the user may read, or enter, for the caller to close.
func openReadable(b *build, path string) (fd int, dir bool, err error) {
	if fd, err = b.openFor(path, unix.O_PATH, 0); err != nil {
		return fd, dir, err
	}
	if dir, err = isDir(fd); err == nil {
		may := uint32(unix.R_OK)
		if dir {
			may = unix.X_OK
		}
		err = b.AsUser(func() error { return unix.Faccessat2(fd, "", may, unix.AT_EMPTY_PATH|unix.AT_EACCESS) })
	}
	if err != nil && err != unix.ENOSYS {
		unix.Close(fd)
		return -1, dir, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return fd, dir, nil
}

// attach mounts a source at its target.
func (b *build) attach(s source) error {
	to, err := b.target(s.target, s.dir)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	fail := func(err error) error { return &os.PathError{Op: "mount", Path: s.target, Err: err} }
	var fs unix.Statfs_t
	if err := unix.Fstatfs(to, &fs); err == nil && fs.Type == unix.PROC_SUPER_MAGIC && s.target != "/proc" {
		return fail(errors.New("nothing is mounted in /proc"))
	}
	if err := unix.MoveMount(s.fd, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fail(err)
	}
	return nil
}

// empty mounts a file system in memory, with a mode and a size; "": half of the memory. It is this container's own, as
// its descriptor says: another folder may meanwhile be at the path, which may be in a folder of the user's.
func (b *build) empty(path, mode, size string) error {
	fail := func(err error) error { return &os.PathError{Op: "mount", Path: path, Err: err} }
	to, err := b.target(path, true)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	tree, err := inMemory(mode, size)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(tree)
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return fail(err)
	}
	if err := unix.MoveMount(tree, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fail(err)
	}
	b.own[st.Dev] = true
	return nil
}

// inMemory makes a file system in memory, as a mount that has no place yet.
func inMemory(mode, size string) (tree int, err error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetString(fs, "mode", mode); err != nil {
		return -1, fmt.Errorf("mode=%s: %w", mode, err)
	}
	if size != "" {
		if err := unix.FsconfigSetString(fs, "size", size); err != nil {
			return -1, fmt.Errorf("size=%s: %w", size, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// target opens the place of a mount and makes it where it is missing: in the container's own file
// systems as root, elsewhere, that is in what the user has mounted, with the user's rights.
func (b *build) target(path string, dir bool) (fd int, err error) {
	fd, err = openTarget(b, path)
	if !errors.Is(err, unix.ENOENT) || path == "/" {
		return fd, err
	}
	parent, err := b.target(filepath.Dir(path), true)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	base := filepath.Base(path)
	err = b.in(parent, func() error {
		err := b.create(parent, base, dir)
		if err == unix.EEXIST { // a link to nothing, in the image
			if b.ours(parent) && unix.Unlinkat(parent, base, 0) == nil {
				return b.create(parent, base, dir)
			}
		}
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("make the mount point %s: %w", path, err)
	}
	fd, err = unix.Openat(parent, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// openTarget opens a place in the container with the user's rights. Folders of the image that are closed to the user
// are entered with those of root; what the user has mounted is not, since the answer would tell what is in it.
func openTarget(b *build, path string) (fd int, err error) {
	err = b.AsUser(func() error {
		fd, err = openPath(path, unix.O_PATH)
		return err
	})
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	if in, err := openPath(path, unix.O_PATH, unix.RESOLVE_NO_XDEV); !errors.Is(err, unix.EXDEV) {
		return in, err
	}
	return -1, err
}

func (b *build) create(parent int, base string, dir bool) error {
	if dir {
		return unix.Mkdirat(parent, base, 0o755)
	}
	fd, err := unix.Openat(parent, base, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// ours reports whether a folder is in a file system that is this container's alone.
func (b *build) ours(dir int) bool {
	var st unix.Stat_t
	return unix.Fstat(dir, &st) == nil && b.own[st.Dev]
}

// in does something in a folder: as root if that is the container's own, else as the user.
func (b *build) in(dir int, do func() error) error {
	if b.ours(dir) {
		return do()
	}
	return b.AsUser(do)
}
