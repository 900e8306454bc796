package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// NodeUp registers a node, or brings it back, with what it is.
type NodeUp struct {
	Name      NodeName  `json:"name"`
	Inventory Inventory `json:"inventory"`
	Seq       uint64    `json:"seq"` // the last report number the node has used
	Owner     string    `json:"owner,omitempty"`
	// Again: the client has registered the node before and tells what has changed since.
	Again bool `json:"again,omitempty"`
	// Scored: what goes wrong on the node is counted from now on. Logs of before count nothing.
	Scored bool `json:"scored,omitempty"`
}

func (*NodeUp) kind() string { return "node_up" }

const notResponding = "Not responding"

func (c *NodeUp) apply(t *tx) (any, error) {
	n := Node{Name: c.Name, Order: t.nextOrder(), Unsure: t.restored != nil}
	if old, ok := t.nodes.Get(c.Name); ok {
		n = *old
		if old.Owner != c.Owner && serves(t, old) {
			return nil, Errorf(Denied, ErrAccess, "node %s belongs to member %s, not to %s", c.Name, old.Owner, c.Owner)
		}
		if old.Expected == ExpectedExternal {
			return nil, Errorf(Conflict, ErrNodeState, "node %s is external and has no client: delete it first", c.Name)
		}
	}
	n.Owner = c.Owner
	c.comeUp(t, &n)
	before := n.Inventory.Faults
	lacked := n.Lacks
	said := t.config.declaredOf(c.Name)
	k := slices.IndexFunc(t.config.Declared, func(d Node) bool { return d.Name == c.Name })
	if k >= 0 && !c.Inventory.Hollow {
		said.limitBy(&t.config.Declared[k].Inventory)
	}
	n.found(c.Inventory, said)
	n.Inventory.External = false
	n.faulty(t, before)
	if c.Scored && n.Trouble == nil {
		n.Trouble = &FailureScore{At: t.at}
	}
	n.troubledBy(c.Inventory.Faults, before, t.at)
	// A node that lost its disk counts from the start again. A message that it sends twice does no harm:
	// attempts fence it.
	n.ReportSeq = c.Seq
	drainOverfull(t, &n)
	if n.Reason == n.Lacks && n.Lacks != "" {
		n.ReasonBy = "slurm"
		if n.Lacks != lacked || n.ReasonAt.IsZero() {
			n.ReasonAt = t.at
		}
	}
	t.putNode(&n)
	t.events = append(t.events, Event{Node: &n})
	t.evictParts(&n, before)
	return nil, nil
}

// serves reports whether a node is up, of a member that may call.
func serves(t *tx, n *Node) bool {
	m, ok := t.joined.Get(n.Owner)
	return ok && m.Revoked.IsZero() && n.Up
}

// comeUp notes that the node is there, and lets go on what waited for that.
func (c *NodeUp) comeUp(t *tx, n *Node) {
	if n.lost() && t.config.ReturnToService > 0 {
		n.isBack()
	}
	n.confirmsAgain()
	if n.Reboot.Issued() && restarted(&n.Inventory, &c.Inventory, n.Reboot) {
		n.rebooted(t)
	}
	if n.Expected == ExpectedFuture {
		n.Expected = ""
	}
	t.poweredUp(n)
	if !c.Again || !n.Up {
		n.Registered = t.at
	}
	n.Up = true
	n.Quiet = n.Unsure
}

// drainOverfull drains a node that has less than its jobs hold, and takes it back when it has enough.
func drainOverfull(t *tx, n *Node) {
	switch over := t.overfull(n); {
	case over && !n.Drain:
		n.Drain = true
		n.Reason = lessThanHeld
		n.ReasonBy = "slurm"
		n.ReasonAt = t.at
	case !over && n.Drain && n.Reason == lessThanHeld:
		n.Drain = false
		n.Reason = n.Lacks
		n.ReasonBy = ""
	}
}

// overfull reports whether the node's jobs hold more than it has.
func (t *tables) overfull(n *Node) bool {
	l := t.Load(n.Name)
	return l.CPUs.Max() >= n.Inventory.CPUs || l.MemMB > n.Inventory.MemMB && l.MemMB > 0
}

