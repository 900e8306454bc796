package sched

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"dev.muster/cluster"
)

// Bounds of one cycle.
const (
	maxStarts        = 512     // starts in one Decide; the next cycle follows at once
	maxLooked        = 10_000  // pending records looked at in one cycle
	maxSteadyLooked  = 100_000 // where the next cycles look only at what has changed
	maxPlannedStarts = 64      // reservations: one a partition at most, and one for each job that others leave for
	maxPreemptors    = 16      // jobs that make others leave; the next cycle follows at once
	yieldEvery       = 128     // records looked at between which others may use the processor
)

// cycle is the working state of one pass.
type cycle struct {
	s              *cluster.Snapshot
	now            time.Time
	free           *freeSet
	freeByOverlap  []*freeSet // see row
	emptySet       *freeSet   // see idle
	releases       []release  // when what runs will be over; nil until it is asked for
	planned        []*plannedStart
	firstBlocked   map[*cluster.Partition]*cluster.Job // the first blocked job of each partition
	stopped        map[*cluster.Partition]bool         // start nothing any more, see Config.LimitStop
	byKey          map[shapeKey]*jobShape
	list           []*jobShape    // these, in turn
	needs          []capability   // what they need of a node, in one row: events ask all of them
	bounds         []turnBound    // of the turns of their jobs
	invalidations  []invalidation // of this pass
	started        []release      // starts of this cycle
	decisions      []cluster.Decision
	byGate         map[*cluster.Gate]map[*jobShape][]*shapeMember // jobs by what limits them and what they ask
	limited        bool                                           // limits hold back the job at hand
	looked         int
	steps          int                   // records considered, ever
	members        int                   // that have asked
	fullPassShapes int                   // how many shapes were posed in the full pass
	licenses       map[string]int        // licenses; nil until it is asked for
	startedTasks   map[cluster.JobID]int // array tasks started in this cycle
	limits         *cluster.Meter        // of associations, QOS and partitions

	reserved        []*reservedNodes // by operators, and not over, by start
	exclusions      map[exclusionKey]exclusion
	nearReservation bool          // some job keeps off one of them, or would run in it
	longestRun      time.Duration // for which a job may run that has looked for nodes
	preempt         *preemption   // nil where no job makes room for another

	unstable  []cluster.JobID // see there
	maxLooked int             // records looked at in it
	horizon   *cluster.Place  // the first job that was not looked at; nil if there is none
	pass      int             // how often it was gone on from, see Scheduler
	// touched is the pass in which a record last changed: what asked before it is no more.
	changedIn    map[cluster.JobID]int
	clusterScale *cluster.Scale // nil until it is asked for
	perUser      bool           // some job's nodes depend on whose it is
	revisited    bool           // the job at hand was looked at before
	hasHet       bool           // there are heterogeneous jobs

	responsive      bool          // the order of turns
	current         queuedJob     // of the job at hand
	queueDrain      time.Duration // of the queue so far
	blocked         []blockedJob
	completing      map[*cluster.Partition]*cluster.Job // in which nothing starts yet, for these end
	completingNodes nodeSet                             // nodes of these, which others do not get either

	// In the responsive order, of the last full pass:
	protectedStarts  int                                 // planned starts that bind others; those behind them are of the first in line
	protectedJobs    map[*cluster.Partition]*cluster.Job // the jobs for which nodes are kept free
	nextProtection   time.Time                           // from when on nodes may be kept free for another one; zero: never
	protectionFailed bool                                // for a job nodes would be kept free, if it could use them
	limitedProtected map[cluster.JobID]bool              // for these they would be, if limits did not hold them back
	lastLimited      cluster.Place                       // of the last of these
}

func newCycle(s *cluster.Snapshot, now time.Time) *cycle { return newCycleOn(newFreeSet(s), s, now) }

// newCycleOn is a cycle with what is free.
func newCycleOn(fs *freeSet, s *cluster.Snapshot, now time.Time) *cycle {
	c := &cycle{s: s, now: now, free: fs, firstBlocked: map[*cluster.Partition]*cluster.Job{},
		byKey: map[shapeKey]*jobShape{}, startedTasks: map[cluster.JobID]int{}, changedIn: map[cluster.JobID]int{}, limits: s.Meter(now), byGate: map[*cluster.Gate]map[*jobShape][]*shapeMember{}, limitedProtected: map[cluster.JobID]bool{}, exclusions: map[exclusionKey]exclusion{}, preempt: newPreemption(s)}
	cfg := s.Config()
	c.responsive = !cfg.Priority.Multifactor && !cfg.StrictOrder
	c.gatherReserved()
	c.completing = partitionsCompleting(s, now)
	c.completingNodes = c.nodesCompleting()
	return c
}

// Schedule is one cycle: 1 order, 2 limits, 3 feasible, 4 place, 5 timeline, 6 preempt. Jobs of one shape
// are one shape: what does not fit once is not tried again in the cycle.
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

