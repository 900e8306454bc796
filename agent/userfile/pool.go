package userfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// Bounds of what a Pool keeps.
const (
	maxIdle  = 16               // processes that wait for their user's next step
	idleTime = 30 * time.Second // for which one waits
)

// Pool starts processes that open files, and keeps those of users that may soon start another step. It also keeps one
// that has not become a user yet, so that a step need not wait for a process to start. The zero Pool is ready.
type Pool struct {
	// Born is called after a child was started, for a caller that waits for its children; nil: nobody does.
	Born func()

	mu     sync.Mutex
	idle   []*Process // the longest idle first
	spare  *Process
	timer  *time.Timer
	closed bool
}

// key tells which processes serve which steps.
type key struct {
	uid, gid uint32
	groups   string
	space    uint64 // inode of the mount namespace; 0: the pool's own
}

// Process is one that opens files as a user. It serves one step at a time.
type Process struct {
	sock  int
	pid   int
	pidfd int // -1: Linux before 5.4
	key   key
	since time.Time // idle
	buf   []byte    // for answers

	mu     sync.Mutex
	broken bool // nothing more can be asked
	closed bool
}

// Take returns a process of the user in the mount namespace of the descriptor space, -1 for the caller's own. Give it
// back, or close it.
func (p *Pool) Take(as Identity, space int) (*Process, error) {
	k := key{uid: as.UID, gid: as.GID, groups: fmt.Sprint(as.Groups)}
	if space >= 0 {
		var st unix.Stat_t
		if err := unix.Fstat(space, &st); err != nil {
			return nil, os.NewSyscallError("fstat", err)
		}
		k.space = st.Ino
	}
	if have := p.takeIdle(k); have != nil {
		return have, nil
	}
	got, err := p.takeSpare()
	if err != nil {
		return nil, err
	}
	go p.refill() // ends when one has been started
	got.key = k
	if err := got.become(as, space); err != nil {
		got.Close()
		return nil, err
	}
	return got, nil
}

// takeIdle returns a process that serves k and still lives: the user may have killed it meanwhile.
func (p *Pool) takeIdle(k key) *Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.idle) - 1; i >= 0; i-- {
		have := p.idle[i]
		if have.key != k {
			continue
		}
		p.idle = slices.Delete(p.idle, i, i+1)
		if have.lives() {
			return have
		}
		have.Close()
	}
	return nil
}

// takeSpare returns a process that is nobody's yet.
func (p *Pool) takeSpare() (*Process, error) {
	p.mu.Lock()
	have := p.spare
	p.spare = nil
	p.mu.Unlock()
	switch {
	case have == nil:
	case have.lives():
		return have, nil
	default:
		have.Close()
	}
	return p.start()
}

// refill starts a spare process.
func (p *Pool) refill() {
	fresh, err := p.start()
	if err != nil {
		return // the next Take tries again, and reports it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spare != nil || p.closed {
		fresh.Close()
		return
	}
	p.spare = fresh
}

// Give takes a process back, for the user's next step.
func (p *Pool) Give(used *Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used.mu.Lock()
	broken := used.broken
	used.mu.Unlock()
	if broken || p.closed {
		used.Close()
		return
	}
	used.since = time.Now()
	p.idle = append(p.idle, used)
	if len(p.idle) > maxIdle {
		p.idle[0].Close()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(idleTime, p.expire)
	}
}

// expire ends the processes that have been idle for long.
func (p *Pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 && time.Since(p.idle[0].since) >= idleTime {
		p.idle[0].Close()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.timer = nil
	if len(p.idle) > 0 {
		p.timer = time.AfterFunc(idleTime-time.Since(p.idle[0].since), p.expire)
	}
}

// Leave ends the idle processes in the mount namespace of the descriptor space: its job is over.
func (p *Pool) Leave(space int) {
	var st unix.Stat_t
	if unix.Fstat(space, &st) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = slices.DeleteFunc(p.idle, func(have *Process) bool {
		if have.key.space != st.Ino {
			return false
		}
		have.Close()
		return true
	})
}

// Close ends the processes that nobody uses.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, have := range p.idle {
		have.Close()
	}
	p.idle = nil
	if p.spare != nil {
		p.spare.Close()
		p.spare = nil
	}
}

// program is this program, which may have been replaced on the disk since.
const program = "/proc/self/exe"

