package step

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// errNoGroup is why a process can not be put into a step.
var errNoGroup = errors.New("the node has no cgroups of its own (it needs root and cgroup v2)")

// adoptRequest names a step and a process that is to be part of it.
type adoptRequest struct {
	ID  ID  `json:"id"`
	PID int `json:"pid"`
}

// takeIn puts a process that others have started into a step, once that is begun: what it starts from now on is the
// step's, is held to the job's share and ends with it.
func (s *supervisor) takeIn(id ID, pid int) error {
	s.mu.Lock()
	r := s.steps[id]
	for r != nil && !r.launched && s.steps[id] == r {
		s.moved.Wait()
	}
	if r == nil || s.steps[id] != r {
		s.mu.Unlock()
		return ErrUnknown
	}
	defer s.mu.Unlock() // the group stays as long
	switch {
	case r.state == Ended || r.cleaning || r.killed:
		return fmt.Errorf("the step has ended: %w", unix.ESRCH)
	case r.grp == nil:
		return errNoGroup
	}
	old, err := r.grp.oldDirs(&r.spec.Fence)
	if err != nil {
		return err
	}
	for _, file := range append(filesIn(old, "/cgroup.procs"), r.grp.dir+"/cgroup.procs") {
		if err := writeControl(file, strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

func filesIn(dirs []string, file string) (out []string) {
	for _, d := range dirs {
		out = append(out, d+file)
	}
	return out
}
