package supervisor

import (
	"os"
	"syscall"

	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"golang.org/x/sys/unix"
)

// stdio is a task's three descriptors, and the supervisor's ends of pipes and terminals.
type stdio struct {
	fd   [3]int
	own  []int // to close after the fork
	more []int // further descriptors, from 3 on
	in   *os.File
	outs [3]*os.File // [1], [2]
	tty  bool
	// labelled are the files that the supervisor writes of outs.
	labelled [3]*labelledFile
	error    error
}

func (io *stdio) close() {
	if io == nil {
		return
	}
	io.closeOwn()
	for _, f := range []*os.File{io.in, io.outs[1], io.outs[2]} {
		if f != nil {
			f.Close()
		}
	}
	for _, w := range io.labelled {
		if w != nil {
			w.f.Close()
		}
	}
}

func (io *stdio) closeOwn() {
	for _, fd := range io.own {
		unix.Close(fd)
	}
	io.own = nil
}

// job is one launch under way.
type job struct {
	l      *launcher
	r      *run
	env    []string
	null   int // /dev/null, for all tasks; -1: not open yet
	files  *userFiles
	known  map[userfile.Request]userfile.Result // of files and programs that several tasks name
	cwdErr error                                // why Dir could not be entered
	told   bool
	served served               // by the step's server
	before []string             // of the container's image: what runs the task's command
	userns *syscall.SysProcAttr // of a container in which the user is root
}

func (j *job) close() {
	for _, r := range j.known {
		unix.Close(r.FD)
	}
	unix.Close(j.null)
	j.files.end()
	j.served.close()
}

// open makes a task's descriptors, as the user.
func (j *job) open(t *task) *stdio {
	io := &stdio{fd: [3]int{-1, -1, -1}}
	spec := &j.r.spec.Tasks[t.index]
	if j.r.spec.PTY != nil && t.index == j.r.lowest() {
		did := j.l.become(&j.r.spec)
		io.error = io.terminal(j.r.spec.PTY.Rows, j.r.spec.PTY.Cols)
		j.l.back(did)
	} else {
		for n, what := range []step.IO{spec.Stdin, spec.Stdout, spec.Stderr} {
			if io.error = j.open1(io, n, what); io.error != nil {
				break
			}
		}
	}
	if io.error == nil && j.cwdErr != nil && !j.told && j.r.spec.Container == nil {
		j.told = true
		text := "slurmstepd-" + string(j.r.id.Node) + ": error: couldn't chdir to `" + j.r.spec.Dir + "': " +
			strerror(j.cwdErr) + ": going to /tmp instead\n"
		j.files.say(io.fd[2], text)
	}
	return io
}

func (j *job) open1(io *stdio, n int, what step.IO) (err error) {
	switch what.Kind {
	case step.Same:
		if n == 2 {
			io.fd[2] = io.fd[1]
			return nil
		}
	case step.Stream:
		return j.openPipe(io, n)
	case step.File:
		if what.Label != "" {
			return j.openLabelled(io, n, what)
		}
		io.fd[n], err = j.openFile(n, what)
		if n == 0 && err == nil {
			io.own = append(io.own, io.fd[0])
		}
		return err
	}
	io.fd[n], err = j.openNull()
	return err
}

// openPipe gives a task one end of a pipe, of which the supervisor has the other.
func (j *job) openPipe(io *stdio, n int) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return os.NewSyscallError("pipe", err)
	}
	ours, theirs := p[0], p[1]
	if n == 0 {
		ours, theirs = p[1], p[0]
	}
	unix.SetNonblock(ours, true)
	f := os.NewFile(uintptr(ours), "pipe")
	if io.fd[n] = theirs; n == 0 {
		io.in = f
	} else {
		io.outs[n] = f
	}
	io.own = append(io.own, theirs)
	return nil
}

// openFile opens a file of a task: one to write to once for all tasks that name it, one to read from for each.
func (j *job) openFile(n int, what step.IO) (int, error) {
	if n > 0 {
		r, err := j.ask(writeOf(what))
		return r.FD, err
	}
	r := j.files.one(userfile.Request{Op: userfile.Read, Path: what.Path})
	if r.Err != nil {
		return -1, &os.PathError{Op: "open", Path: what.Path, Err: r.Err}
	}
	return r.FD, nil
}

// terminal opens a pseudo terminal, owned by the user because this thread is.
func (io *stdio) terminal(rows, cols uint16) error {
	m, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	f := os.NewFile(uintptr(m), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(m, unix.TIOCSPTLCK, 0); err != nil {
		f.Close()
		return os.NewSyscallError("unlock terminal", err)
	}
	slave, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(m), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if no != 0 {
		f.Close()
		return os.NewSyscallError("open terminal", no)
	}
	unix.IoctlSetWinsize(m, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	fd := int(slave)
	io.fd = [3]int{fd, fd, fd}
	io.own = append(io.own, fd)
	io.in, io.outs[1], io.tty = f, f, true
	return nil
}

// openNull opens /dev/null once for all tasks.
func (j *job) openNull() (int, error) {
	if j.null >= 0 {
		return j.null, nil
	}
	fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	j.null = fd
	return fd, nil
}

// openLabelled opens a pipe for a task, of which the supervisor reads the lines of a labelled file.
func (j *job) openLabelled(io *stdio, n int, what step.IO) error {
	fd, err := j.openFile(n, what)
	if err != nil {
		return err
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("dup", err)
	}
	if err := j.openPipe(io, n); err != nil {
		unix.Close(own)
		return err
	}
	io.labelled[n] = newLabelledFile(own, what.Path, what.Label, 2*len(j.r.tasks))
	return nil
}
