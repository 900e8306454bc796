package supervisor

import (
	"errors"
	"fmt"
	"time"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// errNoGroup is why a process cannot be put into a step.
var errNoGroup = errors.New("the node has no cgroups of its own (it needs root and cgroup v2)")

// adoptTime bounds the wait for a step that a process is to be put into.
const adoptTime = 10 * time.Second

// takeIn puts a process that others have started into a step, once that is begun: what it starts from now on is the
// step's, is held to the job's share and ends with it.
func (s *supervisor) takeIn(id step.ID, pid int) error {
	late := false
	t := time.AfterFunc(adoptTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.moved.Broadcast()
	})
	defer t.Stop()
	s.mu.Lock()
	r := s.steps[id]
	for r != nil && !r.launched && s.steps[id] == r && !late {
		s.moved.Wait()
	}
	if r == nil || s.steps[id] != r {
		s.mu.Unlock()
		return step.ErrUnknown
	}
	defer s.mu.Unlock() // the group stays as long
	switch {
	case r.state == step.Ended || r.cleaning || r.killed:
		return fmt.Errorf("the step has ended: %w", unix.ESRCH)
	case !r.launched:
		return fmt.Errorf("the external step has not started within %v: %w", adoptTime, unix.ETIMEDOUT)
	case r.grp == nil:
		return errNoGroup
	}
	return r.grp.Take(pid, &r.spec.Fence)
}
