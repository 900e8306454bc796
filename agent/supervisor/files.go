package supervisor

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/userfile"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// userFiles opens the files that a step's user names: all of them in a process of that user, none in the supervisor.
type userFiles struct {
	l     *launcher
	r     *run
	space int // descriptor of the step's mount namespace; -1: the supervisor's own
	proc  *userfile.Process
	own   bool   // space is this one's to close
	dir   string // that was entered; "": none was
}

// fileTries bounds how often a request is made again because the process was killed: its user may do that, and a
// site's epilog may do it to all processes of a user.
const fileTries = 3

// slowFiles is after what time a launcher that waits for a user's files no longer counts as one of its pool's.
const slowFiles = time.Second

// identity is the user whose rights count for r.
func (r *run) identity() userfile.Identity {
	return userfile.Identity{UID: r.spec.UID, GID: r.spec.GID, Groups: r.spec.Groups}
}

// files opens files for r in the mount namespace that this thread is in. End it.
func (l *launcher) files(r *run) *userFiles { return &userFiles{l: l, r: r, space: l.space} }

// isLocal reports whether the supervisor has no rights that the user lacks, or opens nothing that the user names.
func (u *userFiles) isLocal() bool {
	return !u.l.sup.root || u.r.spec.UID == 0 && u.r.spec.GID == 0 || u.r.isExternal() && !u.r.namesFiles()
}

// namesFiles reports whether r has a folder or files that somebody has chosen, as no step of sessions has.
func (r *run) namesFiles() bool {
	return r.spec.Dir != "/" || slices.ContainsFunc(r.spec.Tasks, func(t step.Task) bool {
		return t.Stdin.Kind == step.File || t.Stdout.Kind == step.File || t.Stderr.Kind == step.File
	})
}

// isExternal reports whether r is the step of a job's sessions. The daemon chooses all of its paths, and logins wait
// for it.
func (r *run) isExternal() bool { return r.id.Step == cluster.ExternStep && r.spec.Own }

// do makes requests, again if the process has died meanwhile.
func (u *userFiles) do(requests ...userfile.Request) ([]userfile.Result, error) {
	if u.isLocal() {
		return userfile.Local{}.Do(requests...)
	}
	defer u.l.pool.lend(u.r.spec.UID)()
	for try := 1; ; try++ {
		err := u.start()
		var results []userfile.Result
		if err == nil {
			results, err = u.proc.Do(requests...)
		}
		if !errors.Is(err, userfile.ErrEnded) || try == fileTries || u.l.sup.isKilled(u.r) {
			return results, err
		}
		u.close()
	}
}

// one makes one request.
func (u *userFiles) one(q userfile.Request) userfile.Result {
	results, err := u.do(q)
	if err != nil {
		return userfile.Result{FD: -1, Err: err}
	}
	return results[0]
}

// start takes a process and has it where the one before was.
func (u *userFiles) start() error {
	if u.proc != nil {
		return nil
	}
	s := u.l.sup
	got, err := s.openers.Take(u.r.identity(), u.space)
	if err != nil {
		return err
	}
	u.proc = got
	s.mu.Lock()
	u.r.opener = got
	if u.r.killed {
		got.Interrupt()
	}
	s.mu.Unlock()
	if u.dir == "" {
		return nil
	}
	// The launch has already reported a directory that the user cannot enter.
	results, err := got.Do(userfile.Request{Op: userfile.Enter, Path: u.dir, Umask: u.r.spec.Umask})
	if err == nil {
		unix.Close(results[0].FD)
	}
	return err
}

// close gives the process back.
func (u *userFiles) close() {
	if u.proc == nil {
		return
	}
	s := u.l.sup
	s.mu.Lock()
	u.r.opener = nil
	s.mu.Unlock()
	if u.r.spec.Container != nil {
		u.proc.Close() // its namespace is this step's alone
	} else {
		s.openers.Give(u.proc)
	}
	u.proc = nil
}

// end gives the process back for good.
func (u *userFiles) end() {
	if u == nil {
		return
	}
	u.close()
	if u.own {
		unix.Close(u.space)
	}
}

