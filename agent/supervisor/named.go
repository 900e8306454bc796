package supervisor

import (
	"errors"
	"fmt"
	"slices"

	"dev.muster/agent/container"
	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// sharedName names a container that steps of a job share.
type sharedName struct{ kept, name string }

// sharedName is that of the step's container, whose name is not empty.
func (r *run) sharedName() sharedName {
	return sharedName{r.keptFor(), r.spec.Container.Name}
}

// awaitName waits until no other step is about to begin or to end in the container of that name. It
// finds a task that runs in it, whose namespace is then entered: two mounts of what is written
// would not see each other.
func (r *run) awaitName() (with *task, err error) {
	s := r.sup
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &s.named
	if err := n.enter(r.spec.UID); err != nil {
		return nil, err
	}
	defer n.exit(r.spec.UID)
	n.insides++
	r.inside.number = n.insides
	r.inside.turn = make(chan struct{}, 1)
	key := r.sharedName()
	n.lineUp(key, append(n.queues[key], r))
	n.wakeFirst(key) // it may have waited for this one to have a number
	defer func() {
		n.lineUp(key, slices.DeleteFunc(n.queues[key], func(o *run) bool { return o == r }))
	}()
	for {
		with, wait := r.nameFree()
		if !wait || r.toEnd() {
			return with, nil
		}
		s.mu.Unlock()
		<-r.inside.turn
		s.mu.Lock()
	}
}

// named are the steps in containers; mu is held.
type named struct {
	insides int                   // so far
	queues  map[sharedName][]*run // steps that wait for the container of a name, in the order of their numbers
	waits   map[uint32]int        // steps that wait, by user
}

// maxNamed bounds the steps of one user that wait for containers: all are looked through when one of them begins or
// ends.
const maxNamed = 2048

// enter notes that a step of a user waits, unless too many do.
func (n *named) enter(uid uint32) error {
	if n.waits[uid] >= maxNamed {
		return fmt.Errorf("%d of your steps wait for containers with names on this node: try again later", maxNamed)
	}
	if n.waits == nil {
		n.waits = map[uint32]int{}
	}
	n.waits[uid]++
	return nil
}

// exit notes that a step of a user waits no more.
func (n *named) exit(uid uint32) {
	if n.waits[uid]--; n.waits[uid] == 0 {
		delete(n.waits, uid)
	}
}

// lineUp keeps which steps wait for a container.
func (n *named) lineUp(key sharedName, list []*run) {
	if n.queues == nil {
		n.queues = map[sharedName][]*run{}
	}
	if n.queues[key] = list; len(list) == 0 {
		delete(n.queues, key)
	}
}

// wakeFirst has the first step look again that waits for a container: the others wait for that one as well.
func (n *named) wakeFirst(key sharedName) {
	if list := n.queues[key]; len(list) > 0 {
		list[0].inside.wake()
	}
}

// wake has a step that waits for its container look again; mu is held.
func (in *inside) wake() {
	if in == nil || in.turn == nil {
		return
	}
	select {
	case in.turn <- struct{}{}:
	default:
	}
}

// leave lets the next step into the container of one that has begun or ended.
func (n *named) leave(r *run) {
	if c := r.spec.Container; c != nil && c.Name != "" && len(n.queues) > 0 {
		n.wakeFirst(r.sharedName())
	}
}

// nameFree finds a task in the container of that name; wait: another step begins or ends there. mu is held.
func (r *run) nameFree() (with *task, wait bool) {
	for _, o := range r.sup.steps {
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
	with, err := r.awaitName()
	if err != nil {
		return container.Image{}, err
	}
	r.inside.with = with
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
	other := with.run.spec.Container
	spaces, err := with.openSpaces(other.Unshare)
	l.sup.mu.Unlock()
	defer closeSpaces(spaces)
	if err == nil {
		err = c.Fits(other)
	}
	if err != nil {
		return err
	}
	for _, fd := range spaces {
		if err := unix.Setns(fd, 0); err != nil {
			return fmt.Errorf("enter the container %q: %w", c.Name, err)
		}
	}
	return nil
}

// openSpaces opens the other namespaces that a task's container has for itself, and at last its mounts. mu is held:
// then the task's number is its own.
func (t *task) openSpaces(kinds []string) (list []int, err error) {
	name, pid := t.run.spec.Container.Name, t.st.PID
	mounts := -1
	if t.live {
		mounts = trustedSpace(pid)
	}
	if mounts < 0 {
		return nil, fmt.Errorf("container %q has just ended", name)
	}
	for _, kind := range kinds {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return append(list, mounts), fmt.Errorf("enter the container %q: %w", name, err)
		}
		list = append(list, fd)
	}
	return append(list, mounts), nil
}

func closeSpaces(list []int) {
	for _, fd := range list {
		unix.Close(fd)
	}
}

// errNotRunning refuses --container-name=NAME:exec where no step runs in the container.
var errNotRunning = errors.New("the container does not run, and exec only enters one that does")
