package container

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// loopTries is how often another free loop device is asked for: others may take the one that was
// free.
const loopTries = 16

// squashed mounts a file system in a file of the user's. The kernel reads it, so an operator may refuse it.
func (b *build) squashed(at string) error {
	path := b.Spec.path(b.Dir)
	if b.Spec.NoSquashfs {
		return fmt.Errorf("--container-image: %s: squashfs files are not mounted here (ContainerSquashfs=no in "+
			"muster.conf): name an image of a registry, a folder or an archive", path)
	}
	fd, err := b.openAs(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("--container-image: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("--container-image: %s is no file", path)
	}
	dev, device, err := loop(fd)
	if err != nil {
		return fmt.Errorf("--container-image: %s: this node has no loop device for it: %w", path, err)
	}
	defer unix.Close(dev)
	err = unix.Mount(device, at, "squashfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
	switch err {
	case unix.ENODEV:
		return fmt.Errorf("--container-image: %s: this node's kernel has no squashfs (modprobe squashfs)", path)
	case unix.EINVAL:
		return fmt.Errorf("--container-image: %s is no squashfs that this kernel reads", path)
	case nil:
		return nil
	}
	return &os.PathError{Op: "mount", Path: path, Err: err}
}

// loop gives a file a block device, which goes when nobody has it any more.
func loop(file int) (dev int, path string, err error) {
	ctl, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, "", &os.PathError{Op: "open", Path: "/dev/loop-control", Err: err}
	}
	defer unix.Close(ctl)
	for range loopTries {
		n, err := unix.IoctlRetInt(ctl, unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return -1, "", os.NewSyscallError("LOOP_CTL_GET_FREE", err)
		}
		path = fmt.Sprintf("/dev/loop%d", n)
		dev, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, "", &os.PathError{Op: "open", Path: path, Err: err}
		}
		cfg := unix.LoopConfig{Fd: uint32(file)}
		cfg.Info.Flags = unix.LO_FLAGS_READ_ONLY | unix.LO_FLAGS_AUTOCLEAR
		if err = unix.IoctlLoopConfigure(dev, &cfg); err == nil {
			return dev, path, nil
		}
		unix.Close(dev)
		if err != unix.EBUSY {
			return -1, "", os.NewSyscallError("LOOP_CONFIGURE", err)
		}
	}
	return -1, "", errors.New("others take them all")
}
