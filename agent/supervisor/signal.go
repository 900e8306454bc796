package supervisor

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

func (s *supervisor) leaders(r *run) (map[int]bool, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := map[int]bool{}
	for _, t := range r.tasks {
		if t.st.PID > 0 {
			m[t.st.PID] = t.live
		}
	}
	return m, marker(r.id, s.owner)
}

// awaitPID waits for a process to end, at most for d.
func awaitPID(pid int, d time.Duration) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(d/time.Millisecond))
}

// signal sends sig to a step's processes, or keeps it until they are started.
func (s *supervisor) signal(id step.ID, sig syscall.Signal, scope step.Scope) error {
	s.mu.Lock()
	r := s.steps[id]
	switch {
	case r == nil:
		s.mu.Unlock()
		return step.ErrUnknown
	case r.state == step.Ended:
		s.mu.Unlock()
		return unix.ESRCH
	case !r.launched:
		defer s.mu.Unlock()
		if len(r.pending) >= maxPending {
			return unix.EAGAIN
		}
		r.pending = append(r.pending, pendingSignal{sig, scope})
		r.inside.wake()
		if sig == unix.SIGKILL {
			r.killed = true
			r.interrupt()
			if scope == step.All && r.grp != nil {
				return r.grp.Kill()
			}
		}
		return nil
	case scope == step.Leaders:
		defer s.mu.Unlock()
		return r.send(sig)
	}
	g := r.grp
	if sig == unix.SIGKILL && scope == step.All && !r.dying && r.live > 0 {
		r.dying = true
		go r.awaitDead() // ends with the step's tasks
	}
	s.mu.Unlock()
	if g != nil && sig == unix.SIGKILL {
		if err := g.Kill(); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return unix.ESRCH // ended meanwhile
	}
	return s.signalAll(r, g, sig, scope)
}

// interrupt ends what the launcher of r waits for; mu is held.
func (r *run) interrupt() {
	r.doomed.Store(true)
	for _, p := range r.sup.pools {
		p.wake()
	}
	r.sup.apart.wake()
	if r.opener != nil {
		r.opener.Interrupt()
	}
	if r.starting > 0 {
		unix.Kill(r.starting, unix.SIGKILL)
	}
	r.server.kill()
}

// send signals the tasks' own processes; mu is held, so no pid is reaped meanwhile.
func (r *run) send(sig syscall.Signal) (err error) {
	for _, t := range r.tasks {
		if !t.live {
			continue
		}
		var e error
		if t.pidfd >= 0 {
			e = unix.PidfdSendSignal(t.pidfd, sig, nil, 0)
		} else {
			e = unix.Kill(t.st.PID, sig)
		}
		if e != nil && e != unix.ESRCH {
			err = e
		}
	}
	return err
}

// signalAll signals every process found that the scope has. Killing repeats until none is new.
func (s *supervisor) signalAll(r *run, g *cgroup.Group, sig syscall.Signal, scope step.Scope) error {
	sent := map[int]bool{}
	if sig == unix.SIGKILL { // the tasks first: they are not to report their children's deaths
		s.mu.Lock()
		r.send(sig)
		s.mu.Unlock()
	}
	list := func() []int { return stepProcs(s.leaders(r)) }
	if g != nil {
		list = g.PIDs
	}
	except := func(pid int) bool { return scope == step.Script && isSrun(pid) }
	for range 10 {
		if fresh := signalListed(list, sig, sent, except); !fresh || sig != unix.SIGKILL && sig != unix.SIGSTOP {
			break
		}
	}
	return nil
}

// heldAtOnce is how many processes are held by descriptors at a time.
const heldAtOnce = 512

// signalListed signals the processes that list names, but for those sent to before, and reports whether there were any.
// While it works, the user's processes end and others begin, and a number may become that of a process of somebody
// else's. So it holds the process that has a number, looks whether the number is listed still, and signals what it
// holds: that is the one listed, or it is dead.
func signalListed(list func() []int, sig syscall.Signal, sent map[int]bool, except func(pid int) bool) bool {
	fresh := slices.DeleteFunc(list(), func(pid int) bool { return sent[pid] })
	for part := range slices.Chunk(fresh, heldAtOnce) {
		held := map[int]int{}
		for _, pid := range part {
			sent[pid] = true
			switch fd, err := unix.PidfdOpen(pid, 0); {
			case err == nil:
				held[pid] = fd
			case err != unix.ESRCH && !except(pid): // the kernel has none, or no descriptor is free
				_ = unix.Kill(pid, sig)
			}
		}
		for _, pid := range list() {
			if fd, ok := held[pid]; ok && !except(pid) {
				_ = unix.PidfdSendSignal(fd, sig, nil, 0)
			}
		}
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}
	return len(fresh) > 0
}

// isSrun reports whether a process is an srun, by the name under which it was started.
func isSrun(pid int) bool {
	name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return err == nil && string(name) == "srun\n"
}

func (s *supervisor) freeze(id step.ID, stop bool) error {
	s.mu.Lock()
	r := s.steps[id]
	if r == nil || r.state == step.Ended {
		s.mu.Unlock()
		if r == nil {
			return step.ErrUnknown
		}
		return unix.ESRCH
	}
	was := r.frozen
	r.frozen = stop
	if was != stop {
		s.jour.frozen(r)
		s.changed(r)
	}
	launched, g := r.launched, r.grp
	s.mu.Unlock()
	if !launched { // a frozen group would hold the launcher; launchDone sees to it
		return nil
	}
	return s.applyFreeze(r, g, stop)
}

// setNote replaces the daemon's own record of a step.
func (s *supervisor) setNote(id step.ID, note []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.steps[id]
	if r == nil {
		return step.ErrUnknown
	}
	r.spec.Note = note
	s.jour.note(r)
	return nil
}

func (s *supervisor) applyFreeze(r *run, g *cgroup.Group, stop bool) error {
	if g != nil {
		return g.Freeze(stop)
	}
	if stop {
		return s.signalAll(r, nil, unix.SIGSTOP, step.All)
	}
	return s.signalAll(r, nil, unix.SIGCONT, step.All)
}
