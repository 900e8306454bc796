package supervisor

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// spaceOf is the namespace of a step's job, perhaps yet to be made.
func (s *supervisor) spaceOf(id step.ID) *namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := id.JobName()
	if s.spaces[key] == nil {
		s.spaces[key] = &namespace{fd: -1}
	}
	return s.spaces[key]
}

// release lets go of what the steps of a job that is over had in common.
func (s *supervisor) release(id step.ID) {
	s.mu.Lock()
	ns := s.spaces[id.JobName()]
	delete(s.spaces, id.JobName())
	s.mu.Unlock()
	if ns == nil {
		return
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.fd >= 0 {
		s.openers.Leave(ns.fd)
		unix.Close(ns.fd)
		ns.fd = -1
	}
}

// openSpace is the mount namespace of this thread.
func openSpace() (int, error) {
	return unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// seclude takes this thread into the namespace of the step's job; back takes it out again.
func (l *launcher) seclude(r *run) (back func(), err error) {
	if r.spec.Private == nil {
		return func() {}, nil
	}
	home, err := openSpace()
	if err != nil {
		return func() {}, fmt.Errorf("open the machine's namespace: %w", err)
	}
	before := l.space
	back = func() {
		if err := unix.Setns(home, unix.CLONE_NEWNS); err != nil {
			slog.Error("a launcher could not leave a job's namespace", "job", r.id.Job, "err", err)
		}
		unix.Close(home)
		l.space = before
	}
	ns := l.sup.spaceOf(r.id)
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.fd < 0 {
		ns.fd = l.sup.spaceOfTask(r.id)
	}
	if ns.fd < 0 {
		if ns.fd, err = l.newSpace(r); err != nil {
			return back, fmt.Errorf("give the job folders of its own (job_container/tmpfs): %w", err)
		}
		l.space = ns.fd
		return back, nil
	}
	if err := unix.Setns(ns.fd, unix.CLONE_NEWNS); err != nil {
		return back, fmt.Errorf("enter the job's namespace: %w", err)
	}
	l.space = ns.fd
	return back, nil
}

// spaceOfTask is the namespace in which a living task of the job is, which an earlier supervisor made;
// -1 if there is none.
func (s *supervisor) spaceOfTask(id step.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.steps {
		if r.id.JobName() != id.JobName() || r.spec.Private == nil || r.spec.Container != nil {
			continue
		}
		for _, t := range r.tasks {
			if !t.live {
				continue
			}
			if fd := trustedSpace(t.st.PID); fd >= 0 {
				return fd
			}
		}
	}
	return -1
}

// trustedSpace is the mount namespace of a process, or -1. One that the user has made is not to be
// trusted: programs with the rights of root would find what the user likes in it.
func trustedSpace(pid int) int {
	var own, st unix.Stat_t
	if unix.Stat("/proc/self/ns/user", &own) != nil {
		return -1
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	user, err := unix.IoctlRetInt(fd, unix.NS_GET_USERNS)
	if err == nil {
		err = unix.Fstat(user, &st)
		unix.Close(user)
	}
	if err == nil && st.Ino == own.Ino && st.Dev == own.Dev {
		return fd
	}
	unix.Close(fd)
	return -1
}

// newSpace makes a namespace for the step's job, in which this thread then is.
func (l *launcher) newSpace(r *run) (int, error) {
	p := r.spec.Private
	top := filepath.Join(p.Base, r.id.JobName())
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return -1, fmt.Errorf("unshare: %w", err)
	}
	kind := uintptr(unix.MS_PRIVATE)
	if p.Shared {
		kind = unix.MS_SLAVE
	}
	if err := unix.Mount("", "/", "", kind|unix.MS_REC, ""); err != nil {
		return -1, fmt.Errorf("keep its mounts to itself: %w", err)
	}
	if err := l.initialize(p); err != nil {
		return -1, err
	}
	// Opened in the new namespace, and all before the first is hidden by another.
	sources, err := folders(p, top)
	defer func() {
		for _, fd := range sources {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return -1, err
	}
	for i, dir := range p.Dirs {
		if dir == step.MemoryDir {
			err = unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
		} else {
			err = unix.Mount(fmt.Sprintf("/proc/thread-self/fd/%d", sources[i]), dir, "", unix.MS_BIND, "")
		}
		if err != nil {
			return -1, &os.PathError{Op: "mount", Path: dir, Err: err}
		}
	}
	return openSpace()
}

// folders makes what is to be seen in place of each folder. Nobody but root gets to it by its own name, so that
// each may be as open as /tmp is.
func folders(p *step.Private, top string) (fds []int, err error) {
	if p.Make {
		if err := os.MkdirAll(p.Base, 0o755); err != nil {
			return nil, err
		}
	}
	if err := keepsNames(p.Base); err != nil {
		return nil, err
	}
	if err := ownFolder(top); err != nil {
		return nil, err
	}
	for _, dir := range p.Dirs {
		name := step.SeenAs(top, dir)
		if err := os.Mkdir(name, 0o700); err != nil && !os.IsExist(err) {
			return fds, err
		}
		if err := os.Chmod(name, 0o777|os.ModeSticky); err != nil {
			return fds, err
		}
		fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fds, &os.PathError{Op: "open", Path: name, Err: err}
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// keepsNames refuses a folder in which users can replace what root has made there.
func keepsNames(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode()&(0o002|os.ModeSticky) == 0o002 {
		return fmt.Errorf("BasePath=%s of job_container.conf: all users can replace folders of jobs there: chmod 755, "+
			"or set its sticky bit (chmod +t)", dir)
	}
	return nil
}

// ownFolder makes a folder that only this process's user can enter. Where everybody may write into the folder above, a
// user can make it first: that one is moved aside, so that users cannot keep jobs off a node.
func ownFolder(path string) error {
	for range asideTries {
		err := os.Mkdir(path, 0o700)
		if !os.IsExist(err) {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		if int(st.Uid) == os.Geteuid() {
			return checkPrivate(path, st.Mode)
		}
		aside := fmt.Sprintf("%s.of-user-%d-%x", path, st.Uid, rand.Uint64())
		err = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, aside, unix.RENAME_NOREPLACE)
		if err != nil && err != unix.ENOENT { // the user has taken it away
			return &os.LinkError{Op: "rename", Old: path, New: aside, Err: err}
		}
		slog.Warn("a user had made a job's folder: it was moved aside", "folder", path, "now", aside, "uid", st.Uid)
	}
	return fmt.Errorf("%s is made by a user again and again: BasePath in job_container.conf must be a folder where "+
		"users cannot write", path)
}

// asideTries is how often a folder is moved aside that a user makes again.
const asideTries = 100

// checkPrivate refuses what is no folder that its owner alone can enter.
func checkPrivate(path string, mode uint32) error {
	if mode&(unix.S_IFMT|0o077) != unix.S_IFDIR {
		return fmt.Errorf("%s exists and is not a private folder of root: remove it", path)
	}
	return nil
}

// initialize runs the site's program for a new namespace.
func (l *launcher) initialize(p *step.Private) error {
	if p.Init == "" {
		return nil
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/null: %w", err)
	}
	defer unix.Close(null)
	s, files := l.sup, []uintptr{uintptr(null), uintptr(null), uintptr(null)}
	no := s.forkBegin()
	pid, err := syscall.ForkExec(p.Init, []string{p.Init}, &syscall.ProcAttr{
		Dir: "/", Env: p.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	var e earlyWait
	if err == nil {
		e = <-s.awaitStop(pid, no)
	}
	s.mu.Lock()
	s.forkEnd()
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("InitScript: %w", &os.PathError{Op: "start", Path: p.Init, Err: err})
	}
	if exit, _ := exitOf(e.ws); exit.Code != 0 || exit.Signal != 0 {
		return fmt.Errorf("InitScript %s: exit code %d, signal %d", p.Init, exit.Code, exit.Signal)
	}
	return nil
}
