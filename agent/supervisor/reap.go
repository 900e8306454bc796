package supervisor

import (
	"log/slog"
	"os"
	"strings"
	"time"
	"unsafe"

	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// siginfo's code and pid lie at fixed places on 64-bit Linux; the package has no names for them.
const siginfoPID = 16

// reap waits for every child: tasks, orphans that fell to us, and exec stops of traced tasks.
// A status is taken with mu held, so that a pid known to be alive under mu is not reused.
func (s *supervisor) reap() {
	for {
		var si unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &si, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		switch err {
		case nil:
		case unix.EINTR:
			continue
		case unix.ECHILD:
			<-s.born
			continue
		default:
			slog.Error("wait failed", "err", err)
			time.Sleep(time.Second)
			continue
		}
		pid := int(*(*int32)(unsafe.Add(unsafe.Pointer(&si), siginfoPID)))
		if pid <= 0 {
			continue
		}
		s.mu.Lock()
		var e earlyWait
		got, err := unix.Wait4(pid, &e.ws, unix.WNOHANG|unix.WALL, &e.ru)
		if err == nil && got == pid {
			s.reaped(pid, e)
		}
		s.mu.Unlock()
	}
}

// reaped sorts out whose status it is; mu is held.
func (s *supervisor) reaped(pid int, e earlyWait) {
	if ch := s.stops[pid]; ch != nil {
		delete(s.stops, pid)
		ch <- e
		return
	}
	if t := s.pids[pid]; t != nil {
		if !e.ws.Stopped() {
			s.taskExit(t, e)
		}
		return
	}
	if s.forks > 0 {
		e.forkNo = s.forkNo
		s.early[pid] = e
	}
}

func (s *supervisor) taskExit(t *task, e earlyWait) {
	delete(s.pids, t.st.PID)
	st := t.st
	st.Ended = time.Now()
	st.Exit, st.Core = exitOf(e.ws)
	if (st.Exit.Signal == int(unix.SIGTERM) || st.Exit.Signal == int(unix.SIGKILL)) && goingDown() {
		os.Exit(0) // that was the shutdown: it is no end of the job's own, which is lost with the machine
	}
	st.Usage = usageOf(&e.ru)
	if st.Usage.MaxRSS <= ownPeak() {
		st.Usage.MaxRSS = 0 // it may be this process's: what was measured while the task ran stands
	}
	st.OOM = st.Exit != (cluster.ExitStatus{}) && t.run.grp != nil && t.run.grp.OOMKills() > 0
	t.ended(st)
}

// ownPeak is the most memory that this process has had, in bytes. A child counts from it: the kernel adds what a
// process had before its exec, and until then a child shares this one's memory.
func ownPeak() int64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return ru.Maxrss * 1024
}

// goingDown reports whether the machine is on its way down: systemd is its own shutdown program by then, which ends
// all that is left and waits for it.
func goingDown() bool {
	name, err := os.ReadFile("/proc/1/comm") // at most 15 letters
	return err == nil && strings.HasPrefix(string(name), "systemd-shutdow")
}

// forkBegin and forkEnd bracket a fork, so that a child that ends at once is not lost.
func (s *supervisor) forkBegin() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forks++
	s.forkNo++
	return s.forkNo
}

// forkEnd must be called with mu held, after the child was registered.
func (s *supervisor) forkEnd() {
	if s.forks--; s.forks == 0 {
		clear(s.early)
	}
	s.childBorn()
}

// takeEarly returns a status that arrived before; mu is held.
func (s *supervisor) takeEarly(pid int, forkNo uint64) (earlyWait, bool) {
	e, ok := s.early[pid]
	delete(s.early, pid)
	return e, ok && e.forkNo >= forkNo
}

// awaitStop tells of a traced child's stop after its exec, or of a child's end. It is called before forkEnd.
func (s *supervisor) awaitStop(pid int, forkNo uint64) <-chan earlyWait {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan earlyWait, 1)
	if e, ok := s.takeEarly(pid, forkNo); ok {
		ch <- e
		return ch
	}
	s.stops[pid] = ch
	s.childBorn()
	return ch
}

// childBorn wakes the reaper, which may be waiting for a first child.
func (s *supervisor) childBorn() {
	select {
	case s.born <- struct{}{}:
	default:
	}
}
