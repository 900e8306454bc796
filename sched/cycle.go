package sched

import (
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Bounds of one cycle.
const (
	maxStarts        = 512     // starts in one Decide; the next cycle follows at once
	maxLooked        = 10_000  // records of the queue looked at in one cycle
	maxSteadyLooked  = 100_000 // the same where the next cycles look only at what has changed
	maxPlannedStarts = 64      // bits of a mask; one a partition at most, and one for each job that others leave for
	maxPreemptors    = 16      // jobs that make others leave; the next cycle follows at once
	yieldEvery       = 128     // records looked at between which others may use the processor
)

// cycle is all that one run of the scheduler looks at, plans, knows of job shapes, and has met on its way.
type cycle struct {
	given
	plan
	book shapeBook
	progress
}

// given is the snapshot and the clock, and what follows from these two alone.
type given struct {
	s            *cluster.Snapshot
	now          time.Time
	responsive   bool                             // the order of jobs, see order.go
	meter        *cluster.Meter                   // limits of associations, and what this cycle counts
	clusterScale *cluster.Scale                   // nil until it is asked for
	releases     []place.Release                  // when what runs will be over; nil until it is asked for
	reserved     []*reservedNodes                 // reservations that are not over, by start
	exclusions   map[exclusionKey]place.Exclusion // see exclusionNow
	images       place.ImageNodes                 // where images are

	completing      map[*cluster.Partition]*cluster.Job // where nothing starts, for these jobs
	completingNodes place.NodeSet                       // their nodes, which jobs of other partitions do not get either
}

// plan is what the cycle has planned so far: what is free beside it, and the decisions that come of it.
type plan struct {
	free          *place.FreeSet
	freeByOverlap []*place.FreeSet // by jobs on a CPU, see freeWithOverlap
	emptySet      *place.FreeSet   // see emptied

	decisions    []cluster.Decision
	started      []place.Release       // starts of this cycle, as they will be over
	startedTasks map[cluster.JobID]int // of arrays, by array
	licenses     map[string]int        // in use, with those of this cycle's starts; nil until it is asked for
	preemption   *preemption           // nil where no job makes others leave

	planned      []*place.PlannedStart               // in the order of the queue; bit k of a mask is planned[k]
	firstBlocked map[*cluster.Partition]*cluster.Job // of each partition
	stopped      map[*cluster.Partition]bool         // partitions that start nothing any more, see Config.LimitStop
	blocked      []blockedJob                        // of the tier at hand, not planned yet

	// Of the job at hand:
	current   queuedJob // in the responsive order
	limited   bool      // limits hold it back
	revisited bool      // it has a shape already, and is looked at for another reason than a change of it

	// In the responsive order, of the last full pass:
	protectedStarts  int                                 // how many of planned are of protected jobs
	protectedJobs    map[*cluster.Partition]*cluster.Job // the jobs for which nodes are kept free
	nextProtection   time.Time                           // from when on another one may be protected; zero: never
	protected        protectedPart
	protectionFailed bool                   // a job earned protection and got no planned start
	limitedProtected map[cluster.JobID]bool // jobs that earned it and that limits hold back
	lastLimited      cluster.Place          // of the last of these
}

// progress is how far the cycle went, and what the next one must know to go on from it.
type progress struct {
	mostRecords int            // of the queue, to be looked at
	looked      int            // records of the queue that were
	steps       int            // records decided, ever
	horizon     *cluster.Place // the first record that was not looked at; nil: all were
	queueDrain  time.Duration  // drain time of the queue so far

	unstable        []cluster.JobID // jobs whose turn may come without a change of them
	hasHet          bool            // heterogeneous jobs were met
	nearReservation bool            // some job keeps off a reservation, or would run in one
	longestRun      time.Duration   // for which a job may run that has looked for nodes
}

// shapeBook is what is known of job shapes. It is what incremental passes live on.
type shapeBook struct {
	byKey   map[shapeKey]*jobShape
	list    []*jobShape                                    // in the order in which they were met
	needs   []place.Capability                             // of each of these: one row, for passes that go through all
	bounds  []turnBound                                    // of each of these
	byGate  map[*cluster.Gate]map[*jobShape][]*shapeMember // members by what limits them
	members int                                            // that ever joined
	perUser bool                                           // some shape is one user's, see shapeKey.user

	pass           int                   // number of incremental passes since the full one
	changedIn      map[cluster.JobID]int // by record, the pass of its last change: earlier members are void
	invalidations  []invalidation        // of this pass
	fullPassShapes int                   // length of list after the full pass
}

func newCycle(s *cluster.Snapshot, now time.Time) *cycle {
	return newCycleOn(place.NewFreeSet(s), s, now)
}

// newCycleOn is a cycle with what is free at the snapshot.
func newCycleOn(fs *place.FreeSet, s *cluster.Snapshot, now time.Time) *cycle {
	cfg := s.Config()
	c := &cycle{
		given: given{
			s: s, now: now, meter: s.Meter(now),
			responsive: !cfg.Priority.Multifactor && !cfg.StrictOrder,
			exclusions: map[exclusionKey]place.Exclusion{},
			completing: partitionsCompleting(s, now),
		},
		plan: plan{
			free:             fs,
			startedTasks:     map[cluster.JobID]int{},
			preemption:       newPreemption(s, now),
			firstBlocked:     map[*cluster.Partition]*cluster.Job{},
			limitedProtected: map[cluster.JobID]bool{},
		},
		book: shapeBook{
			byKey:     map[shapeKey]*jobShape{},
			byGate:    map[*cluster.Gate]map[*jobShape][]*shapeMember{},
			changedIn: map[cluster.JobID]int{},
		},
	}
	c.gatherReserved()
	c.completingNodes = c.nodesCompleting()
	return c
}

// emptied is the same nodes without any job.
func (c *cycle) emptied() *place.FreeSet {
	if c.emptySet == nil {
		c.emptySet = c.free.WithoutJobs()
	}
	return c.emptySet
}

// recordWait records why a job waits, if that is news.
func (c *cycle) recordWait(j *cluster.Job, why cluster.Reason, note string, planned *place.PlannedStart) {
	if planned == nil && j.Wait == why && j.WaitNote == note && j.PlannedStart.IsZero() {
		return
	}
	d := cluster.Decision{Job: j.ID, Task: cluster.TaskAny, Wait: why, Note: note}
	if planned != nil {
		d.StartsAt = planned.At
		d.Nodes = planned.Names
	}
	if j.Wait == why && j.WaitNote == note && j.PlannedStart.Equal(d.StartsAt) {
		return
	}
	c.decisions = append(c.decisions, d)
}