// fullPass looks at so many records of the queue.
func (c *cycle) fullPass(most int) []cluster.Decision {
	if c.responsive {
		c.considerByScore(most, c.consider, c.planBlocked)
	} else {
		c.considerInQueueOrder(most)
	}
	if c.preempt != nil {
		c.resumeSuspended(nil)
	}
	return c.decisions
}

// considerInQueueOrder looks at so many records of the queue, in its order.
func (c *cycle) considerInQueueOrder(most int) {
	c.maxLooked = most
	for j := range c.s.Queue() { // 1: the queue is kept in order by Apply
		if c.looked >= most || len(c.started) >= maxStarts {
			p, _ := c.s.PlaceOf(j.ID)
			c.horizon = &p
			break
		}
		c.looked++
		if j.Held == cluster.NotHeld {
			c.consider(j)
		}
	}
}

// consider decides one record; of an array record as many tasks as fit now.
func (c *cycle) consider(j *cluster.Job) {
	if c.steps++; c.steps%yieldEvery == 0 { // else who serves a caller may wait for ten milliseconds, at each of several steps
		runtime.Gosched()
	}
	if c.preempt != nil {
		c.resumeSuspended(j)
	}
	c.limited = false
	if c.waitsForCompleting(j) {
		return
	}
	if j.Het != nil {
		c.considerHet(j)
		return
	}
	if unstable(j, c.now) {
		c.unstable = append(c.unstable, j.ID)
	}
	tasks, why := c.s.Ready(j, c.now) // 2
	if why == cluster.NoReason && c.preempt != nil && c.s.Yields(j, c.now) {
		why = cluster.WaitPriority
	}
	if why != cluster.NoReason {
		c.recordWait(j, why, "", nil)
		return
	}
	var room [4]*jobShape
	shapes, why, note := c.openShapes(j, room[:0]) // 3
	if j.Tasks.Empty() {
		c.startOne(j, cluster.TaskAny, shapes, why, note)
		return
	}
	for task := range tasks.All() {
		if len(c.started) >= maxStarts || !c.startOne(j, task, shapes, why, note) {
			return
		}
	}
}

