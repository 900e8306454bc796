package cluster

import (
	"slices"
	"time"
)

// A job that runs may get the nodes of another: that one was submitted with --dependency=expand:ID, begins while the
// first runs, and gives all that it has to it when it is to have no nodes any more. Its resources are the other's from
// then on; it ends with nothing, and its nodes clean up after it, whose processes are none.

// Expands is the job that this one was submitted to expand, 0 if there is none.
func (s *JobSpec) Expands() JobID {
	if i := slices.IndexFunc(s.Depends.Terms, Depend.expands); i >= 0 {
		return s.Depends.Terms[i].Job
	}
	return 0
}

func (d Depend) expands() bool { return d.Type == ExpandJob }

func (d *Depends) expands() bool { return slices.ContainsFunc(d.Terms, Depend.expands) }

// begunAndGoesOn reports whether a job has begun and is not over, so that it can be expanded.
func begunAndGoesOn(j *Job) bool {
	return j.Phase >= Starting && j.Phase <= Suspended
}

// GaveAll reports whether a job has given all that it had to another.
func GaveAll(j *Job) bool {
	return j.Shrunk != nil && j.Alloc != nil && len(j.Alloc.Shares) == 0
}

// admitExpand refuses a job that cannot give its nodes to the one that it names. It gets other nodes than that one
// has, and as much time as that one has left: for so long they are not free.
func admitExpand(s *Snapshot, spec *JobSpec) error {
	id := spec.Expands()
	if id == 0 {
		return nil
	}
	if !s.config.Expand {
		return Errorf(Denied, ErrUnsupported,
			"jobs get no more nodes while they run: SchedulerParameters has no permit_job_expansion")
	}
	terms := slices.DeleteFunc(slices.Clone(spec.Depends.Terms), func(d Depend) bool { return !d.expands() })
	if len(terms) > 1 || terms[0].Task != TaskAny {
		return Errorf(Invalid, ErrDependency, "one job is to be expanded, and no task of an array: expand:%d", id)
	}
	j, ok := s.jobs.Get(id)
	if !ok || !begunAndGoesOn(j) {
		return Errorf(Invalid, ErrDependency, "job %d does not run, so it cannot be expanded", id)
	}
	if err := checkExpands(spec, j); err != nil {
		return err
	}
	spec.Exclude = slices.Concat(spec.Exclude, j.AllNodes())
	slices.Sort(spec.Exclude)
	spec.Exclude = slices.Compact(spec.Exclude)
	if end := j.EndLimit(s.config); !end.IsZero() {
		spec.Limit = max(end.Sub(s.Now).Truncate(time.Minute), time.Minute)
		spec.LimitMin = 0
	}
	return nil
}

// checkExpands refuses a job that is not of the kind of the one that it expands, or names nodes that this one has.
func checkExpands(spec *JobSpec, j *Job) error {
	same := spec.UID == j.Spec.UID && spec.QOS == j.Spec.QOS && spec.Reservation == j.Alloc.Reservation
	if err := firstError(
		refuseIf(!same || !slices.Equal(spec.Partitions, []string{j.Alloc.Partition}),
			Invalid, ErrDependency,
			"what expands job %d must be of the same user, partition, QOS and reservation", j.ID),
		refuseIf(j.Het != nil || j.ArrayID != 0 || spec.Array != nil,
			Invalid, ErrDependency, "arrays and heterogeneous jobs are not expanded, nor expand others"),
	); err != nil {
		return err
	}
	for _, n := range j.AllNodes() {
		if slices.Contains(spec.NodeList, n) {
			return Errorf(Invalid, ErrUnsupported, "job %d has node %s already: name others", j.ID, n)
		}
	}
	return nil
}

// admitLimits refuses what a partition does not let run, for as long as a job that expands another has.
func admitLimits(s *Snapshot, spec *JobSpec) error {
	if err := admitExpand(s, spec); err != nil {
		return err
	}
	return admitPartLimits(s, spec)
}

// expand gives all that a job has to the one that it expands; n is a copy, and is over with that.
func expand(t *tx, n *Job) error {
	j, ok := t.jobs.Get(n.Spec.Expands())
	if !ok || !begunAndGoesOn(j) || n.Spec.UID != j.Spec.UID {
		return Errorf(Invalid, ErrNodeCount, "job %d needs a node at least: it expands no job that runs", n.ID)
	}
	if err := firstError(
		refuseIf(j.Phase == Starting,
			Conflict, ErrNotRunning, "job %d has not begun on all of its nodes", j.ID),
		refuseIf(j.Phase != Running || n.Phase != Running,
			Conflict, ErrSuspended, "jobs %d and %d must both run for one to expand the other", n.ID, j.ID),
		refuseIf(n.RunsScript() || hasSteps(t, n.ID),
			Conflict, ErrStepExists,
			"job %d has a script or steps that run; only an allocation without any expands another: salloc --no-shell",
			n.ID),
		refuseIf(n.Alloc.Over != j.Alloc.Over || n.Alloc.Partition != j.Alloc.Partition,
			Invalid, ErrUnsupported, "jobs %d and %d have their CPUs on other terms", n.ID, j.ID),
	); err != nil {
		return err
	}
	held := j.AllNodes()
	for _, name := range n.AllNodes() {
		if slices.Contains(held, name) {
			return Errorf(Invalid, ErrUnsupported, "job %d has node %s already", j.ID, name)
		}
	}
	return merge(t, n, j)
}

// hasSteps reports whether a job has steps that have not ended.
func hasSteps(t *tx, id JobID) bool {
	for range t.Steps(id) {
		return true
	}
	return false
}

// merge moves all shares of a job to another; n is a copy.
func merge(t *tx, n, old *Job) error {
	at := later(later(t.at, n.since().Add(1)), old.since().Add(1))
	sized(t, n, at)
	sized(t, old, at)
	t.take(n, n.AllocNodes()...)
	given := n.Alloc.Shares

	j := *old
	spec := *old.Spec
	alloc := *j.Alloc
	alloc.Shares = slices.Concat(alloc.Shares, given)
	alloc.Types = t.typesIn(alloc.Parts(), alloc.Types)
	j.Alloc = &alloc
	j.Shrunk = &Shrunk{At: at, Leaving: j.Leaving(), Lost: LostNodes(&j), Replaced: ReplacedNodes(&j)}
	spec.Layout = spec.Layout.Clone()
	spec.MinNodes, spec.MaxNodes = len(alloc.Shares), len(alloc.Shares) // what it asks for if it comes back
	if spec.Tasks > 0 {
		spec.Tasks += n.Spec.Tasks
	}
	j.Spec = &spec
	bill(t, &j)

	left := *n.Alloc
	left.Shares = nil
	left.Types = nil
	n.Alloc = &left
	n.Shrunk = &Shrunk{At: at, Leaving: slices.Clone(n.Leaving()), Lost: LostNodes(n)}
	for _, sh := range given {
		node, ok := t.nodes.Get(sh.Node)
		if !ok {
			return Errorf(Conflict, ErrBusy, "node %s is gone", sh.Node)
		}
		rest := Share{Node: sh.Node} // it knows of the job until it is clean of it
		n.Shrunk.Leaving = append(n.Shrunk.Leaving, rest)
		if err := t.giveShare(&j, sh, node); err != nil {
			return err
		}
		if err := t.giveShare(n, rest, node); err != nil {
			return err
		}
	}
	bill(t, n)
	t.end(n, Completed, NoReason)
	t.interned.share(&spec)
	t.putJob(&j)
	t.tell(&j)
	return nil
}
