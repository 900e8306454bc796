// Package early runs the programs that must start in about a millisecond: the Slurm front-ends. Go
// initialises packages in the order of their import paths as soon as what they import is ready, and
// this module's path sorts before those of the libraries that only the daemons use; so this init
// runs, and exits, before raft, SQLite, net or the metrics initialise. TestTidyInit checks the
// order. See docs/adr/0002-early-dispatch.md.
package early

import (
	"context"
	"fmt"
	"os"
	"path"
	"syscall"

	"dev.muster/api"
	"dev.muster/slurm"
	"dev.muster/slurm/front"
)

func init() {
	args := os.Args
	if len(args) == 0 {
		return
	}
	name := path.Base(args[0])
	if !slurm.IsCommand(name) {
		if len(args) < 2 || !slurm.IsCommand(args[1]) {
			return
		}
		name, args = args[1], args[1:]
	}
	sys := front.RealSys(name)
	sys.Dial, sys.Args = Dial, append([]string{name}, args[1:]...)
	if code := sys.ByToken(reach); code >= 0 {
		os.Exit(code)
	}
	os.Exit(slurm.Main(args, sys))
}

// Dial reaches the local daemon over its unix socket, without package net.
func Dial(context.Context) (conn api.Conn, err error) {
	for _, s := range front.Sockets(os.Getenv) {
		if conn, err = dial(s); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func dial(path string) (api.Conn, error) {
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

// reach has another process of this program reach a server over the network, since package net is not for this one.
// That process finds the token in its environment.
func reach(_ context.Context, urls string) (api.Conn, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open sockets: %w", err)
	}
	far := os.NewFile(uintptr(pair[1]), "tunnel")
	defer far.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"muster", "internal", "reach", urls},
		&os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, nil, os.Stderr, far},
			Sys: &syscall.SysProcAttr{Setsid: true}}) // a terminal's ^C is for the command alone
	if err != nil {
		return nil, errClose(pair[0], fmt.Errorf("start the tunnel: %w", err))
	}
	_ = p.Release()
	if err := syscall.SetNonblock(pair[0], true); err != nil {
		return nil, errClose(pair[0], err)
	}
	return os.NewFile(uintptr(pair[0]), urls), nil
}
