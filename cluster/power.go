package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Nodes that come and go with the queue (Slurm's power saving): a node that is off may be given to jobs; the leader
// then runs the site's ResumeProgram, and the job begins when all its nodes have registered. A node that was idle
// for SuspendTime is given back by SuspendProgram. A node that does not come is down for a while, longer each time.

// PowerState is where a node stands between off and on; a node that is simply on has no Power.
type PowerState string

// The states.
const (
	PowerOff   PowerState = "off"
	PowerAsked PowerState = "asked" // a job has it: ResumeProgram is to be called
	PowerUp    PowerState = "up"    // ResumeProgram was called, at Since
	PowerEmpty PowerState = "empty" // on, and to be suspended when its jobs have ended
	PowerDown  PowerState = "down"  // SuspendProgram was called, at Since
)

// Power is a node's way between off and on.
type Power struct {
	State PowerState `json:"state"`
	Since time.Time  `json:"since,omitzero"`
	// Fails counts the times it did not come, one after the other; until Retry it is down for that.
	Fails int       `json:"fails,omitempty"`
	Retry time.Time `json:"retry,omitzero"`
}

// PowerConfig is how nodes are switched on and off.
type PowerConfig struct {
	Resume     string        `json:"resume,omitempty"`      // ResumeProgram; empty: none is
	Suspend    string        `json:"suspend,omitempty"`     // SuspendProgram
	ResumeFail string        `json:"resume_fail,omitempty"` // ResumeFailProgram
	After      time.Duration `json:"after,omitempty"`       // SuspendTime: idle so long; 0: never
	Leaving    time.Duration `json:"leaving,omitempty"`     // SuspendTimeout: from SuspendProgram until the node is off
	ResumeRate int           `json:"resume_rate,omitempty"` // nodes a minute; 0: no limit
	// SuspendRate is how many nodes a minute are suspended; 0: no limit.
	SuspendRate int        `json:"suspend_rate,omitempty"`
	ExceptNodes []NodeName `json:"except_nodes,omitempty"` // are never suspended
	ExceptParts []string   `json:"except_parts,omitempty"` // nor the nodes of these partitions
	KeepOn      []KeepOn   `json:"keep_on,omitempty"`      // of these some are kept on
}

// KeepOn keeps a number of idle nodes of a set on (SuspendExcNodes=NODES:COUNT).
type KeepOn struct {
	Nodes []NodeName `json:"nodes"`
	Count int        `json:"count"`
}

// Longest and shortest time that a node which did not come is left alone.
const (
	minRetry = time.Minute
	maxRetry = time.Hour
)

// Reasons of nodes that did not come.
const (
	resumeLate   = "ResumeTimeout reached"
	resumeFailed = "ResumeProgram failed"
)

// Off reports whether the node is switched off, or on its way on: jobs may have it, and wait for it.
func (n *Node) Off() bool {
	return n.Power != nil && (n.Power.State == PowerOff || n.Power.State == PowerAsked || n.Power.State == PowerUp)
}

// Leaving reports whether the node is being switched off.
func (n *Node) Leaving() bool {
	return n.Power != nil && (n.Power.State == PowerDown || n.Power.State == PowerEmpty)
}

func (n *Node) powerIs(s PowerState) bool {
	return n.Power != nil && n.Power.State == s
}

// powerDeclared makes the cloud nodes that are not there off, where they can be switched on, and not so elsewhere.
func (t *tx) powerDeclared() {
	for n := range t.Nodes() {
		c := *n
		switch {
		case t.config.Power.Resume == "" && n.Power != nil:
			c.Power = nil
		case t.config.Power.Resume != "" && n.Power == nil && n.Expected == ExpectedCloud && !n.Up && !n.Down:
			c.Power = &Power{State: PowerOff}
		default:
			continue
		}
		t.putNode(&c)
	}
}

// wake asks for the nodes of a job that are off, and lists those that it has to wait for.
func (t *tx) wake(j *Job) (out []NodeName) {
	for _, name := range j.AllocNodes() {
		n, ok := t.nodes.Get(name)
		if !ok || !n.Off() {
			continue
		}
		out = append(out, name)
		if n.Power.State == PowerOff {
			c := *n
			c.Power = &Power{State: PowerAsked, Since: t.at, Fails: n.Power.Fails}
			t.putNode(&c)
		}
	}
	return out
}

// poweredUp notes that a node has come, whoever switched it on, and lets the jobs go on that waited for it. The node is
// put by the caller.
func (t *tx) poweredUp(n *Node) {
	if n.Power == nil || n.Leaving() {
		return
	}
	if n.lost() {
		n.isBack()
	}
	n.Power = nil
	n.LastBusy = t.at
	for _, id := range t.Load(n.Name).Jobs {
		j, ok := t.jobs.Get(id)
		if !ok || !j.Preparing() || !slices.Contains(j.Prelude.Nodes, n.Name) {
			continue
		}
		c := *j
		p := *j.Prelude
		p.Nodes = without(p.Nodes, n.Name)
		c.Prelude = p.past(t.since(j.Started))
		t.putJob(&c)
		t.tell(&c)
	}
}

// past notes when nothing is left to wait for.
func (p Prelude) past(at time.Time) *Prelude {
	if p.reached() && !p.Fetch {
		p.Over = at
	}
	return &p
}

// notCome deals with a node that was to come and did not.
func (t *tx) notCome(name NodeName, why string) {
	old, ok := t.nodes.Get(name)
	if !ok || old.Up || !old.powerIs(PowerUp) {
		return
	}
	n := *old
	fails := old.Power.Fails + 1
	pause := min(minRetry<<min(fails-1, 10), maxRetry)
	n.Power = &Power{
		State: PowerOff,
		Since: t.at,
		Fails: fails,
		Retry: t.at.Add(pause),
	}
	n.Down = true
	n.Reason = why
	n.ReasonBy = "slurm"
	n.ReasonUID = 0
	n.ReasonAt = t.at
	t.putNode(&n)
	t.events = append(t.events, Event{Node: &n})
	for _, id := range slices.Clone(t.Load(name).Jobs) {
		j, ok := t.jobs.Get(id)
		if !ok {
			continue
		}
		c := *j
		if c.Phase != Ending {
			c.RequeueAfter = c.Spec.Kind == Batch
			c.blamed(Blame{Node: name, Text: "the node did not come: " + why})
			t.end(&c, NodeFailed, EndNodeDown)
			c.WaitNote = fmt.Sprintf("node %s did not come: %s", name, why)
		}
		t.putJob(&c)
		t.tell(&c)
		t.endRest(&c)
	}
}

// NodePower switches nodes on and off.
type NodePower struct {
	Resume  []NodeName `json:"resume,omitempty"`
	Suspend []NodeName `json:"suspend,omitempty"`
	Late    []NodeName `json:"late,omitempty"`  // those that did not come
	Gone    []NodeName `json:"gone,omitempty"`  // those that are off by now
	Retry   []NodeName `json:"retry,omitempty"` // those that may be tried again
}

func (*NodePower) kind() string { return "node_power" }

func (c *NodePower) apply(t *tx) (any, error) {
	if !t.by.System {
		return nil, Errorf(Denied, ErrUser, "the leader switches nodes")
	}
	on := switchNodes(t, c.Resume, PowerUp, func(n *Node) bool { return n.powerIs(PowerAsked) })
	exempt := t.exempt()
	idle := func(n *Node) bool {
		at, may := t.suspendAt(n, exempt)
		return may && !at.After(t.at)
	}
	off := switchNodes(t, c.Suspend, PowerDown, idle)
	for _, name := range c.Gone {
		to := PowerOff
		if n, ok := t.nodes.Get(name); ok && n.Up { // it has not gone
			to = ""
		}
		t.switchNode(name, to, func(n *Node) bool { return n.powerIs(PowerDown) })
	}
	for _, name := range c.Late {
		t.notCome(name, resumeLate)
	}
	switchNodes(t, c.Retry, PowerOff,
		func(n *Node) bool {
			return n.powerIs(PowerOff) && !n.Power.Retry.After(t.at)
		})
	if on != nil {
		t.send(Hook{Kind: HookResume, Nodes: on, Jobs: t.waitFor(on)})
	}
	if off != nil && t.config.Power.Suspend != "" {
		t.send(Hook{Kind: HookSuspend, Nodes: off})
	}
	if c.Late != nil && t.config.Power.ResumeFail != "" {
		t.send(Hook{Kind: HookResumeFail, Nodes: c.Late})
	}
	return nil, nil
}

// switchNodes moves those of some nodes to another state that may go there, and lists them.
func switchNodes(t *tx, names []NodeName, to PowerState, may func(*Node) bool) (out []NodeName) {
	for _, name := range names {
		if t.switchNode(name, to, may) {
			out = append(out, name)
		}
	}
	return out
}

// switchNode moves a node to another state if it may go there.
func (t *tx) switchNode(name NodeName, to PowerState, may func(*Node) bool) bool {
	old, ok := t.nodes.Get(name)
	if !ok || !may(old) {
		return false
	}
	n := *old
	if n.Power = nil; to != "" {
		n.Power = &Power{State: to, Since: t.at}
	} else {
		n.LastBusy = t.at
	}
	if old.Power != nil && n.Power != nil {
		n.Power.Fails = old.Power.Fails
	}
	if n.lost() { // it is off now, and may come again
		if n.isBack(); n.Reason == "" {
			n.ReasonAt = time.Time{}
		}
	}
	t.putNode(&n)
	t.events = append(t.events, Event{Node: &n})
	return true
}

// waitFor lists the jobs that wait for one of the nodes.
func (t *tables) waitFor(nodes []NodeName) (out []*Job) {
	seen := map[JobID]bool{}
	for _, name := range nodes {
		for _, id := range t.Load(name).Jobs {
			if j, ok := t.jobs.Get(id); ok && !seen[id] {
				seen[id] = true
				out = append(out, j)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// suspendAt is when a node that is on is to be suspended if it stays idle; false if never.
func (t *tables) suspendAt(n *Node, exempt map[NodeName]bool) (time.Time, bool) {
	idle := t.powerTime(n.Name, t.config.Power.After, func(p *Partition) *time.Duration { return p.SuspendTime })
	switch {
	case len(t.Load(n.Name).Jobs) > 0:
		return time.Time{}, false
	case n.Power != nil:
		return n.Power.Since, n.Power.State == PowerEmpty
	case idle <= 0 || idle >= Unlimited, n.Drain, n.Failing, n.Reboot != nil, exempt[n.Name],
		!n.Up && !(n.lost() && n.Expected == ExpectedCloud): // one that was lost is given back
		return time.Time{}, false
	}
	return later(later(n.LastBusy, n.Registered), n.ReasonAt).Add(idle), true
}

// exempt are the nodes that are never suspended for being idle.
func (t *tables) exempt() map[NodeName]bool {
	p := &t.config.Power
	out := make(map[NodeName]bool, len(p.ExceptNodes))
	for _, n := range p.ExceptNodes {
		out[n] = true
	}
	for _, name := range p.ExceptParts {
		if part, ok := t.Partition(name); ok {
			for n := range t.PartitionNodes(part) {
				out[n.Name] = true
			}
		}
	}
	for _, keep := range p.KeepOn {
		left := keep.Count
		for _, name := range keep.Nodes {
			if n, ok := t.nodes.Get(name); ok && left > 0 && n.Power == nil && n.Usable() && len(t.Load(name).Jobs) == 0 {
				out[name] = true
				left = left - 1
			}
		}
	}
	return out
}

// powerTime is a time of switching a node: the longest that its partitions say, else the cluster's.
func (t *tables) powerTime(name NodeName, cluster time.Duration, of func(*Partition) *time.Duration) time.Duration {
	said := false
	for i := range t.config.Partitions {
		p := &t.config.Partitions[i]
		d := of(p)
		switch {
		case d == nil || !p.All && !slices.Contains(p.Nodes, name):
		case !said:
			cluster = *d
			said = true
		default:
			cluster = max(cluster, *d)
		}
	}
	return cluster
}

// LongestSwitch is the longest time that switching a node on or off may take.
func (c *Config) LongestSwitch() time.Duration {
	longest := max(c.ResumeTimeout, c.Power.Leaving)
	for i := range c.Partitions {
		for _, d := range []*time.Duration{c.Partitions[i].ResumeTimeout, c.Partitions[i].SuspendTimeout} {
			if d != nil {
				longest = max(longest, *d)
			}
		}
	}
	return longest
}

// powerEnd is when the clock moves a node between off and on.
func (t *tables) powerEnd(n *Node) time.Time {
	switch p := n.Power; {
	case p.State == PowerUp:
		return p.Since.Add(t.powerTime(n.Name,
			cmp.Or(t.config.ResumeTimeout, DefaultConfig().ResumeTimeout),
			func(p *Partition) *time.Duration { return p.ResumeTimeout }))
	case p.State == PowerDown:
		return p.Since.Add(t.powerTime(n.Name, t.config.Power.Leaving,
			func(p *Partition) *time.Duration { return p.SuspendTimeout }))
	case p.State == PowerOff && !p.Retry.IsZero():
		return p.Retry
	case p.State == PowerAsked:
		return p.Since
	}
	return time.Time{}
}

// powerDue is what is to be switched at now, nil if nothing, and when the next is.
func (t *tables) powerDue(now time.Time) (c *NodePower, next time.Time) {
	if t.config.Power.Resume == "" {
		return nil, time.Time{}
	}
	var out NodePower
	on, off := switchedAt(t, now)
	for n := range valuesOf(t.powers) {
		at := t.powerEnd(n)
		switch to := out.listOf(n.Power.State); {
		case at.IsZero():
		case at.After(now):
			next = sooner(next, at)
		case to != nil:
			*to = append(*to, n.Name)
		case inRate(&on, t.config.Power.ResumeRate):
			out.Resume = append(out.Resume, n.Name)
		default:
			next = sooner(next, now.Add(rateCheck))
		}
	}
	exempt := t.exempt()
	for n := range t.Nodes() {
		at, may := t.suspendAt(n, exempt)
		switch {
		case !may:
		case at.After(now):
			next = sooner(next, at)
		case inRate(&off, t.config.Power.SuspendRate):
			out.Suspend = append(out.Suspend, n.Name)
		default:
			next = sooner(next, now.Add(rateCheck))
		}
	}
	if out.empty() {
		return nil, next
	}
	return &out, next
}

// switchedAt counts the nodes that were switched on and off in the minute before.
func switchedAt(t *tables, now time.Time) (on, off int) {
	for n := range valuesOf(t.powers) {
		if p := n.Power; now.Sub(p.Since) < time.Minute {
			on += b2i(p.State == PowerUp)
			off += b2i(p.State == PowerDown)
		}
	}
	return on, off
}

// inRate counts one more, and reports whether it is within a limit; 0: there is none.
func inRate(have *int, limit int) bool {
	*have++
	return limit == 0 || *have <= limit
}

// listOf is where a node belongs whose time in a state is over; nil for those that are to be switched on.
func (c *NodePower) listOf(s PowerState) *[]NodeName {
	switch s {
	case PowerUp:
		return &c.Late
	case PowerDown:
		return &c.Gone
	case PowerOff:
		return &c.Retry
	}
	return nil
}

func (c *NodePower) empty() bool {
	return len(c.Resume)+len(c.Suspend)+len(c.Late)+len(c.Gone)+len(c.Retry) == 0
}

// reclaimReason is said of nodes that their provider takes back.
const reclaimReason = "reclaimed by its provider"

// reclaimed keeps new jobs off a node that will be gone soon. If it can come again, it is switched off when its
// jobs have left.
func (n *Node) reclaimed(t *tx) {
	if n.Power == nil && t.config.Power.Resume != "" && n.Expected == ExpectedCloud {
		n.Power = &Power{State: PowerEmpty, Since: t.at}
		return
	}
	if !n.Drain {
		n.Drain = true
		n.Reason = reclaimReason
		n.ReasonBy = cmp.Or(t.by.User, "root")
		n.ReasonUID = t.by.UID
		n.ReasonAt = t.at
	}
}

// reclaim has the jobs of a node leave it: they are warned by the signal that they asked for (--signal), or as one
// that is preempted, and go back into the queue when the grace is over, if they may.
func (t *tx) reclaim(node *Node, grace time.Duration) {
	for _, id := range slices.Clone(t.Load(node.Name).Jobs) {
		j, ok := t.jobs.Get(id)
		if !ok || j.On(node.Name).Phase == Ending || !j.Preempt.until().IsZero() {
			continue
		}
		n := *j
		mode := PreemptRequeue
		if !n.MayRequeue() {
			mode = PreemptCancel
		}
		n.blamed(Blame{Node: node.Name, Text: "the node was " + reclaimReason})
		n.Preempt = &Preemption{At: t.since(n.Started), Mode: mode}
		if grace > 0 && n.Phase == Running {
			t.warn(&n, grace, true)
		} else {
			t.preempted(&n)
		}
		t.putJob(&n)
		t.tell(&n)
		if n.Phase == Ending {
			t.endRest(&n)
		}
	}
}

// rateCheck is how soon it is looked again whether more nodes may be switched.
const rateCheck = 5 * time.Second

// setPower is what an operator asks for.
func (c *NodeSet) setPower(t *tx, n *Node) error {
	if t.config.Power.Resume == "" || t.config.Power.Suspend == "" {
		return Errorf(Conflict, ErrNodeState,
			"node %s cannot be switched: ResumeProgram and SuspendProgram are not both configured", n.Name)
	}
	switch c.Action {
	case NodePowerUp:
		if !n.powerIs(PowerOff) {
			return Errorf(Conflict, ErrNodeState, "node %s is not powered down", n.Name)
		}
		n.Power = &Power{State: PowerAsked, Since: t.at, Fails: n.Power.Fails}
		if n.lost() {
			n.isBack()
		}
	case NodePowerDown, NodePowerDownForce:
		if n.Power != nil {
			return Errorf(Conflict, ErrNodeState, "node %s is not simply on: its power state is %s", n.Name,
				n.Power.State)
		}
		n.Power = &Power{State: PowerEmpty, Since: t.at}
	}
	return nil
}