// start starts a process that is nobody's yet.
func (p *Pool) start() (*Process, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer unix.Close(pair[1])
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(pair[0])
		return nil, pathError("open", os.DevNull, err)
	}
	defer unix.Close(null)
	files := []uintptr{uintptr(null), uintptr(null), uintptr(null), uintptr(pair[1])}
	pidfd := -1
	pid, err := syscall.ForkExec(program, []string{"muster", "internal", "userfile"}, &syscall.ProcAttr{Dir: "/",
		Env: []string{"GOMAXPROCS=1"}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd}})
	if err != nil {
		unix.Close(pair[0])
		return nil, fmt.Errorf("start the process that opens users' files: %w", err)
	}
	if p.Born != nil {
		p.Born()
	}
	return &Process{sock: pair[0], pid: pid, pidfd: pidfd}, nil
}

// lives reports whether a process that is not asked anything still has its end of the socket.
func (f *Process) lives() bool { return !f.isReadable(0) }

// isReadable waits so many milliseconds for something to read, or the end of the socket.
func (f *Process) isReadable(wait int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.sock), Events: unix.POLLIN}}, wait)
	return n > 0 || err != nil && err != unix.EINTR
}

// become makes the process the user's.
func (f *Process) become(as Identity, space int) error {
	results, err := f.exchange([]Request{{Op: become, As: &as}}, space)
	if err != nil {
		return err
	}
	return results[0].Err
}

// ErrEnded says that a process did not answer: somebody has killed it, or it was interrupted.
var ErrEnded = errors.New("the process that opens the user's files has ended")

// Do is described by Files.
func (f *Process) Do(requests ...Request) ([]Result, error) {
	with := -1
	if len(requests) > 0 && requests[0].Op == Say {
		with = requests[0].Descriptor
	}
	return f.exchange(requests, with)
}

// exchange sends requests, with a descriptor unless that is -1, and waits for the answers.
func (f *Process) exchange(requests []Request, with int) ([]Result, error) {
	b, err := wire.Marshal(requests)
	if err != nil {
		return nil, err
	}
	if len(b) > maxMessage || len(requests) > MaxRequests {
		return nil, unix.E2BIG
	}
	var rights []byte
	if with >= 0 {
		rights = unix.UnixRights(with)
	}
	if err := unix.Sendmsg(f.sock, b, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return nil, f.fail()
	}
	if f.buf == nil {
		f.buf = make([]byte, maxAnswer)
	}
	f.await()
	n, fds, err := receive(f.sock, f.buf, make([]byte, unix.CmsgSpace(4*maxRights)))
	if err != nil {
		return nil, f.fail()
	}
	results := resultsOf(f.buf[:n], len(requests), fds)
	if results == nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, f.fail()
	}
	return results, nil
}

// stopCheck is how often a process that does not answer is looked at.
const stopCheck = 500

// await waits for an answer. A process that was stopped waits for no file system: its user has stopped it, to hold up
// whoever waits for it. It is killed, and the request fails.
func (f *Process) await() {
	for !f.isReadable(stopCheck) {
		if f.isStopped() {
			_ = unix.PidfdSendSignal(f.pidfd, unix.SIGKILL, nil, 0)
		}
	}
}

// isStopped reports whether the process was stopped by a signal (proc_pid_stat(5)).
func (f *Process) isStopped() bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", f.pid)) // of a process that is gone: nothing
	return bytes.Contains(text, []byte(") T "))
}

// resultsOf reads answers to so many requests; nil: they make no sense.
func resultsOf(text []byte, count int, fds []int) []Result {
	var answers []answer
	if wire.Unmarshal(text, &answers) != nil || len(answers) != count {
		return nil
	}
	results := make([]Result, count)
	for i := range answers {
		a := &answers[i]
		results[i] = Result{FD: -1, Text: a.Text, Err: a.error()}
		if !a.HasFD {
			continue
		}
		if len(fds) == 0 {
			return nil
		}
		results[i].FD, fds = fds[0], fds[1:]
	}
	if len(fds) > 0 {
		return nil
	}
	return results
}

// fail notes that nothing more can be asked.
func (f *Process) fail() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = true
	return ErrEnded
}

// Interrupt has the request that is being answered, and all later ones, fail at once: a file system that does not
// answer may hold the process.
func (f *Process) Interrupt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = true
	if !f.closed {
		_ = unix.Shutdown(f.sock, unix.SHUT_RDWR)
		_ = unix.PidfdSendSignal(f.pidfd, unix.SIGKILL, nil, 0)
	}
}

// Close ends the process, unless a file system holds it: then it ends when that answers.
func (f *Process) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed, f.broken = true, true
		unix.Close(f.sock)
		unix.Close(f.pidfd)
	}
}
