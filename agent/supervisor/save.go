package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"

	"dev.muster/agent/cgroup"
	"dev.muster/agent/container"
	"dev.muster/cluster"
)

// saverEnv is all that mksquashfs needs to be found.
var saverEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"}

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
	r.sup.apart.begin(r)
	defer r.sup.apart.end(r)
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

// pack runs the command in this thread's working directory.
func (j *job) pack(argv []string) error {
	if g := j.r.grp; g != nil {
		if err := errors.Join(g.OpenFD(), cgroup.EnterOld(g.Old)); err != nil {
			return err
		}
		defer g.CloseFD()
	}
	text, ws, err := j.helper(argv, j.marked(), "", 0)
	if err != nil || ws == 0 {
		return err
	}
	return errors.New(cmp.Or(lastLine(text), fmt.Sprintf("mksquashfs ended with %v", ws)))
}
