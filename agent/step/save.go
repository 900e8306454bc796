package step

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"dev.muster/agent/container"
	"dev.muster/cluster"
)

// saverEnv is all that mksquashfs needs to be found.
var saverEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"}

// maxSaver bounds what is told of why a container could not be saved.
const maxSaver = 4096

// toSave reports whether the step's last task has just ended in a container that is to be saved; mu is held.
func (r *run) toSave() bool {
	c := r.spec.Container
	if c == nil || c.Save == "" || r.last != nil {
		return false
	}
	began := false
	for _, t := range r.tasks {
		if t.st.Ended.IsZero() {
			return false
		}
		began = began || t.st.PID != 0
	}
	return began
}

// saveLast saves the container of a step whose tasks have ended, and then tells the last one's end: with
// exit code 1 if what the user wanted is not there.
func (r *run) saveLast() {
	s := r.sup
	s.mu.Lock()
	t := r.last
	s.mu.Unlock()
	if t == nil {
		return
	}
	err := r.saveContainer()
	if err != nil {
		text := fmt.Sprintf("slurmstepd: error: pyxis: couldn't save container to %s: %v\n", r.spec.Container.Save, err)
		r.out.say([]byte(text), false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && t.st.Exit == (cluster.ExitStatus{}) {
		t.st.Exit.Code = 1
	}
	t.tellEnd()
}

// saveContainer packs it in the step's group, as its user.
func (r *run) saveContainer() error {
	done := make(chan error, 1)
	go func() { // on a thread that ends with it
		runtime.LockOSThread()
		done <- r.saver()
	}()
	return <-done
}

func (r *run) saver() error {
	s, c := r.sup, r.spec.Container
	j := &job{l: newLauncher(s, ""), r: r, env: saverEnv}
	m := j.maker()
	var err error
	if c.Name != "" {
		if m.Image, _, err = c.Recall(m.Job); err != nil {
			return err
		}
	} else if m.Image, err = container.Used(c.Store, m.Step); err != nil {
		return err
	}
	if err := m.Merged(); err != nil {
		return err
	}
	return j.pack(c.SaveCommand(r.spec.Dir))
}

// pack runs the command in the step's group, as its user, in this thread's working directory.
func (j *job) pack(argv []string) error {
	said, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	s := j.l.sup
	if g := j.r.grp; g != nil {
		if err := errors.Join(g.openFD(), enter(g.old)); err != nil {
			return err
		}
		defer g.closeFD()
	}
	attr := &syscall.ProcAttr{Env: j.marked(), Sys: j.attributes(),
		Files: []uintptr{null.Fd(), theirs.Fd(), theirs.Fd()}}
	no := s.forkBegin()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	theirs.Close()
	var end <-chan earlyWait
	if err == nil {
		end = s.awaitStop(pid, no)
	}
	s.mu.Lock()
	s.forkEnd()
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	text, err := io.ReadAll(io.LimitReader(said, maxSaver))
	if err == nil {
		_, err = io.Copy(io.Discard, said)
	}
	e := <-end
	if err != nil {
		return err
	}
	if e.ws.Exited() && e.ws.ExitStatus() == 0 {
		return nil
	}
	if why := lastLine(text); why != "" {
		return errors.New(why)
	}
	return fmt.Errorf("mksquashfs ended with %v", e.ws)
}

// lastLine is the last line of a text that says something.
func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
