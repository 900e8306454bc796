package front

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"dev.muster/cluster"
)

// Calls of a terminal that srun --pty needs. The packages that offer it (golang.org/x/term and x/sys) are
// initialized after the daemons' libraries, which would double a front-end's start (ADR 0002).

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// OnTerminal reports whether what is written is seen on a terminal.
func OnTerminal(w io.Writer) bool {
	if p, ok := w.(*plainText); ok {
		w = p.w
	}
	f, ok := w.(*os.File)
	return ok && IsTerminal(f)
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	var mode syscall.Termios
	return ioctl(f, syscall.TCGETS, unsafe.Pointer(&mode)) == nil
}

// InForeground reports whether this process is in the foreground of the terminal.
func InForeground(f *os.File) bool {
	var group int32
	return ioctl(f, syscall.TIOCGPGRP, unsafe.Pointer(&group)) == nil && int(group) == syscall.Getpgrp()
}

// TerminalSize is how many rows and columns a terminal has.
func TerminalSize(f *os.File) (cluster.Winsize, error) {
	var size struct{ rows, cols, width, height uint16 }
	err := ioctl(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size))
	return cluster.Winsize{Rows: size.rows, Cols: size.cols}, err
}

// MakeRaw lets every key through as it is, as cfmakeraw does.
func MakeRaw(f *os.File) (restore func(), err error) {
	var old syscall.Termios
	if err := ioctl(f, syscall.TCGETS, unsafe.Pointer(&old)); err != nil {
		return nil, err
	}
	raw := old
	raw.Iflag &^= syscall.IGNBRK | syscall.BRKINT | syscall.PARMRK | syscall.ISTRIP | syscall.INLCR | syscall.IGNCR | syscall.ICRNL | syscall.IXON
	raw.Oflag &^= syscall.OPOST
	raw.Lflag &^= syscall.ECHO | syscall.ECHONL | syscall.ICANON | syscall.ISIG | syscall.IEXTEN
	raw.Cflag = raw.Cflag&^(syscall.CSIZE|syscall.PARENB) | syscall.CS8
	raw.Cc[syscall.VMIN], raw.Cc[syscall.VTIME] = 1, 0
	if err := ioctl(f, syscall.TCSETS, unsafe.Pointer(&raw)); err != nil {
		return nil, err
	}
	return func() { _ = ioctl(f, syscall.TCSETS, unsafe.Pointer(&old)) }, nil
}
