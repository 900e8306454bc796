package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"dev.muster/cluster"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// A step in a container has a launcher of its own: it waits for the image, which may take minutes,
// makes the container around its thread, starts the tasks in it, and ends with its namespace and
// its no_new_privs.

// maxReply bounds what the helper that fetches images may say.
const maxReply = 1 << 20

// contained launches a step in a container, on a thread that ends with it.
func (r *run) contained() {
	s := r.sup
	in := &inside{}
	s.mu.Lock()
	r.inside = in
	s.mu.Unlock()
	in.image, in.err = r.image()
	if in.err == nil {
		in.err = in.image.Use(r.spec.Container.Store, r.containerName())
	}
	r.launchApart()
}

// maxApart bounds the launches of one user that have a thread each, the images that are fetched, and the containers
// that are saved. They may wait for the user's files or registry, or for a program that is to come, for as long as the
// user likes; and the runtime ends a process of 10,000 threads.
const maxApart = 128

// apart counts the launches and saves that have a thread each.
type apart struct {
	mu    sync.Mutex
	moved *sync.Cond
	n     map[uint32]int // by user
	gates gates          // of writes, which may hold threads as well

	removals removals // of what steps have written into their containers
}

func newApart() *apart {
	a := &apart{n: map[uint32]int{}, removals: removals{remove: userfile.Remove}}
	a.moved = sync.NewCond(&a.mu)
	return a
}

// begin waits until a step may have a thread. A killed one only has to be recorded, and logins wait for one for
// sessions: neither waits.
func (a *apart) begin(r *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.n[r.spec.UID] >= maxApart && !r.doomed.Load() && !r.isExternal() {
		a.moved.Wait()
	}
	a.n[r.spec.UID]++
}

// end ends what begin began.
func (a *apart) end(r *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n[r.spec.UID]--; a.n[r.spec.UID] == 0 {
		delete(a.n, r.spec.UID)
	}
	a.moved.Broadcast()
}

// wake has those that wait look whether their step is killed.
func (a *apart) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moved.Broadcast()
}

// launchApart launches a step on a thread that ends with it.
func (r *run) launchApart() {
	s := r.sup
	s.apart.begin(r)
	defer s.apart.end(r)
	if !s.mayLaunch(r) {
		return
	}
	host := ""
	if r.spec.HostName != "" && s.root {
		host = r.spec.HostName
		s.hosts.add(append(r.spec.Hosts[:len(r.spec.Hosts):len(r.spec.Hosts)], cluster.NodeName(host))...)
	}
	runtime.LockOSThread() // indefinitely: the thread is not to be used again
	l := newLauncher(s, host)
	l.launch(r)
}

// image is that of a step's container.
func (r *run) image() (container.Image, error) {
	if r.spec.Container.Name != "" {
		return r.named()
	}
	return r.fetch()
}

// fetch has a helper fetch the step's image, unless it is a path of the user's. A thread waits for the helper, or for
// the user's files.
func (r *run) fetch() (container.Image, error) {
	r.sup.apart.begin(r)
	defer r.sup.apart.end(r)
	c := r.spec.Container
	if c.Bundle {
		return r.bundle()
	}
	file, ok := container.FileOf(c.Image, r.spec.Dir)
	if ok {
		if _ = r.withRights(func() error { file.Look(); return nil }); !file.Packed {
			return container.Image{}, nil
		}
	}
	env := splitEnv(r.spec.Env)
	q := container.Request{Store: c.Store, Limit: c.Limit, Most: c.Most, Image: c.Image,
		UID: r.spec.UID, GID: r.spec.GID, Groups: r.spec.Groups,
		Home: cmp.Or(getenv(env, "HOME"), c.Home), Enroot: getenv(env, "ENROOT_CONFIG_PATH"),
		Docker: getenv(env, "DOCKER_CONFIG"), Daemon: c.Sock,
		HTTP: c.Site != nil && c.Site.AllowHTTP, Meter: meterFD}
	if ok {
		q.File = &file
	}
	rep, err := r.askHelper(c.Helper(), &q)
	if err == nil && rep.Error != "" {
		err = errors.New(rep.Error)
	}
	return container.Image{Root: rep.Root, Config: rep.Config}, err
}

// withRights does something with the user's rights on files.
func (r *run) withRights(do func() error) error {
	return userfile.Apart(r.identity(), do)
}

// bundle reads a bundle of the OCI.
func (r *run) bundle() (image container.Image, err error) {
	said := ""
	err = r.withRights(func() error {
		image, said, err = r.spec.Container.Unbundle(r.spec.Dir)
		return err
	})
	if said != "" {
		r.notice(said + "\n")
	}
	return image, err
}

// meterFD is the descriptor by which the process that fetches an image tells how far it is.
const meterFD = 3

