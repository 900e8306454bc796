package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
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
	if err == nil && unserved == nil && !j.contain(tasks) {
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
