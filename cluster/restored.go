package cluster

import (
	"fmt"
	"slices"
	"time"

	"dev.muster/cluster/federation"
)

// A state that was brought back from a file is older than what nodes have seen. Their knowledge takes precedence: jobs
// that ended since, jobs that were started since and run, and how far numbers had come. Until a node has told that,
// nothing new is started there; and numbers that may have been given since are left out, for what no node has seen.
const (
	idGap      = 10_000 // numbers of jobs that are left out
	attemptGap = 1_000  // an attempt that is begun after it is told from any that was begun before
	maxDiffers = 500
)

// Restored says that the state was brought back from a file, and what nodes have told that differs from it.
type Restored struct {
	At      time.Time    `json:"at"`
	Saved   time.Time    `json:"saved"` // what the file was as of
	Differs []Difference `json:"differs,omitempty"`
	More    int          `json:"more,omitempty"` // that are not listed
}

// Difference is one thing that a node knows otherwise than the file did.
type Difference struct {
	Job  JobID    `json:"job"`
	User string   `json:"user,omitempty"`
	Node NodeName `json:"node"`
	What string   `json:"what"`
}

// Restore makes a state that was read from a file one to go on from: it is no part of Apply.
func (s *State) Restore(saved, now time.Time) {
	s.restored = &Restored{At: now, Saved: saved}
	if s.NextID += idGap; s.NextID > s.config.MaxJobID {
		s.NextID = s.config.FirstJobID + s.NextID - s.config.MaxJobID
	}
	for _, n := range slices.Collect(s.Nodes()) {
		if n.Expected == ExpectedExternal {
			continue // nothing reports it
		}
		c := *n
		c.Quiet = c.Quiet || c.Up
		c.Unsure = true
		s.setNode(n, &c)
	}
}

// Restored is nil for a state that was never brought back from a file.
func (t *tables) Restored() *Restored { return t.restored }

// Unsure lists the nodes of a state that was brought back which have not told yet what they know.
func (t *tables) Unsure() (names []NodeName) {
	if t.restored == nil {
		return nil
	}
	for n := range t.Nodes() {
		if n.Unsure && n.Up {
			names = append(names, n.Name)
		}
	}
	return names
}

// Hearsay reports whether a job is known by the word of a node alone: it was submitted after the save, and before
// the restore.
func (t *tables) Hearsay(j *Job) bool {
	r := t.restored
	return r != nil && j.Submitted.After(r.Saved) && j.Submitted.Before(r.At)
}

// nextAttempt is the number of the attempt that a job begins now.
func (t *tables) nextAttempt(j *Job) int {
	if t.restored != nil && j.Submitted.Before(t.restored.At) && j.Attempt < attemptGap {
		return j.Attempt + attemptGap
	}
	return j.Attempt + 1
}

// NodeTell is what a node knows of jobs after the servers' state was brought back from a file.
type NodeTell struct {
	Node NodeName `json:"node"`
	// NextJob is one more than the highest number of a job that the node has heard of.
	NextJob JobID `json:"next_job,omitempty"`
	// Ended is what became of attempts that the servers take for running there.
	Ended []Update `json:"ended,omitempty"`
	// Jobs have attempts that run there.
	Jobs []*Job `json:"jobs,omitempty"`
	// Unknown run there too, and the node does not know any more what they are.
	Unknown []JobID `json:"unknown,omitempty"`
}

func (*NodeTell) kind() string { return "node_tell" }

func (c *NodeTell) apply(t *tx) (any, error) {
	node, ok := t.nodes.Get(c.Node)
	if !ok {
		return nil, Errorf(NotFound, ErrNodeName, "node %s does not exist", c.Node)
	}
	if t.restored == nil || !node.Unsure {
		return nil, nil
	}
	n := *node
	n.Unsure = false
	n.Quiet = false
	t.putNode(&n)
	t.events = append(t.events, Event{Node: &n})
	t.passIDs(c)
	t.toldEnds(c)
	for _, j := range c.Jobs {
		t.told(j, c.Node)
	}
	for _, id := range c.Unknown {
		if _, known := t.jobs.Get(id); !known {
			t.differs(&Job{ID: id}, c.Node, "was begun since, and nothing is known of it any more: it is ended")
		}
	}
	return nil, nil
}

