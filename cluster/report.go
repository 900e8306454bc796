package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// UpdateKind says what a node tells of a job.
type UpdateKind string

// The kinds of update.
const (
	// NodeReady: the node has the job's attempt and is prepared to run it.
	NodeReady UpdateKind = "ready"
	// LaunchFailed: the node could not begin; the job goes elsewhere. With Fault it is no fault of the
	// job's: the node is drained.
	LaunchFailed UpdateKind = "launch_failed"
	// BatchOver: the batch script ended (or could not be run, with Error).
	BatchOver UpdateKind = "batch_over"
	// NodeDone: nothing of the job is left on the node.
	NodeDone UpdateKind = "done"
	// StepNow: a step began or ended.
	StepNow UpdateKind = "step"
	// JobLost: the node should be running the attempt but knows nothing of it (it was rebooted).
	JobLost UpdateKind = "lost"
)

// Final reports whether nothing of an attempt is begun on a node after such news.
func (k UpdateKind) Final() bool {
	return k == NodeDone || k == BatchOver || k == JobLost || k == LaunchFailed
}

// Update is one thing that happened to a job on a node.
type Update struct {
	Kind    UpdateKind `json:"kind"`
	Job     JobID      `json:"job"`
	Attempt int        `json:"attempt"`
	At      time.Time  `json:"at"`
	Exit    ExitStatus `json:"exit,omitzero"`
	OOM     bool       `json:"oom,omitempty"`
	Error   string     `json:"error,omitempty"`
	Fault   bool       `json:"fault,omitempty"`
	Usage   Usage      `json:"usage,omitzero"`
	Step    *Step      `json:"step,omitempty"`
}

// Report carries what happened on a node since its last report. Seq counts up; a report seen
// before changes nothing. Late news of an old attempt changes nothing either.
type Report struct {
	Node    NodeName `json:"node"`
	Seq     uint64   `json:"seq"`
	Updates []Update `json:"updates"`
}

func (*Report) kind() string { return "report" }

func (c *Report) apply(t *tx) (any, error) {
	node, ok := t.nodes.Get(c.Node)
	if !ok {
		return nil, Errorf(NotFound, ErrNodeName, "node %s does not exist", c.Node)
	}
	if c.Seq <= node.ReportSeq {
		return nil, nil
	}
	n := *node
	n.ReportSeq = c.Seq
	n.LastBusy = t.at
	n.confirmsAgain()
	t.putNode(&n)
	t.updates(c.Node, c.Updates)
	return nil, nil
}

// updates takes a node's news of attempts that go on; late news of old ones changes nothing.
func (t *tx) updates(node NodeName, news []Update) {
	for _, u := range news {
		j, ok := t.jobs.Get(u.Job)
		if !ok || j.Attempt != u.Attempt {
			continue
		}
		if u.Kind == StepNow {
			t.stepNow(j, u)
			continue
		}
		if j.holds() {
			t.update(j, node, u)
		}
	}
}

func (t *tx) update(old *Job, node NodeName, u Update) {
	n := *old
	switch u.Kind {
	case NodeReady:
		if n.Phase != Starting {
			return
		}
		n.Waiting = without(n.Waiting, node)
		switch {
		case len(n.Waiting) > 0:
			t.putJob(&n)
			return // no news: on which all nodes of the job would ask for their work, for each of them
		case n.Het != nil:
			t.confirmed(&n)
		default:
			goOn(&n, t.at)
		}
	case BatchOver:
		t.batchOver(&n, u)
	case LaunchFailed:
		if n.Phase == Ending {
			return // it ends for a better reason already
		}
		t.takeBack(&n, []NodeName{node}, u.Error)
		if u.Fault {
			why := launchFailed + u.Error
			if u.Error == PrologError {
				why = u.Error
				n.RequeueHold = !t.config.NoPrologHold
				n.RequeueAfter = n.Spec.Kind == Batch
			}
			t.drain(node, why)
		}
	case JobLost:
		if n.Phase == Ending {
			t.doneOn(&n, node)
			return
		}
		t.lost(&n, node)
		return
	case NodeDone:
		if n.Phase != Ending && !n.leaves(node) {
			return
		}
		if t.doneOn(&n, node); u.Fault {
			t.drain(node, u.Error)
		}
		return
	}
	t.putJob(&n)
	t.tell(&n)
	if n.Phase == Ending && old.Phase != Ending {
		t.endRest(&n)
	}
}

func (t *tx) batchOver(n *Job, u Update) {
	n.Exit = u.Exit
	if n.Phase == Ending {
		return
	}
	how := Completed
	why := NoReason
	switch {
	case u.OOM:
		how = OutOfMemory
		why = EndOutOfMemory
		n.Exit = OOMExit
	case u.Error != "":
		how = Failed
		why = EndLaunchFailure
		n.WaitNote = u.Error
	case u.Exit.Code != 0 || u.Exit.Signal != 0:
		how = Failed
		why = EndNonZeroExit
	}
	if how == Failed {
		t.suspected(n)
	}
	if how == Failed && u.Exit.Signal == 0 && u.Error == "" {
		hold := t.config.RequeueExitHold.Has(u.Exit.Code)
		n.RequeueAfter = hold || t.config.RequeueExit.Has(u.Exit.Code)
		n.RequeueHold = hold
		n.SpecialExit = hold
	}
	t.end(n, how, why)
	n.EndingAt = later(cmp.Or(u.At, t.at), n.since())
}

