package userfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// socketFD is the descriptor by which the process is asked.
const socketFD = 3

// process is the state of the process that opens files.
type process struct {
	user bool // it has become a user
}

// Serve is the process that Pool starts: muster internal userfile. It ends when its socket does, and returns its exit
// code. It must be called from the main goroutine, before others are started.
func Serve() int {
	runtime.LockOSThread() // the mount namespace and the directory are this thread's
	var st unix.Stat_t
	if unix.Fstat(socketFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		fmt.Fprintln(os.Stderr,
			"muster internal userfile: descriptor 3 is not a socket; muster starts this program itself")
		return 1
	}
	unix.CloseOnExec(socketFD)
	p := &process{}
	buf := make([]byte, maxMessage)
	oob := make([]byte, unix.CmsgSpace(4))
	for {
		n, fds, err := receive(socketFD, buf, oob)
		if err != nil {
			return 0
		}
		var list []Request
		if wire.Unmarshal(buf[:n], &list) != nil || !p.answer(list, append(fds, -1)[0]) {
			return 1
		}
	}
}

// receive waits for a message, and returns its length and the descriptors that came with it.
func receive(sock int, buf, oob []byte) (n int, fds []int, err error) {
	n, oobn, flags, _, err := unix.Recvmsg(sock, buf, oob, unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		n, oobn, flags, _, err = unix.Recvmsg(sock, buf, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = unix.EMSGSIZE
	}
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return 0, nil, err
	}
	return n, receivedFDs(oob[:oobn]), nil
}

// receivedFDs are the descriptors that came with a message.
func receivedFDs(oob []byte) []int {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(list) == 0 {
		return nil
	}
	fds, _ := unix.ParseUnixRights(&list[0])
	return fds
}

// answer does what is asked, and reports whether the process is to go on.
func (p *process) answer(list []Request, with int) bool {
	if with >= 0 {
		defer unix.Close(with)
	}
	answers := make([]answer, len(list))
	var fds []int
	for i := range list {
		r := p.do(&list[i], with)
		answers[i] = answerOf(&r)
		if r.FD >= 0 {
			fds = append(fds, r.FD)
			defer unix.Close(r.FD)
		}
	}
	out, err := wire.Marshal(answers)
	if err != nil {
		return false
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return unix.Sendmsg(socketFD, out, rights, nil, unix.MSG_NOSIGNAL) == nil
}

// errNotUser says that nothing is opened as root.
var errNotUser = errors.New("the process has not become a user")

func (p *process) do(q *Request, with int) Result {
	if q.Op == become {
		return Result{FD: -1, Err: p.become(q.As, with)}
	}
	if !p.user {
		return Result{FD: -1, Err: errNotUser}
	}
	return perform(q, with)
}

// become enters a mount namespace, if one came with the request, and gives up root for good.
func (p *process) become(as *Identity, space int) error {
	if p.user || as == nil {
		return errors.New("it has become a user already, or no user is named")
	}
	if space >= 0 {
		err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(space, unix.CLONE_NEWNS))
		if err != nil {
			return fmt.Errorf("enter the job's mount namespace: %w", err)
		}
	}
	if err := dropRights(as); err != nil {
		return err
	}
	p.user = true
	return nil
}

// dropRights has all threads take on the user's IDs, without a way back: no capability is left, and this thread can
// have none by executing a file (no_new_privs).
func dropRights(as *Identity) error {
	groups := make([]int, len(as.Groups))
	for i, g := range as.Groups {
		groups[i] = int(g)
	}
	uid, gid := int(as.UID), int(as.GID)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"take on the user's groups", func() error { return unlessFixed(syscall.Setgroups(groups)) }},
		{"take on the user's group", func() error { return syscall.Setresgid(gid, gid, gid) }},
		{"take on the user's ID", func() error { return syscall.Setresuid(uid, uid, uid) }},
		{"give up capabilities", dropCapabilities},
		{"set no_new_privs", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		// No other process of the user may look into this one, or change it.
		{"be not dumpable", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// unlessFixed drops an error of setgroups in a user namespace whose creator may not set groups (user_namespaces(7)).
func unlessFixed(err error) error {
	if err == nil {
		return nil
	}
	text, readErr := os.ReadFile("/proc/self/setgroups")
	if readErr == nil && strings.TrimSpace(string(text)) == "deny" {
		return nil
	}
	return err
}

// dropCapabilities empties the sets of this thread, which opens all files. Giving up root's ID does so for all
// threads, unless the process was started with securebits that keep capabilities.
func dropCapabilities() error {
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}
