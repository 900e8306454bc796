package supervisor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A task's program is executed by a stub: a few instructions that the supervisor holds in memory. The standard library
// starts a process by vfork, during which the kernel stops the calling thread until the process has executed
// something, and the Go runtime waits for that thread. The program's file system is the user's choice, and may not
// answer for hours; so what is executed first is the stub, and the stub executes the program when nobody is stopped.
//
// The stub is called with the path of the program, then with the program's arguments. It writes the error of its
// execve, as a negative number of 8 bytes, to stubFD.

// stubFD is where the stub writes; programs never see it.
const stubFD = 9

// An ELF file of two segments (elf(5)): the code, and the note that the stack is not executable.
const (
	stubAddress   = 0x400000
	elfHeaderSize = 64
	elfEntrySize  = 56
	elfExecutable = 2
	segmentLoad   = 1
	segmentStack  = 0x6474e551
	readExecute   = 5
	readWrite     = 6
)

// elfFile is a program for the machine, which begins with the first instruction of code.
func elfFile(machine uint16, code []byte) []byte {
	le := binary.LittleEndian
	const head = elfHeaderSize + 2*elfEntrySize
	size := uint64(head + len(code))
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, elfExecutable)
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, stubAddress+head)
	b = le.AppendUint64(b, elfHeaderSize) // where the segments are listed
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{elfHeaderSize, elfEntrySize, 2, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, segmentLoad)
	b = le.AppendUint32(b, readExecute)
	for _, v := range []uint64{0, stubAddress, stubAddress, size, size, 1 << 16} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, segmentStack)
	b = le.AppendUint32(b, readWrite)
	b = append(b, make([]byte, elfEntrySize-8)...)
	return append(b, code...)
}

// stub is the program in memory; the zero stub executes programs directly.
type stub struct{ path string }

// makeStub holds the stub in memory, for as long as the process lives.
func makeStub() (s stub) {
	if stubCode == nil {
		return s
	}
	fd, err := memoryFile("muster-exec", elfFile(stubMachine, stubCode))
	if err == nil {
		s.path = fmt.Sprintf("/proc/self/fd/%d", fd)
		err = s.try()
	}
	if err != nil {
		slog.Warn("programs are executed without a stub: a file system that hangs holds up all steps", "err", err)
		return stub{}
	}
	return s
}

// memoryFile returns a descriptor of a file in memory that nobody can change.
func memoryFile(name string, text []byte) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if err == unix.EINVAL { // Linux before 6.3 does not know MFD_EXEC and does not need it
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	if _, err := unix.Write(fd, text); err != nil {
		return -1, os.NewSyscallError("write", err)
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return -1, os.NewSyscallError("seal", err)
	}
	defer unix.Close(fd)
	// Its number is one that no task has for something else.
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, stubFD+1)
}

// try finds out whether files in memory may be executed here (vm.memfd_noexec).
func (s stub) try() error {
	_, wait, err := s.exec("/", []string{"/"}, &syscall.ProcAttr{})
	if err != nil {
		return err
	}
	if err := wait(); !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("the stub answered %v", err)
	}
	return nil
}

// exec starts a process that executes a program. The caller calls wait, which returns the error of that.
func (s stub) exec(path string, argv []string, attr *syscall.ProcAttr) (pid int, wait func() error, err error) {
	if s.path == "" || len(attr.Files) > stubFD {
		pid, err = syscall.ForkExec(path, argv, attr)
		return pid, func() error { return nil }, err
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return 0, nil, os.NewSyscallError("pipe", err)
	}
	with := *attr
	with.Files = append([]uintptr(nil), attr.Files...)
	for len(with.Files) < stubFD {
		with.Files = append(with.Files, ^uintptr(0)) // closed
	}
	with.Files = append(with.Files, uintptr(p[1]))
	var sys syscall.SysProcAttr
	if attr.Sys != nil {
		sys = *attr.Sys
	}
	pidfd := -1
	sys.PidFD, with.Sys = &pidfd, &sys
	pid, err = syscall.ForkExec(s.path, append([]string{path}, argv...), &with)
	unix.Close(p[1])
	if err != nil {
		unix.Close(p[0])
		return 0, nil, err
	}
	return pid, func() error { return execError(p[0], pid, pidfd) }, nil
}

// execError waits until the stub has executed the program, has failed to, or is dead. That the pipe is closed does not
// tell so: another process of the user may hold its other end open, by /proc/PID/fd.
func execError(fd, pid, pidfd int) error {
	defer unix.Close(fd)
	if pidfd >= 0 { // else Linux before 5.4
		defer unix.Close(pidfd)
	}
	on := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(on, int(deadPause/time.Millisecond))
		if err != nil && err != unix.EINTR {
			return nil
		}
		if n > 0 && on[0].Revents != 0 {
			break
		}
		if n > 0 && on[1].Revents != 0 {
			return nil
		}
		if _, dead := deadStatus(pid); dead {
			return nil
		}
	}
	var answer [8]byte
	if n, err := unix.Read(fd, answer[:]); n < len(answer) || err != nil {
		return nil
	}
	return unix.Errno(-int64(binary.NativeEndian.Uint64(answer[:])))
}
