package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// maxPending bounds the signals kept for a step that is still being started.
const maxPending = 64

// run is one step. All fields are guarded by supervisor.mu, but for spec and grp.fd, which are
// the launcher's until launched.
type run struct {
	sup      *supervisor
	id       step.ID
	spec     step.Spec // Env and Script are dropped after the launch
	state    step.State
	frozen   bool
	launched bool // every task has been tried
	cleaning bool
	killed   bool // SIGKILL for all came before the launch was over
	live     int
	tasks    []*task
	pending  []pendingSignal
	grp      *cgroup.Group
	out      *output
	madeDir  bool // the script's directory is ours
	leftDir  bool // and was made for an attempt before this
	oomKills int
	inside   *inside // of the launcher of a step in a container
	last     *task   // whose end is told when the container is saved
}

type task struct {
	run   *run
	index int // in spec.Tasks
	st    step.TaskStatus
	ticks uint64 // start time in clock ticks, to know the process again
	live  bool
	pidfd int // of an adopted task, else -1
}

type pendingSignal struct {
	sig   syscall.Signal
	scope step.Scope
}

func newRun(s *supervisor, sp step.Spec) *run {
	r := &run{sup: s, id: sp.ID, spec: sp}
	for i := range sp.Tasks {
		r.tasks = append(r.tasks, &task{run: r, index: i, st: step.TaskStatus{Rank: sp.Tasks[i].Rank}, pidfd: -1})
	}
	r.out = newOutput(r)
	return r
}

// status is a copy for the outside.
func (r *run) status() step.Status {
	st := step.Status{
		ID: r.id, State: r.state, Frozen: r.frozen, Note: r.spec.Note, OOMKills: r.oomKills,
		Tasks: make([]step.TaskStatus, len(r.tasks)),
	}
	for i, t := range r.tasks {
		st.Tasks[i] = t.st
		st.Usage.UserCPU += t.st.Usage.UserCPU
		st.Usage.SystemCPU += t.st.Usage.SystemCPU
		st.Usage.MaxRSS = max(st.Usage.MaxRSS, t.st.Usage.MaxRSS)
	}
	return st
}

// ended records a task's end and begins the step's clean-up with the last; mu is held.
func (t *task) ended(st step.TaskStatus) {
	r := t.run
	t.st = st
	if t.live {
		t.live = false
		r.live--
	}
	if t.pidfd >= 0 {
		unix.Close(t.pidfd)
		t.pidfd = -1
	}
	if r.toSave() {
		r.last = t // it is told once the container is saved
	} else {
		t.tellEnd()
	}
	r.settle()
}

// tellEnd lets srun know of a task's end; mu is held.
func (t *task) tellEnd() {
	t.run.sup.jour.exit(t)
	t.tell()
}

// settle starts the clean-up once nothing is left to wait for; mu is held.
func (r *run) settle() {
	if r.launched && r.live == 0 && !r.cleaning && r.state != step.Ended {
		r.cleaning = true
		go r.sup.clean(r)
	}
	r.sup.changed(r)
}

// How many walks of /proc in a row must find nothing of a step, and how far apart they are.
const (
	emptyWalks = 3
	walkPause  = 2 * time.Millisecond
)

// clean kills what is left of a step whose tasks have ended and declares its end.
func (s *supervisor) clean(r *run) {
	r.saveLast()
	if r.grp != nil {
		s.toldOOM(r)
		for wait := time.Millisecond; !r.grp.Remove(); wait = min(2*wait, time.Second) {
			if err := r.grp.Kill(); err != nil {
				slog.Error("kill failed", "job", r.id.Job, "node", r.id.Node, "err", err)
				time.Sleep(wait)
			}
			r.grp.AwaitEmpty(wait)
		}
	} else {
		leaders, marker := s.leaders(r)
		// A process in the middle of execve shows no environment, and one just forked may be missed
		// by a walk of /proc: only several walks that find nothing count.
		for empty := 0; empty < emptyWalks; {
			pids := stepProcs(leaders, marker)
			if len(pids) == 0 {
				if empty++; empty < emptyWalks {
					time.Sleep(walkPause)
				}
				continue
			}
			empty = 0
			for _, p := range pids {
				unix.Kill(p, unix.SIGKILL)
			}
			awaitPID(pids[0], 100*time.Millisecond)
		}
	}
	r.removeDir()
	r.uncontain()
	r.out.awaitFiles()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.state, r.cleaning, r.grp, r.frozen = step.Ended, false, nil, false
	s.jour.ended(r)
	r.out.stepEnded()
	s.changed(r)
	s.moved.Broadcast()
}

