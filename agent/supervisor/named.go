package supervisor

import (
	"errors"
	"fmt"
	"time"

	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// namePause is how often a step looks whether the container that it shares with others of its job
// is free for it.
const namePause = 10 * time.Millisecond

// awaitName waits until no other step is about to begin or to end in the container of that name. It
// finds a task that runs in it, whose namespace is then entered: two mounts of what is written
// would not see each other.
func (r *run) awaitName() (with *task) {
	s := r.sup
	s.mu.Lock()
	s.insides++
	r.inside.number = s.insides
	s.mu.Unlock()
	for {
		with, wait := r.nameFree()
		if !wait || r.isEnding() {
			return with
		}
		time.Sleep(namePause)
	}
}

// nameFree finds a task in the container of that name; wait: another step begins or ends there.
func (r *run) nameFree() (with *task, wait bool) {
	s := r.sup
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.steps {
		c := o.spec.Container
		if o == r || o.state == step.Ended || c == nil || c.Name != r.spec.Container.Name {
			continue
		}
		if o.keptFor() != r.keptFor() {
			continue
		}
		switch {
		case !o.launched:
			wait = wait || o.inside != nil && o.inside.number < r.inside.number
		case o.live == 0:
			wait = true
		default:
			for _, t := range o.tasks {
				if t.live {
					with = t
				}
			}
		}
	}
	return with, wait
}

// keptFor is whose the container of the step's name is.
func (r *run) keptFor() string {
	return r.spec.Container.KeptFor(r.id.JobName(), r.spec.UID, r.id.Node)
}

// named is the image of a step whose container has a name.
func (r *run) named() (container.Image, error) {
	c, job := r.spec.Container, r.keptFor()
	if err := c.Check(); err != nil {
		return container.Image{}, err
	}
	r.inside.with = r.awaitName()
	image, found, err := c.Recall(job)
	if err != nil || found {
		return image, err
	}
	if image, err = r.fetch(); err != nil {
		return image, err
	}
	return image, c.Keep(job, r.spec.Dir, image)
}

// join takes this thread into a container in which another step of the job runs.
func (l *launcher) join(r *run, with *task) error {
	c := r.spec.Container
	l.sup.mu.Lock()
	other, pid, fd := with.run.spec.Container, with.st.PID, -1
	if with.live {
		fd = trustedSpace(pid)
	}
	l.sup.mu.Unlock()
	if fd < 0 {
		return fmt.Errorf("container %q has just ended", c.Name)
	}
	defer unix.Close(fd)
	if err := c.Fits(other); err != nil {
		return err
	}
	if err := joinSpaces(pid, other.Unshare); err != nil {
		return fmt.Errorf("enter the container %q: %w", c.Name, err)
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the container %q: %w", c.Name, err)
	}
	return nil
}

// joinSpaces takes this thread into the other namespaces that a container has for itself.
func joinSpaces(pid int, kinds []string) error {
	for _, kind := range kinds {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = unix.Setns(fd, 0)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// errNotRunning is why a step can not only enter a container.
var errNotRunning = errors.New("the container does not run, and exec only enters one that does")
