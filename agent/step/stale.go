package step

import (
	"fmt"
	"net"
	"os"
)

// pid is the supervisor's process id, as the kernel says.
func (r *Remote) pid() (int, error) {
	r.mu.Lock()
	conn := r.conn
	r.mu.Unlock()
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, ErrClosed
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	cred, err := peer(raw)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// Instance is the supervisor's process: its id and when it started, which an upgrade in place keeps.
func (r *Remote) Instance() string {
	pid, err := r.pid()
	if err != nil {
		return ""
	}
	st, ok := ReadProcess(pid)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d@%d", pid, st.Start)
}

// Stale reports whether the supervisor runs another program file than exe: it was started before
// an upgrade.
func (r *Remote) Stale(exe string) (bool, error) {
	pid, err := r.pid()
	if err != nil {
		return false, err
	}
	theirs, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false, fmt.Errorf("look at the supervisor's program: %w", err)
	}
	ours, err := os.Stat(exe)
	if err != nil {
		return false, err
	}
	return !os.SameFile(theirs, ours), nil
}
