package cluster

import (
	"cmp"
	"strings"
	"time"
)

// Reboot is a restart of a node's machine that an operator asked for. It is issued once the node
// has no jobs, and over when the node has registered after it.
type Reboot struct {
	At   time.Time  `json:"at"`
	Asap bool       `json:"asap,omitempty"` // the node takes no jobs until then
	Next NodeAction `json:"next,omitempty"` // NodeResume or NodeSetDown, afterwards
	// Drained says that the node was drained for it, and Reasoned that its reason was set by it.
	Drained  bool      `json:"drained,omitempty"`
	Reasoned bool      `json:"reasoned,omitempty"`
	IssuedAt time.Time `json:"issued_at,omitzero"`
}

// Issued reports whether the machine is being restarted.
func (r *Reboot) Issued() bool {
	return r != nil && !r.IssuedAt.IsZero()
}

// Reasons of nodes that are restarted.
const (
	rebootAsap     = "Reboot ASAP"
	rebootAsked    = "reboot requested"
	rebootIssued   = " : reboot issued"
	rebootComplete = " : reboot complete"
	rebootLate     = " : reboot timed out"
)

// NodeReboot asks for a restart of nodes' machines, or takes back what was asked for.
type NodeReboot struct {
	Nodes  []NodeName `json:"nodes"`
	Asap   bool       `json:"asap,omitempty"`
	Next   NodeAction `json:"next,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Cancel bool       `json:"cancel,omitempty"`
}

func (*NodeReboot) kind() string { return "node_reboot" }

func (c *NodeReboot) apply(t *tx) (any, error) {
	if err := firstError(
		refuseIf(!t.by.Operator(),
			Denied, ErrUser, "only operators may reboot nodes"),
		refuseIf(!c.Cancel && t.config.RebootProgram == "",
			Conflict, "", "RebootProgram isn't defined: no program restarts a node's machine"),
		refuseIf(c.Next != "" && c.Next != NodeResume && c.Next != NodeSetDown,
			Invalid, ErrNodeState, "after a reboot a node is resumed or down, not %q", c.Next),
	); err != nil {
		return nil, err
	}
	for _, name := range c.Nodes {
		old, ok := t.nodes.Get(name)
		if !ok {
			return nil, Errorf(NotFound, ErrNodeName, "node %s does not exist", name)
		}
		n := *old
		if c.Cancel {
			if n.Reboot == nil || n.Reboot.Issued() {
				return nil, Errorf(Conflict, ErrNodeState, "no reboot of node %s is pending", name)
			}
			n.unasked()
		} else if err := c.ask(t, &n); err != nil {
			return nil, err
		}
		t.putNode(&n)
		t.events = append(t.events, Event{Node: &n})
	}
	return nil, nil
}

// ask notes the request in a node.
func (c *NodeReboot) ask(t *tx, n *Node) error {
	switch {
	case n.Reboot.Issued():
		return Errorf(Conflict, ErrNodeState, "node %s is being rebooted", n.Name)
	case n.Reboot != nil: // the newer request counts
		n.unasked()
	}
	if !n.Up {
		return Errorf(Conflict, ErrNodeState, "node %s does not respond: nobody there can restart it", n.Name)
	}
	r := &Reboot{
		At:      t.at,
		Asap:    c.Asap,
		Next:    c.Next,
		Drained: c.Asap && !n.Drain,
	}
	n.Drain = n.Drain || c.Asap
	if c.Reason != "" || n.Reason == "" || n.Reason == n.Lacks {
		deflt := rebootAsked
		if c.Asap {
			deflt = rebootAsap
		}
		r.Reasoned = true
		n.Reason = cmp.Or(c.Reason, deflt)
		n.ReasonBy = t.by.User
		n.ReasonUID = t.by.UID
		n.ReasonAt = t.at
	}
	n.Reboot = r
	return nil
}

// unasked takes a request back, with what it did to the node.
func (n *Node) unasked() {
	if n.Reboot.Drained {
		n.Drain = false
	}
	if n.Reboot.Reasoned {
		n.Reason = n.Lacks
		n.ReasonBy = ""
		n.ReasonUID = 0
		n.ReasonAt = time.Time{}
	}
	n.Reboot = nil
}

// restarted reports whether a node that registers was restarted since. Nodes that cannot tell one boot
// from another are believed by their clock.
func restarted(old, now *Inventory, r *Reboot) bool {
	if now.BootID != "" && old.BootID != "" {
		return now.BootID != old.BootID
	}
	return now.Boot.After(r.IssuedAt)
}

// rebooted ends the reboot of a node that is back.
func (n *Node) rebooted(t *tx) {
	r := n.Reboot
	if r.Next == NodeSetDown {
		n.Reboot = nil
		n.Down = true
		n.Drain = n.Drain && !r.Drained
		n.Reason += rebootComplete
		n.ReasonAt = t.at
		return
	}
	if r.Next == NodeResume { // whatever it was before
		r = &Reboot{Drained: true, Reasoned: true}
	} else if !r.Reasoned {
		n.Reason = strings.TrimSuffix(n.Reason, rebootIssued)
	}
	n.Reboot = r
	n.unasked()
}

// rebootEnd is when a reboot under way is late; zero if none is.
func (t *tables) rebootEnd(n *Node) time.Time {
	if !n.Reboot.Issued() {
		return time.Time{}
	}
	return n.Reboot.IssuedAt.Add(cmp.Or(t.config.ResumeTimeout, DefaultConfig().ResumeTimeout))
}

// NodeRebootDue issues reboots of nodes that have no jobs any more, and gives up those that are late.
type NodeRebootDue struct {
	Issue []NodeName `json:"issue,omitempty"`
	Late  []NodeName `json:"late,omitempty"`
}

func (*NodeRebootDue) kind() string { return "node_reboot_due" }

func (c *NodeRebootDue) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "the leader issues reboots")
	}
	change := func(names []NodeName, due func(*Node) bool, do func(*Node)) {
		for _, name := range names {
			old, ok := t.nodes.Get(name)
			if !ok || old.Reboot == nil || !due(old) {
				continue
			}
			n := *old
			do(&n)
			t.putNode(&n)
			t.events = append(t.events, Event{Node: &n})
		}
	}
	change(c.Issue, t.rebootReady, func(n *Node) {
		r := *n.Reboot
		r.IssuedAt = t.at
		n.Reboot = &r
		n.Reason += rebootIssued
	})
	change(c.Late, func(n *Node) bool {
		return n.Reboot.Issued() && !t.rebootEnd(n).After(t.at)
	}, func(n *Node) {
		n.Down = true
		n.Drain = n.Drain && !n.Reboot.Drained
		n.Reboot = nil
		n.Reason += rebootLate
		n.ReasonBy = "slurm"
		n.ReasonAt = t.at
	})
	return nil, nil
}

// rebootReady reports whether a reboot that is asked for can be issued.
func (t *tables) rebootReady(n *Node) bool {
	return !n.Reboot.Issued() && n.Up && len(t.Load(n.Name).Jobs) == 0
}

// rebootsDue is what is to be done about reboots at now, nil if nothing.
func (t *tables) rebootsDue(now time.Time) Command {
	var c NodeRebootDue
	for n := range valuesOf(t.timed) {
		switch {
		case n.Reboot == nil:
		case t.rebootReady(n):
			c.Issue = append(c.Issue, n.Name)
		case hasCome(t.rebootEnd(n), now):
			c.Late = append(c.Late, n.Name)
		}
	}
	if c.Issue == nil && c.Late == nil {
		return nil
	}
	return &c
}
