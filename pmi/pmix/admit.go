//go:build cgo && linux

package pmix

import (
	"os"

	"dev.muster/pmi/sockowner"
	"golang.org/x/sys/unix"
)

// The library listens at a port of 127.0.0.1, and believes who connects which user that is: any user of the node could
// take part in the step, and end it. So a connection is asked for only where the kernel says that it is the user's.

// admits reports whether the other end of a connection is this process's user's.
func admits(fd int) bool {
	here, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	there, err := unix.Getpeername(fd)
	if err != nil {
		return false
	}
	near, ok := here.(*unix.SockaddrInet4)
	far, same := there.(*unix.SockaddrInet4)
	if !ok || !same {
		return false
	}
	uid, err := sockowner.Find(far, near)
	return err == nil && uid == uint32(os.Geteuid())
}
