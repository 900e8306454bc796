package agent

import (
	"io"
	"net"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// dialAs connects to a socket as a user: the kernel notes who that is when the connection is made.
func dialAs(t *testing.T, path string, uid int) net.Conn {
	t.Helper()
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() { // on a thread that ends with it
		runtime.LockOSThread()
		if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); no != 0 {
			done <- dialled{nil, no}
			return
		}
		conn, err := net.Dial("unix", path)
		done <- dialled{conn, err}
	}()
	d := <-done
	if d.err != nil {
		t.Fatal(d.err)
	}
	t.Cleanup(func() { d.conn.Close() })
	return d.conn
}

// TestConnectionsOfUser: a user who keeps many connections open keeps nobody else out.
func TestConnectionsOfUser(t *testing.T) {
	if syscall.Getuid() != 0 {
		t.Skip("needs root, to be two users")
	}
	dir := t.TempDir()
	for d := dir; d != "/tmp" && d != "/"; d = filepath.Dir(d) {
		_ = syscall.Chmod(d, 0o755)
	}
	ln, err := listen(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	bound := boundConns(ln)
	bound.most = 2
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := bound.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	isOpen := func(c net.Conn) bool {
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		return err != io.EOF
	}
	first := dialAs(t, ln.Addr().String(), 1000)
	dialAs(t, ln.Addr().String(), 1000)
	if !isOpen(first) || isOpen(dialAs(t, ln.Addr().String(), 1000)) {
		t.Error("the third connection of a user is open, or the first is not")
	}
	if !isOpen(dialAs(t, ln.Addr().String(), 1001)) || !isOpen(dialAs(t, ln.Addr().String(), 0)) {
		t.Error("others are kept out")
	}
	c := <-accepted
	who, err := peer(c)
	if err != nil || who.UID != 1000 {
		t.Errorf("the caller is %+v, %v", who, err)
	}
	c.Close()
	c.Close()
	if !isOpen(dialAs(t, ln.Addr().String(), 1000)) || isOpen(dialAs(t, ln.Addr().String(), 1000)) {
		t.Error("a connection that was closed twice is not taken off once")
	}
}
