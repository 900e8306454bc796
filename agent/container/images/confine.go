package images

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"
)

// The store belongs to root, so that a user's programs can neither change images nor see those of others. The helper
// that writes it therefore runs as root, but with few capabilities, without a way to gain new ones, and within limits.

const (
	// maxData bounds the helper's memory; it uses some 50 MiB, and a layer packed by zstd may need 128 more.
	maxData = 2 << 30
	// softMemory is when it begins to give memory back.
	softMemory = 128 << 20
	// maxCPU bounds its computing time in seconds: 64 GiB take a few minutes.
	maxCPU = 3600
)

// kept are the capabilities that the helper needs: to write into folders of the image that have no write bit, and to
// take on the user's rights for files and programs of the user's.
var kept = [...]uint{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL, unix.CAP_SETGID,
	unix.CAP_SETUID}

// confinedEnv marks the program that runs without the privileges that it does not need.
const confinedEnv = "MUSTER_IMAGE_CONFINED"

// confine drops the privileges that the helper does not need. It restarts the program, because a thread can drop them
// only for itself, and the new program starts with a single thread.
func confine() error {
	if os.Getenv(confinedEnv) != "" {
		debug.SetMemoryLimit(softMemory)
		return os.Unsetenv(confinedEnv)
	}
	for what, most := range map[int]uint64{
		unix.RLIMIT_DATA: maxData, unix.RLIMIT_CPU: maxCPU, unix.RLIMIT_CORE: 0,
	} {
		if err := lower(what, most); err != nil {
			return err
		}
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), confinedEnv+"=1"))
}

// dropCapabilities leaves a program of root's that this thread executes the kept ones.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.Contains(kept[:], uint(c)) {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		// Older kernels lack some of them, and a node that is itself a container cannot drop all.
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

// lower lowers a limit of this process, unless it is lower.
func lower(what int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(what, &now); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	now.Max = min(now.Max, most)
	now.Cur = min(now.Cur, now.Max)
	return os.NewSyscallError("setrlimit", unix.Setrlimit(what, &now))
}
