package cluster

import (
	"fmt"
	"slices"
)

// A job with spares (--spare) holds nodes on which it does not run. When one of its other nodes fails, a spare takes
// that node's place, and the job goes on. Its user is charged for spares as for its other nodes.

// SpareRestart says what starts again when a spare takes the place of a node.
type SpareRestart string

// The ways to start again.
const (
	RestartDefault SpareRestart = ""       // RestartStep
	RestartStep    SpareRestart = "step"   // srun starts the step again, on the job's new nodes
	RestartSignal  SpareRestart = "signal" // the job gets the signal of --signal, or SIGTERM
	RestartJob     SpareRestart = "job"    // the batch script starts again
	RestartRank    SpareRestart = "rank"   // nothing: the job's launcher runs on the spares, too, and replaces ranks
)

// spareRestarts are the words that users may give.
var spareRestarts = [...]SpareRestart{RestartStep, RestartSignal, RestartJob, RestartRank}

// checkSpares refuses spares that a job cannot have.
func (s *JobSpec) checkSpares() error {
	asked := s.Survives()
	if asked.Restart != RestartDefault && !slices.Contains(spareRestarts[:], asked.Restart) {
		return Errorf(Invalid, "", "--spare-restart=%s: want rank, step, signal or job", asked.Restart)
	}
	if asked.Expedite && s.Kind != Batch {
		return Errorf(Invalid, ErrBatchOnly, "--requeue=expedite is for batch jobs: "+
			"only those can go back into the queue")
	}
	if asked.Spares == 0 || s.Layout == nil {
		return nil
	}
	return firstError(
		refuseIf(asked.Spares < 0 || asked.Spares >= s.MinNodes,
			Invalid, ErrNodeCount, "--spare: %d of %d nodes cannot be spares; at least one node must run the job",
			asked.Spares, s.MinNodes),
		refuseIf(asked.Restart == RestartJob && s.Kind != Batch,
			Invalid, ErrBatchOnly, "--spare-restart=job is for batch jobs: other jobs have no script to start again"),
		refuseIf(len(s.PerJob) > 0 || s.Tasks > 0,
			Invalid, ErrNodeConfig, "--spare: tasks and GPUs must be given for each node; "+
				"use --ntasks-per-node and --gpus-per-node"),
	)
}

// StepsAgain reports whether srun starts a step of the job again when a spare takes the place of one of its nodes.
func (s *JobSpec) StepsAgain() bool {
	asked := s.Survives()
	return asked.Spares > 0 && (asked.Restart == RestartDefault || asked.Restart == RestartStep)
}

// hidesSpares reports whether the job's spares are not among the nodes that its programs see.
func hidesSpares(s *JobSpec) bool {
	asked := s.Survives()
	return asked.Spares > 0 && asked.Restart != RestartRank
}

// setSpares moves the last shares of an allocation to its spares, as many as the job asks for and it can do without.
func setSpares(s *JobSpec, a *Alloc) {
	if !hidesSpares(s) {
		return
	}
	runs := s.MaxNodes - s.Survives().Spares
	if runs <= 0 || runs >= len(a.Shares) {
		return
	}
	a.Spares = slices.Clone(a.Shares[runs:])
	a.Shares = slices.Clone(a.Shares[:runs:runs])
}

// Parts lists the shares of all nodes that a job was given, its spares last.
func (a *Alloc) Parts() []Share {
	if len(a.Spares) == 0 {
		return a.Shares
	}
	return append(slices.Clip(a.Shares), a.Spares...)
}

// isSpare reports whether a node is one of the job's spares, on which nothing runs.
func isSpare(j *Job, node NodeName) bool {
	return j.Alloc != nil && slices.ContainsFunc(j.Alloc.Spares, func(sh Share) bool { return sh.Node == node })
}

// partOn finds what the job has on a node, and whether that is a spare.
func partOn(j *Job, node NodeName) (sh Share, spare bool) {
	if sh, ok := j.Share(node); ok || j.Alloc == nil {
		return sh, false
	}
	i := slices.IndexFunc(j.Alloc.Spares, func(sh Share) bool { return sh.Node == node })
	if i < 0 {
		return Share{}, false
	}
	return j.Alloc.Spares[i], true
}

// partNodes lists all nodes that the job was given, its spares last.
func partNodes(j *Job) []NodeName { return append(j.AllocNodes(), SpareNodes(j)...) }

// Concerns reports whether the job has something to do on a node of its own: not on a spare, nor on one that is clean
// already and only kept.
func Concerns(j *Job, node NodeName) bool {
	kept := j.Phase == Ending && j.Alloc != nil && j.Alloc.Keeps && !slices.Contains(j.Waiting, node)
	return !isSpare(j, node) && (!kept || j.leaves(node))
}

// SpareNodes lists a job's spares, in the order in which they are used.
func SpareNodes(j *Job) (names []NodeName) {
	if j.Alloc == nil {
		return nil
	}
	for _, sh := range j.Alloc.Spares {
		names = append(names, sh.Node)
	}
	return names
}

