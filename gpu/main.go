package gpu

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// plainFlag makes the helper look without NVML.
const plainFlag = "--plain"

// HelperMain is the helper process, muster internal gpu-helper [--plain]. A program that was built without NVML (open
// is nil) becomes the one with it that it carries, if it carries one and that runs here; see docs/adr/0007-gpu-helper.md.
func HelperMain(args []string, open func() Source) int {
	var src Source
	if !slices.Contains(args, plainFlag) {
		if open != nil {
			src = open()
		} else if len(carried) > 0 {
			fmt.Fprintln(os.Stderr, "muster gpu helper: going on without NVML:", become(carried))
		}
	}
	Serve(context.Background(), os.Stdin, os.Stdout, src)
	return 0
}

// become replaces this process by a program that is held in memory; it returns only if that is not possible: there is
// no such dynamic linker (musl), or memory may not be executed (vm.memfd_noexec).
func become(program []byte) error {
	fd, err := unix.MemfdCreate("muster-gpu", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if err == unix.EINVAL { // Linux before 6.3 does not know MFD_EXEC and does not need it
		fd, err = unix.MemfdCreate("muster-gpu", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return fmt.Errorf("hold the GPU helper in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "muster-gpu")
	defer f.Close()
	if _, err := f.Write(program); err != nil {
		return fmt.Errorf("hold the GPU helper in memory: %w", err)
	}
	if err := unix.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), []string{"muster-gpu"}, os.Environ()); err != nil {
		return fmt.Errorf("execute the GPU helper: %w", err)
	}
	return nil
}
