package cluster

import "slices"

// maxTopped bounds what one command moves to the top; an array counts once.
const maxTopped = 1000

// Prepare has a command name each thing once, and refuses one that names more than is looked up soon. Servers do so
// before they try it on the state. It is not part of Apply, as Check is not.
func Prepare(s *Snapshot, cmd Command) error {
	switch c := cmd.(type) {
	case *TopJobs:
		return refuseIf(len(c.Refs) > maxTopped, Invalid, ErrTooBig,
			"%d jobs are to go to the top: the most are %d at once; an array counts once", len(c.Refs), maxTopped)
	case *UpdateJob:
		c.nameOnce(s)
	}
	return nil
}

// nameOnce leaves each partition and node in the lists of a change once. Where the order of nodes is that of tasks,
// they stay.
func (c *UpdateJob) nameOnce(s *Snapshot) {
	p := &c.Patch
	p.Partitions = distinct(p.Partitions)
	if p.Exclude != nil {
		list := distinct(*p.Exclude)
		p.Exclude = &list
	}
	if p.NodeList == nil {
		return
	}
	ordered := func(j *Job) bool { return j.Spec.distribution() == "arbitrary" }
	if !slices.ContainsFunc(s.Find(c.Ref), ordered) {
		list := distinct(*p.NodeList)
		p.NodeList = &list
	}
}
