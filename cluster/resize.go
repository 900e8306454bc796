package cluster

import (
	"slices"
	"time"
)

// A running job may give nodes back, or get those of another (expand.go). Resources that it gives back are free for
// others once the nodes are clean of the job; until then the job holds its share there. Its charge, its limits and
// history follow the new size at once: history has a record for each.

// Shrunk is when a job last got another size, and what it still holds of nodes that it has given back and that are
// not clean of it.
type Shrunk struct {
	At      time.Time `json:"at"`
	Leaving []Share   `json:"leaving,omitempty"`
	// Lost are nodes that have failed under it: it went on without them.
	Lost []NodeName `json:"lost,omitempty"`
	// Replaced are nodes that were spares and have taken the place of others.
	Replaced []NodeName `json:"replaced,omitempty"`
}

// ResizedAt is when the job last got another size, zero if it has not.
func (j *Job) ResizedAt() (at time.Time) {
	if j.Shrunk != nil {
		at = j.Shrunk.At
	}
	return at
}

// resizes reports whether the patch asks a job that runs for another size.
func (p *Patch) resizes(j *Job) bool {
	return (p.MinNodes != nil || p.NodeList != nil) && (j.Phase == Running || j.Phase == Suspended)
}

// resize gives back what the patch asks for; n is a copy. It returns what is left of the patch.
func (t *tx) resize(n *Job, p Patch) (Patch, error) {
	shares := n.Alloc.Shares
	if p.NodeList != nil {
		var err error
		if shares, err = n.keeping(t.config, *p.NodeList); err != nil {
			return p, err
		}
	}
	if p.MinNodes != nil {
		switch k := *p.MinNodes; {
		case k > len(shares) && t.config.Expand:
			return p, Errorf(Conflict, ErrNotPending,
				"job %d gets more nodes by a job with --dependency=expand:%d alone", n.ID, n.ID)
		case k > len(shares):
			return p, Errorf(Invalid, ErrUnsupported,
				"job %d runs on %d nodes and cannot get more while it runs: numnodes=%d or less", n.ID,
				len(shares), len(shares))
		case p.MaxNodes != nil:
			return p, Errorf(Conflict, ErrNotPending,
				"job %d runs, so it needs one number of nodes, not a range: numnodes=%d", n.ID, k)
		case k == 0:
			p.NodeList = nil
			p.MinNodes = nil
			return p, expand(t, n)
		case k < len(shares) && t.config.NoShrink:
			return p, Errorf(Denied, ErrUnsupported,
				"jobs give no nodes back while they run: SchedulerParameters has disable_job_shrink")
		default:
			shares = shares[:k]
			n.Spec.MinNodes, n.Spec.MaxNodes = k, k // what it asks for if it comes back
		}
	}
	p.NodeList = nil
	p.MinNodes = nil
	if len(shares) < len(n.Alloc.Shares) {
		t.shrink(n, shares)
	}
	return p, nil
}

// keeping lists the shares of some of the job's nodes, in its order. Its first node manages its steps, so it stays.
func (j *Job) keeping(c *Config, names []NodeName) (out []Share, err error) {
	for _, sh := range j.Alloc.Shares {
		if slices.Contains(names, sh.Node) {
			out = append(out, sh)
		}
	}
	all := len(j.Alloc.Shares)
	first := j.Alloc.Shares[0].Node
	if c.NoShrink && (len(out) < all || len(names) > all) {
		return nil, Errorf(Denied, ErrUnsupported,
			"jobs give no nodes back while they run: SchedulerParameters has disable_job_shrink")
	}
	for _, name := range names {
		if !slices.ContainsFunc(out, func(sh Share) bool { return sh.Node == name }) {
			return nil, Errorf(Invalid, ErrNodeName,
				"node %s is none of job %d, which cannot get others while it runs", name, j.ID)
		}
	}
	if len(out) == 0 || out[0].Node != first {
		return nil, Errorf(Invalid, ErrNodeName, "job %d must keep its first node, %s: name it, too", j.ID, first)
	}
	return out, nil
}

// sized tells history of the size that a job has had until now.
func sized(t *tx, j *Job, at time.Time) {
	t.charge(j)
	was := *j
	was.Phase = Ended
	was.Outcome = Resized
	was.Ended = at
	if was.Shrunk != nil {
		was.Shrunk = &Shrunk{At: was.Shrunk.At}
	}
	if j.Phase == Suspended {
		was.paused(j.SuspendedAt, at)
	}
	t.events = append(t.events, Event{Sized: &was})
}

// bill says again what a job is billed; its allocation is its own copy.
func bill(t *tx, j *Job) {
	billing := t.BillingOf(j.Alloc.Partition, j.Amounts(t.config, nil))
	j.Alloc.Billing = &billing
}

// shrink leaves a job these of its shares; n is a copy.
func (t *tx) shrink(n *Job, kept []Share) {
	at := later(t.at, n.since().Add(1)) // records of history are told apart by it
	sized(t, n, at)
	leaving := slices.Clone(n.Leaving())
	for _, sh := range n.Alloc.Shares {
		if slices.ContainsFunc(kept, func(k Share) bool { return k.Node == sh.Node }) {
			continue
		}
		if !n.HoldsCPUs() {
			sh.CPUs = IDSet{}
		}
		leaving = append(leaving, sh)
	}
	alloc := *n.Alloc
	alloc.Shares = slices.Clone(kept)
	alloc.Types = t.typesIn(alloc.Parts(), alloc.Types)
	n.Alloc = &alloc
	n.Shrunk = &Shrunk{At: at, Leaving: leaving, Lost: LostNodes(n), Replaced: ReplacedNodes(n)}
	bill(t, n)
}

