package sched

import (
	"cmp"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Inquiry is what a cycle that decides nothing knows of one job that waits, as facts; package explain words them.
type Inquiry struct {
	c   *cycle
	job *cluster.Job
	own []*reservedNodes // the reservations that it may run in, nil standing for none of them
}

// Inquire asks about a job.
func Inquire(s *cluster.Snapshot, now time.Time, j *cluster.Job) *Inquiry {
	q := &Inquiry{c: newCycle(s, now), job: j}
	q.own, _ = q.c.reservationsFor(j, nil)
	return q
}

// NoReservation reports whether none of the reservations that the job asks for is any good now.
func (q *Inquiry) NoReservation() bool { return len(q.own) == 0 }

// LicensesShort are the licenses that the job asks for and that are not free.
func (q *Inquiry) LicensesShort() []cluster.LicenseShort {
	if q.job.Spec.Licenses == "" || q.c.licensesFree(q.job) {
		return nil
	}
	return q.c.s.LicensesShort(q.job, q.c.now, q.c.licenses)
}

// Completing is the job for whose end a partition waits, and that job's partition, which may be one that shares nodes
// with it; nil if there is none.
func (q *Inquiry) Completing(p *cluster.Partition) (*cluster.Partition, *cluster.Job) {
	c := q.c
	for _, o := range c.s.Config().Partitions {
		own, ok := c.s.Partition(o.Name)
		if !ok || c.completing[own] == nil {
			continue
		}
		if own == p || c.completing[p] == nil && shareNodes(p, own) {
			return own, c.completing[own]
		}
	}
	return nil, nil
}

// Leader is the job, or of a heterogeneous one the first component.
func (q *Inquiry) Leader() *cluster.Job { return q.c.hetMembers(q.job)[0] }

// Leaving are the jobs that leave for the job or all of a heterogeneous one; false if no job makes others leave.
func (q *Inquiry) Leaving() ([]*cluster.Job, bool) {
	if q.c.preemption == nil {
		return nil, false
	}
	return q.c.preemption.leavingFor[q.Leader().ID], true
}

// Prospects are the ways to run the job in a partition: in each of its reservations, or in none.
func (q *Inquiry) Prospects(p *cluster.Partition) (out []*Prospect) {
	for _, own := range q.own {
		out = append(out, &Prospect{Part: p, c: q.c, job: q.job, own: own})
	}
	return out
}

// Prospect is what comes of running a job in a partition, and in a reservation or none.
type Prospect struct {
	Part  *cluster.Partition
	c     *cycle
	job   *cluster.Job
	own   *reservedNodes
	shape *jobShape // nil until Never is asked
}

// Closed tells why the partition starts nothing of the job now.
func (a *Prospect) Closed() cluster.Reason { return a.c.partitionCloses(a.Part, a.job) }

// Overruns are the limits that the job would go over, with what it asks for or with an allocation.
func (a *Prospect) Overruns(with *cluster.Alloc) []cluster.Overrun {
	return a.c.meter.Overruns(a.job, a.Part.Name, with)
}

// Never tells why the job cannot run there at present, whatever is free. The following is asked after it.
func (a *Prospect) Never() cluster.Reason {
	a.shape = a.c.shapeFor(a.Part, a.job, a.own)
	return a.shape.why
}

// Bounds are the fewest and the most nodes that the partition allows.
func (a *Prospect) Bounds() (least, most int) {
	d := a.shape.demand
	return d.PartMin, cmp.Or(d.PartMax, a.Part.Size(a.c.s))
}

// ShortIfEmpty tells what the nodes would lack if nothing ran.
func (a *Prospect) ShortIfEmpty() string {
	return a.shape.demand.Shortage(a.c.emptied(), place.Exclusion{})
}

// Short tells what the nodes lack now.
func (a *Prospect) Short() string { return a.shape.demand.Shortage(a.free(), a.away()) }

// Fit is what the job could have now, but for those ahead of it; nil if it does not fit.
func (a *Prospect) Fit() *cluster.Alloc { return a.shape.demand.FindIn(a.free(), a.away()) }

func (a *Prospect) free() *place.FreeSet { return a.c.freeWithOverlap(a.shape.demand.JobsPerCPU) }

func (a *Prospect) away() place.Exclusion {
	return a.c.exclusionFor(a.own, a.job, a.c.now, EndOf(a.c.now, a.job.Limit))
}

// Reserved reports whether the job would start if nothing were reserved.
func (a *Prospect) Reserved() bool { return a.c.reservedNote(a.shape, a.job) != "" }

// InTheWay are the reservations that keep the job from nodes.
func (a *Prospect) InTheWay() (out []*cluster.Reservation) {
	for _, rn := range a.c.reserved {
		if rn != a.own && a.c.runsInto(a.job, rn) {
			out = append(out, rn.Reservation)
		}
	}
	return out
}

// runsInto reports whether a job that starts now may run into a reservation that does not let it in.
func (c *cycle) runsInto(j *cluster.Job, rn *reservedNodes) bool {
	return rn.Keeps(c.now, EndOf(c.now, j.Limit)) && !rn.Lets(j.Spec)
}

// Detained are the components that may run into a reservation which keeps them from nodes that are free; a plain job is
// its own only one.
func (a *Prospect) Detained(r *cluster.Reservation) []*cluster.Job {
	c := a.c
	rn := c.reserved[slices.IndexFunc(c.reserved, func(rn *reservedNodes) bool { return rn.Reservation == r })]
	return slices.DeleteFunc(c.hetMembers(a.job), func(o *cluster.Job) bool {
		if !c.runsInto(o, rn) {
			return true
		}
		shapes, _, _ := c.feasible(o, nil)
		return !slices.ContainsFunc(shapes, func(shape *jobShape) bool {
			return rn != shape.reservation && c.reservedNote(shape, o) != ""
		})
	})
}

// Together is what comes of starting all components of a heterogeneous job at once.
type Together struct {
	c     *cycle
	comps []*component // none while some are not back yet
	ready bool         // each of them may start now, if there is room
}

// Together asks about all components of the job.
func (q *Inquiry) Together() *Together {
	comps, ok := q.c.components(q.Leader())
	return &Together{q.c, comps, ok}
}

// Overruns are the limits that the components would go over if they started now.
func (t *Together) Overruns() []cluster.Overrun {
	if t.comps == nil {
		return nil
	}
	var claims []cluster.Claim
	for _, comp := range t.comps {
		claims = append(claims, t.c.claimOf(comp))
	}
	return t.c.meter.Jointly(claims)
}

// claimOf is what a component would have if it started now and alone.
func (c *cycle) claimOf(comp *component) cluster.Claim {
	one := cluster.Claim{Job: comp.job, Part: comp.job.Spec.Partitions[0]}
	for _, shape := range slices.Concat(comp.shapes, comp.limitedShapes) {
		one.Part = shape.part.Name
		away := c.exclusionFor(shape.reservation, comp.job, c.now, EndOf(c.now, comp.job.Limit))
		one.Alloc = shape.demand.FindIn(c.freeWithOverlap(shape.demand.JobsPerCPU), away)
		if one.Alloc != nil {
			break
		}
	}
	return one
}

// Crowding is that there is room for each component alone, and not for all of them at once.
type Crowding struct {
	Components int
	Nodes      int  // of their own that they want
	EvenEmpty  bool // even if nothing ran
	InService  int  // nodes
}

// Crowding is nil where all components fit together, or something else keeps one of them.
func (t *Together) Crowding() *Crowding {
	c := t.c
	comps := t.comps
	if !t.ready {
		return nil
	}
	crowd := &Crowding{Components: len(comps), InService: c.emptied().Size()}
	for _, comp := range comps {
		crowd.Nodes += comp.shapes[0].demand.MinNodes
	}
	empty := func(comp *component, k int, taken place.NodeSet) (*cluster.Job, *cluster.Alloc) {
		return comp.job, comp.shapes[k].demand.FindIn(c.emptied(), place.Exclusion{Nodes: taken})
	}
	if !c.fitComponents(comps, empty) {
		limited := func(comp *component) bool { return comp.why != cluster.NoReason }
		if slices.ContainsFunc(comps, limited) { // else limits are told
			return nil
		}
		crowd.EvenEmpty = true
		return crowd
	}
	if c.fitComponents(comps, c.fitComponent) {
		return nil
	}
	if slices.ContainsFunc(comps, func(comp *component) bool { return !c.startsAlone(comp.job) }) {
		return nil
	}
	return crowd
}

// startsAlone reports whether a component could start now if it were the only one.
func (c *cycle) startsAlone(j *cluster.Job) bool {
	comp := &component{job: c.beforeDeadline(j)}
	defer func(used map[string]int) { c.licenses = used }(c.licenses)
	why, _ := c.prepareComponent(comp, c.meter.Fork())
	return why == cluster.NoReason && comp.findNodes(nil, c.meter.Fork(), c.fitComponent)
}
