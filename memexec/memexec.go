// Package memexec replaces a process by a program that its binary carries: what needs cgo is a
// program of its own, and the product stays one static file. See docs/adr/0007-gpu-helper.md.
package memexec

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Become replaces this process by a program that is held in memory; name is what lists of processes
// show. It returns only if that is not possible: there is no such dynamic linker (musl), or memory
// may not be executed (vm.memfd_noexec).
func Become(name string, program []byte, words ...string) error {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if err == unix.EINVAL { // Linux before 6.3 does not know MFD_EXEC and does not need it
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return fmt.Errorf("hold %s in memory: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if _, err := f.Write(program); err != nil {
		return fmt.Errorf("hold %s in memory: %w", name, err)
	}
	argv := append([]string{name}, words...)
	if err := unix.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), argv, os.Environ()); err != nil {
		return fmt.Errorf("execute %s: %w", name, err)
	}
	return nil
}