// doneOn frees the job's share on a node that is clean, and if it ends, ends it when all are.
func (t *tx) doneOn(n *Job, node NodeName) {
	if !slices.Contains(n.Waiting, node) && !n.leaves(node) {
		return
	}
	t.take(n, node)
	n.Waiting = without(n.Waiting, node)
	n.Shrunk = n.Shrunk.without(node)
	if n.Phase != Ending || len(n.Waiting)+len(n.Leaving()) > 0 {
		t.putJob(n)
		return
	}
	n.Phase = Ended
	n.Outcome = n.EndingWhy
	n.Ended = t.since(n.EndingAt)
	t.charge(n)
	t.refund(n)
	n.RequeueAfter = n.RequeueAfter || recurs(n)
	burstOver(t, n)
	t.putJob(n)
	if n.RequeueAfter {
		t.tell(n)
		t.endSteps(n)
		c := *n
		t.requeued(&c)
		return
	}
	t.ended(n)
}

// mayAgain reports whether a job goes back into the queue when the platform has ended it.
func mayAgain(j *Job) bool {
	return j.Spec.Kind == Batch && j.Spec.Requeue != nil && *j.Spec.Requeue
}

// whyLost words why a job can not go on on a node.
func (t *tx) whyLost(node NodeName) string {
	n, ok := t.nodes.Get(node)
	switch {
	case !ok:
		return "the node was deleted"
	case n.Down && n.Reason != "":
		return "the node went down: " + n.Reason
	case n.Down:
		return "the node went down"
	}
	return "the node lost the job's processes"
}

// lost deals with a job one of whose nodes is gone.
func (t *tx) lost(n *Job, node NodeName) {
	requeue := mayAgain(n)
	if n.leaves(node) {
		t.doneOn(n, node)
		return
	}
	lives := n.Phase != Ending
	if lives {
		n.RequeueAfter = requeue
		n.blamed(Blame{Node: node, Text: t.whyLost(node)})
		t.end(n, NodeFailed, EndNodeDown)
	}
	t.putJob(n)
	c := *n // n is in the table now and must not change
	t.doneOn(&c, node)
	if c.Phase == Ending {
		t.tell(&c) // its other nodes must hear of it
	}
	if lives {
		t.endRest(n)
	}
}

func (t *tx) stepNow(j *Job, u Update) {
	s := u.Step
	if s == nil || s.ID.Job != j.ID {
		return
	}
	if s.Ended.IsZero() {
		if j.holds() {
			t.putStep(s)
		}
	} else {
		t.deleteStep(s)
		c := *s
		c.Ended = later(c.Ended, c.Started)
		s = &c
	}
	late := j.Phase == Pending // of the attempt before: the next one counts anew
	if !late && (s.ID.Step >= j.NextStep || worse(s.Exit, j.Derived) && s.ID.Step >= 0) {
		n := *j
		n.NextStep = max(n.NextStep, s.ID.Step+1)
		if s.ID.Step >= 0 && worse(s.Exit, n.Derived) {
			n.Derived = s.Exit
		}
		t.putJob(&n)
	}
	t.events = append(t.events, Event{Step: s})
}

func worse(a, b ExitStatus) bool {
	return max(a.Code, a.Signal) > max(b.Code, b.Signal)
}

func without(names []NodeName, n NodeName) []NodeName {
	return slices.DeleteFunc(slices.Clone(names), func(x NodeName) bool { return x == n })
}

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
	}
	n.Owner = c.Owner
	c.comeUp(t, &n)
	before := n.Inventory.Faults
	lacked := n.Lacks
	n.found(c.Inventory, t.config.declaredOf(c.Name))
	n.faulty(t, before)
	if c.Scored && n.Trouble == nil {
		n.Trouble = &FailureScore{At: t.at}
	}
	n.troubledBy(c.Inventory.Faults, before, t.at)
	// A node that lost its disk counts from the start again. What it sends twice does no harm:
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

// lost reports whether a node is down since it was lost, and not by an operator's word.
func (n *Node) lost() bool {
	return n.Down && (n.Silent || n.ReasonBy == "slurm")
}

// isBack takes a node back that was lost. Why it is drained stays.
func (n *Node) isBack() {
	drained := n.Silent && n.Drain
	n.Down = false
	n.Silent = false
	if n.ReasonBy == "slurm" && !drained {
		n.Reason = ""
		n.ReasonBy = ""
	}
}

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

