package container

import (
	"errors"
	"fmt"
	"os"
	"time"

	"dev.muster/agent/container/cdi"
	"dev.muster/agent/container/enroot"
	"golang.org/x/sys/unix"
)

// Maker makes the container of a step around the thread that calls Enter, which must have its own
// file system attributes (CLONE_FS) and be about to end: it does not come back.
type Maker struct {
	Spec     *Spec
	Image    Image
	Dir      string // the step's directory, for images by a path that begins with ./
	Step     string // names the step on this node
	Job      string // names the job on this node, if the container has a name
	Script   string // of the node, to be seen in place; "": none
	Folder   string // of the node, of the step's own, to be seen in place; "": none
	UID, GID uint32
	Env      []string // the job's
	// Hook runs a program of the site's as the user, with an environment; nil: there are none.
	Hook func(path string, env []string) error
	// AsUser does something with the user's rights on files.
	AsUser func(func() error) error
	// Owner is a user namespace in which the user is root.
	Owner func() (fd int, err error)
}

// build is a container that is being made.
type build struct {
	*Maker
	proc   int             // the node's /proc: the working directory, see fdName
	top    int             // the node's root
	root   int             // that of the image
	fds    []int           // to close
	own    map[uint64]bool // devices of file systems that are this container's alone
	sys    []source        // of the node, for every container
	user   []source        // that the user asked for
	extra  []source        // that the site asked for
	mapped bool            // the image's files are seen as the user's
	links  []cdi.Link      // to the libraries of the GPUs' driver
	config Config
	again  bool              // what its step has written is to be seen
	env    map[string]string // the job's variables, see get
}

// source is a file or folder of the node, as a mount that has no place yet.
type source struct {
	fd     int
	dir    bool
	deep   bool // with what is mounted below it
	target string
	attr   uint64        // of the mount, besides its own
	spread uint64        // whether what the node mounts below it later is seen; 0: it is
	site   *enroot.Mount // the site's line
}

func (b *build) close() {
	for _, fd := range b.fds {
		unix.Close(fd)
	}
}

func (b *build) keep(fd int) int {
	b.fds = append(b.fds, fd)
	return fd
}

// apart gives the thread mounts of its own. A mount that the node adds later, by an automounter above all,
// is seen in the container.
func (b *build) apart() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("keep its mounts to itself: %w", err)
	}
	for path, to := range map[string]*int{"/proc": &b.proc, "/": &b.top} {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: path, Err: err}
		}
		*to = b.keep(fd)
	}
	return nil
}

// How often and how far apart it is tried again to make a mount read-only that is "busy".
const (
	busyTries = 1000
	busyPause = time.Millisecond
)

// openPath opens a path without the links of /proc that lead anywhere: to a thread of the
// supervisor they would give what that has open, and out of the image. More restrictions (RESOLVE_*) may be given.
func openPath(path string, flags int, more ...uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_MAGICLINKS}
	for _, resolve := range more {
		how.Resolve |= resolve
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	switch err {
	case nil:
		return fd, nil
	case unix.ENOSYS:
		err = errOld
	case unix.ELOOP:
		err = errLoop
	}
	return -1, &os.PathError{Op: "open", Path: path, Err: err}
}

// fdName is a descriptor as a path, from the working directory that all is done in.
func fdName(fd int) string { return fmt.Sprintf("thread-self/fd/%d", fd) }

// openAs opens a path as openFor does, until the container is made.
func (b *build) openAs(path string, flags int, access uint32) (fd int, err error) {
	if fd, err = b.openFor(path, flags, access); err == nil {
		b.keep(fd)
	}
	return fd, err
}

// openFor opens a path with the user's rights, if the user has access.
func (b *build) openFor(path string, flags int, access uint32) (fd int, err error) {
	err = b.AsUser(func() error {
		if fd, err = openPath(path, flags); err != nil || access == 0 {
			return err
		}
		err := unix.Faccessat2(fd, "", access, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
		if err != nil && err != unix.ENOSYS {
			unix.Close(fd)
			return &os.PathError{Op: "read", Path: path, Err: err}
		}
		return nil
	})
	return fd, err
}

// rootAt makes a folder what "/" means to this thread.
func (b *build) rootAt(fd int) error {
	if err := errors.Join(unix.Fchdir(fd), unix.Chroot("."), unix.Fchdir(b.proc)); err != nil {
		return fmt.Errorf("enter the image: %w", err)
	}
	return nil
}

// duplicate is a file of a descriptor that stays open.
func duplicate(fd int, path string) (*os.File, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(dup), path), nil
}
