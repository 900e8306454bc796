package supervisor

import (
	"log/slog"
	"os"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// launcher is the state of one launcher thread.
type launcher struct {
	sup    *supervisor
	pool   *pool       // nil: it serves one step
	space  int         // descriptor of the mount namespace that it is in; -1: the supervisor's own
	cpus   unix.CPUSet // as the supervisor has them
	groups []int
	home   map[string]string // groups of cgroup v1, see home
}

func newLauncher(s *supervisor, host string) *launcher {
	l := &launcher{sup: s, space: -1}
	if host == "" || !l.ownHost(host) {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			slog.Error("umask is shared", "err", err)
		}
	}
	unix.SchedGetaffinity(0, &l.cpus)
	l.groups, _ = unix.Getgroups()
	if s.cg != nil {
		l.home = s.cg.Home()
	}
	return l
}

// leave takes this thread out of a job's groups of cgroup v1.
func (l *launcher) leave() {
	for name, dir := range l.home {
		if err := cgroup.EnterOld([]string{dir}); err != nil {
			slog.Error("a launcher could not leave a job's group", "controller", name, "err", err)
		}
	}
	unix.SchedSetaffinity(0, &l.cpus) // cpuset narrowed it
}

// become takes on the user's file system identity, on this thread only, and reports whether there is something to
// undo. It is for what is done by descriptors and for the terminal: the thread keeps root's effective ID, so nothing
// whose path a user chooses may be opened by it (see userFiles).
func (l *launcher) become(sp *step.Spec) bool {
	if !l.sup.root || sp.UID == 0 && sp.GID == 0 {
		return false
	}
	_ = userfile.SetGroups(sp.Groups)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(sp.GID), 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(sp.UID), 0, 0)
	return true
}

func (l *launcher) back(did bool) {
	if !did {
		return
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(os.Getegid()), 0, 0)
	g := make([]uint32, len(l.groups))
	for i := range g {
		g[i] = uint32(l.groups[i])
	}
	_ = userfile.SetGroups(g)
}

func (s *supervisor) isKilled(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.killed
}

// mayLaunch is false once this process is about to be replaced; the next one launches r.
func (s *supervisor) mayLaunch(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen {
		s.held = append(s.held, r)
		return false
	}
	s.launching++
	return true
}
