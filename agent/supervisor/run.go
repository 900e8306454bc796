package supervisor

import (
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"dev.muster/api/stream"
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
	dying    bool        // killed, and it is looked whether its tasks are dead
	doomed   atomic.Bool // killed, for those who do not hold mu
	killed   bool        // SIGKILL for all came before the launch was over
	live     int
	tasks    []*task
	pending  []pendingSignal
	grp      *cgroup.Group
	out      *output
	madeDir  bool // the script's directory is ours
	leftDir  bool // and was made for an attempt before this
	oomKills int
	inside   *inside           // of the launcher of a step in a container
	starting int               // the process that is to become a task's program; 0: none
	server   pidfd             // of the server that the tasks wait for
	opener   *userfile.Process // opens the step's files now; nil: none does
	last     *task             // whose end is told when the container is saved
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

// How many walks of /proc in a row must find nothing of a step, and how far apart they are.
const (
	emptyWalks = 3
	walkPause  = 2 * time.Millisecond
)

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

// inside is what a run's launcher knows of its container.
type inside struct {
	image  container.Image
	err    error
	number int               // of steps in containers, in the order that they came
	turn   chan struct{}     // a token when the step may look again whether its container is free
	with   *task             // runs in the container that is to be entered
	made   *container.Config // what is active in the container that this step has made
}

// tell puts an ended task's frame into the step's stream.
func (t *task) tell() {
	st := &t.st
	t.run.out.exit(int32(st.Rank), stream.TaskExit{Code: st.Exit.Code, Signal: st.Exit.Signal,
		Core: st.Core, OOM: st.OOM,
		Lost: st.Lost, Errno: st.Errno, Error: st.Error})
}

// isEnding reports whether a step that is not begun has been asked to end, by any of the signals
// that do so.
func (r *run) isEnding() bool {
	s := r.sup
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.toEnd()
}

// toEnd reports the same; mu is held.
func (r *run) toEnd() bool {
	asked := func(p pendingSignal) bool { return slices.Contains(enders, p.sig) }
	return r.killed || slices.ContainsFunc(r.pending, asked)
}

// enders are the signals by which a step is asked to end.
var enders = []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT}

// imagePause is how often a step that waits for its image looks whether it has been killed.
const imagePause = 100 * time.Millisecond