// evict takes every job off a node that can not run it any more.
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
	Active   *[]string  `json:"active,omitempty" since:"1"`
	Topology *string    `json:"topology,omitempty"`
	Weight   *int       `json:"weight,omitempty"`
	Comment  *string    `json:"comment,omitempty" text:"4096,lines"`
	Extra    *string    `json:"extra,omitempty" text:"65536,lines"`
	Addr     *string    `json:"addr,omitempty"` // until the node says where it is
	Host     *string    `json:"host,omitempty"`
	// Grace is what jobs have left with NodeReclaim.
	Grace time.Duration `json:"grace,omitempty"`
}

func (*NodeSet) kind() string { return "node_set" }

func (c *NodeSet) apply(t *tx) (any, error) {
	for _, name := range c.Nodes {
		old, ok := t.nodes.Get(name)
		if !t.by.Operator() && !(ok && t.by.NodeRoot && old.Owner == string(t.by.Node)) {
			return nil, Errorf(Denied, ErrUser,
				"only operators may change nodes, and root of a machine the node that it is")
		}
		if !ok {
			return nil, Errorf(NotFound, ErrNodeName, "node %s does not exist", name)
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
	if err := c.setState(t, n); err != nil {
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
	if n.Lacks != "" {
		n.Reason = n.Lacks
		n.ReasonBy = "slurm"
		n.ReasonAt = t.at
	}
	return nil
}

// PartitionSet replaces (or adds) one partition, or deletes it.
type PartitionSet struct {
	Partition Partition `json:"partition"`
	Delete    bool      `json:"delete,omitempty"`
}

func (*PartitionSet) kind() string { return "partition_set" }

func (c *PartitionSet) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrUser, "only operators may change partitions")
	}
	cfg := *t.config
	old := t.config
	cfg.Partitions = slices.Clone(cfg.Partitions)
	i := slices.IndexFunc(cfg.Partitions, func(p Partition) bool { return p.Name == c.Partition.Name })
	switch {
	case c.Delete && i < 0:
		return nil, Errorf(NotFound, ErrPartition, "partition %s does not exist", c.Partition.Name)
	case c.Delete:
		cfg.Partitions = slices.Delete(cfg.Partitions, i, i+1)
	case i < 0:
		cfg.Partitions = append(cfg.Partitions, c.Partition)
	default:
		cfg.Partitions[i] = c.Partition
	}
	if c.Partition.Default && !c.Delete {
		for k := range cfg.Partitions {
			cfg.Partitions[k].Default = cfg.Partitions[k].Name == c.Partition.Name
		}
	}
	t.putConfig(&cfg)
	t.gather()
	t.requeueAll(old.Partitions)
	return nil, t.noteConfig("", c.kind(), old)
}

// Configure replaces the whole configuration and declares its nodes.
type Configure struct {
	Config *Config `json:"config" text:"-"`
	// How it came to that, for the history of the configuration: see ConfigChange.
	How string `json:"how,omitempty"`
	// Onto is the number of the last change that the proposer knew of: if there is a later one nothing is done; 0:
	// whatever is there.
	Onto int `json:"onto,omitempty"`
}

func (*Configure) kind() string { return "configure" }

func (c *Configure) apply(t *tx) (any, error) {
	if !t.by.Operator() {
		return nil, Errorf(Denied, ErrUser, "only operators may configure the cluster")
	}
	if c.Config == nil || c.Config.FirstJobID < 1 || c.Config.MaxJobID <= c.Config.FirstJobID {
		return nil, Errorf(Invalid, "", "job numbers must begin above 0 and end above where they begin")
	}
	if k := len(t.configs); c.Onto > 0 && k > 0 && t.configs[k-1].N != c.Onto {
		last := t.configs[k-1]
		return nil, Errorf(Conflict, "",
			"%s has changed the configuration meanwhile (%s, number %d): look at it and try again", last.By,
			last.How, last.N)
	}
	cfg := *c.Config
	old := t.config
	t.putConfig(&cfg)
	t.gather()
	if err := t.noteConfig(c.How, c.kind(), old); err != nil {
		return nil, err
	}
	if cfg.MinJobAge != old.MinJobAge || cfg.OverTimeLimit != old.OverTimeLimit {
		t.touch(slices.Collect(t.Jobs())...) // their clocks depend on it
	}
	if cfg.Enforce.Associations {
		t.openBooks() // root's jobs need an association too
	}
	t.requeueAll(old.Partitions)
	t.reprioritize(old)
	if t.NextID < cfg.FirstJobID {
		old := t.NextID
		t.NextID = cfg.FirstJobID
		t.onUndo(func() { t.NextID = old })
	}
	for _, d := range cfg.Declared {
		old, ok := t.nodes.Get(d.Name)
		if !ok {
			d.Order = t.nextOrder()
			t.putNode(&d)
			continue
		}
		n := *old
		said := &d.Inventory
		n.Inventory.Weight = said.Weight
		n.Inventory.Topology = said.Topology
		n.Inventory.Features = said.Features
		n.Inventory.Inactive = nil
		n.Inventory.SpecCPUs = said.SpecCPUs
		n.Inventory.SpecMemMB = said.SpecMemMB
		t.putNode(&n)
	}
	t.powerDeclared()
	happened(t, TriggerReconfig)
	return nil, nil
}
