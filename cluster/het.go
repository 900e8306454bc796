package cluster

import (
	"slices"
	"time"
)

// A heterogeneous job is several records, its components, that start at one instant or not at all. Each has resources
// of its own, on nodes that no other component of it has. Their ids follow each other; component 0, the leader,
// runs the script and gives the whole its number.

// MaxHetSize bounds the components of one job, as Slurm does.
const MaxHetSize = 128

// HetPart says which component of which heterogeneous job a record is.
type HetPart struct {
	ID     JobID `json:"id"` // of component 0
	Offset int   `json:"offset"`
	Size   int   `json:"size"`
}

// Last is the id of the last component.
func (h *HetPart) Last() JobID { return h.ID + JobID(h.Size) - 1 }

// Follows reports whether the record is a component of a heterogeneous job and not its leader.
func (j *Job) Follows() bool {
	return j.Het != nil && j.Het.Offset > 0
}

// RunsScript reports whether the job's first node runs a batch script.
func (j *Job) RunsScript() bool {
	return j.Spec.Kind == Batch && !j.Follows()
}

// Components lists the records of the heterogeneous job that one is a component of, by offset; nil if it is none.
func (t *tables) Components(j *Job) []*Job {
	if j.Het == nil {
		return nil
	}
	out := make([]*Job, 0, j.Het.Size)
	for k := range j.Het.Size {
		if o, ok := t.jobs.Get(j.Het.ID + JobID(k)); ok && o.Het != nil && o.Het.ID == j.Het.ID {
			out = append(out, o)
		}
	}
	return out
}

// SubmitHet puts a heterogeneous job into the queue: all of its components or none. Result: JobID of the leader.
type SubmitHet struct {
	Specs []*JobSpec `json:"specs"`
	Key   string     `json:"key,omitempty"` // as that of Submit
}

func (*SubmitHet) kind() string { return "submit_het" }

func (c *SubmitHet) apply(t *tx) (any, error) {
	if err := firstError(
		refuseIf(slices.Contains(c.Specs, nil),
			Invalid, "", "nothing was submitted"),
		refuseIf(len(c.Key) > maxKeyBytes,
			Invalid, "", "the submission's key has %d bytes, more than %d", len(c.Key), maxKeyBytes),
	); err != nil {
		return nil, err
	}
	if len(c.Specs) > 0 {
		if id, again := t.SubmittedAs(c.Specs[0].UID, c.Key); again {
			return id, nil
		}
	}
	specs, err := AdmitHet(&Snapshot{*t.tables}, t.by, c.Specs)
	if err != nil {
		return nil, err
	}
	lead := t.allotIDs(len(specs))
	jobs := make([]*Job, len(specs))
	for k := range specs {
		j := &Job{ID: lead + JobID(k), Het: &HetPart{ID: lead, Offset: k, Size: len(specs)}}
		if k == 0 {
			j.Key = c.Key
		}
		if err := t.enter(j, &specs[k], NoReason, nil); err != nil {
			return nil, err
		}
		jobs[k] = j
	}
	if err := t.Meter(t.Now).deny(jobs); err != nil {
		return nil, err
	}
	return lead, nil
}

