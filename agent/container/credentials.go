package container

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// mountFor mounts a file system at a path of root's. The kernel keeps the credentials of the thread that mounts an
// overlay, and writes to its upper folder with them whoever writes to the overlay. So the thread takes the user's ID
// for files, and goes without CAP_SYS_RESOURCE: with root's, the user's quota would not count, and the user could fill
// the blocks that a file system reserves for root.
func mountFor(uid uint32, kind, at, options string) (err error) {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	if err := unix.Capget(&head, &all[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	without := all
	without[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
	back, err := unix.SetfsuidRetUid(int(uid)) // this thread's alone; it takes the capabilities for files away
	if err == nil {
		err = unix.Capset(&head, &without[0])
	}
	if err == nil {
		err = unix.Mount(kind, at, kind, unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	_, failed := unix.SetfsuidRetUid(back)
	return errors.Join(err, failed, unix.Capset(&head, &all[0]))
}