// askHelper runs the process that fetches images. It is killed with the step.
func (r *run) askHelper(argv []string, q *container.Request) (rep container.Reply, err error) {
	s := r.sup
	text, err := wire.Marshal(q)
	if err != nil {
		return rep, err
	}
	group, err := r.charge()
	if err != nil {
		return rep, fmt.Errorf("make the job's cgroup: %w", err)
	}
	defer group.free()
	var in, out [2]int
	if err := unix.Pipe2(in[:], unix.O_CLOEXEC); err != nil {
		return rep, os.NewSyscallError("pipe", err)
	}
	request := os.NewFile(uintptr(in[1]), "request")
	defer request.Close()
	defer unix.Close(in[0])
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		return rep, os.NewSyscallError("pipe", err)
	}
	said := os.NewFile(uintptr(out[0]), "reply")
	defer said.Close()
	meter, err := unix.MemfdCreate("progress", unix.MFD_CLOEXEC)
	if err != nil {
		return rep, os.NewSyscallError("memfd_create", err)
	}
	defer unix.Close(meter)
	pidfd := -1
	attr := &syscall.ProcAttr{Dir: "/", Env: os.Environ(),
		Files: []uintptr{uintptr(in[0]), uintptr(out[1]), 2, uintptr(meter)},
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd}}
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	unix.Close(out[1])
	if err != nil {
		return rep, fmt.Errorf("start %s: %w", strings.Join(argv, " "), err)
	}
	s.childBorn()
	slog.Debug("an image is fetched", "image", q.Image, "pid", pid)
	if pidfd >= 0 {
		defer unix.Close(pidfd)
		over, ended := make(chan struct{}), make(chan struct{})
		defer func() { close(over); <-ended }()
		go func() {
			defer close(ended)
			r.killWith(pidfd, meter, over)
		}()
	}
	if err = group.take(pid); err == nil { // it waits for its request
		_, err = request.Write(text)
	}
	if err = errors.Join(err, request.Close()); err != nil {
		return rep, fmt.Errorf("ask for the image: %w", err)
	}
	text, err = io.ReadAll(io.LimitReader(said, maxReply))
	if err == nil {
		err = wire.Unmarshal(text, &rep)
	}
	if err != nil || len(text) == 0 {
		if group.starved() {
			return rep, errors.New("to unpack the image takes more memory than the job has (--mem)")
		}
		return rep, errors.New("the process that fetches images has died")
	}
	return rep, nil
}

// notice tells a step's srun what its node does before there is a task. A file would be emptied by the
// task that it is of.
func (r *run) notice(text string) {
	if r.spec.Tasks[0].ErrorsTo().Kind == step.Stream {
		r.out.say([]byte(text), false)
	}
}

// contain takes this thread into the step's container, whose files, directory and environment its
// tasks have from then on.
func (j *job) contain(tasks []*stdio) bool {
	r := j.r
	c := r.spec.Container
	if c == nil {
		return true
	}
	err := r.inside.err
	if err == nil {
		if err = j.enter(); err == nil {
			return true
		}
		err = fmt.Errorf("couldn't start container: %w", err)
	} else if c.Name == "" {
		err = fmt.Errorf("failed to import docker image: %w", err)
	}
	if !r.isEnding() {
		slog.Info("a container could not be made", "job", r.id.Job, "step", r.id.Step, "err", err)
	}
	for i, t := range r.tasks {
		j.refuse(t, tasks[i], err, i == 0)
	}
	return false
}

// maker makes the step's container around this thread.
func (j *job) maker() container.Maker {
	r, l := j.r, j.l
	c := r.spec.Container
	m := container.Maker{Spec: c, Dir: r.spec.Dir, Step: r.containerName(),
		UID: r.spec.UID, GID: r.spec.GID,
		AsUser: func(do func() error) error { return userfile.Act(r.identity(), do) },
		Owner:  func() (int, error) { return l.userSpace(r.spec.UID, r.spec.GID) }}
	if r.spec.Script != nil {
		m.Script = r.spec.ScriptPath
	}
	if c.Name != "" {
		m.Job = r.keptFor()
	}
	return m
}

