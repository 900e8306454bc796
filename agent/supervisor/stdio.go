package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"dev.muster/agent/step"
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
	opened map[string]int // output files of this step, opened once
	failed map[string]*os.PathError
	cwdErr error // why Dir could not be entered
	told   bool
	served served               // by the step's server
	before []string             // of the container's image: what runs the task's command
	userns *syscall.SysProcAttr // of a container in which the user is root
}

func (j *job) close() {
	for _, fd := range j.opened {
		unix.Close(fd)
	}
	j.served.close()
}

// chdir enters the working directory as the user, else /tmp.
func (j *job) chdir() {
	dir := j.r.spec.Dir
	if dir == "" {
		dir = "/tmp"
	}
	if j.cwdErr = unix.Chdir(dir); j.cwdErr == nil {
		return
	}
	if unix.Chdir("/tmp") != nil {
		unix.Chdir("/")
	}
}

// open makes a task's descriptors, as the user.
func (j *job) open(t *task) *stdio {
	io := &stdio{fd: [3]int{-1, -1, -1}}
	spec := &j.r.spec.Tasks[t.index]
	if j.r.spec.PTY != nil && t.index == j.r.lowest() {
		io.error = io.terminal(j.r.spec.PTY.Rows, j.r.spec.PTY.Cols)
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
		unix.Write(io.fd[2], []byte(text))
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

func (j *job) openFile(n int, what step.IO) (int, error) {
	if n == 0 {
		return openInput(what.Path)
	}
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND | unix.O_NOCTTY
	if !what.Append {
		flags |= unix.O_TRUNC
	}
	return j.openOnce(what.Path, flags)
}

// openOnce opens a file the first time a task of this step names it.
func (j *job) openOnce(path string, flags int) (int, error) {
	if fd, ok := j.opened[path]; ok {
		return fd, nil
	}
	if err := j.failed[path]; err != nil {
		return -1, err
	}
	fd, err := openOutput(path, flags)
	if err == unix.ENOENT && flags&unix.O_CREAT != 0 {
		if mkdirs(filepath.Dir(path)) == nil {
			fd, err = openOutput(path, flags)
		}
	}
	if err != nil {
		pe := &os.PathError{Op: "open", Path: path, Err: err}
		j.failed[path] = pe
		return -1, pe
	}
	j.opened[path] = fd
	return fd, nil
}

// openOutput opens a file to write to without waiting for anybody. A named pipe that nobody reads yet is opened for
// reading, too: so its task begins, waits when the pipe is full, and can be killed then.
func openOutput(path string, flags int) (int, error) {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o666)
	if err == unix.ENXIO {
		fd, err = unix.Open(path, flags&^unix.O_WRONLY|unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o666)
	}
	if err != nil {
		return -1, err
	}
	return fd, unix.SetNonblock(fd, false)
}

// writerTime is how long a task waits for somebody to write into the named pipe that is its input.
const writerTime = 5 * time.Second

// openInput opens a file to read from.
func openInput(path string) (int, error) {
	fail := func(err error) (int, error) { return -1, &os.PathError{Op: "open", Path: path, Err: err} }
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO && !written(fd) {
		unix.Close(fd)
		return fail(errNoWriter)
	}
	return fd, unix.SetNonblock(fd, false)
}

// errNoWriter says why a task whose input is a named pipe did not start.
var errNoWriter = errors.New("nobody writes into this pipe")

// written waits until somebody has a named pipe open to write into.
func written(fd int) bool {
	var p [2]int
	if unix.Pipe2(p[:], unix.O_CLOEXEC) != nil {
		return false
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	for end := time.Now().Add(writerTime); time.Now().Before(end); time.Sleep(writerPause) {
		// tee takes nothing away; without writers it says that this is the end.
		n, err := unix.Tee(fd, p[1], 1, unix.SPLICE_F_NONBLOCK)
		if n > 0 || err == unix.EAGAIN {
			return true
		}
	}
	return false
}

// writerPause is how often it is looked for a writer.
const writerPause = 20 * time.Millisecond

func mkdirs(dir string) error {
	err := unix.Mkdir(dir, 0o777)
	if err == unix.ENOENT && filepath.Dir(dir) != dir {
		if err = mkdirs(filepath.Dir(dir)); err == nil {
			err = unix.Mkdir(dir, 0o777)
		}
	}
	if err == unix.EEXIST {
		return nil
	}
	return err
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

// openNull opens /dev/null once for all tasks; no path a user gives is "".
func (j *job) openNull() (int, error) {
	if fd, ok := j.opened[""]; ok {
		return fd, nil
	}
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/dev/null", Err: err}
	}
	j.opened[""] = fd
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
	io.labelled[n] = &labelledFile{f: os.NewFile(uintptr(own), what.Path), label: what.Label}
	return nil
}