// ReplacedNodes lists the spares of the job that have taken the places of other nodes.
func ReplacedNodes(j *Job) []NodeName {
	if j.Shrunk == nil {
		return nil
	}
	return j.Shrunk.Replaced
}

// LostNodes are nodes that have failed under the job, and without which it went on.
func LostNodes(j *Job) []NodeName {
	if j.Shrunk == nil {
		return nil
	}
	return j.Shrunk.Lost
}

// outlives reports whether a job goes on when a node fails. Its first node manages its steps: with that it ends.
func outlives(t *tx, j *Job, node NodeName) bool {
	runs := j.Phase == Running || j.Phase == Suspended
	if !runs || j.Het != nil || j.Alloc.Shares[0].Node == node {
		return false
	}
	asked := j.Spec.Survives()
	if len(j.Alloc.Spares) > 0 && asked.Restart == RestartJob {
		return false // it starts again, on the nodes that it keeps
	}
	_, spare := spareFor(t, j)
	return j.Spec.NoKill || spare || asked.Spares > 0 && asked.Restart == RestartRank
}

// goOnWithout leaves a job all nodes but one that has failed; n is a copy. Its resources there are free once that is
// clean. why is noted if a spare takes the place of the node.
func goOnWithout(t *tx, n *Job, node NodeName, why string) {
	was := slices.IndexFunc(n.Alloc.Shares, func(sh Share) bool { return sh.Node == node })
	kept := slices.DeleteFunc(slices.Clone(n.Alloc.Shares), func(sh Share) bool { return sh.Node == node })
	t.shrink(n, kept)
	replaceNode(t, n, node, was, why)
	n.Shrunk.Lost = append(slices.Clone(n.Shrunk.Lost), node)
	t.putJob(n)
	t.tell(n)
}

// since is when the job began to be what it is: it started, or got another size.
func (j *Job) since() time.Time { return later(j.Started, j.ResizedAt()) }

// typesIn counts the GPUs of shares by type, for those types that are counted.
func (t *tables) typesIn(shares []Share, of map[string]int64) map[string]int64 {
	if of == nil {
		return nil
	}
	out := map[string]int64{}
	for _, sh := range shares {
		n, ok := t.nodes.Get(sh.Node)
		if !ok {
			continue
		}
		for i := range n.Inventory.GPUs {
			g := &n.Inventory.GPUs[i]
			if _, counted := of[g.Type]; counted && sh.GPUs.Has(g.Index) {
				out[g.Type]++
			}
		}
	}
	return out
}

// leaves reports whether the job has given its share of a node back and the node is not clean yet.
func (j *Job) leaves(n NodeName) bool {
	return slices.ContainsFunc(j.Leaving(), func(sh Share) bool { return sh.Node == n })
}

// AllNodes lists the nodes of the allocation and those that it leaves.
func (j *Job) AllNodes() []NodeName {
	names := j.AllocNodes()
	for _, sh := range j.Leaving() {
		names = append(names, sh.Node)
	}
	return names
}

// On is the job as one of its nodes is to see it: over, if it has given that one back.
func (j *Job) On(n NodeName) *Job {
	if !j.leaves(n) {
		return j
	}
	c := *j
	a := *j.Alloc
	a.Shares = append(slices.Clip(a.Shares), j.Leaving()...)
	c.Alloc = &a
	c.Shrunk = nil
	c.Phase = Ending
	c.EndingWhy = Resized
	c.EndingAt = j.Shrunk.At
	c.RequeueAfter = false
	c.Waiting = nil
	for _, sh := range j.Leaving() {
		c.Waiting = append(c.Waiting, sh.Node)
	}
	return &c
}

// Record is the job as history has it: of one that has given nodes back, what it is since then.
func (j *Job) Record() *Job {
	at := j.ResizedAt()
	if at.IsZero() || j.Submitted.Equal(at) {
		return j
	}
	c := *j
	c.Submitted = at
	c.Eligible = at
	c.Started = at
	c.Shrunk = &Shrunk{At: at}
	c.Pauses = nil
	c.SuspendTotal = 0
	for _, p := range j.Pauses {
		if from := later(p.From, at); from.Before(p.To) {
			c.Pauses = append(c.Pauses, Pause{from, p.To})
			c.SuspendTotal += p.To.Sub(from)
		}
	}
	if !c.SuspendedAt.IsZero() {
		c.SuspendedAt = later(c.SuspendedAt, at)
	}
	return &c
}

// Recorded is when history's record of the job begins, by which it is told from others of the same id.
func (j *Job) Recorded() time.Time {
	if j.Shrunk != nil {
		return j.Shrunk.At
	}
	return j.Submitted
}

// without is the job's standing without what it held on a node that is clean now; nil stays so.
func (s *Shrunk) without(n NodeName) *Shrunk {
	if s == nil {
		return nil
	}
	c := *s
	c.Leaving = slices.DeleteFunc(slices.Clone(s.Leaving), func(sh Share) bool { return sh.Node == n })
	return &c
}

// withoutCPUs is that without the CPUs: a job that stops frees them, and does not get these again.
func (s *Shrunk) withoutCPUs() *Shrunk {
	if s == nil {
		return nil
	}
	c := *s
	c.Leaving = slices.Clone(s.Leaving)
	for i := range c.Leaving {
		c.Leaving[i].CPUs = IDSet{}
	}
	return &c
}