// begin makes dir the directory of the process and of this thread, so that tasks inherit it, and makes more requests in
// the same message.
func (u *userFiles) begin(dir string, more []userfile.Request) (results []userfile.Result, err error) {
	enter := userfile.Request{Op: userfile.Enter, Path: dir, Umask: u.r.spec.Umask}
	results, err = u.do(append([]userfile.Request{enter}, more...)...)
	u.dir = dir
	if err != nil {
		_ = unix.Chdir("/")
		return nil, err
	}
	if results[0].FD < 0 {
		_ = unix.Chdir("/")
		return results[1:], results[0].Err
	}
	defer unix.Close(results[0].FD)
	did := u.l.become(&u.r.spec) // root may not be allowed to: its ID is squashed on NFS
	err = unix.Fchdir(results[0].FD)
	u.l.back(did)
	if err != nil && unix.Chdir("/tmp") != nil {
		_ = unix.Chdir("/")
	}
	return results[1:], cmp.Or(results[0].Err, err)
}

// interpreter returns what the first line of a script names, as far as the user may read it.
func (u *userFiles) interpreter(name string) string {
	return u.one(userfile.Request{Op: userfile.Interpreter, Path: name}).Text
}

// say writes a line of the node's own to one of the step's descriptors. If the write fails, the line is lost.
func (u *userFiles) say(fd int, text string) {
	if err := u.one(userfile.Request{Op: userfile.Say, Text: text, Descriptor: fd}).Err; err != nil {
		slog.Debug("a line could not be written", "job", u.r.id.Job, "err", err)
	}
}

// maxAhead bounds the files that are opened in one message, before the tasks that they are of are looked at.
const maxAhead = userfile.MaxRequests / 2

// ahead lists what the step's tasks will ask for, so that most steps take one message.
func (j *job) ahead() (requests []userfile.Request) {
	seen := map[string]bool{}
	for i := range j.r.spec.Tasks {
		t := &j.r.spec.Tasks[i]
		for _, what := range []step.IO{t.Stdout, t.Stderr} {
			if what.Kind == step.File && !seen[what.Path] && len(requests) < maxAhead {
				seen[what.Path] = true
				requests = append(requests, writeOf(what))
			}
		}
	}
	t := &j.r.spec.Tasks[0]
	if j.r.spec.Container == nil && t.Refused == "" && len(t.Argv) > 0 && !j.isScript(t.Argv[0]) {
		path := cmp.Or(getenv(t.Env, "PATH"), getenv(j.env, "PATH"))
		requests = append(requests, userfile.Request{Op: userfile.Find, Path: t.Argv[0], Search: path})
	}
	return requests
}

// isScript reports whether a program is the batch script, which the supervisor has put there itself.
func (j *job) isScript(program string) bool {
	return j.r.spec.Script != nil && program == j.r.spec.ScriptPath
}

func writeOf(what step.IO) userfile.Request {
	return userfile.Request{Op: userfile.Write, Path: what.Path, Keep: what.Append}
}

// enterDir makes the step's directory that of this thread and opens what its tasks will ask for.
func (j *job) enterDir() {
	requests := j.ahead()
	var results []userfile.Result
	results, j.cwdErr = j.files.begin(cmp.Or(j.r.spec.Dir, "/tmp"), requests)
	for i := range results {
		_, _ = j.remember(&requests[i], &results[i])
	}
}

// remember keeps the result of a request, by which it is answered from now on.
func (j *job) remember(q *userfile.Request, r *userfile.Result) (userfile.Result, error) {
	op := "open"
	if q.Op == userfile.Find {
		op = "execve"
	}
	if r.Err != nil {
		r.Err = &os.PathError{Op: op, Path: q.Path, Err: r.Err}
	}
	j.known[*q] = *r
	return *r, r.Err
}

// ask answers a request, the same one always alike.
func (j *job) ask(q userfile.Request) (userfile.Result, error) {
	if have, ok := j.known[q]; ok {
		return have, have.Err
	}
	r := j.files.one(q)
	return j.remember(&q, &r)
}

// wake has the launchers of a pool look at the queue again.
func (p *pool) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.staff()
	p.more.Broadcast()
}

// lend has a launcher of this pool no longer count as one once it has waited for slowFiles: another one may start. The
// caller calls what it returns when it no longer waits. A nil pool has one launcher, which ends with its step.
func (p *pool) lend(uid uint32) (back func()) {
	if p == nil {
		return func() {}
	}
	t := time.AfterFunc(slowFiles, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.n--
		p.slow[uid]++
		p.staff()
	})
	return func() {
		if t.Stop() {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.n++ // the thread ends if that is too many
		if p.slow[uid]--; p.slow[uid] == 0 {
			delete(p.slow, uid)
		}
		p.more.Broadcast()
	}
}
