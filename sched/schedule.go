package sched

import (
	"cmp"
	"runtime"
	"time"

	"dev.muster/cluster"
)

// Schedule is one cycle that knows nothing of earlier ones.
func Schedule(s *cluster.Snapshot, now time.Time) []cluster.Decision {
	c := newCycle(s, now)
	return c.fullPass(c.queueDepth())
}

// queueDepth is how many records of the queue are looked at.
func (c *cycle) queueDepth() int {
	if c.allowsIncremental() && len(c.reserved) == 0 {
		return maxSteadyLooked
	}
	return maxLooked
}

// fullPass takes the records of the queue, at most so many, through the six steps: this one and the five of decide.
func (c *cycle) fullPass(most int) []cluster.Decision {
	for j := range c.order(most, c.planBlocked) { // 1
		c.decide(j)
	}
	if c.preemption != nil {
		c.resumeSuspended(nil)
	}
	return c.decisions
}

// decide takes one record through the steps, once its turn has come. Who can make others leave has its start planned by
// when these will be gone, so that step comes before the timeline.
func (c *cycle) decide(j *cluster.Job) {
	c.turnTo(j)
	if c.waitsForCompleting(j) {
		return
	}
	if j.Het != nil {
		c.decideHet(j)
		return
	}
	var room [4]*jobShape // enough for most
	a := attempt{job: j, shapes: room[:0]}
	if !c.limits(&a) { // 2
		return
	}
	c.feasible(&a)                               // 3
	if c.place(&a) || c.preempt(a.cut, a.open) { // 4, 6
		return
	}
	c.timeline(blockedJob{job: a.cut, at: c.current.at, shapes: a.open}) // 5
}

// attempt is a record on its way through the steps.
type attempt struct {
	job    *cluster.Job
	cut    *cluster.Job   // the job with its limit cut to its deadline, if it may be cut
	tasks  cluster.IDSet  // of an array record, those that may start
	shapes []*jobShape    // its shape in each partition that could run it
	why    cluster.Reason // if there are none
	note   string
	open   []*jobShape // those in which no limit holds it back, and nodes do not suffice
}

// turnTo makes a job the one at hand.
func (c *cycle) turnTo(j *cluster.Job) {
	if c.steps++; c.steps%yieldEvery == 0 { // else one who serves a caller may wait for ten milliseconds, several times
		runtime.Gosched()
	}
	if c.preemption != nil {
		c.resumeSuspended(j)
	}
	c.limited = false
}

// limits finds what of a record may start at all: not held, begun, its dependencies met. False if nothing.
func (c *cycle) limits(a *attempt) bool {
	if unstable(a.job, c.now) {
		c.unstable = append(c.unstable, a.job.ID)
	}
	var why cluster.Reason
	if a.tasks, why = c.readyTasks(a.job); why != cluster.NoReason {
		c.recordWait(a.job, why, "", nil)
		return false
	}
	return true
}

// readyTasks is what of a record may start, or why nothing may; a job that was made to leave lets the other one go
// first.
func (c *cycle) readyTasks(j *cluster.Job) (cluster.IDSet, cluster.Reason) {
	tasks, why := c.s.Ready(j, c.now)
	if why == cluster.NoReason && c.preemption != nil && c.s.Yields(j, c.now) {
		why = cluster.WaitPriority
	}
	return tasks, why
}

// feasible finds the shapes with which the record could run if nothing else did, or why there are none.
func (c *cycle) feasible(a *attempt) {
	a.shapes, a.why, a.note = c.openShapes(a.job, a.shapes)
}

