package supervisor

import (
	"os"
	"time"
	"unsafe"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// reapWait bounds the wait for another process to reap an adopted task.
const reapWait = 5 * time.Second

// takeOver rebuilds the steps of an earlier supervisor: from its handover if it executed this
// program itself, else from its journal.
func (s *supervisor) takeOver(old map[step.ID]*past, h *handover) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h != nil {
		for i := range h.Runs {
			s.resume(&h.Runs[i])
		}
	} else {
		for id, p := range old {
			s.adopt(id, p)
		}
	}
	if s.cg != nil {
		s.cg.Sweep(groupsOf(s.steps))
		s.cg.SweepDead()
	}
	err := s.jour.rewrite(s)
	for _, r := range s.steps {
		if !r.launched {
			s.submit(r)
		}
		r.settle()
	}
	return err
}

// adopt takes up a step whose processes belonged to a supervisor that died; mu is held.
func (s *supervisor) adopt(id step.ID, p *past) {
	r := newRun(s, p.spec)
	r.launched, r.state, r.frozen, r.madeDir = true, step.Running, p.frozen, p.spec.ScriptPath != ""
	r.out.disconnect()
	s.steps[id] = r
	if !p.ended && s.cg != nil {
		r.grp = s.cg.Adopt(id.GroupPath())
	}
	for _, t := range r.tasks {
		st, known := p.tasks[t.st.Rank]
		if !known {
			st = t.st
			// It may have begun in the moment between its start and the journal's line.
			st.Error, st.Lost, st.Ended = "supervisor was replaced before the start", true, time.Now()
		}
		t.st, t.ticks = st, p.ticks[st.Rank]
		if st.Ended.IsZero() {
			if !p.gone && s.adoptTask(t) {
				continue
			}
			t.st.Lost, t.st.Ended = true, time.Now()
		}
		t.tell()
	}
	if p.ended {
		r.state, r.frozen = step.Ended, false
		r.out.stepEnded()
	}
}

// adoptTask watches a process not yet reaped that is not our child; mu is held.
func (s *supervisor) adoptTask(t *task) bool {
	fd, err := unix.PidfdOpen(t.st.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		return false
	}
	ps, ok := step.ReadProcess(t.st.PID)
	if !ok || ps.Start > t.ticks { // a zombie will do: its exit code is still to be had
		unix.Close(fd)
		return false
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		unix.Close(fd)
		return false
	}
	t.pidfd, t.live = fd, true
	t.run.live++
	go s.watch(t, os.NewFile(uintptr(dup), "pidfd"))
	return true
}

// watch waits for an adopted process's end and for whoever reaps it; only then does the
// kernel tell the exit code.
func (s *supervisor) watch(t *task, f *os.File) {
	defer f.Close()
	rc, err := f.SyscallConn()
	var ws unix.WaitStatus
	known, dead := false, false
	if err == nil {
		rc.Read(func(fd uintptr) bool {
			if ws, known = pidfdExit(fd); known {
				return true
			}
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, _ := unix.Poll(p, 0); n > 0 && !dead {
				dead = true
				f.SetReadDeadline(time.Now().Add(reapWait))
			}
			return false
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.live {
		return
	}
	st := t.st
	st.Ended = time.Now()
	if known {
		st.Exit, st.Core = exitOf(ws)
	} else {
		st.Lost = true
	}
	t.ended(st)
}

// pidfdInfo is the kernel's struct pidfd_info, first version.
type pidfdInfo struct {
	mask, cgroup uint64
	ids          [11]uint32
	exitCode     int32
}

const (
	pidfdInfoExit = 1 << 3
	pidfdGetInfo  = 3<<30 | 64<<16 | 0xff<<8 | 11
)

// pidfdExit asks the kernel for the wait status of a reaped process (Linux 6.15).
func pidfdExit(fd uintptr) (unix.WaitStatus, bool) {
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, no := unix.Syscall(unix.SYS_IOCTL, fd, pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	return unix.WaitStatus(info.exitCode), no == 0 && info.mask&pidfdInfoExit != 0
}

// groupsOf are the groups of steps.
func groupsOf(steps map[step.ID]*run) map[string]bool {
	out := map[string]bool{}
	for id := range steps {
		out[id.Group()] = true
	}
	return out
}