// openShapes lists what the job asks of each partition that could run it; if there is none, why.
func (c *cycle) openShapes(j *cluster.Job, shapes []*jobShape) ([]*jobShape, cluster.Reason, string) {
	var room [4]*reservedNodes
	parts, why := c.reservationsFor(j, room[:0])
	note := ""
	if len(parts) > 0 {
		why = cluster.WaitPartitionDown
	}
	for _, own := range parts {
		for _, name := range j.Spec.Partitions {
			p, ok := c.s.Partition(name)
			if !ok || c.completing[p] != nil {
				continue
			}
			if r := c.partitionCloses(p, j); r != cluster.NoReason {
				if why, note = r, ""; !c.limits.Off() && p.Barred(j.Spec) != cluster.NoReason { // limits come before that
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

// startOne tries to start a job or one task of an array record; it reports whether it did.
func (c *cycle) startOne(j *cluster.Job, task int, shapes []*jobShape, why cluster.Reason, note string) bool {
	if a := j.Spec.Array; j.ArrayID != 0 && a != nil && a.Limit > 0 &&
		c.s.RunningTasks(j.ArrayID)+c.startedTasks[j.ArrayID] >= a.Limit {
		c.recordWait(j, cluster.WaitArrayLimit, "", nil)
		return false
	}
	if len(shapes) == 0 {
		c.recordWait(j, why, note, nil)
		return false
	}
	if j.Spec.Licenses != "" && !c.licensesFree(j) {
		c.recordWait(j, cluster.WaitLicenses, "", nil)
		return false
	}
	full := j
	j = c.beforeDeadline(j)
	var room [4]*jobShape
	unlimited := room[:0] // those in which no limit holds it back
	for _, shape := range shapes {
		own := c.withinPartition(shape.demand.part, j)
		if why = c.limitReason(shape, own); why != cluster.NoReason { // 2
			continue
		}
		alloc := c.fitNow(shape, own) // 4, 5
		if alloc == nil && j.Spec.LimitMin > 0 {
			own, alloc = c.fitShorter(own, func(short *cluster.Job) *cluster.Alloc { return c.fitNow(shape, short) })
		}
		if alloc == nil {
			unlimited = append(unlimited, shape)
		} else if why = c.limits.Blocked(own, shape.demand.part.Name, alloc); why == cluster.NoReason {
			if shape.reservation != nil {
				alloc.Reservation = shape.reservation.Name
			}
			c.startJob(own, task, alloc)
			if own != full {
				c.decisions[len(c.decisions)-1].Limit = own.Limit
			}
			return true
		} else { // with other nodes it may be none
			c.unstable = append(c.unstable, j.ID)
		}
	}
	if len(unlimited) == 0 { // others may pass it
		c.limited = true
		if c.s.Config().LimitStop {
			c.stopPartitions(shapes)
		}
		c.recordWait(j, why, "", nil)
		return false
	}
	if c.preemptFor(j, unlimited) { // 6
		return false
	}
	if b := (blockedJob{job: j, at: c.current.at, shapes: unlimited}); !c.responsive || c.earnsProtection(j, c.current.queueWait) && !c.partitionsTaken(j) {
		c.planBlocked(b)
	} else {
		b.shapes = slices.Clone(unlimited)
		c.blocked = append(c.blocked, b)
	}
	return false
}

// planBlocked records why a job that could start nowhere waits, and when it is planned to start.
func (c *cycle) planBlocked(b blockedJob) {
	if b.components != nil {
		c.planBlockedHet(b)
		return
	}
	why, planned := c.planFirstBlocked(b.job, b.shapes)
	note := ""
	if len(c.reserved) > 0 {
		if note = c.reservedNote(b.shapes[0], b.job); note != "" {
			why = cluster.WaitNodeNotAvail
		}
	}
	c.recordWait(b.job, why, note, planned)
}

// emptied is the same nodes without any job.
func (c *cycle) emptied() *freeSet {
	if c.emptySet == nil {
		c.emptySet = c.free.withoutJobs()
	}
	return c.emptySet
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
		return cmp.Or(c.limits.Regardless(j, p.Name), barred)
	}
	return cluster.NoReason
}

// plannedAcross tells of which planned starts a job must keep off if it starts now, and until when it may run.
func (c *cycle) plannedAcross(j *cluster.Job) (mask uint64, over time.Time) {
	return c.plannedWithin(j.Limit)
}

func (c *cycle) plannedWithin(limit time.Duration) (mask uint64, over time.Time) {
	over = endOf(c.now, limit)
	for i, ps := range c.planned {
		if over.After(ps.at) {
			mask |= 1 << i
		}
	}
	return mask, over
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
	c.limits.Start(j, alloc.Partition, alloc)
	for _, ps := range c.planned {
		if endOf(c.now, j.Limit).After(ps.at) {
			ps.reduceFor(c.free, alloc.Shares)
		}
	}
	c.started = append(c.started, release{at: endOf(c.now, j.Limit), shares: alloc.Shares})
	if task != cluster.TaskAny {
		c.startedTasks[j.ArrayID]++
	}
	c.decisions = append(c.decisions, cluster.Decision{Job: j.ID, Task: task, Start: alloc, Backfilled: len(c.planned) > 0})
}

// planFirstBlocked gives the first job of each partition that does not fit a planned start that later
// jobs of this cycle can not delay (EASY backfill). Reservations keep off each other's nodes.
func (c *cycle) planFirstBlocked(j *cluster.Job, shapes []*jobShape) (cluster.Reason, *plannedStart) {
	first := false
	var best *plannedStart
	if !c.responsive && !c.earnsProtection(j, 0) {
		return cluster.WaitPriority, nil
	}
	for _, shape := range shapes {
		if c.firstBlocked[shape.demand.part] != nil {
			continue
		}
		first, c.firstBlocked[shape.demand.part] = true, j
		if len(c.planned) >= maxPlannedStarts || !c.limits.Reserves(j, shape.demand.part.Name) {
			continue
		}
		if ps := c.planStart(shape, j); ps != nil && (best == nil || ps.at.Before(best.at)) {
			best = ps
		}
	}
	if !first {
		return cluster.WaitPriority, nil
	}
	if best != nil {
		best.job = j.ID
		c.planned = append(c.planned, best)
	}
	return cluster.WaitResources, best
}

// releaseTimeline is when what runs, and what this cycle has started, will be over.
func (c *cycle) releaseTimeline() []release {
	if c.releases == nil {
		c.releases = releases(c.s)
		for _, rn := range c.reserved { // moments at which more can be had, too
			c.releases = append(c.releases, release{at: rn.End})
			if rn.Start.After(c.now) {
				c.releases = append(c.releases, release{at: rn.Start})
			}
		}
		slices.SortStableFunc(c.releases, func(a, b release) int { return a.at.Compare(b.at) })
	}
	if len(c.started) == 0 {
		return c.releases
	}
	all := slices.Concat(c.releases, c.started)
	slices.SortStableFunc(all, func(a, b release) int { return a.at.Compare(b.at) })
	return all
}

// plannedNodes is the nodes of all reservations.
func (c *cycle) plannedNodes() nodeSet {
	if len(c.planned) == 0 {
		return nil
	}
	set := make(nodeSet, len(c.free.nodes))
	for _, ps := range c.planned {
		for i, in := range ps.nodes {
			set[i] = set[i] || in
		}
	}
	return set
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