// openShapes lists the job's shape in each partition that could run it; if there is none, why.
func (c *cycle) openShapes(j *cluster.Job, shapes []*jobShape) ([]*jobShape, cluster.Reason, string) {
	var room [4]*reservedNodes
	reservations, why := c.reservationsFor(j, room[:0])
	note := ""
	if len(reservations) > 0 {
		why = cluster.WaitPartitionDown
	}
	for _, own := range reservations {
		for _, name := range j.Spec.Partitions {
			p, ok := c.s.Partition(name)
			if !ok || c.completing[p] != nil {
				continue
			}
			if r := c.partitionCloses(p, j); r != cluster.NoReason {
				why, note = r, ""
				if limitsFirst := !c.meter.Off() && p.Barred(j.Spec) != cluster.NoReason; limitsFirst {
					c.unstable = append(c.unstable, j.ID)
				}
				continue
			}
			shape := c.shapeFor(p, j, own)
			if shape.why != cluster.NoReason {
				why, note = shape.why, shape.note
				continue
			}
			shapes = append(shapes, shape)
		}
	}
	return shapes, why, note
}

// place starts the job, or as many tasks of an array record as fit now. False if it, or the next task, is blocked: then
// a.open has shapes with which it would start if nodes were free.
func (c *cycle) place(a *attempt) bool {
	if a.job.Tasks.Empty() {
		return c.placeTask(a, cluster.TaskAny) != blocked
	}
	for task := range a.tasks.All() {
		if len(c.started) >= maxStarts {
			return true
		}
		if got := c.placeTask(a, task); got != placed {
			return got != blocked
		}
	}
	return true
}

// placement is what became of a job or task.
type placement int

const (
	placed  placement = iota // it starts
	waits                    // it may not start, whatever is free: the reason is recorded
	blocked                  // nodes do not suffice
)

// placeTask tries to start a job or one task of an array record.
func (c *cycle) placeTask(a *attempt, task int) placement {
	switch j := a.job; {
	case c.arrayLimitReached(j):
		return c.recordReason(j, cluster.WaitArrayLimit, "")
	case len(a.shapes) == 0:
		return c.recordReason(j, a.why, a.note)
	case j.Spec.Licenses != "" && !c.licensesFree(j):
		return c.recordReason(j, cluster.WaitLicenses, "")
	}
	a.cut = c.beforeDeadline(a.job)
	var why cluster.Reason
	for _, shape := range a.shapes {
		short := c.withinPartition(shape.demand.part, a.cut)
		if why = c.limitReason(shape, short); why != cluster.NoReason {
			continue
		}
		short, alloc := c.fitOrShorten(shape, short)
		if alloc == nil {
			a.open = append(a.open, shape)
			continue
		}
		if why = c.meter.Blocked(short, shape.demand.part.Name, alloc); why != cluster.NoReason {
			c.unstable = append(c.unstable, a.job.ID) // with other nodes no limit may stand in its way
			continue
		}
		c.startPlaced(a, task, shape, short, alloc)
		return placed
	}
	if len(a.open) > 0 {
		return blocked
	}
	c.limited = true // others may pass it
	if c.s.Config().LimitStop {
		c.stopPartitions(a.shapes)
	}
	return c.recordReason(a.cut, why, "")
}

// arrayLimitReached reports whether as many tasks of a job's array run as may.
func (c *cycle) arrayLimitReached(j *cluster.Job) bool {
	a := j.Spec.Array
	return j.ArrayID != 0 && a != nil && a.Limit > 0 && c.s.RunningTasks(j.ArrayID)+c.startedTasks[j.ArrayID] >= a.Limit
}

// fitOrShorten finds an allocation that is free now, if need be with a shorter limit where the job may be cut.
func (c *cycle) fitOrShorten(shape *jobShape, j *cluster.Job) (*cluster.Job, *cluster.Alloc) {
	alloc := c.fitNow(shape, j)
	if alloc != nil || j.Spec.LimitMin <= 0 {
		return j, alloc
	}
	return c.fitShorter(j, func(short *cluster.Job) *cluster.Alloc { return c.fitNow(shape, short) })
}

