package supervisor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// pidRoom is the space kept in the environment for a process id: enough for the kernel's
// largest.
const pidRoom = "0000000"

// start begins one task and records it.
func (j *job) start(t *task, io *stdio) {
	s, sp := j.l.sup, &j.r.spec
	task := &sp.Tasks[t.index]
	if io.error != nil {
		j.notStarted(t, io, io.error)
		return
	}
	if task.Refused != "" {
		j.notStarted(t, io, errors.New(task.Refused))
		return
	}
	env := mergeEnv(j.marked(), task.Env...)
	env = mergeEnv(env, j.served.take(t.index, io)...)
	argv := slices.Concat(j.before, task.Argv)
	if len(argv) == 0 {
		j.notStarted(t, io, &os.PathError{Op: "execve", Path: "", Err: unix.ENOENT})
		return
	}
	path := argv[0]
	if !j.isScript(path) {
		found, err := j.ask(userfile.Request{Op: userfile.Find, Path: path, Search: getenv(env, "PATH")})
		if err != nil {
			j.notStarted(t, io, err)
			return
		}
		path = found.Text
	}
	argv[0] = path
	trace := traced{limits: s.different(sp.Rlimits)}
	if sp.PIDEnv != "" {
		env = mergeEnv(env, sp.PIDEnv+"=") // no second value elsewhere
		env = moveLast(env, sp.PIDEnv+"=")
		env[len(env)-1] = sp.PIDEnv + "=" + pidRoom
		trace.name, trace.nenv = sp.PIDEnv, len(env)
	}
	if !task.CPUs.Empty() && j.l.setCPUs(task.CPUs) {
		defer unix.SchedSetaffinity(0, &j.l.cpus)
	}
	if task.Memory != nil {
		if err := task.Memory.Take(); err != nil {
			j.notStarted(t, io, fmt.Errorf("bind memory to NUMA nodes %s: %w", task.Memory.Nodes, err))
			return
		}
		defer (&step.Memory{}).Take()
	}
	j.fork(t, io, path, argv, env, trace)
}

func moveLast(env []string, prefix string) []string {
	for i, v := range env {
		if strings.HasPrefix(v, prefix) {
			copy(env[i:], env[i+1:])
			env[len(env)-1] = v
			break
		}
	}
	return env
}

// setCPUs binds this thread, and so its children, to those CPUs the supervisor may use.
func (l *launcher) setCPUs(ids cluster.IDSet) bool {
	var set unix.CPUSet
	for c := range ids.All() {
		if c < len(set)*64 && l.cpus.IsSet(c) {
			set.Set(c)
		}
	}
	return set.Count() > 0 && unix.SchedSetaffinity(0, &set) == nil
}

// How often and how far apart a file that is "busy" is tried again.
const (
	busyTries = 200
	busyPause = time.Millisecond
)