// toldOOM tells the step's user of processes that were killed because the job's memory was used up.
func (s *supervisor) toldOOM(r *run) {
	kills := r.grp.OOMKills()
	if kills == 0 {
		return
	}
	done := make(chan struct{})
	s.mu.Lock()
	r.oomKills = kills
	if r.spec.OOMText == "" {
		close(done)
	} else {
		s.tell(r, fmt.Sprintf(r.spec.OOMText, kills), false, done)
	}
	s.mu.Unlock()
	<-done
}

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
		if sig == unix.SIGKILL {
			r.killed = true
			if scope == step.All && r.grp != nil {
				return r.grp.Kill()
			}
		}
		return nil
	case scope != step.All:
		defer s.mu.Unlock()
		return r.send(sig)
	}
	g := r.grp
	s.mu.Unlock()
	if g != nil && sig == unix.SIGKILL {
		if err := g.Kill(); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return unix.ESRCH // ended meanwhile
	}
	return s.signalAll(r, g, sig)
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

// signalAll signals every process found. Killing repeats until none is new.
func (s *supervisor) signalAll(r *run, g *cgroup.Group, sig syscall.Signal) error {
	sent := map[int]bool{}
	if sig == unix.SIGKILL { // the tasks first: they are not to report their children's deaths
		s.mu.Lock()
		r.send(sig)
		s.mu.Unlock()
	}
	for range 10 {
		var pids []int
		if g != nil {
			pids = g.PIDs()
		} else {
			pids = stepProcs(s.leaders(r))
		}
		fresh := false
		for _, p := range pids {
			if !sent[p] {
				sent[p], fresh = true, true
				unix.Kill(p, sig)
			}
		}
		if !fresh || sig != unix.SIGKILL && sig != unix.SIGSTOP {
			break
		}
	}
	return nil
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
		return s.signalAll(r, nil, unix.SIGSTOP)
	}
	return s.signalAll(r, nil, unix.SIGCONT)
}

// launchDone is called by the launcher after the last task was tried.
func (s *supervisor) launchDone(r *run) {
	s.mu.Lock()
	r.launched = true
	r.state = step.Running
	if r.grp != nil {
		r.grp.CloseFD()
	}
	r.spec.Env, r.spec.Script = nil, nil
	if r.spec.Server != nil {
		r.spec.Server = &step.Server{Dir: r.spec.Server.Dir} // its place in the stream stays
	}
	for i := range r.spec.Tasks {
		r.spec.Tasks[i].Env = nil
	}
	pending, frozen, g, live := r.pending, r.frozen, r.grp, r.live
	r.pending = nil
	r.settle()
	s.moved.Broadcast()
	s.mu.Unlock()
	if live == 0 {
		return
	}
	for _, p := range pending {
		s.signal(r.id, p.sig, p.scope)
	}
	if frozen {
		s.applyFreeze(r, g, true)
	}
}

// removeScript removes the script of a step that is forgotten, unless the job's next attempt has put its own there:
// then the folder is that one's to remove. mu is held.
func (s *supervisor) removeScript(r *run) {
	if r.spec.ScriptPath == "" {
		return
	}
	for _, other := range s.steps {
		if other.spec.ScriptPath == r.spec.ScriptPath {
			other.leftDir = other.leftDir || r.madeDir || r.leftDir
			return
		}
	}
	os.Remove(r.spec.ScriptPath)
	if r.madeDir || r.leftDir {
		os.Remove(filepath.Dir(r.spec.ScriptPath))
	}
}

// lowest is the index of the task with the lowest rank, which gets the terminal.
func (r *run) lowest() int {
	low := 0
	for i := range r.spec.Tasks {
		if r.spec.Tasks[i].Rank < r.spec.Tasks[low].Rank {
			low = i
		}
	}
	return low
}

func (r *run) task(rank int32) *task {
	i := slices.IndexFunc(r.tasks, func(t *task) bool { return t.st.Rank == int(rank) })
	if i < 0 {
		return nil
	}
	return r.tasks[i]
}

func exitOf(ws unix.WaitStatus) (e cluster.ExitStatus, core bool) {
	if ws.Signaled() {
		return cluster.ExitStatus{Signal: int(ws.Signal())}, ws.CoreDump()
	}
	return cluster.ExitStatus{Code: ws.ExitStatus()}, false
}

// sector is the unit of a rusage's blocks in bytes.
const sector = 512

func usageOf(ru *unix.Rusage) cluster.TaskUsage {
	return cluster.TaskUsage{UserCPU: time.Duration(ru.Utime.Nano()),
		SystemCPU: time.Duration(ru.Stime.Nano()), MaxRSS: ru.Maxrss * 1024,
		Pages: ru.Majflt, Read: ru.Inblock * sector, Written: ru.Oublock * sector}
}
