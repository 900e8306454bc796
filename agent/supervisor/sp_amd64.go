package supervisor

import "golang.org/x/sys/unix"

// stackPointer is the stack pointer of a stopped traced process, 0 if unknown.
func stackPointer(pid int) uintptr {
	var r unix.PtraceRegs
	if unix.PtraceGetRegs(pid, &r) != nil || r.Cs == 0x23 { // a 32-bit program
		return 0
	}
	return uintptr(r.Rsp)
}
