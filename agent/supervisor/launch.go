package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Limits of launching.
const (
	// launchThreads bounds the launcher threads of one host name: one launch may hang on a
	// file server without holding up the next.
	launchThreads = 4
	// maxHosts bounds the host names with threads and namespaces of their own.
	maxHosts = 1024
)

// pool is the launcher threads that present one host name; "" is the machine's own.
type pool struct {
	sup  *supervisor
	host string

	mu    sync.Mutex
	queue []chore
	idle  int
	n     int
	more  *sync.Cond
}

// chore is something for a launcher thread to do for a step: start it, or with text, say that.
type chore struct {
	r    *run
	text string
	done chan struct{} // closed once it is said; nil if nobody waits
}

// submit queues r for a launcher; mu is held.
func (s *supervisor) submit(r *run) {
	if r.spec.Container != nil {
		go r.contained() // ends when its tasks have begun, or can not
		return
	}
	if sv := r.spec.Server; sv != nil && sv.Wait > readyTime { // it may keep its launcher for long
		go r.launchApart() // as well
		return
	}
	s.queue(chore{r: r})
}

// queue hands a chore to a launcher of the step's host; mu is held.
func (s *supervisor) queue(c chore) {
	r := c.r
	host := ""
	if r.spec.HostName != "" && s.root {
		host = r.spec.HostName
		s.hosts.add(append(r.spec.Hosts[:len(r.spec.Hosts):len(r.spec.Hosts)], cluster.NodeName(host))...)
		if s.pools[host] == nil && len(s.pools) >= maxHosts {
			host = ""
		}
	}
	p := s.pools[host]
	if p == nil {
		p = &pool{sup: s, host: host}
		p.more = sync.NewCond(&p.mu)
		s.pools[host] = p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, c)
	if p.idle < len(p.queue) && p.n < launchThreads {
		p.n++
		go p.thread()
		return
	}
	p.more.Signal()
}

// thread launches for ever on a system thread of its own, whose umask, directory, file
// system ids, affinity and namespaces are not shared with the rest of the process.
func (p *pool) thread() {
	runtime.LockOSThread()
	l := newLauncher(p.sup, p.host)
	for {
		p.mu.Lock()
		p.idle++
		for len(p.queue) == 0 {
			p.more.Wait()
		}
		p.idle--
		c := p.queue[0]
		p.queue[0] = chore{}
		p.queue = p.queue[1:]
		p.mu.Unlock()
		switch {
		case c.text != "":
			l.say(c.r, c.text)
			if c.done != nil {
				close(c.done)
			}
		case p.sup.mayLaunch(c.r):
			l.launch(c.r)
		}
	}
}

// mayLaunch is false once this process is about to be replaced; the next one launches r.
func (s *supervisor) mayLaunch(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen {
		s.held = append(s.held, r)
		return false
	}
	s.launching++
	return true
}

// launcher is the state of one launcher thread.
type launcher struct {
	sup    *supervisor
	cpus   unix.CPUSet // as the supervisor has them
	groups []int
	home   map[string]string // groups of cgroup v1, see home
}

func newLauncher(s *supervisor, host string) *launcher {
	l := &launcher{sup: s}
	if host == "" || !l.ownHost(host) {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			slog.Error("umask is shared", "err", err)
		}
	}
	unix.SchedGetaffinity(0, &l.cpus)
	l.groups, _ = unix.Getgroups()
	if s.cg != nil {
		l.home = s.cg.Home()
	}
	return l
}

// leave takes this thread out of a job's groups of cgroup v1.
func (l *launcher) leave() {
	for name, dir := range l.home {
		if err := cgroup.EnterOld([]string{dir}); err != nil {
			slog.Error("a launcher could not leave a job's group", "controller", name, "err", err)
		}
	}
	unix.SchedSetaffinity(0, &l.cpus) // cpuset narrowed it
}

// launch starts all tasks of r and tells the supervisor.
func (l *launcher) launch(r *run) {
	s := l.sup
	defer s.launched(r)
	err := l.prepare(r)
	back, apart := l.seclude(r)
	defer back()
	if err == nil {
		err = apart
	}
	j := &job{l: l, r: r, env: splitEnv(r.spec.Env), opened: map[string]int{}, failed: map[string]*os.PathError{}}
	defer j.close()
	unix.Umask(int(r.spec.Umask & 0o777))
	asUser := l.become(&r.spec)
	j.chdir()
	tasks := make([]*stdio, len(r.tasks))
	for i, t := range r.tasks {
		if err != nil {
			break
		}
		tasks[i] = j.open(t)
	}
	l.back(asUser)
	if err == nil && r.grp != nil && len(r.grp.Old) > 0 {
		if r.inside == nil { // else the thread ends in the job's groups
			defer l.leave()
		}
		err = cgroup.EnterOld(r.grp.Old)
	}
	var unserved error // the step's own fault, not the node's
	if err == nil {
		unserved = j.serve() // before the container: it is a program of the node
	}
	if err == nil && !j.contain(tasks) {
		return
	}
	for i, t := range r.tasks {
		st := t.st
		if err != nil || unserved != nil {
			t.st.Fault = err != nil
			s.notStarted(t, tasks[i], cmp.Or(err, unserved))
			continue
		}
		if s.isKilled(r) {
			tasks[i].close()
			st.Exit.Signal = int(unix.SIGKILL)
			st.Started = time.Now()
			st.Ended = st.Started
			s.mu.Lock()
			t.ended(st)
			s.mu.Unlock()
			r.out.noTask(int32(st.Rank))
			continue
		}
		j.start(t, tasks[i])
	}
	unix.Chdir("/")
}