func (t *tx) nextOrder() int {
	if k, _, ok := t.order.Max(); ok {
		return k + 1
	}
	return 0
}

// NodeDown says that nodes are lost: their jobs are requeued or fail.
type NodeDown struct {
	Nodes []NodeName `json:"nodes"`
	Why   string     `json:"why,omitempty"`
	// Keep leaves the reason of a drained node as it is. Logs of before wrote over it.
	Keep bool `json:"keep,omitempty"`
}

func (*NodeDown) kind() string { return "node_down" }

func (c *NodeDown) apply(t *tx) (any, error) {
	for _, name := range c.Nodes {
		old, ok := t.nodes.Get(name)
		if !ok {
			continue
		}
		n := *old
		n.Up = false
		n.Quiet = false
		if !n.Down && !n.Reboot.Issued() && !n.Leaving() { // then it is expected
			n.Down = true
			n.Silent = c.Keep
			if !c.Keep || !n.Drain || n.Reason == "" {
				n.Reason = cmp.Or(c.Why, notResponding)
				n.ReasonBy = "slurm"
				n.ReasonAt = t.at
			}
			n.troubled(troubleLost, t.at)
		}
		t.putNode(&n)
		t.events = append(t.events, Event{Node: &n})
		t.evict(name)
	}
	return nil, nil
}

// NodeQuiet says that nodes do not respond, or do again. Their jobs run on; nothing new starts there.
type NodeQuiet struct {
	Nodes []NodeName `json:"nodes"`
	Quiet bool       `json:"quiet,omitempty"`
}

func (*NodeQuiet) kind() string { return "node_quiet" }

func (c *NodeQuiet) apply(t *tx) (any, error) {
	for _, name := range c.Nodes {
		if old, ok := t.nodes.Get(name); ok && old.Up && !old.Unsure && old.Quiet != c.Quiet {
			n := *old
			n.Quiet = c.Quiet
			t.putNode(&n)
		}
	}
	return nil, nil
}

// evict takes every job off a node that cannot run it any more.
func (t *tx) evict(name NodeName) {
	for _, id := range slices.Clone(t.Load(name).Jobs) {
		if j, ok := t.jobs.Get(id); ok {
			c := *j
			t.lost(&c, name)
		}
	}
}

// NodeAction is what scontrol update node state= asks for.
type NodeAction string

// The actions.
const (
	NodeDrain   NodeAction = "drain"
	NodeResume  NodeAction = "resume" // also undrain and idle
	NodeSetDown NodeAction = "down"
	NodeFail    NodeAction = "fail"

	NodePowerUp        NodeAction = "power_up"
	NodePowerDown      NodeAction = "power_down"       // when its jobs have ended
	NodePowerDownForce NodeAction = "power_down_force" // its jobs are taken off

	// NodeReclaim says that the provider takes the machine back: its jobs are warned, and leave it within Grace.
	NodeReclaim NodeAction = "reclaim"
)

// NodeSet changes nodes as an operator asks. Empty fields stay as they are.
type NodeSet struct {
	Nodes    []NodeName `json:"nodes"`
	Action   NodeAction `json:"action,omitempty"`
	Reason   *string    `json:"reason,omitempty" text:"4096"`
	Features *[]string  `json:"features,omitempty"` // that are available, all of them active unless Active says more
	Active   *[]string  `json:"active,omitempty"`
	Topology *string    `json:"topology,omitempty"`
	Weight   *int       `json:"weight,omitempty"`
	Comment  *string    `json:"comment,omitempty" text:"4096,lines"`
	Extra    *string    `json:"extra,omitempty" text:"65536,lines"`
	Addr     *string    `json:"addr,omitempty"` // until the node says where it is
	Host     *string    `json:"host,omitempty"`
	// Grace is what jobs have left with NodeReclaim.
	Grace time.Duration `json:"grace,omitempty"`
	// ResumeAfter is how long NodeDrain and NodeSetDown last; less than nothing: until it is resumed.
	ResumeAfter *time.Duration `json:"resume_after,omitempty"`
}

func (*NodeSet) kind() string { return "node_set" }

