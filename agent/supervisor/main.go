package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// Main is the whole life of the supervisor process for dir. It takes the process
// for itself: it reaps every child, and its goroutines end with the process. Call it from
// main and exit when it returns.
func Main(ctx context.Context, dir string) error {
	debug.SetGCPercent(100)
	if n := runtime.NumCPU(); n > 4 {
		runtime.GOMAXPROCS(4)
	}
	// Signals meant for a daemon do not end its jobs. Handlers, unlike SIG_IGN, do not pass to tasks.
	sigs := make(chan os.Signal, 8)
	signal.Notify(sigs, unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2)
	s, err := openSupervisor(dir)
	if err != nil {
		return err
	}
	go func() {
		for sig := range sigs {
			if sig == unix.SIGTERM && goingDown() {
				os.Exit(0) // the shutdown waits for it; see taskExit
			}
			if sig == unix.SIGUSR2 {
				if err := s.upgrade("", func() {}); err != nil {
					slog.Error("upgrade failed", "err", err)
				}
			}
		}
	}()
	go s.reap()
	go s.accept()
	s.ready()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stopC:
	}
	if s.exe != "" {
		return s.replace()
	}
	s.openers.Close()
	s.lis.Close()
	if !s.dirGone() {
		os.Remove(filepath.Join(dir, step.SockName))
	}
	if s.cg != nil {
		s.cg.Leave()
	}
	return nil
}

// ordinary gives up what the daemon may have been spared with when memory runs out (OOMScoreAdjust= of its unit): tasks
// inherit it, and must not be spared.
func ordinary() error {
	const file = "/proc/self/oom_score_adj"
	if have, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(have)) == "0" {
		return err
	}
	return os.WriteFile(file, []byte("0"), 0)
}

// keepToSelf has no task inherit descriptors that whoever started the daemon left open.
func keepToSelf() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err != unix.ENOSYS && err != unix.EINVAL {
		return err
	}
	open, err := os.ReadDir("/proc/self/fd") // Linux before 5.11
	for _, f := range open {
		if fd, _ := strconv.Atoi(f.Name()); fd >= 3 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

func openSupervisor(dir string) (*supervisor, error) {
	unix.Umask(0o022)
	if err := keepToSelf(); err != nil {
		slog.Warn("tasks may inherit open files", "err", err)
	}
	if err := ordinary(); err != nil {
		slog.Warn("tasks are killed sooner or later than others when memory runs out", "err", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	s := &supervisor{
		dir: dir, owner: owner(dir), root: os.Geteuid() == 0, stopC: make(chan struct{}),
		steps: map[step.ID]*run{}, pids: map[int]*task{}, early: map[int]earlyWait{}, stops: map[int]chan earlyWait{},
		conns: map[*control]struct{}{}, pools: map[string]*pool{}, spaces: map[string]*namespace{},
		born: make(chan struct{}, 1), apart: newApart(),
	}
	s.moved = sync.NewCond(&s.mu)
	s.openers.Born = s.childBorn
	s.stub = makeStub()
	h, err := inherit()
	if err != nil {
		return nil, err
	}
	if h != nil {
		s.lock = os.NewFile(uintptr(h.Lock), step.LockName)
	} else if err := s.takeLock(); err != nil {
		return nil, err
	}
	os.Chdir("/")
	s.limits = ownLimits()
	s.cg = cgroup.Open(dir)
	s.hosts = &hostsFile{path: filepath.Join(dir, step.HostsName)}
	old, err := s.openJournal(filepath.Join(dir, step.JournalName))
	if err != nil {
		return nil, err
	}
	if err := s.takeOver(old, h); err != nil {
		return nil, err
	}
	if err := s.listen(h); err != nil {
		return nil, err
	}
	s.idle.Timer = time.AfterFunc(goneCheck, s.idleOut)
	return s, nil
}

func (s *supervisor) takeLock() error {
	f, err := os.OpenFile(filepath.Join(s.dir, step.LockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return fmt.Errorf("another supervisor serves %s: %w", s.dir, err)
	}
	s.lock = f
	return nil
}

func (s *supervisor) listen(h *handover) error {
	if h != nil {
		f := os.NewFile(uintptr(h.Listener), step.SockName)
		l, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("take over the listener: %w", err)
		}
		s.lis = l.(*net.UnixListener)
		s.lis.SetUnlinkOnClose(false)
		return nil
	}
	path, done, err := step.SockPath(s.dir)
	if err != nil {
		return err
	}
	defer done()
	os.Remove(path)
	unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(0o022)
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	s.lis = l
	return nil
}

// ready tells the process that started this one that the socket is there.
func (s *supervisor) ready() {
	n, err := strconv.Atoi(os.Getenv(step.ReadyEnv))
	if err != nil || n < 3 {
		return
	}
	os.Unsetenv(step.ReadyEnv)
	f := os.NewFile(uintptr(n), "ready")
	f.Write([]byte{1})
	f.Close()
}

func (s *supervisor) accept() {
	for {
		c, err := s.lis.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			slog.Warn("accept failed", "err", err)
			time.Sleep(10 * time.Millisecond) // out of descriptors: let some go
			continue
		}
		s.mu.Lock()
		ok := s.nconn < step.MaxConns
		if ok {
			s.nconn++
		}
		s.mu.Unlock()
		if !ok || !step.Friendly(c) {
			c.Close()
			if ok {
				s.connGone()
			}
			continue
		}
		go func() {
			s.serve(c)
			c.Close()
			s.connGone()
		}()
	}
}

func (s *supervisor) connGone() {
	s.mu.Lock()
	s.nconn--
	s.idle.lasted = 0
	s.mu.Unlock()
	s.idle.Reset(goneCheck)
}

func (s *supervisor) idleOut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.nconn > 0: // connGone looks again
		return
	case s.dirGone():
		slog.Error("directory is gone, ending all steps", "dir", s.dir)
		go func() {
			s.stop(func() {})
			s.mu.Lock()
			s.end("")
			s.mu.Unlock()
		}()
		return
	case len(s.steps) == 0 && s.idle.lasted >= idleExit:
		s.end("")
		return
	}
	s.idle.lasted += goneCheck
	s.idle.Reset(goneCheck)
}

// dirGone reports whether the lock file is no longer the one this process holds.
func (s *supervisor) dirGone() bool {
	ours, err := s.lock.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(filepath.Join(s.dir, step.LockName))
	return os.IsNotExist(err) || err == nil && !os.SameFile(ours, now)
}

// serve reads the first message and does what the connection is for.
func (s *supervisor) serve(c *net.UnixConn) {
	c.SetReadDeadline(time.Now().Add(firstMessage))
	kind, body, err := step.ReadMessage(c, step.MaxFirst)
	c.SetReadDeadline(time.Time{})
	if err != nil {
		return
	}
	switch kind {
	case step.MsgHello:
		s.control(c)
	case step.MsgAttach:
		var id step.ID
		if wire.Unmarshal(body, &id) != nil {
			return
		}
		s.mu.Lock()
		r := s.steps[id]
		s.mu.Unlock()
		var rep step.Reply
		if r == nil {
			rep = step.ReplyTo(step.ErrUnknown)
		}
		b, _ := wire.Marshal(rep)
		if _, err := c.Write(step.AppendMessage(nil, step.MsgReply, step.Number(0), b)); err == nil && r != nil {
			r.out.serve(c)
		}
	}
}