func (s *supervisor) isKilled(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.killed
}

// launched ends what mayLaunch began.
func (s *supervisor) launched(r *run) {
	s.launchDone(r)
	s.mu.Lock()
	s.launching--
	s.moved.Broadcast()
	s.mu.Unlock()
}

// notStarted records why a task has not begun.
func (s *supervisor) notStarted(t *task, std *stdio, err error) {
	sp := &t.run.spec
	text := startError(err, sp.Dir)
	if sp.Script != nil && isExec(err) { // nobody else reads it: a step's is told by its srun
		_, _ = unix.Write(std.fd[2], []byte("slurmstepd-"+string(sp.ID.Node)+": error: "+text+"\n"))
	}
	std.close()
	st := t.st
	st.Error = text
	st.Ended = time.Now()
	var no unix.Errno
	if asErrno(err, &no) {
		st.Errno = int(no)
	}
	s.mu.Lock()
	t.ended(st)
	s.mu.Unlock()
	t.run.out.noTask(int32(st.Rank))
}

// isExec reports whether a start failed when the program was to be run.
func isExec(err error) bool {
	var p *os.PathError
	return errors.As(err, &p) && p.Op == "execve"
}

// startError words a failed start in a directory as Slurm does: "execve(): NAME: No such file or directory", or
// "execve(): bad interpreter(NAME): ..." where that of a script is missing.
func startError(err error, dir string) string {
	var p *os.PathError
	var no unix.Errno
	if !errors.As(err, &p) || p.Op != "execve" || !asErrno(err, &no) {
		return err.Error()
	}
	name := p.Path
	if no == unix.ENOENT {
		if i := interpreter(name, dir); i != "" {
			name = "bad interpreter(" + i + ")"
		}
	}
	return step.ExecFailed + name + ": " + strerror(no)
}

// interpreter is what the first line of a script names, "" if it names nothing.
func interpreter(name, dir string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // whatever may be there by now: it is not waited for
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256) // as the kernel reads
	n, _ := io.ReadFull(f, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	return words[0]
}

// prepare makes what the step needs before its tasks: its group and its script.
func (l *launcher) prepare(r *run) error {
	s := l.sup
	unix.Umask(0o022)
	if s.cg != nil {
		job, name := r.id.GroupPath()
		g, err := s.cg.Create(job, name, &r.spec.Fence)
		if err != nil { // nothing of a user's runs outside the fence
			return fmt.Errorf("make the job's cgroup: %w", err)
		}
		s.mu.Lock()
		r.grp = g
		s.mu.Unlock()
	}
	if err := l.makeDir(&r.spec); err != nil {
		return err
	}
	if r.spec.ScriptPath == "" || r.spec.Script == nil {
		return nil
	}
	dir := filepath.Dir(r.spec.ScriptPath)
	if err := os.Mkdir(dir, 0o755); os.IsNotExist(err) {
		err = os.MkdirAll(dir, 0o755)
		r.madeDir = err == nil
	} else {
		r.madeDir = err == nil
	}
	os.Remove(r.spec.ScriptPath)
	f, err := os.OpenFile(r.spec.ScriptPath, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o500)
	if err != nil {
		return err
	}
	_, err = f.Write(r.spec.Script)
	if err == nil && s.root {
		err = f.Chown(int(r.spec.UID), int(r.spec.GID))
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// become takes on the user's file system identity, on this thread only. It reports whether
// there is something to undo.
func (l *launcher) become(sp *step.Spec) bool {
	if !l.sup.root || sp.UID == 0 && sp.GID == 0 {
		return false
	}
	setgroups(sp.Groups)
	unix.RawSyscall(unix.SYS_SETFSGID, uintptr(sp.GID), 0, 0)
	unix.RawSyscall(unix.SYS_SETFSUID, uintptr(sp.UID), 0, 0)
	return true
}

func (l *launcher) back(did bool) {
	if !did {
		return
	}
	unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	unix.RawSyscall(unix.SYS_SETFSGID, uintptr(os.Getegid()), 0, 0)
	g := make([]uint32, len(l.groups))
	for i := range g {
		g[i] = uint32(l.groups[i])
	}
	setgroups(g)
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
