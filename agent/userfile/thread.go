package userfile

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Act does something on the calling thread, which must be locked, with the user's effective IDs and groups and without
// capabilities. It is for what has to be done in the namespace of a thread that is root's, the mounts of a container
// above all: paths must be opened by Open there, because /proc/self shows what the whole process has open. An error of
// the change itself is returned before do is called.
func Act(as Identity, do func() error) error {
	if os.Geteuid() != 0 || as.UID == 0 && as.GID == 0 {
		return do()
	}
	groups, err := unix.Getgroups()
	if err != nil {
		return os.NewSyscallError("getgroups", err)
	}
	gid := os.Getegid()
	defer takeBack(gid, groups)
	if err := takeOn(as); err != nil {
		return err
	}
	return do()
}

// Apart does something as Act does, on a thread of its own that ends with it.
func Apart(as Identity, do func() error) error {
	done := make(chan error, 1)
	go func() { // the thread is not used again
		runtime.LockOSThread()
		done <- Act(as, do)
	}()
	return <-done
}

// keep leaves an ID as it is (setresuid(2)).
const keep = ^uintptr(0)

// takeOn gives this thread alone the user's effective IDs. The real and the saved ones stay root's: so no process of
// the user may signal the thread or look into it, and it can come back. The kernel clears the effective capabilities.
func takeOn(as Identity) error {
	if err := unlessFixed(SetGroups(as.Groups)); err != nil {
		return err
	}
	_, _, gidErr := unix.RawSyscall(unix.SYS_SETRESGID, keep, uintptr(as.GID), keep)
	_, _, uidErr := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(as.UID), keep)
	if no := cmp.Or(gidErr, uidErr); no != 0 {
		return fmt.Errorf("take on the user's IDs: %w", no)
	}
	return nil
}

// takeBack makes the thread root's again. If that fails it has fewer rights, never more.
func takeBack(gid int, groups []int) {
	old := make([]uint32, len(groups))
	for i, g := range groups {
		old[i] = uint32(g)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETRESUID, keep, 0, keep)
	_, _, _ = unix.RawSyscall(unix.SYS_SETRESGID, keep, uintptr(gid), keep)
	_ = SetGroups(old)
}

// SetGroups sets the supplementary groups of this thread alone.
func SetGroups(list []uint32) error {
	first := unsafe.Pointer(unsafe.SliceData(list))
	_, _, no := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(list)), uintptr(first), 0)
	if no != 0 {
		return fmt.Errorf("take on the user's groups: %w", no)
	}
	return nil
}
