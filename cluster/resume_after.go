package cluster

import "time"

// An operator who takes a node out of service may say after how long it is to serve again (ResumeAfter).

// planResume notes when a node is to be resumed that a change takes out of service; less than no time: not at all.
func (c *NodeSet) planResume(t *tx, n *Node) error {
	out := c.Action == NodeDrain || c.Action == NodeSetDown
	switch {
	case c.ResumeAfter == nil:
		if c.Action == NodeSetDown {
			n.ResumeAt = time.Time{} // as in Slurm; one that is drained again keeps its time
		}
	case !out:
		return Errorf(Invalid, ErrResumeTime, "node %s: what is neither DOWN nor DRAIN has no end", n.Name)
	case *c.ResumeAfter < 0:
		n.ResumeAt = time.Time{}
	default:
		n.ResumeAt = t.at.Add(*c.ResumeAfter)
	}
	return nil
}

// NodeResumeDue resumes nodes whose time has come. A node that cannot be resumed stays as it is.
type NodeResumeDue struct {
	Nodes []NodeName `json:"nodes"`
}

func (*NodeResumeDue) kind() string { return "node_resume_due" }

func (c *NodeResumeDue) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "the leader resumes nodes whose time has come")
	}
	for _, name := range c.Nodes {
		old, ok := t.nodes.Get(name)
		if !ok || !hasCome(old.ResumeAt, t.at) {
			continue
		}
		n := *old
		if n.resume(t) != nil {
			n = *old
		}
		n.ResumeAt = time.Time{}
		t.putNode(&n)
		t.events = append(t.events, Event{Node: &n})
	}
	return nil, nil
}

// resumesDue is what is to be done about nodes that are to be resumed by now, nil if nothing.
func resumesDue(t *tables, now time.Time) Command {
	var c NodeResumeDue
	for n := range valuesOf(t.timed) {
		if hasCome(n.ResumeAt, now) {
			c.Nodes = append(c.Nodes, n.Name)
		}
	}
	if c.Nodes == nil {
		return nil
	}
	return &c
}