// AdmitHet is Admit for the components of a heterogeneous job. Each keeps off the nodes that another one names.
func AdmitHet(s *Snapshot, by Identity, specs []*JobSpec) ([]JobSpec, error) {
	if len(specs) < 2 || len(specs) > MaxHetSize {
		return nil, Errorf(Invalid, ErrHetSize, "a heterogeneous job has 2 to %d components, not %d",
			MaxHetSize, len(specs))
	}
	if room := s.config.MaxJobCount - s.JobCount(); room < len(specs) {
		return nil, Errorf(Unavailable, ErrQueueFull, "the cluster holds %d jobs of at most %d",
			s.JobCount(), s.config.MaxJobCount)
	}
	out := make([]JobSpec, len(specs))
	for k := range specs {
		one, err := componentOf(specs, k)
		if err != nil {
			return nil, err
		}
		if out[k], err = Admit(s, by, one); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// componentOf is one of several specs as a component: it keeps off the nodes that the others name.
func componentOf(specs []*JobSpec, k int) (JobSpec, error) {
	one := *specs[k]
	one.Layout = one.Layout.Clone()
	if err := firstError(
		refuseIf(one.Array != nil,
			Invalid, ErrArray, "a heterogeneous job cannot be an array"),
		refuseIf(one.UID != specs[0].UID || one.Kind != specs[0].Kind,
			Invalid, "", "the components of a heterogeneous job are of one user and one kind"),
		refuseIf(k > 0 && one.Script != "",
			Invalid, "", "only the first component of a heterogeneous job has a script"),
	); err != nil {
		return one, err
	}
	one.Exclude = slices.Clone(one.Exclude)
	for o, other := range specs {
		if o != k {
			one.Exclude = append(one.Exclude, other.NodeList...)
		}
	}
	slices.Sort(one.Exclude)
	one.Exclude = slices.Compact(one.Exclude)
	for _, n := range one.NodeList {
		if slices.Contains(one.Exclude, n) {
			return one, Errorf(Invalid, ErrNodeName,
				"node %s cannot be of several components of a heterogeneous job", n)
		}
	}
	if len(one.Exclude) == 0 {
		one.Exclude = nil
	}
	return one, nil
}

// allotIDs takes so many free numbers that follow each other, and tells the first.
func (t *tx) allotIDs(n int) JobID {
	keepOld(t, &t.NextID)
	first := t.config.FirstJobID
	last := t.config.MaxJobID
	id := t.NextID
	free := 0
	base := idBase(t.tables)
	for range t.JobCount()*2 + 2*n + 2 {
		at := id + JobID(free)
		if at > last {
			id = first
			free = 0
			continue
		}
		if _, taken := t.jobs.Get(numbered(base, at)); taken {
			id = at + 1
			free = 0
			continue
		}
		if free++; free == n {
			if t.NextID = id + JobID(n); t.NextID > last {
				t.NextID = first
			}
			return numbered(base, id)
		}
	}
	panic(Errorf(Unavailable, ErrQueueFull, "no %d job numbers up to %d are free in a row", n, last))
}

// together lists what is decided for a record: for a heterogeneous job for all of its components.
func (t *tx) together(d Decision) ([]Decision, error) {
	j, ok := t.jobs.Get(d.Job)
	all := append([]Decision{d}, d.With...)
	switch {
	case !ok:
		return nil, Errorf(Conflict, ErrJobID, "job %d is not pending", d.Job)
	case j.Het == nil && len(all) == 1:
		return all, nil
	case j.Het == nil || j.Follows() || len(all) != j.Het.Size:
		return nil, Errorf(Conflict, ErrBusy, "job %d starts with all of its components or not at all", d.Job)
	}
	for k, one := range all {
		if one.Job != d.Job+JobID(k) {
			return nil, Errorf(Internal, "", "for component %d of job %d nothing was decided", k, d.Job)
		}
	}
	return all, nil
}

// startSet starts all components of a heterogeneous job at once.
func (t *tx) startSet(all []Decision) error {
	seen := map[NodeName]bool{}
	for k, one := range all {
		if one.Start == nil {
			return Errorf(Internal, "", "component %d of job %d was given nothing", k, all[0].Job)
		}
		for _, sh := range one.Start.Shares {
			if seen[sh.Node] {
				return Errorf(Internal, "", "node %s was given to two components of job %d", sh.Node, all[0].Job)
			}
			seen[sh.Node] = true
		}
		if err := t.startOne(one); err != nil {
			return err
		}
	}
	return nil
}

// confirmed is told that all nodes of a component have confirmed it: once those of all others have, they run.
func (t *tx) confirmed(n *Job) {
	var begin []*Job
	for _, o := range t.Components(n) {
		if o.ID == n.ID || o.Phase != Starting {
			continue
		}
		if len(o.Waiting) > 0 {
			return
		}
		begin = append(begin, o)
	}
	goOn(n, t.at)
	for _, o := range begin {
		c := *o
		goOn(&c, t.at)
		t.putJob(&c)
		t.tell(&c)
	}
}

// endRest ends the other components as one of them has been told to end, or is over: they go the same way.
func (t *tx) endRest(n *Job) {
	how := n.EndingWhy
	if n.Phase == Ended && how == NoOutcome {
		how = n.Outcome
	}
	for _, o := range t.Components(n) {
		c := *o
		switch {
		case c.ID == n.ID || c.Phase == Pending && n.RequeueAfter || c.Phase == Ended && !n.RequeueAfter:
			continue
		case c.Phase == Ended:
			c.RequeueHold = n.RequeueHold
			c.SpecialExit = n.SpecialExit
			t.requeued(&c)
			continue
		case c.Phase != Ending:
			endsLike(t, &c, n, how)
		}
		c.RequeueAfter = n.RequeueAfter
		c.RequeueHold = n.RequeueHold
		c.SpecialExit = n.SpecialExit
		t.putJob(&c)
		tellEnd(t, &c)
	}
}

// endsLike ends a component as another one of its job has ended.
func endsLike(t *tx, c, n *Job, how Outcome) {
	t.end(c, how, n.EndReason)
	c.Exit = n.Exit
	c.WaitNote = n.WaitNote
	c.CancelledBy = n.CancelledBy
	if c.Phase == Ending {
		c.EndingAt = later(n.EndingAt, c.Started)
	}
	if n.Preempt != nil && how == Preempted && c.Preempt == nil {
		p := *n.Preempt
		p.Until, c.Preempt = time.Time{}, &p
	}
}

// partnerOf reports whether both are components of one heterogeneous job.
func (j *Job) partnerOf(o *Job) bool {
	return j.Het != nil && o.Het != nil && j.Het.ID == o.Het.ID
}

// hetOver reports whether all components of the record's heterogeneous job have ended; true for other jobs.
func (t *tables) hetOver(j *Job) bool {
	return !slices.ContainsFunc(t.Components(j), func(o *Job) bool { return o.Phase != Ended })
}

// Names reports whether a reference speaks of a record, or of a part of it.
func (r Ref) Names(j *Job) bool {
	component := j.Het != nil && j.Het.ID == r.Job
	switch {
	case r.Part > 0:
		return component && j.Het.Offset == r.Part-1
	case component, r.Tasks.Empty() && r.Job == j.ID:
		return r.Tasks.Empty()
	case r.Job == j.ArrayID:
		return r.Tasks.Empty() || r.Tasks.Has(j.Task)
	}
	return false
}

// One is the id of the record that a reference to a job, or to one component of a heterogeneous one, speaks of.
func (r Ref) One() JobID { return r.Job + JobID(max(r.Part-1, 0)) }

// apart reports whether a reference names one component alone, and not the leader for all of them.
func (r Ref) apart(j *Job) bool {
	return j.Follows() && r.Job != j.Het.ID || j.Het != nil && r.Part > 0
}

// onlyWhole refuses what is done to heterogeneous jobs as a whole alone.
func onlyWhole(jobs []*Job, r Ref, when func(*Job) bool) error {
	for _, j := range jobs {
		if r.apart(j) && when(j) {
			return Errorf(Invalid, ErrHetPart,
				"job %d is a component of heterogeneous job %d, which this is done to as a whole", j.ID,
				j.Het.ID)
		}
	}
	return nil
}
