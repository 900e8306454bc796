package supervisor

import "golang.org/x/sys/unix"

const ntPRStatus = 1

// stackPointer is the stack pointer of a stopped traced process, 0 if unknown.
func stackPointer(pid int) uintptr {
	var r unix.PtraceRegsArm64
	if unix.PtraceGetRegSetArm64(pid, ntPRStatus, &r) != nil {
		return 0
	}
	return uintptr(r.Sp)
}