// freeSpares gives the spares of a job that ends back to the cluster; its record keeps them.
func freeSpares(t *tx, n *Job) {
	if !n.Alloc.Keeps {
		t.take(n, SpareNodes(n)...)
	}
}

// keepNodes has a job that is about to end keep its nodes until all of them are clean, if it is to start again on them
// at once; n is a copy.
func keepNodes(n *Job) {
	asked := n.Spec.Survives()
	if n.Alloc == nil || !n.RequeueAfter || !asked.Expedite && asked.Spares == 0 {
		return
	}
	alloc := *n.Alloc
	alloc.Keeps = true
	n.Alloc = &alloc
}

// withFewerSpares is what a job asks for that starts again after a failure: it does not wait for new spares.
func withFewerSpares(s *JobSpec) *JobSpec {
	spares := s.Survives().Spares
	if spares == 0 || s.MaxNodes <= spares {
		return s
	}
	spec := *s
	spec.Layout = spec.Layout.Clone()
	spec.MinNodes = spec.MaxNodes - spares
	return &spec
}

// dropSpare leaves a job without a spare that has failed; n is a copy.
func dropSpare(t *tx, n *Job, node NodeName) {
	t.charge(n)
	t.take(n, node)
	alloc := *n.Alloc
	alloc.Spares = slices.DeleteFunc(slices.Clone(alloc.Spares), func(sh Share) bool { return sh.Node == node })
	alloc.Types = t.typesIn(alloc.Parts(), alloc.Types)
	n.Alloc = &alloc
	bill(t, n)
	t.putJob(n)
}

// spareFor returns the first spare of a job that can run something now.
func spareFor(t *tx, n *Job) (spare Share, ok bool) {
	i := slices.IndexFunc(n.Alloc.Spares, func(sh Share) bool {
		node, known := t.nodes.Get(sh.Node)
		return known && node.Usable() && !node.Quiet
	})
	if i < 0 {
		return Share{}, false
	}
	return n.Alloc.Spares[i], true
}

// replaceNode puts a spare where a node of the job was that it has just lost, if there is one; n and its allocation
// are copies.
func replaceNode(t *tx, n *Job, node NodeName, was int, why string) {
	spare, ok := spareFor(t, n)
	if !ok {
		return
	}
	used := func(sh Share) bool { return sh.Node == spare.Node }
	n.Alloc.Spares = slices.DeleteFunc(slices.Clone(n.Alloc.Spares), used)
	n.Alloc.Shares = slices.Insert(n.Alloc.Shares, min(was, len(n.Alloc.Shares)), spare)
	n.Shrunk.Replaced = append(slices.Clone(n.Shrunk.Replaced), spare.Node)
	n.SystemComment = fmt.Sprintf("spare node %s has taken the place of node %s: %s", spare.Node, node, why)
	if n.Spec.Survives().Restart == RestartSignal {
		signalOwn(t, n)
	}
}

// SwapNode has a spare take the place of a node of a running job, which leaves that node.
type SwapNode struct {
	Job  JobID    `json:"job"`
	Node NodeName `json:"node"`
	// Why is noted in the job's record.
	Why string `json:"why,omitempty" text:"1024"`
}

func (*SwapNode) kind() string { return "swap_node" }

// apply returns the name of the node that has taken the place.
func (c *SwapNode) apply(t *tx) (any, error) {
	jobs, err := t.records(Ref{Job: c.Job})
	if err != nil {
		return nil, err
	}
	if len(jobs) > 1 {
		return nil, Errorf(Conflict, ErrPending, "job %d does not run: only running jobs have nodes to replace", c.Job)
	}
	n := *jobs[0]
	return swapNode(t, &n, c.Node, plainLine(c.Why))
}

// swapNode replaces a node of a job by a spare; n is a copy.
func swapNode(t *tx, n *Job, node NodeName, why string) (NodeName, error) {
	if n.Phase != Running {
		return "", Errorf(Conflict, ErrNotRunning, "job %d does not run: only running jobs have nodes to replace", n.ID)
	}
	at := slices.IndexFunc(n.Alloc.Shares, func(sh Share) bool { return sh.Node == node })
	if at < 0 {
		return "", Errorf(Invalid, ErrNodeName, "job %d does not run on node %s: see scontrol show job %[1]d",
			n.ID, node)
	}
	if at == 0 {
		return "", Errorf(Invalid, ErrNodeName, "node %s is the first node of job %d, which manages its steps: "+
			"use scontrol requeue %[2]d", node, n.ID)
	}
	spare, ok := spareFor(t, n)
	if !ok {
		return "", Errorf(Conflict, ErrBusy, "job %d has no spare node that is up: submit it with --spare", n.ID)
	}
	goOnWithout(t, n, node, why)
	return spare.Node, nil
}
