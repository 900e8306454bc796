package sched

import (
	"cmp"
	"runtime"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
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

// decide takes one record through the steps, once its turn has come. A job that can make others leave has its start
// planned by when these will be gone, so that step comes before the timeline.
func (c *cycle) decide(j *cluster.Job) {
	c.turnTo(j)
	if c.waitsForCompleting(j) {
		return
	}
	if j.Het != nil {
		c.decideHet(j)
		return
	}
	tasks, may := c.limits(j) // 2
	if !may {
		return
	}
	var room [4]*jobShape                        // enough for most
	shapes, why, note := c.feasible(j, room[:0]) // 3
	open := c.place(j, tasks, shapes, why, note) // 4
	if open == nil {
		return
	}
	cut := c.beforeDeadline(j)
	if c.preempt(cut, open) { // 6
		return
	}
	c.timeline(blockedJob{job: cut, at: c.current.at, shapes: open}) // 5
}

// turnTo makes a job the one at hand.
func (c *cycle) turnTo(j *cluster.Job) {
	c.steps++
	if c.steps%yieldEvery == 0 { // else one who serves a caller may wait for ten milliseconds, several times
		runtime.Gosched()
	}
	if c.preemption != nil {
		c.resumeSuspended(j)
	}
	c.limited = false
}

// limits finds what of a record may start at all: not held, begun, its dependencies met. False if nothing may.
func (c *cycle) limits(j *cluster.Job) (cluster.IDSet, bool) {
	if unstable(j, c.now) {
		c.unstable = append(c.unstable, j.ID)
	}
	tasks, why := c.readyTasks(j)
	if why != cluster.NoReason {
		c.recordWait(j, why, "", nil)
	}
	return tasks, why == cluster.NoReason
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

// feasible lists the job's shape in each partition that could run it if nothing else ran; if there is none, why.
func (c *cycle) feasible(j *cluster.Job, shapes []*jobShape) ([]*jobShape, cluster.Reason, string) {
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
				why = r
				note = ""
				if limitsFirst := !c.meter.Off() && p.Barred(j.Spec) != cluster.NoReason; limitsFirst {
					c.unstable = append(c.unstable, j.ID)
				}
				continue
			}
			shape := c.shapeFor(p, j, own)
			if shape.why != cluster.NoReason {
				why = shape.why
				note = shape.note
				continue
			}
			shapes = append(shapes, shape)
		}
	}
	return shapes, why, note
}

// place starts the job, or as many tasks of an array record as fit now. If the job, or the next task, is blocked it
// returns the shapes with which that would start if nodes were free; else none. Without shapes, why says what is
// recorded.
func (c *cycle) place(
	j *cluster.Job, tasks cluster.IDSet, shapes []*jobShape, why cluster.Reason, note string,
) []*jobShape {
	if j.Tasks.Empty() {
		open, _ := c.placeTask(j, cluster.TaskAny, shapes, why, note)
		return open
	}
	for task := range tasks.All() {
		if len(c.started) >= maxStarts {
			return nil
		}
		if open, started := c.placeTask(j, task, shapes, why, note); !started {
			return open
		}
	}
	return nil
}

// placeTask is place for a job or one task of an array record; it reports whether that has started.
func (c *cycle) placeTask(
	j *cluster.Job, task int, shapes []*jobShape, why cluster.Reason, note string,
) (open []*jobShape, started bool) {
	switch {
	case c.arrayLimitReached(j):
		c.recordWait(j, cluster.WaitArrayLimit, "", nil)
		return nil, false
	case len(shapes) == 0:
		c.recordWait(j, why, note, nil)
		return nil, false
	case j.Spec.Licenses != "" && !c.licensesFree(j):
		c.recordWait(j, cluster.WaitLicenses, "", nil)
		return nil, false
	}
	cut := c.beforeDeadline(j)
	for _, shape := range shapes {
		short := c.withinPartition(shape.part, cut)
		why = c.limitReason(shape, short)
		if why != cluster.NoReason {
			continue
		}
		short, alloc := c.fitOrShorten(shape, short)
		if alloc == nil {
			open = append(open, shape)
			continue
		}
		why = c.meter.Blocked(short, shape.part.Name, alloc)
		if why != cluster.NoReason {
			c.unstable = append(c.unstable, j.ID) // with other nodes no limit may stand in its way
			continue
		}
		if shape.reservation != nil {
			alloc.Reservation = shape.reservation.Name
		}
		c.startJob(short, task, alloc)
		if short != j {
			c.decisions[len(c.decisions)-1].Limit = short.Limit
		}
		return nil, true
	}
	if open == nil { // limits alone hold it back: others may pass it
		c.limited = true
		if c.s.Config().LimitStop {
			c.stopPartitions(shapes)
		}
		c.recordWait(cut, why, "", nil)
	}
	return open, false
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
	c.nearReservation = c.nearReservation || shape.reservation != nil || !off.None()
	c.longestRun = max(c.longestRun, over.Sub(c.now))
	if off.None() && c.knownToFail(shape, mask) {
		return nil
	}
	alloc := c.findNow(shape, j, mask, off)
	if alloc == nil && off.None() {
		shape.noteFailure(mask)
	}
	return alloc
}

func (c *cycle) startJob(j *cluster.Job, task int, alloc *cluster.Alloc) {
	c.eachFreeSet(func(fs *place.FreeSet) { fs.StartJob(alloc, j.Spec) })
	c.takeLicenses(j)
	c.meter.Start(j, alloc.Partition, alloc)
	if c.current.protected {
		alloc.Protected = true
		c.protected.add(c.scaleOfCluster(), j)
	}
	for _, ps := range c.planned {
		if EndOf(c.now, j.Limit).After(ps.At) {
			ps.ReduceFor(c.free, alloc)
		}
	}
	c.started = append(c.started, place.Release{At: EndOf(c.now, j.Limit), Shares: alloc.Shares})
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
		c.stopped[shape.part] = true
	}
}