// fork starts the process and registers it, with its stop after exec used for what needs one.
func (j *job) fork(t *task, io *stdio, path string, argv, env []string, tr traced) {
	s, sp := j.l.sup, &j.r.spec
	attr := &syscall.ProcAttr{Env: env, Files: []uintptr{uintptr(io.fd[0]), uintptr(io.fd[1]), uintptr(io.fd[2])}}
	for _, fd := range io.more {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	sys := j.attributes()
	sys.Ptrace = tr.wanted()
	attr.Sys = sys
	if io.tty {
		sys.Setctty, sys.Ctty = true, 0
	}
	if u := j.userns; u != nil {
		sys.Cloneflags, sys.UidMappings, sys.GidMappings = u.Cloneflags, u.UidMappings, u.GidMappings
		sys.Credential = &syscall.Credential{NoSetGroups: true}
	}
	defer j.l.pool.lend(sp.UID)() // its file system may keep the program waiting
	no := s.forkBegin()
	pid, first, err := j.execute(t, io, path, argv, attr, tr, no)
	for try := 0; errors.Is(err, unix.ETXTBSY) && try < busyTries; try++ {
		// Another launcher's child, between its fork and its exec, still holds the descriptor
		// through which this script was written.
		time.Sleep(busyPause)
		pid, first, err = j.execute(t, io, path, argv, attr, tr, no)
	}
	if err != nil {
		s.mu.Lock()
		s.forkEnd()
		s.mu.Unlock()
		j.notStarted(t, io, &os.PathError{Op: "execve", Path: path, Err: err})
		return
	}
	io.closeOwn()
	s.register(t, pid, no, first, sys.Ptrace)
	s.streams(t, io)
}

// execute starts the process and waits until it is the program; first is a status that it had before.
func (j *job) execute(
	t *task, io *stdio, path string, argv []string, attr *syscall.ProcAttr, tr traced, no uint64,
) (pid int, first earlyWait, err error) {
	s, sp := j.l.sup, &j.r.spec
	pid, wait, err := s.stub.exec(path, argv, attr)
	if err != nil {
		return 0, first, err
	}
	j.r.becoming(pid)
	defer j.r.becoming(0)
	if !attr.Sys.Ptrace {
		j.greet(t, io, pid)
	} else if first = <-s.awaitStop(pid, no); first.ws.Stopped() {
		tr.apply(s, pid, sp.UID, sp.GID)
		j.greet(t, io, pid)
		unix.PtraceDetach(pid)
	}
	return pid, first, wait()
}

// becoming notes the process that is to become a task's program, 0 for none: it can be killed meanwhile.
func (r *run) becoming(pid int) {
	r.sup.mu.Lock()
	defer r.sup.mu.Unlock()
	r.starting = pid
	if pid > 0 && r.killed {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// attributes are those of every process of the step: a session of its own, the user, the step's group.
func (j *job) attributes() *syscall.SysProcAttr {
	s, sp := j.l.sup, &j.r.spec
	sys := &syscall.SysProcAttr{Setsid: true}
	if s.root {
		sys.Credential = step.Credential(sp.UID, sp.GID, sp.Groups)
	}
	if j.r.grp != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, j.r.grp.FD
	}
	return sys
}

// marked is the environment of the step's processes: with a mark where no group tells them from others.
func (j *job) marked() []string {
	if j.l.sup.cg != nil && j.r.grp != nil {
		return j.env
	}
	return append(j.env[:len(j.env):len(j.env)], markerEnv+"="+marker(j.r.id, j.l.sup.owner))
}

// greet writes the task's Greeting; a pipe that nobody reads yet has room for it.
func (j *job) greet(t *task, io *stdio, pid int) {
	if g := j.r.spec.Tasks[t.index].Greeting; g != "" && len(g) <= maxSay {
		j.files.say(io.fd[2], strings.ReplaceAll(g, "%d", strconv.Itoa(pid)))
	}
}

// register makes pid known as the task's process; first is a status already taken.
func (s *supervisor) register(t *task, pid int, no uint64, first earlyWait, have bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.forkEnd()
	t.st.PID, t.st.Started = pid, time.Now()
	t.live = true
	t.run.live++
	s.pids[pid] = t
	s.jour.task(t)
	gone := have && !first.ws.Stopped()
	if e, ok := s.takeEarly(pid, no); ok && !gone && !e.ws.Stopped() {
		first, gone = e, true
	}
	if gone {
		s.taskExit(t, first)
	} else if t.run.killed {
		unix.Kill(pid, unix.SIGKILL)
	}
}

// streams hands the supervisor's ends of a task's pipes to the step's output.
func (s *supervisor) streams(t *task, io *stdio) {
	o := t.run.out
	rank := int32(t.run.spec.Tasks[t.index].Rank) // t.st may change: the task may be over already
	o.addSink(rank, io.in, io.tty)
	for n := 1; n <= 2; n++ {
		if io.outs[n] != nil {
			o.addSource(&source{rank: rank, fd: n, f: io.outs[n], tty: io.tty, labelled: io.labelled[n]})
		}
	}
	s.mu.Lock()
	gone := !t.live
	s.mu.Unlock()
	if gone {
		o.noTask(rank)
	}
}

// traced is what is done to a process between its exec and its first instruction.
type traced struct {
	limits []limit
	name   string // environment variable for the pid, the last of nenv
	nenv   int
}

func (tr traced) wanted() bool { return len(tr.limits) > 0 || tr.name != "" }

// apply works on the stopped process of the user uid and gid.
func (tr traced) apply(s *supervisor, pid int, uid, gid uint32) {
	var cur unix.Rlimit
	if len(tr.limits) > 0 && unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &cur) == unix.EPERM {
		// Root without CAP_SYS_RESOURCE, as in containers: the kernel then wants equal real ids.
		defer realIDs(uid, gid)()
	}
	for _, l := range tr.limits {
		if unix.Prlimit(pid, l.resource, nil, &cur) != nil {
			continue
		}
		s.learnLimit(l.resource, cur)
		if soft := min(l.soft, cur.Max); soft != cur.Cur {
			unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: soft, Max: cur.Max}, nil)
		}
	}
	if tr.name != "" {
		tr.pokePID(pid)
	}
}

// realIDs sets the real ids of this thread, and returns how to set them back.
func realIDs(uid, gid uint32) (back func()) {
	const keep = ^uintptr(0)
	ruid, rgid := uintptr(os.Getuid()), uintptr(os.Getgid())
	unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), keep, keep)
	unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), keep, keep)
	return func() {
		unix.RawSyscall(unix.SYS_SETRESUID, ruid, keep, keep)
		unix.RawSyscall(unix.SYS_SETRESGID, rgid, keep, keep)
	}
}

// pokePID writes the decimal pid over the room kept for it. The environment of a fresh
// process lies where its stack pointer says: argc, argv…, nil, envp….
func (tr traced) pokePID(pid int) {
	sp := stackPointer(pid)
	var word [8]byte
	if sp == 0 || !peek(pid, sp, word[:]) {
		return
	}
	argc := binary.NativeEndian.Uint64(word[:])
	at := uintptr(argc) + 2 + uintptr(tr.nenv) - 1
	if argc > 1<<24 || !peek(pid, sp+8*at, word[:]) {
		return
	}
	text := uintptr(binary.NativeEndian.Uint64(word[:]))
	want := []byte(tr.name + "=" + pidRoom)
	have := make([]byte, len(want))
	if !peek(pid, text, have) || !bytes.Equal(have, want) {
		return
	}
	digits := make([]byte, len(pidRoom))
	copy(digits, strconv.Itoa(pid))
	unix.PtracePokeData(pid, text+uintptr(len(tr.name))+1, digits)
}

func peek(pid int, at uintptr, b []byte) bool {
	n, err := unix.PtracePeekData(pid, at, b)
	return err == nil && n == len(b)
}
