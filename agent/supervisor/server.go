package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"dev.muster/api/stream"
	"dev.muster/pmi"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// readyTime is how long the tasks wait for their server.
const readyTime = 30 * time.Second

// Bounds of what a server says when it is ready: some variables of each task, or an error. The server has its user's
// rights, and what it says takes many times its length while it is read.
const (
	maxReady     = 64 << 10
	maxTaskReady = 8 << 10 // more for each task
)

// served is what a launch has of the step's server.
type served struct {
	sockets []int      // one for each task, theirs
	env     [][]string // of each task
}

// take is what a task needs to find the server: variables, and the socket among the descriptors
// that it starts with.
func (s *served) take(task int, io *stdio) []string {
	if task < len(s.sockets) {
		io.more = append(io.more, s.sockets[task])
	}
	if task < len(s.env) {
		return s.env[task]
	}
	return nil
}

func (s *served) close() {
	for _, fd := range s.sockets {
		unix.Close(fd)
	}
	s.sockets = nil
}

// serve starts the step's server, if it has one, and waits until it is ready.
func (j *job) serve() error {
	sv := j.r.spec.Server
	if sv == nil {
		return nil
	}
	p := &serverPipes{}
	err := p.open(j, sv)
	var end func()
	if err == nil {
		end, err = j.startServer(sv, p)
	}
	closeAll(p.theirs...)
	if err != nil {
		closeAll(p.in, p.out, p.errs, p.ready)
		j.r.out.noTask(stream.StepServer)
		// As a text: the error of an exec would be told as that of the task's program.
		return errors.New("start the process manager of MPI: " + err.Error())
	}
	o := j.r.out
	o.addSink(stream.StepServer, p.in, false)
	o.addSource(&source{rank: stream.StepServer, fd: 1, f: p.out})
	o.addSource(&source{rank: stream.StepServer, fd: 2, f: p.errs})
	back := j.l.pool.lend(j.r.spec.UID) // the server is the user's process, who may have it wait
	ready, err := readReady(p.ready, maxReady+len(j.r.spec.Tasks)*maxTaskReady, cmp.Or(sv.Wait, readyTime))
	back()
	end()
	if err == nil {
		j.served.env = ready.Env
	}
	return err
}

// makeDir makes the folder of the step's server.
func (l *launcher) makeDir(sp *step.Spec) error {
	if sp.Server == nil || sp.Server.Dir == "" {
		return nil
	}
	dir := sp.Server.Dir
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil || !l.sup.root {
		return err
	}
	return os.Chown(dir, int(sp.UID), int(sp.GID))
}

// removeTime is how long the end of a step waits for the removal of its server's folder.
const removeTime = time.Second

// removeDir removes the server's folder; nothing of the step's is left that could use it.
func (r *run) removeDir() {
	if sv := r.spec.Server; sv != nil {
		removeSoon(sv.Dir, userfile.Remove) // "" is no folder, and removed
	}
}

// removeSoon removes a folder of the user's, who may have filled it with any number of files: what takes longer than
// removeTime goes on by itself. A node whose step does not end is taken out of service.
func removeSoon(dir string, remove func(string) error) {
	done := make(chan struct{})
	go func() { // ends when all is gone
		defer close(done)
		if err := remove(dir); err != nil {
			slog.Error("a folder of a step is left", "dir", dir, "err", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(removeTime):
	}
}

// serverPipes are the descriptors of a server: theirs in the order of their numbers, and our ends.
type serverPipes struct {
	theirs               []*os.File
	in, out, errs, ready *os.File
}

// open makes the descriptors of a step's server, and the sockets of its tasks.
func (p *serverPipes) open(j *job, sv *step.Server) error {
	setup, err := unix.MemfdCreate("setup", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(setup), "setup")
	p.theirs = make([]*os.File, pmi.FirstTask)
	p.theirs[pmi.SetupFD] = file
	if _, err = file.Write(sv.Setup); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = p.pipes()
	}
	if sv.Tasks && err == nil {
		err = p.sockets(j)
	}
	return err
}

// pipeRoom is how much a server and this process may be ahead of each other.
const pipeRoom = 1 << 20

// pipes makes those between the server and this process.
func (p *serverPipes) pipes() (err error) {
	if p.theirs[0], p.in, err = os.Pipe(); err != nil {
		return err
	}
	for fd, ours := range map[int]**os.File{1: &p.out, 2: &p.errs, pmi.ReadyFD: &p.ready} {
		if *ours, p.theirs[fd], err = os.Pipe(); err != nil {
			return err
		}
	}
	widen(p.in)
	widen(p.out)
	return nil
}

// widen gives a pipe more room: with less both sides wait for each other more often. Where the user's pipes have
// taken what the kernel allows it stays as it is.
func widen(f *os.File) {
	if rc, err := f.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeRoom) })
	}
}

// sockets makes one between each task and the server.
func (p *serverPipes) sockets(j *job) error {
	for range j.r.spec.Tasks {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("socketpair", err)
		}
		p.theirs = append(p.theirs, os.NewFile(uintptr(pair[0]), "task"))
		j.served.sockets = append(j.served.sockets, pair[1])
	}
	return nil
}

// closeAll closes files; one that was not made has nothing to close.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// startServer starts the server in the step's group, as its user. Until end is called, a kill of the step ends it.
func (j *job) startServer(sv *step.Server, p *serverPipes) (end func(), err error) {
	s, r := j.l.sup, j.r
	attr := &syscall.ProcAttr{Dir: "/", Env: mergeEnv(j.marked(), sv.Env...), Sys: j.attributes()}
	fd := -1
	attr.Sys.PidFD = &fd // its number may be another process's once it has ended
	for _, f := range p.theirs {
		attr.Files = append(attr.Files, f.Fd()) // and so one that blocks, as programs expect
	}
	s.forkBegin()
	_, err = syscall.ForkExec(sv.Argv[0], sv.Argv, attr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forkEnd() // its end is nobody's news: the streams tell
	if err != nil {
		return nil, &os.PathError{Op: "execve", Path: sv.Argv[0], Err: err}
	}
	r.server = pidfd(fd)
	if r.killed { // before there was a server that the signal could reach
		r.server.kill()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.server.close()
	}, nil
}

// pidfd is a descriptor of a process; 0 and -1 are none.
type pidfd int

// kill ends the process.
func (p pidfd) kill() {
	if p > 0 {
		_ = unix.PidfdSendSignal(int(p), unix.SIGKILL, nil, 0)
	}
}

// close closes the descriptor, so that there is none.
func (p *pidfd) close() {
	if *p > 0 {
		unix.Close(int(*p))
	}
	*p = 0
}

// readReady waits for what a server says when tasks may start, in so many bytes at most.
func readReady(f *os.File, most int, wait time.Duration) (pmi.Ready, error) {
	defer f.Close()
	var ready pmi.Ready
	_ = f.SetReadDeadline(time.Now().Add(wait))
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ready, fmt.Errorf("the process manager of MPI is not ready after %s", wait)
	case err != nil:
		return ready, err
	case len(text) == 0:
		return ready, errors.New("the process manager of MPI has ended before it was ready")
	case len(text) > most:
		return ready, fmt.Errorf("the process manager of MPI says more than %d bytes when it is ready: "+
			"is its library changed, by LD_LIBRARY_PATH?", most)
	}
	if err := wire.Unmarshal(text, &ready); err != nil {
		return ready, fmt.Errorf("the process manager of MPI: %w", err)
	}
	if ready.Error != "" {
		return ready, errors.New(strings.TrimSpace(ready.Error))
	}
	return ready, nil
}
