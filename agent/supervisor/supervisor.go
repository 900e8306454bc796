// Package supervisor is the process that is parent of all tasks on a machine and outlives the daemon: it starts steps,
// holds their stdio, ends them and keeps their exit codes until the daemon has taken them. Package step defines
// steps and the daemon's questions; the supervisor knows nothing of jobs and servers. Start with Main, then
// launch.go and run.go.
package supervisor

import (
	"net"
	"os"
	"sync"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// Limits of the supervisor.
const (
	// MaxSteps bounds the steps not yet forgotten.
	MaxSteps = 100_000
	// idleExit is how long a supervisor with no step and no daemon stays.
	idleExit = 5 * time.Minute
	// goneCheck is how often a supervisor without a connection looks whether its directory is
	// still there. Without it nobody can reach it: it kills its steps and ends.
	goneCheck = 2 * time.Second
	// firstMessage is how long a connection may take to say what it is.
	firstMessage = 5 * time.Second
	// stopWait bounds the wait for killed steps to be gone before a stop.
	stopWait = 20 * time.Second
)

// supervisor is the process that is parent of all tasks. mu guards every run and task.
type supervisor struct {
	dir    string
	owner  string // marks its processes
	root   bool
	limits map[int]unix.Rlimit // the supervisor's own, by resource
	cg     *cgroup.Groups
	jour   *journal
	hosts  *hostsFile
	lock   *os.File
	lis    *net.UnixListener
	stopC  chan struct{} // closed to end the process

	mu        sync.Mutex
	steps     map[step.ID]*run
	pids      map[int]*task     // living tasks that are our children
	early     map[int]earlyWait // statuses reaped before their launcher knew the pid
	stops     map[int]chan earlyWait
	forks     int    // forks under way
	forkNo    uint64 // forks begun
	conns     map[*control]struct{}
	nconn     int
	pools     map[string]*pool
	apart     *apart
	spaces    map[string]*namespace // of jobs with folders of their own, by ID.JobName
	openers   userfile.Pool         // processes that open users' files
	stub      stub                  // executes programs
	moved     *sync.Cond            // some step ended
	idle      idleness
	born      chan struct{} // a token when a first child may be there
	named     named         // steps in containers
	launching int           // launches under way
	change
}

// change is of a supervisor that is being replaced.
type change struct {
	held   []*run // not launched because of frozen
	frozen bool   // launch nothing
	exe    string // set with the stop: what to execute in our place
}

// idleness is when it was last looked whether anybody needs this process.
type idleness struct {
	*time.Timer
	lasted time.Duration // since the last connection
}

// end lets Main return, or execute exe; mu is held.
func (s *supervisor) end(exe string) {
	select {
	case <-s.stopC:
	default:
		s.exe = exe
		close(s.stopC)
	}
}

// earlyWait is a wait status whose process no launcher has registered yet.
type earlyWait struct {
	ws     unix.WaitStatus
	ru     unix.Rusage
	forkNo uint64 // forks begun when it was reaped
}

// control is one connection of a Remote. Its fields are guarded by supervisor.mu.
type control struct {
	conn  *net.UnixConn
	out   []byte // encoded replies
	outN  int
	dirty []step.ID
	marks map[step.ID]bool
	wake  chan struct{}
}

func (c *control) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// changed tells every Remote of r; mu is held. Changes gather while a Remote is being written to.
func (s *supervisor) changed(r *run) {
	for c := range s.conns {
		if !c.marks[r.id] {
			c.marks[r.id] = true
			c.dirty = append(c.dirty, r.id)
			c.poke()
		}
	}
}

// pool is the launcher threads that present one host name; "" is the machine's own.
type pool struct {
	sup  *supervisor
	host string

	mu    sync.Mutex
	queue []chore
	idle  int
	n     int            // launchers, but for those that wait for files
	slow  map[uint32]int // launchers that wait for a user's files
	more  *sync.Cond
}

// chore is something for a launcher thread to do for a step: start it, or with text, say that.
type chore struct {
	r    *run
	text string
	done chan struct{} // closed once it is said; nil if nobody waits
}

// namespace is a job's mount namespace. Open descriptors and processes keep it alive.
type namespace struct {
	mu sync.Mutex // one makes it
	fd int        // -1: not made yet
}