func (c *NodeSet) apply(t *tx) (any, error) {
	for _, name := range c.Nodes {
		old, ok := t.nodes.Get(name)
		if err := firstError(
			refuseIf(!t.by.Operator() && !(ok && t.by.NodeRoot && old.Owner == string(t.by.Node)),
				Denied, ErrUser,
				"only operators may change nodes, and root of a machine the node that it is"),
			refuseIf(!ok,
				NotFound, ErrNodeName, "node %s does not exist", name),
		); err != nil {
			return nil, err
		}
		n := *old
		if err := c.change(t, &n); err != nil {
			return nil, err
		}
		t.putNode(&n)
		t.events = append(t.events, Event{Node: &n})
		if n.Down && !old.Down || c.Action == NodePowerDownForce {
			t.evict(name)
		}
		if c.Action == NodeReclaim {
			t.reclaim(&n, c.Grace)
		}
	}
	return nil, nil
}

// Available are the features of a node, whether active or not.
func (inv *Inventory) Available() []string { return slices.Concat(inv.Features, inv.Inactive) }

func (c *NodeSet) change(t *tx, n *Node) error {
	if err := firstError(c.setState(t, n), c.planResume(t, n)); err != nil {
		return err
	}
	if c.Reason != nil {
		n.Reason = *c.Reason
		n.ReasonBy = t.by.User
		n.ReasonUID = t.by.UID
		n.ReasonAt = t.at
	}
	if c.Features != nil {
		n.Inventory.Features = *c.Features
		n.Inventory.Inactive = nil
	}
	if c.Active != nil {
		inactive := n.Inventory.Available()
		inactive = slices.DeleteFunc(inactive, func(f string) bool { return slices.Contains(*c.Active, f) })
		n.Inventory.Features = *c.Active
		n.Inventory.Inactive = inactive
	}
	set(&n.Inventory.Topology, c.Topology)
	set(&n.Inventory.Weight, c.Weight)
	set(&n.Comment, c.Comment)
	set(&n.Extra, c.Extra)
	set(&n.Inventory.Addr, c.Addr)
	set(&n.Inventory.Host, c.Host)
	return nil
}

// setState takes a node out of service, or back.
func (c *NodeSet) setState(t *tx, n *Node) error {
	given := c.Reason != nil && *c.Reason != "" || n.Reason != ""
	switch {
	case strings.HasPrefix(string(c.Action), "power_"):
		return c.setPower(t, n)
	case c.Action == NodeReclaim:
		n.reclaimed(t)
		return nil
	case c.Action == NodeResume:
		return n.resume(t)
	case c.Action != "" && !given:
		return Errorf(Invalid, ErrReasonNeeded, "a reason is needed to take node %s out of service", n.Name)
	}
	switch c.Action {
	case NodeDrain:
		n.Drain = true
	case NodeSetDown:
		n.Down = true
		n.Silent = false
	case NodeFail:
		n.Failing = true
	}
	return nil
}

// resume takes a node back into service; one that lacks hardware and serves is to have no more than it has now.
func (n *Node) resume(t *tx) error {
	out := n.Drain || n.Down || n.Failing
	switch {
	case !out && n.Lacks != "":
		n.Full = Hardware{n.Inventory.CPUs, n.Inventory.MemMB, len(n.Inventory.Found())}
		n.lacking()
		return nil
	case !out:
		return Errorf(Invalid, ErrNodeState, "node %s is neither drained nor down", n.Name)
	case t.overfull(n):
		return Errorf(Conflict, ErrNodeState, "node %s has less than its jobs hold", n.Name)
	}
	if n.Power != nil {
		p := *n.Power
		p.Fails = 0
		p.Retry = time.Time{}
		n.Power = &p
	}
	n.Drain = false
	n.Down = false
	n.Silent = false
	n.Failing = false
	n.Reason = ""
	n.ReasonBy = ""
	n.ReasonUID = 0
	n.ReasonAt = time.Time{}
	n.ResumeAt = time.Time{}
	if n.Lacks != "" {
		n.Reason = n.Lacks
		n.ReasonBy = "slurm"
		n.ReasonAt = t.at
	}
	return nil
}
