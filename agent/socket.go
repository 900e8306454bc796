package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"dev.muster/api"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// lockDir makes sure that one process uses a data folder.
func lockDir(dir string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("data folder %s is in use by another muster daemon", dir)
	}
	return func() { f.Close() }, nil
}

// Modes of sockets: who may call, the kernel says.
const (
	forAll    = 0o666
	forOwners = 0o600 // the daemon's own user, and root
)

// callers says who may call the local socket of a daemon of the user own. A daemon of an ordinary user's runs all jobs
// as that user: a job of somebody else would have the rights of the daemon's user.
func (cfg *Config) callers(own int) os.FileMode {
	runs := cfg.Client && !cfg.Login && (len(cfg.Hollow.Nodes) == 0 || cfg.Hollow.Exec)
	if runs && own != 0 {
		return forOwners
	}
	return forAll
}

// listen opens a socket for callers of this machine.
func listen(path string, mode os.FileMode) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make folder of the socket: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open local socket: %w", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	if mode == forOwners {
		return ownersOnly{ln}, nil
	}
	return ln, nil
}

type callerKey struct{}

// known is a connection whose other end was proved in another way than by the kernel.
type known interface{ Caller() api.Caller }

// peer asks the kernel who is at the other end.
func peer(conn net.Conn) (caller, error) {
	if k, ok := conn.(known); ok {
		return caller{Caller: k.Caller()}, nil
	}
	if u, ok := conn.(*userConn); ok {
		return u.from, nil
	}
	if m, ok := conn.(*memberConn); ok {
		return memberCaller(m)
	}
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return caller{}, errors.New("neither a unix socket nor a member's connection")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return caller{}, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return caller{}, err
	}
	if cerr != nil {
		return caller{}, cerr
	}
	return caller{Caller: api.Caller{PID: int(cred.Pid), Identity: cluster.Identity{UID: cred.Uid, GID: cred.Gid,
		Admin: cred.Uid == uint32(os.Getuid())}}}, nil
}