// toldEnds takes what became of the jobs that are taken for running on a node, first of all: their place may be
// others' by now.
func (t *tx) toldEnds(c *NodeTell) {
	for _, id := range slices.Clone(t.Load(c.Node).Jobs) {
		j, _ := t.jobs.Get(id)
		known := func(u Update) bool {
			return u.Job == id && u.Attempt == j.Attempt
		}
		switch {
		case slices.ContainsFunc(c.Jobs, j.sameAttempt), slices.Contains(c.Unknown, id):
		case slices.ContainsFunc(c.Ended, known):
			t.differs(j, c.Node, "has ended since, as the node tells")
		default:
			t.differs(j, c.Node, "does not run there any more, and the node does not know how it ended")
		}
	}
	t.updates(c.Node, c.Ended)
}

// Held is an attempt that a node is taken to run.
type Held struct {
	Job     JobID `json:"job"`
	Attempt int   `json:"attempt"`
}

// HeldOn lists the attempts that a node is taken to run.
func (t *tables) HeldOn(name NodeName) (out []Held) {
	for _, id := range t.Load(name).Jobs {
		if j, ok := t.jobs.Get(id); ok {
			out = append(out, Held{id, j.Attempt})
		}
	}
	return out
}

func (j *Job) sameAttempt(o *Job) bool {
	return o != nil && j != nil && j.ID == o.ID && j.Attempt == o.Attempt
}

// passIDs leaves out numbers that were given since the file was saved.
func (t *tx) passIDs(c *NodeTell) {
	base := idBase(t.tables)
	local := func(id JobID) JobID {
		switch {
		case base == 0:
			return id
		case id&^federation.LocalMask == base || id <= federation.LocalMask:
			return id & federation.LocalMask
		}
		return 0 // another cluster's
	}
	next := local(c.NextJob)
	for _, j := range c.Jobs {
		next = max(next, local(j.ID)+1)
	}
	if next > t.NextID && next <= t.config.MaxJobID {
		keepOld(t, &t.NextID)
		t.NextID = next
	}
}

// differs notes what a node knows otherwise.
func (t *tx) differs(j *Job, node NodeName, what string) {
	r := *t.restored
	user := ""
	if j.Spec != nil {
		user = j.Spec.User
	}
	if len(r.Differs) < maxDiffers {
		r.Differs = append(slices.Clip(r.Differs), Difference{
			Job:  j.ID,
			User: user,
			Node: node,
			What: what,
		})
	} else {
		r.More++
	}
	keepOld(t, &t.restored)
	t.restored = &r
}

// told takes what a node says of a job that runs there. All nodes of a job say the same, the first is believed.
func (t *tx) told(j *Job, node NodeName) {
	known, ok := t.jobs.Get(j.ID)
	if ok && known.Attempt == j.Attempt && known.holds() {
		t.confirmedOn(known, node)
		return
	}
	mark := len(t.undo)
	heard := len(t.events)
	err := t.adopt(j, node)
	if err == nil {
		t.differs(j, node, "was begun since, and runs on")
		now, _ := t.jobs.Get(j.ID)
		t.confirmedOn(now, node)
		return
	}
	for _, f := range slices.Backward(t.undo[mark:]) {
		f()
	}
	t.undo = t.undo[:mark]
	t.events = t.events[:heard]
	t.differs(j, node, "was begun since, and is ended: "+err.Error())
	if !ok && j.Spec != nil {
		t.keepEnded(j, node, err)
	}
}

// confirmedOn has a job's node be ready: it told that once, of which neither the file nor what nodes were sent may
// know.
func (t *tx) confirmedOn(j *Job, node NodeName) {
	t.update(j, node, Update{
		Kind:    NodeReady,
		Job:     j.ID,
		Attempt: j.Attempt,
		At:      t.at,
	})
}

// lostText stands for a script that was stored after the file was saved.
const lostText = "#!/bin/sh\n# What this job ran is not known any more: the cluster was restored from a file that is older.\n"

// adopt takes a job into the state as a node knows it. The node is believed of itself: see hearsay for what only it
// knows.
func (t *tx) adopt(j *Job, node NodeName) error {
	if err := checkAdopted(t, j, node); err != nil {
		return err
	}
	n := *j
	n.Depends = Depends{}
	n.Wait = NoReason
	n.WaitNote = ""
	old, err := t.before(&n)
	if err != nil {
		return err
	}
	spec := *j.Spec
	if old != nil {
		spec = *old.Spec
	} else if err := t.hearsay(j, node); err != nil {
		return err
	}
	n.Spec = &spec
	if err := t.keepTexts(&n, old); err != nil {
		return err
	}
	t.interned.share(&spec)
	if _, ok := t.assocs.Get(n.Assoc); !ok {
		n.Assoc = 0
		if a, ok := t.assocFor(&spec); ok {
			n.Assoc = a.ID
		}
	}
	for _, sh := range n.Alloc.Shares {
		node, ok := t.nodes.Get(sh.Node)
		if !ok {
			return Errorf(Conflict, ErrNodeName, "its node %s is not known", sh.Node)
		}
		if err := t.giveShare(&n, sh, node); err != nil {
			return err
		}
	}
	t.putJob(&n)
	t.tell(&n)
	return nil
}

