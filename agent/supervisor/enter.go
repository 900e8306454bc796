package supervisor

import (
	"errors"
	"fmt"

	"dev.muster/agent/step"
	"golang.org/x/sys/unix"
)

// errNoGroup is why a process can not be put into a step.
var errNoGroup = errors.New("the node has no cgroups of its own (it needs root and cgroup v2)")

// takeIn puts a process that others have started into a step, once that is begun: what it starts from now on is the
// step's, is held to the job's share and ends with it.
func (s *supervisor) takeIn(id step.ID, pid int) error {
	s.mu.Lock()
	r := s.steps[id]
	for r != nil && !r.launched && s.steps[id] == r {
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
	case r.grp == nil:
		return errNoGroup
	}
	return r.grp.Take(pid, &r.spec.Fence)
}