// startPlaced starts a job, perhaps with a shorter limit than its record has.
func (c *cycle) startPlaced(a *attempt, task int, shape *jobShape, short *cluster.Job, alloc *cluster.Alloc) {
	if shape.reservation != nil {
		alloc.Reservation = shape.reservation.Name
	}
	c.startJob(short, task, alloc)
	if short != a.job {
		c.decisions[len(c.decisions)-1].Limit = short.Limit
	}
}

// recordReason records why a job waits that has no planned start.
func (c *cycle) recordReason(j *cluster.Job, why cluster.Reason, note string) placement {
	c.recordWait(j, why, note, nil)
	return waits
}

// partitionCloses tells why a partition starts nothing of this job now.
func (c *cycle) partitionCloses(p *cluster.Partition, j *cluster.Job) cluster.Reason {
	switch {
	case p.State == cluster.PartitionDown:
		return cluster.WaitPartitionDown
	case p.State == cluster.PartitionInactive:
		return cluster.WaitPartitionInactive
	case c.stopped[p]:
		return cluster.WaitPriority
	case c.tooLong(p, j) && c.withinPartition(p, j) == j:
		if j.Spec.MinNodes > p.Size(c.s) {
			return cluster.WaitPartitionNodes
		}
		return cluster.WaitPartitionTime
	}
	barred := p.Barred(j.Spec)
	if barred != cluster.NoReason {
		return cmp.Or(c.meter.Regardless(j, p.Name), barred)
	}
	return cluster.NoReason
}

// fitNow finds an allocation that is free now and delays no reservation: a job that would still run
// when a reserved start comes takes of its nodes only what they will have left beside it.
func (c *cycle) fitNow(shape *jobShape, j *cluster.Job) *cluster.Alloc {
	mask, over := c.plannedAcross(j)
	off := c.exclusionFor(shape.reservation, j, c.now, over)
	c.nearReservation = c.nearReservation || shape.reservation != nil || !off.none()
	c.longestRun = max(c.longestRun, over.Sub(c.now))
	if off.none() && c.knownToFail(shape, mask) {
		return nil
	}
	alloc := c.findNow(shape, mask, off)
	if alloc == nil && off.none() {
		shape.noteFailure(mask)
	}
	return alloc
}

func (c *cycle) startJob(j *cluster.Job, task int, alloc *cluster.Alloc) {
	c.eachFreeSet(func(fs *freeSet) { fs.startJob(alloc, j.Spec) })
	c.takeLicenses(j)
	c.meter.Start(j, alloc.Partition, alloc)
	for _, ps := range c.planned {
		if endOf(c.now, j.Limit).After(ps.at) {
			ps.reduceFor(c.free, alloc.Shares)
		}
	}
	c.started = append(c.started, release{at: endOf(c.now, j.Limit), shares: alloc.Shares})
	if task != cluster.TaskAny {
		c.startedTasks[j.ArrayID]++
	}
	c.decisions = append(c.decisions, cluster.Decision{Job: j.ID, Task: task, Start: alloc,
		Backfilled: len(c.planned) > 0})
}

// stopPartitions closes the partitions of shapes for the rest of the cycle.
func (c *cycle) stopPartitions(shapes []*jobShape) {
	if c.stopped == nil {
		c.stopped = map[*cluster.Partition]bool{}
	}
	for _, shape := range shapes {
		c.stopped[shape.demand.part] = true
	}
}

// recordWait records why a job waits, if that is news.
func (c *cycle) recordWait(j *cluster.Job, why cluster.Reason, note string, planned *plannedStart) {
	if planned == nil && j.Wait == why && j.WaitNote == note && j.PlannedStart.IsZero() {
		return
	}
	d := cluster.Decision{Job: j.ID, Task: cluster.TaskAny, Wait: why, Note: note}
	if planned != nil {
		d.StartsAt, d.Nodes = planned.at, planned.names
	}
	if j.Wait == why && j.WaitNote == note && j.PlannedStart.Equal(d.StartsAt) {
		return
	}
	c.decisions = append(c.decisions, d)
}
