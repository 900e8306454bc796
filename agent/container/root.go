package container

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// Enter makes the container and goes in. All that a user names is opened with that user's rights;
// all that the image names is looked up with the image as the root, so that none of its links leads
// out.
func (m *Maker) Enter() (Config, error) {
	if os.Geteuid() != 0 {
		return Config{}, errAsRoot
	}
	if err := m.Spec.Check(); err != nil {
		return Config{}, err
	}
	b := &build{Maker: m, proc: -1, top: -1, own: map[uint64]bool{}, config: m.Image.Config}
	defer b.close()
	for _, do := range []func(*build) error{(*build).apart, unshare, (*build).open, (*build).stage, environ,
		runAllHooks, (*build).inside, (*build).leave} {
		if err := do(b); err != nil {
			return Config{}, err
		}
	}
	return b.config, nil
}

// stage mounts the image where only this thread sees it, below what the step writes.
func (b *build) stage() error {
	mnt := filepath.Join(b.Spec.Store, "mnt")
	if err := os.MkdirAll(mnt, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", mnt, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0700"); err != nil {
		return &os.PathError{Op: "mount", Path: mnt, Err: err}
	}
	lower, write := filepath.Join(mnt, "lower"), filepath.Join(mnt, "write")
	for _, d := range []string{lower, write, filepath.Join(mnt, "root")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := b.lower(lower); err != nil {
		return err
	}
	if err := b.upper(lower, write); err != nil {
		return err
	}
	if err := unix.Chdir(mnt); err != nil { // relative names: others may have a comma or a colon in them
		return err
	}
	const options = "lowerdir=lower,upperdir=write/up,workdir=write/work,redirect_dir=nofollow,metacopy=off,index=off"
	err := mountFor(b.UID, "overlay", "root", options)
	if errors.Is(err, unix.EINVAL) && b.mapped {
		return fmt.Errorf("mount the image with its files as the user's: %w (it takes Linux 5.19)", err)
	}
	if err != nil {
		return fmt.Errorf("mount the image (overlay): %w", err)
	}
	root, err := unix.Open("root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b.root = b.keep(root)
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return err
	}
	b.own[st.Dev] = true
	return b.rootAt(b.root)
}

// upper makes the folder that takes what is written: in memory, or on the disk for a container that
// may be written to.
func (b *build) upper(lower, write string) error {
	if b.Spec.Writable && b.Spec.NoWritable {
		return errors.New("--container-writable: containers are read-only here (ContainerWritable=no in " +
			"muster.conf): write below /tmp, or below a folder of --container-mounts")
	}
	if b.Spec.Writable || b.Job != "" {
		disk, err := b.writes()
		if err != nil {
			return err
		}
		if err := unix.Mount(disk, write, "", unix.MS_BIND, ""); err != nil {
			return &os.PathError{Op: "mount", Path: disk, Err: err}
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(lower, &st); err != nil {
		return &os.PathError{Op: "stat", Path: lower, Err: err}
	}
	up := filepath.Join(write, "up")
	if err := os.Mkdir(filepath.Join(write, "work"), 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	if err := os.Mkdir(up, 0o755); err != nil {
		if os.IsExist(err) { // of an earlier step
			return nil
		}
		return err
	}
	return errors.Join(os.Chmod(up, os.FileMode(st.Mode&0o777)), os.Chown(up, int(st.Uid), int(st.Gid)))
}

// writes is where a container writes to on the disk: a step's own begins empty.
func (b *build) writes() (string, error) {
	if b.Job != "" {
		return b.Spec.keptAt(b.Job), nil
	}
	disk := StepDir(b.Spec.Store, b.Step)
	if b.again {
		return disk, nil
	}
	return disk, errors.Join(userfile.Remove(disk), os.MkdirAll(disk, 0o700))
}

// StepDir is what a step has on the disk, to be removed at its end.
func StepDir(store, step string) string { return filepath.Join(store, "steps", step) }

// lower mounts the files of the image.
func (b *build) lower(at string) error {
	var err error
	switch {
	case b.Image.Root != "":
		err = unix.Mount(b.Image.Root, at, "", unix.MS_BIND, "")
	case b.isFolder(): // the user's own: what is not the user's in it stays so
		return b.folder(at)
	default:
		err = b.squashed(at)
	}
	if err != nil {
		return err
	}
	err = b.chown(at)
	b.mapped = err == nil
	if err != nil && b.Spec.Writable {
		return fmt.Errorf("--container-writable: the image's files cannot be the user's here "+
			"(%w; it takes Linux 5.19 and user namespaces)", err)
	}
	return nil
}

// chown has root's files below a mount point seen as the user's.
func (b *build) chown(at string) error {
	owner, err := b.Owner()
	if err != nil {
		return fmt.Errorf("make a user namespace: %w", err)
	}
	defer unix.Close(owner)
	fd, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open_tree: %w", err)
	}
	defer unix.Close(fd)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(owner)}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// isFolder reports whether the user's image is a folder; what cannot be looked at is told as one.
func (b *build) isFolder() bool {
	path := b.Spec.path(b.Dir)
	var st unix.Stat_t
	err := b.AsUser(func() (err error) {
		st, err = userfile.Stat(path)
		return err
	})
	return err != nil && !strings.HasSuffix(path, ".sqsh") || err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// folder mounts a folder of the user's.
func (b *build) folder(at string) error {
	path := b.Spec.path(b.Dir)
	fd, err := b.openAs(path, unix.O_PATH|unix.O_DIRECTORY, unix.R_OK|unix.X_OK)
	if err != nil {
		return fmt.Errorf("--container-image: %w", err)
	}
	if below, err := b.findMount(fd); err != nil || below != "" {
		return cmp.Or(err, fmt.Errorf("--container-image: %s has another file system below it, at %s, which an image "+
			"cannot contain: copy the files to a folder of their own", path, below))
	}
	s := source{}
	if err := b.clone(fd, path, &s, false); err != nil {
		return err
	}
	return unix.MoveMount(s.fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// findMount returns a mount point below an open folder, or "". Without what is mounted there, its user could see the
// files that the mount hides. The kernel refuses such a clone to users for the same reason.
func (b *build) findMount(dir int) (string, error) {
	name := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(b.proc, fdName(dir), name)
	if err != nil {
		return "", &os.PathError{Op: "readlink", Path: fdName(dir), Err: err}
	}
	fd, err := unix.Openat(b.proc, "thread-self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: "mountinfo", Err: err}
	}
	f := os.NewFile(uintptr(fd), "mountinfo")
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	return mountBelow(string(text), string(name[:n])), nil
}

// mountBelow returns the first mount point of a mountinfo that is below a folder, or "".
func mountBelow(mountinfo, dir string) string {
	dir = strings.TrimSuffix(dir, "/") + "/"
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		if at := unescapeMount(f[4]); len(at) > len(dir) && strings.HasPrefix(at, dir) {
			return at
		}
	}
	return ""
}

// unescapeMount decodes the characters that a mountinfo writes as \ooo.
func unescapeMount(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if n, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8); err == nil {
			b.WriteByte(byte(n))
			after = after[3:]
		}
		s = after
	}
}

// leave makes the image the root for good: nothing of the node is left but what was mounted.
func (b *build) leave() error {
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b.keep(root)
	if err := errors.Join(unix.Fchdir(b.top), unix.Chroot("."), unix.Fchdir(root)); err != nil {
		return fmt.Errorf("leave the image: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the node's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if b.Spec.Writable {
		return nil
	}
	const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	err = unix.Mount("", "/", "", flags, "")
	for try := 0; err == unix.EBUSY && try < busyTries; try++ {
		// The child of another launcher, between its fork and its exec, still has a file open that was
		// written here.
		time.Sleep(busyPause)
		err = unix.Mount("", "/", "", flags, "")
	}
	if err != nil {
		return fmt.Errorf("make the image read-only: %w", err)
	}
	return nil
}
