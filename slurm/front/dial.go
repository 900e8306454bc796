package front

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"dev.muster/api"
)

// Connections without package net, which would be initialized at every start of a front-end.

// DialLocal reaches the daemon of this machine.
func DialLocal(context.Context) (conn api.Conn, err error) {
	for _, s := range Sockets(os.Getenv) {
		if conn, err = DialUnix(s); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// DialUnix connects to a socket of this machine.
func DialUnix(path string) (api.Conn, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, errClose(fd, err))
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // so that deadlines work
		return nil, errClose(fd, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func errClose(fd int, err error) error {
	_ = syscall.Close(fd)
	return err
}

// Through starts one of muster's own programs, whose file 3 is the other end of the connection, and which finds the
// environment of this one.
func Through(program, word string) (api.Conn, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open sockets: %w", err)
	}
	far := os.NewFile(uintptr(pair[1]), "tunnel")
	defer far.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"muster", "internal", program, word},
		&os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, nil, os.Stderr, far},
			Sys: &syscall.SysProcAttr{Setsid: true}}) // a terminal's ^C is for the command alone
	if err != nil {
		return nil, errClose(pair[0], fmt.Errorf("start the tunnel: %w", err))
	}
	go func() { _, _ = p.Wait() }() // ends with the program
	if err := syscall.SetNonblock(pair[0], true); err != nil {
		return nil, errClose(pair[0], err)
	}
	return os.NewFile(uintptr(pair[0]), word), nil
}
