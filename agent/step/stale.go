package step

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Stale reports whether the supervisor runs another program file than exe: it was started before
// an upgrade.
func (r *Remote) Stale(exe string) (bool, error) {
	r.mu.Lock()
	conn := r.conn
	r.mu.Unlock()
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return false, ErrClosed
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return false, err
	}
	if cerr != nil {
		return false, cerr
	}
	theirs, err := os.Stat(fmt.Sprintf("/proc/%d/exe", cred.Pid))
	if err != nil {
		return false, fmt.Errorf("look at the supervisor's program: %w", err)
	}
	ours, err := os.Stat(exe)
	if err != nil {
		return false, err
	}
	return !os.SameFile(theirs, ours), nil
}
