package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Limits of launching.
const (
	// launchThreads bounds the launcher threads of one host name that do not wait for a file system.
	launchThreads = 4
	// maxSlow bounds the launchers that wait for a user's files: the user's other steps wait in the queue.
	maxSlow = 8
	// maxHosts bounds the host names with threads and namespaces of their own.
	maxHosts = 1024
)

// submit queues r for a launcher; mu is held.
func (s *supervisor) submit(r *run) {
	if r.spec.Container != nil {
		go r.contained() // ends when its tasks have begun, or cannot
		return
	}
	if r.spec.NoNewPrivs { // its thread keeps the restriction, so it cannot serve other steps
		go r.launchApart()
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
		p = &pool{sup: s, host: host, slow: map[uint32]int{}}
		p.more = sync.NewCond(&p.mu)
		s.pools[host] = p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, c)
	p.staff()
}

// staff wakes or starts a launcher for what is queued; p.mu is held.
func (p *pool) staff() {
	if p.idle < len(p.queue) && p.n < launchThreads {
		p.n++
		go p.thread()
		return
	}
	p.more.Signal()
}

// mayTake reports whether a chore need not wait for others of its user. A killed step only has to be recorded, and one
// for sessions opens no files of the user's. p.mu is held.
func (p *pool) mayTake(c chore) bool {
	return p.slow[c.r.spec.UID] < maxSlow || c.r.doomed.Load() || c.r.isExternal()
}

// next waits for a chore; ok is false if there are too many launchers.
func (p *pool) next() (c chore, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.n > launchThreads {
			p.n--
			return c, false
		}
		i := slices.IndexFunc(p.queue, p.mayTake)
		if i >= 0 {
			c = p.queue[i]
			p.queue = slices.Delete(p.queue, i, i+1)
			return c, true
		}
		p.idle++
		p.more.Wait()
		p.idle--
	}
}

// thread launches indefinitely on a system thread of its own, whose umask, directory, file
// system ids, affinity and namespaces are not shared with the rest of the process.
func (p *pool) thread() {
	runtime.LockOSThread()
	l := newLauncher(p.sup, p.host)
	l.pool = p
	for {
		c, ok := p.next()
		if !ok {
			return
		}
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
	j := &job{l: l, r: r, env: splitEnv(r.spec.Env), null: -1, files: l.files(r),
		known: map[userfile.Request]userfile.Result{}}
	defer j.close()
	unix.Umask(int(r.spec.Umask & 0o777))
	unserved := l.isOwn(r) // the step's own fault, not the node's
	goes := func() bool { return err == nil && unserved == nil }
	tasks := make([]*stdio, len(r.tasks))
	if goes() {
		j.enterDir()
		for i, t := range r.tasks {
			tasks[i] = j.open(t)
		}
	}
	if err == nil && r.grp != nil && len(r.grp.Old) > 0 {
		if r.inside == nil { // else the thread ends in the job's groups
			defer l.leave()
		}
		err = cgroup.EnterOld(r.grp.Old)
	}
	if goes() {
		unserved = j.serve() // before the container: it is a program of the node
	}
	if err == nil && r.spec.NoNewPrivs { // before the container: its hooks may be the user's
		err = os.NewSyscallError("no_new_privs", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	}
	if goes() && !j.contain(tasks) {
		return
	}
	for i, t := range r.tasks {
		st := t.st
		if !goes() {
			t.st.Fault = err != nil
			j.notStarted(t, tasks[i], cmp.Or(err, unserved))
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

// isOwn refuses a step of another user where this process, which is not root's, could run it as its own user alone.
func (l *launcher) isOwn(r *run) error {
	own := os.Geteuid()
	if l.sup.root || uint32(own) == r.spec.UID {
		return nil
	}
	return fmt.Errorf("the daemon of this node is user %d's, and runs no programs of user %d: have root start it",
		own, r.spec.UID)
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
func (j *job) notStarted(t *task, std *stdio, err error) {
	s, sp := j.l.sup, &t.run.spec
	text := startError(err, j.files.interpreter)
	if sp.Script != nil && isExec(err) { // nobody else reads it: a step's is told by its srun
		j.files.say(std.fd[2], "slurmstepd-"+string(sp.ID.Node)+": error: "+text+"\n")
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

// startError words a failed start as Slurm does: "execve(): NAME: No such file or directory", or "execve(): bad
// interpreter(NAME): ..." where that of a script is missing. find returns what a script's first line names.
func startError(err error, find func(name string) string) string {
	var p *os.PathError
	var no unix.Errno
	if !errors.As(err, &p) || p.Op != "execve" || !asErrno(err, &no) {
		return err.Error()
	}
	name := p.Path
	if no == unix.ENOENT {
		if i := find(name); i != "" {
			name = "bad interpreter(" + i + ")"
		}
	}
	return step.ExecFailed + name + ": " + strerror(no)
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
