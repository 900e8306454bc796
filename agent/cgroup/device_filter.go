package cgroup

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The device filter is a program of a dozen instructions, written out here: the library for such programs brings what
// reads debug information, whose initialisation every command would wait for.

// Operations of the kernel's virtual machine (Documentation/bpf/standardization/instruction-set.rst) and the
// registers used.
const (
	loadWord = 0x61 // dst = *(u32 *)(src + offset)
	andValue = 0x57
	setValue = 0xb7
	ifEqual  = 0x15
	ifOther  = 0x55
	exitNow  = 0x95

	regResult, regContext, regMajor, regMinor, regAccess = 0, 1, 2, 3, 4

	charDevice = 2 // BPF_DEVCG_DEV_CHAR
	allowMulti = 2 // BPF_F_ALLOW_MULTI
)

// denial is a program that lets a group open every device but these. Its context is three words: the access, with the
// kind of device in the low half, major, and minor (struct bpf_cgroup_dev_ctx).
func denial(denied []Device) (code []byte) {
	put := func(op, dst, src byte, offset int16, value uint32) {
		code = binary.NativeEndian.AppendUint16(append(code, op, dst|src<<4), uint16(offset))
		code = binary.NativeEndian.AppendUint32(code, value)
	}
	// left is how many instructions there are from device i to the end of the list.
	left := func(i int) int16 { return int16(2 * (len(denied) - i)) }
	put(loadWord, regAccess, regContext, 0, 0)
	put(andValue, regAccess, 0, 0, 0xffff)
	put(loadWord, regMajor, regContext, 4, 0)
	put(loadWord, regMinor, regContext, 8, 0)
	put(ifOther, regAccess, 0, left(0), charDevice) // to allow
	for i, d := range denied {
		put(ifOther, regMajor, 0, 1, d.Major)
		put(ifEqual, regMinor, 0, left(i), d.Minor) // to deny
	}
	put(setValue, regResult, 0, 0, 1) // allow
	put(exitNow, 0, 0, 0, 0)
	if len(denied) > 0 { // the kernel refuses what cannot be reached
		put(setValue, regResult, 0, 0, 0) // deny
		put(exitNow, 0, 0, 0, 0)
	}
	return code
}

// loadFilter has the kernel check a program; its descriptor is the caller's to close.
func loadFilter(code []byte) (int, error) {
	license := []byte("MIT\x00")
	attr := struct { // union bpf_attr
		kind, count                uint32
		code, license              uint64
		logLevel, logSize          uint32
		logBuf                     uint64
		kernelVersion, programFlag uint32
	}{kind: unix.BPF_PROG_TYPE_CGROUP_DEVICE, count: uint32(len(code) / 8),
		code: uint64(uintptr(unsafe.Pointer(&code[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	fd, _, no := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(code)
	runtime.KeepAlive(license)
	if no != 0 {
		return -1, os.NewSyscallError("load a device filter", no)
	}
	unix.CloseOnExec(int(fd))
	return int(fd), nil
}

// canFilter reports whether this kernel takes such programs.
func canFilter() bool {
	fd, err := loadFilter(denial([]Device{{1, 3}}))
	if err != nil {
		return false
	}
	return unix.Close(fd) == nil
}

// filterDevices denies devices to a group of the unified hierarchy and all below it, for as long as it lives, whoever
// does.
func filterDevices(dir string, denied []Device) error {
	program, err := loadFilter(denial(denied))
	if err != nil {
		return err
	}
	defer unix.Close(program)
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer unix.Close(fd)
	attr := struct{ target, program, kind, flags uint32 }{
		uint32(fd), uint32(program), unix.BPF_CGROUP_DEVICE, allowMulti,
	}
	_, _, no := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_ATTACH, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr))
	if no != 0 {
		return fmt.Errorf("attach the device filter to %s: %w", dir, no)
	}
	return nil
}

// Device is a character device.
type Device struct {
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
}

// DeviceAt finds the character device of a path; false if there is none.
func DeviceAt(name string) (Device, bool) {
	var st unix.Stat_t
	if unix.Stat(name, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return Device{}, false
	}
	return Device{unix.Major(st.Rdev), unix.Minor(st.Rdev)}, true
}