func (j *job) enter() error {
	r, l := j.r, j.l
	c := r.spec.Container
	m := j.maker()
	m.Image = r.inside.image
	if c.Save != "" {
		if err := m.AsUser(func() error { return c.CanSave(r.spec.Dir) }); err != nil {
			return err
		}
	}
	if sv := r.spec.Server; sv != nil {
		m.Folder = sv.Dir
	}
	cfg := r.inside.image.Config
	m.Env, m.Hook = mergeEnv(j.env, r.spec.Tasks[0].Env...), j.hook
	var err error
	switch {
	case r.inside.with != nil:
		if made := r.inside.with.run.inside.made; made != nil {
			cfg = *made
		}
		if err = cfg.Driver(); err == nil {
			err = l.join(r, r.inside.with)
		}
	case c.NameMode == cluster.ContainerExec:
		err = errNotRunning
	default:
		cfg, err = m.Enter()
		r.inside.made = &cfg
	}
	if err != nil {
		return err
	}
	j.env = cfg.WithDriver(cfg.Environ(j.env, c.Env))
	if c.Entrypoint {
		j.before = cfg.Entrypoint
	}
	dir := cmp.Or(c.WorkDir, path.Join("/", cfg.WorkDir))
	err = userfile.Act(r.identity(), func() error { return container.EnterDir(dir) })
	if err != nil && c.WorkDir != "" {
		return fmt.Errorf("couldn't chdir to %s: %s", dir, strerror(errors.Unwrap(err)))
	}
	if err != nil {
		dir = "/"
	}
	j.env = mergeEnv(j.env, "PWD="+dir)
	err = nil
	if c.Root { // the child cannot set groups in its user namespace: it has those of this thread
		err = userfile.SetGroups(r.spec.Groups)
		j.userns = oneUser(r.spec.UID, r.spec.GID)
	}
	if err == nil {
		err = j.moveFiles(dir)
	}
	// Both for the tasks: this thread ends with their beginning.
	return errors.Join(err, os.NewSyscallError("no_new_privs", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
}

// moveFiles has programs be looked up in the container, in dir, by another process of the user.
func (j *job) moveFiles(dir string) error {
	space, err := openSpace()
	if err != nil {
		return fmt.Errorf("open the container's namespace: %w", err)
	}
	j.files.end()
	j.files = &userFiles{l: j.l, r: j.r, space: space, dir: dir, own: true}
	return nil
}

// refuse ends a task that could not be begun in its container; one of them says why, as Pyxis does.
func (j *job) refuse(t *task, std *stdio, err error, says bool) {
	s := j.l.sup
	if says && std != nil && !j.r.isEnding() {
		var text []byte
		for line := range strings.SplitSeq(err.Error(), "\n") {
			text = append(text, "slurmstepd: error: pyxis: "+line+"\n"...)
		}
		if std.piped() {
			j.r.out.say(text, false)
		} else {
			j.files.say(std.fd[2], string(text))
		}
	}
	std.close()
	st := t.st
	st.Started = time.Now()
	st.Ended = st.Started
	st.Exit.Code = 1
	if j.r.isEnding() {
		st.Exit.Code, st.Exit.Signal = 0, int(unix.SIGTERM)
	}
	if s.isKilled(j.r) {
		st.Exit.Signal = int(unix.SIGKILL)
	}
	s.mu.Lock()
	t.ended(st)
	s.mu.Unlock()
	j.r.out.noTask(int32(st.Rank))
}

// piped reports whether a task's standard error is read by the supervisor.
func (io *stdio) piped() bool {
	return io.tty || io.outs[2] != nil || io.fd[2] == io.fd[1] && io.outs[1] != nil
}

// containerName names a step's part on its node.
func (r *run) containerName() string {
	job, name := r.id.GroupPath()
	return job + "." + name
}

// uncontain gives the image back, and removes what a step has written into its container. That may take
// long.
func (r *run) uncontain() {
	c := r.spec.Container
	if c == nil {
		return
	}
	if err := container.Unuse(c.Store, r.containerName()); err != nil {
		slog.Error("an image is held though its step is over", "job", r.id.Job, "err", err)
	}
	if !c.Writable || c.Name != "" {
		return
	}
	r.sup.apart.removals.add(r.spec.UID, container.StepDir(c.Store, r.containerName()))
}

// oneUser has a child begin in a user namespace of its own, in which the user is root and nobody else
// is known.
func oneUser(uid, gid uint32) *syscall.SysProcAttr {
	one := func(id uint32) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(id), Size: 1}}
	}
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: one(uid), GidMappings: one(gid)}
}

// userSpace makes a user namespace in which the user is root: that of a process that is stopped
// before its first instruction, and killed.
func (l *launcher) userSpace(uid, gid uint32) (int, error) {
	s := l.sup
	no := s.forkBegin()
	attr := oneUser(uid, gid)
	attr.Ptrace = true
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"muster"}, &syscall.ProcAttr{Sys: attr})
	stopped := false
	if err == nil {
		stopped = (<-s.awaitStop(pid, no)).ws.Stopped()
	}
	fd := -1
	if stopped {
		fd, err = unix.Open(fmt.Sprintf("/proc/%d/ns/user", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		unix.Kill(pid, unix.SIGKILL)
	} else if err == nil {
		err = errors.New("its process died")
	}
	s.mu.Lock()
	s.forkEnd()
	s.mu.Unlock()
	return fd, err
}

// killWith kills a process that fetches an image once the step is to end; it ends when over is closed.
func (r *run) killWith(pidfd, meter int, over <-chan struct{}) {
	t, told := time.NewTicker(imagePause), r.fetching(meter)
	defer t.Stop()
	defer told.end()
	for !r.isEnding() {
		select {
		case <-over:
			return
		case <-t.C:
			told.tick()
		}
	}
	_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
}