// checkAdopted refuses a job that cannot run on as a node knows it.
func checkAdopted(t *tx, j *Job, node NodeName) error {
	if j.Spec == nil || j.Alloc == nil || len(j.Alloc.Shares) == 0 {
		return Errorf(Invalid, "", "the node does not know what it was given")
	}
	return firstError(
		refuseIf(!begunAndGoesOn(j),
			Conflict, "", "it was ending"),
		refuseIf(j.Het != nil,
			Conflict, "", "it is a part of a heterogeneous job"),
		refuseIf(!slices.Contains(j.AllocNodes(), node),
			Denied, ErrAccess, "node %s tells of it and is not on it", node),
		refuseIf(j.Started.Before(j.Submitted) || j.Started.After(t.at),
			Invalid, "", "it was started at %s", j.Started.Format(time.RFC3339)),
	)
}

// hearsay refuses a job that is known by a node's word alone, where more than the node itself would hang on that.
func (t *tx) hearsay(j *Job, teller NodeName) error {
	if err := firstError(
		refuseIf(!t.Hearsay(j),
			Denied, ErrAccess,
			"the file does not know it, and it was not submitted between the save and the restore"),
		refuseIf(j.Spec.UID == 0 || j.Spec.GID == 0,
			Denied, ErrAccess, "it is root's, and only node %s says so", teller),
	); err != nil {
		return err
	}
	own, _ := t.nodes.Get(teller)
	for _, name := range j.AllocNodes() {
		n, ok := t.nodes.Get(name)
		if !ok || name != teller && (n.Owner == "" || n.Owner != own.Owner) {
			return Errorf(Denied, ErrAccess,
				"the file does not know it, and node %s cannot speak for node %s", teller, name)
		}
	}
	return nil
}

// before finds the record that a job had when the file was saved, and frees what that held; nil if there was none.
func (t *tx) before(j *Job) (*Job, error) {
	old, ok := t.jobs.Get(j.ID)
	if !ok && j.ArrayID != 0 {
		for _, rest := range slices.Collect(t.Members(j.ArrayID)) {
			if rest.Phase == Pending && rest.Tasks.Has(j.Task) {
				old = t.split(rest.ID, NewIDSet(j.Task))[0]
				ok = true
				break
			}
		}
	}
	if !ok {
		return nil, nil
	}
	if old.Attempt >= j.Attempt || old.Phase == Ended || old.Spec.UID != j.Spec.UID {
		return nil, Errorf(Conflict, ErrJobID, "the number is another job's by now, or another attempt's")
	}
	if old.holds() {
		t.take(old, old.AllocNodes()...)
	}
	if old.ID != j.ID {
		t.deleteJob(old)
	}
	return old, nil
}

// keepTexts has a job refer to its script and environment: those of its record of before, or what stands for them.
func (t *tx) keepTexts(j, old *Job) error {
	if old != nil {
		return nil
	}
	for _, h := range []BlobHash{j.Spec.Script, j.Spec.Env} {
		if _, ok := t.blobs.Get(h); !ok && h != "" {
			t.putBlob(&Blob{Hash: h, Text: BlobText(lostText), Added: t.at})
			no := false
			j.Spec.Requeue = &no // there is nothing that could be run again
		}
		if err := t.refBlob(h, 1); err != nil {
			return err
		}
	}
	return nil
}

// keepEnded has history know of a job that cannot go on.
func (t *tx) keepEnded(j *Job, node NodeName, why error) {
	n := *j
	spec := *j.Spec
	spec.Script = ""
	spec.Env = ""
	n.Spec = &spec
	n.Phase = Ended
	n.Outcome = NodeFailed
	n.EndReason = EndNodeDown
	n.Started, n.Ended = t.at, t.at // nobody is charged for what was not believed
	if n.Submitted.After(t.at) {
		n.Submitted = t.at
	}
	n.Waiting = nil
	n.Depends = Depends{}
	n.Key = ""
	n.Signals = nil
	n.WaitNote = fmt.Sprintf("the cluster was restored: %v", why)
	n.blamed(Blame{Node: node, Text: n.WaitNote})
	n.ArrayID = 0
	n.Task = TaskAny
	n.Tasks = IDSet{}
	t.putJob(&n)
	t.ended(&n)
}
