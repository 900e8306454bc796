package sched

import (
	"cmp"
	"slices"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Scheduler makes cycles that follow each other. It decides what Schedule would, always, if that knew where images
// are, but keeps what the last cycle has found out and, where it can, looks only at what has changed since: an
// incremental pass. DESIGN.md says what is kept and what invalidates it; where a pass meets anything that reaches
// farther it gives up, and the cycle is a full pass.
type Scheduler struct {
	// Images says where images are, of which it may say something else in each cycle; nil: nobody knows.
	Images place.ImageLocality

	last        *cycle          // nil: the next cycle is a full pass
	nodes       place.NodeCache // as of the last full pass
	mostRecords int             // of the queue, looked at in one cycle; 0: see queueDepth
	gaveUp      error           // why the last cycle was no incremental pass; nil if it was, or was the first
}

// Bounds of an incremental pass; beyond them a full one is as quick.
const (
	maxUnstable   = 1000
	maxFreedNodes = 256
	maxGrowth     = 1 << 17
)

// fullPassReason is the error of an incremental pass that gives up. It costs time and nothing else: a full pass is
// always right.
type fullPassReason string

func (r fullPassReason) Error() string { return "a full pass is needed: " + string(r) }

// Why an incremental pass gives up.
const (
	errChangesUnknown  fullPassReason = "the state does not know any more what has changed"
	errConfigChanged   fullPassReason = "the configuration has changed"
	errReservation     fullPassReason = "a reservation has changed, or a job may run into one"
	errClockBack       fullPassReason = "the time is before that of the last cycle"
	errGrowth          fullPassReason = "too much is kept that only a full pass forgets"
	errCompleting      fullPassReason = "jobs are completing, and nothing starts in their partitions"
	errTroubleOver     fullPassReason = "trouble of some node is long enough ago"
	errNodeChanged     fullPassReason = "a node has changed"
	errAccounts        fullPassReason = "accounts or their limits have changed"
	errManyNodes       fullPassReason = "many nodes have more free, or less"
	errOneUserNode     fullPassReason = "a node is for one user now, and shapes do not tell users apart yet"
	errHetJob          fullPassReason = "a heterogeneous job waits"
	errFirstBlocked    fullPassReason = "the first blocked job of a partition has changed"
	errProtectedFirst  fullPassReason = "a job has its turn before one that is protected"
	errProtectionDue   fullPassReason = "nodes may have to be kept free for another job"
	errProtectedStart  fullPassReason = "a protected job starts, or later than planned"
	errBeyondHorizon   fullPassReason = "jobs come into view at the end of those looked at, or fall out of it"
	errLimitsReach     fullPassReason = "limits hold back another job that others depend on"
	errManyStarts      fullPassReason = "as many jobs have started as one cycle may start"
	errPlannedStarts   fullPassReason = "planned starts have come into another order"
	errKnownToFailTurn fullPassReason = "a job that was passed over would have its turn again"
)

// Schedule decides like the function of this name.
func (s *Scheduler) Schedule(snap *cluster.Snapshot, now time.Time) []cluster.Decision {
	c := s.last
	s.last = nil
	s.gaveUp = nil
	if c != nil {
		c.images = place.NewImageNodes(s.Images)
		s.gaveUp = c.goOn(snap, now)
	}
	if c == nil || s.gaveUp != nil {
		c = newCycleOn(s.nodes.FreeSet(snap), snap, now)
		c.images = place.NewImageNodes(s.Images)
		c.fullPass(cmp.Or(s.mostRecords, c.queueDepth()))
		c.book.fullPassShapes = len(c.book.list)
	}
	if c.canContinue() {
		s.last = c
	}
	return c.decisions
}

// Forget has the next cycle be a full pass: what this one has decided is not going to happen at once.
func (s *Scheduler) Forget() { s.last = nil }

// unstable reports whether a job may become ready, or cease to be, without a change of its record.
func unstable(j *cluster.Job, now time.Time) bool {
	s := j.Spec
	inTime := j.Eligible.After(now) || s.Begin.After(now) || s.Switches != 0
	byTasks := s.Array != nil && (s.Array.Limit > 0 || j.Burst != nil)
	byOthers := len(j.Depends.Terms) > 0 || s.Licenses != "" || byTasks
	return inTime || byOthers
}

// allowsIncremental reports whether the cluster is one whose cycles may go on from each other.
func (c *cycle) allowsIncremental() bool {
	cfg := c.s.Config()
	tiersByScore := c.responsive && c.hasTiers()
	stopsAtLimits := cfg.LimitStop && !c.meter.Off()
	if tiersByScore || stopsAtLimits || cfg.ReserveAge != nil {
		return false
	}
	return !c.free.Overlaps && c.preemption == nil && len(c.completing) == 0
}

// canContinue reports whether the next cycle can go on from this one.
func (c *cycle) canContinue() bool {
	notWatched := c.nearReservation || c.hasHet || c.protectionFailed || c.book.perUser || c.free.HasOneUserNodes
	tooMuch := len(c.unstable) > maxUnstable || len(c.started) >= maxStarts
	if notWatched || tooMuch || !c.allowsIncremental() {
		return false
	}
	for _, j := range c.firstBlocked {
		if unstable(j, c.now) {
			return false
		}
	}
	return true
}

// growth is how much is kept that only a full pass forgets: jobs that have changed, members that are void, shapes
// that came since, changes of nodes, and classes.
func (c *cycle) growth() int {
	const each = 64 // every pass goes through all shapes
	shapes := each * (len(c.book.list) - c.book.fullPassShapes)
	return len(c.book.changedIn) + c.book.members - c.looked + shapes + c.free.Growth()
}

// incrementalPass is a cycle that goes on from the one before.
type incrementalPass struct {
	*cycle
	old             *cluster.Snapshot                   // of the last cycle
	toVisit         map[cluster.JobID]bool              // jobs with a turn of their own; true: they have changed
	visited         map[cluster.JobID]bool              // jobs that had their turn
	reopened        []int                               // indexes of shapes that may fit now, and have no candidate yet
	freedNodes      []int                               // nodes that may have more free than before
	gainedNodes     []int                               // these, and those of which a planned start keeps less
	runningChanged  bool                                // what runs has changed
	oldFirstBlocked map[*cluster.Partition]*cluster.Job // of the last cycle

	// In the strict order:
	replanning    bool                  // from here on starts are planned again
	oldStarts     []*place.PlannedStart // the planned starts of the last cycle
	oldOwners     []cluster.JobID       // their jobs
	currentStarts []*place.PlannedStart // oldStarts, or those that have taken their places
	startPlaces   []cluster.Place       // places in the queue of the jobs of currentStarts
}

// goOn makes the cycle the next one, by an incremental pass; an error says that it cannot, and the cycle is of no
// use then.
func (c *cycle) goOn(s *cluster.Snapshot, now time.Time) error {
	ip := &incrementalPass{cycle: c, old: c.s, toVisit: map[cluster.JobID]bool{}, visited: map[cluster.JobID]bool{}}
	touched, err := ip.checkReach(s, now)
	if err != nil {
		return err
	}
	said, nodes := ip.takeDecisions()
	ip.moveTo(s, now)
	if err := ip.takeChanges(touched, nodes); err != nil {
		return err
	}
	if err := ip.filterChanged(said); err != nil {
		return err
	}
	if c.protectionDue() {
		return errProtectionDue
	}
	if err := ip.reloadNodes(nodes); err != nil {
		return err
	}
	if err := ip.recheckLimits(); err != nil {
		return err
	}
	if ip.responsive {
		return ip.visitByScore()
	}
	return ip.visitInQueueOrder()
}

// checkReach finds what has changed, or why that reaches too far.
func (ip *incrementalPass) checkReach(s *cluster.Snapshot, now time.Time) ([]cluster.StateChange, error) {
	touched, known := s.Since(ip.old.Moment())
	switch {
	case !known:
		return nil, errChangesUnknown
	case s.Config() != ip.old.Config():
		return nil, errConfigChanged
	case !ip.reservationsUnchanged(s, now):
		return nil, errReservation
	case now.Before(ip.now):
		return nil, errClockBack
	case ip.growth() > maxGrowth:
		return nil, errGrowth
	case len(partitionsCompleting(s, now)) > 0:
		return nil, errCompleting
	case ip.free.TroubleOver(s.Now):
		return nil, errTroubleOver
	}
	return touched, nil
}

// takeDecisions has everything looked at again that the last cycle decided: whether it was taken only the state tells.
func (ip *incrementalPass) takeDecisions() (said map[cluster.JobID]*cluster.Decision, nodes map[cluster.NodeName]bool) {
	said = make(map[cluster.JobID]*cluster.Decision, len(ip.decisions))
	nodes = map[cluster.NodeName]bool{}
	for i := range ip.decisions {
		d := &ip.decisions[i]
		if d.Start != nil {
			for _, sh := range d.Start.Shares {
				nodes[sh.Node] = true
			}
			if j, ok := ip.old.Job(d.Job); ok {
				ip.meter.Reopen(j, d.Start)
			}
		}
		said[d.Job] = d
		ip.visitChanged(d.Job)
	}
	return said, nodes
}

// moveTo makes the cycle one of a later snapshot, with nothing decided.
func (ip *incrementalPass) moveTo(s *cluster.Snapshot, now time.Time) {
	c := ip.cycle
	c.s = s
	c.now = now
	c.decisions = nil
	c.started = nil
	c.licenses = nil
	clear(c.startedTasks)
	c.meter.GoOn(s, now)
	c.free.Follow(s)
	c.book.pass++
	c.book.invalidations = nil
}

// takeChanges adds the jobs and nodes that the state says have changed.
func (ip *incrementalPass) takeChanges(touched []cluster.StateChange, nodes map[cluster.NodeName]bool) error {
	for _, t := range touched {
		switch {
		case t.Node != "":
			return errNodeChanged
		case t.Book && !ip.meter.Off():
			return errAccounts
		case t.Load != "":
			nodes[t.Load] = true
		default:
			ip.visitChanged(t.Job)
		}
	}
	return nil
}

// visitChanged gives a job a turn of its own that may have changed.
func (ip *incrementalPass) visitChanged(id cluster.JobID) { ip.toVisit[id] = true }

// visit gives a job a turn of its own.
func (ip *incrementalPass) visit(id cluster.JobID) {
	if _, ok := ip.toVisit[id]; !ok {
		ip.toVisit[id] = false
	}
}

// filterChanged drops jobs that only seem to have changed, or wait no more, from those to be visited.
func (ip *incrementalPass) filterChanged(said map[cluster.JobID]*cluster.Decision) error {
	shift := 0 // of how many records are in view
	for id := range ip.toVisit {
		d, err := ip.filterJob(id, said[id])
		if err != nil {
			return err
		}
		shift += d
	}
	if shift != 0 && (ip.horizon != nil || ip.looked+shift > ip.mostRecords) {
		return errBeyondHorizon
	}
	ip.looked += shift
	for _, j := range ip.firstBlocked {
		if p, ok := ip.s.PlaceOf(j.ID); !ok || !ip.inView(p) {
			return errFirstBlocked
		}
	}
	return nil
}

// filterJob is filterChanged for one job; it returns by how many more records are in view.
func (ip *incrementalPass) filterJob(id cluster.JobID, said *cluster.Decision) (shift int, err error) {
	was, _ := ip.old.Job(id)
	is, _ := ip.s.Job(id)
	if is != nil && is.Het != nil && is.Phase == cluster.Pending {
		return 0, errHetJob
	}
	ip.noteRunning(was, is)
	if ip.protected.mayShrink(was, said) && ip.protected.isFull(ip.s, ip.scaleOfCluster()) {
		ip.nextProtection = ip.now
	}
	from, queued := ip.old.PlaceOf(id)
	to, queues := ip.s.PlaceOf(id)
	switch {
	case queued && queues && from == to && waitsAsDecided(was, is, said):
		delete(ip.toVisit, id)
		return 0, nil
	case queued && (ip.isFirstBlocked(id) || ip.limitedProtected[id]):
		return 0, errFirstBlocked
	case queues && ip.precedesProtected(to):
		return 0, errProtectedFirst
	}
	ip.drainSooner(was, queued, is, queues)
	ip.book.changedIn[id] = ip.book.pass
	if !queues {
		delete(ip.toVisit, id)
	}
	return b2i(queues && ip.inView(to)) - b2i(queued && ip.inView(from)), nil
}

// noteRunning takes into account that a job runs, or ran.
func (ip *incrementalPass) noteRunning(was, is *cluster.Job) {
	if !occupiesNodes(was) && !occupiesNodes(is) {
		return
	}
	ip.runningChanged = true
	ip.markReleases(is)
	for _, j := range [...]*cluster.Job{was, is} {
		if occupiesNodes(j) {
			ip.meter.Reopen(j, j.Alloc)
		}
	}
}

// markReleases notes that a job may leave its nodes at another time than was planned.
func (ip *incrementalPass) markReleases(j *cluster.Job) {
	if occupiesNodes(j) && j.Alloc != nil {
		ip.free.NoteReleases(j.HeldShares())
	}
}

// occupiesNodes reports whether a job has nodes, or is about to get or leave them.
func occupiesNodes(j *cluster.Job) bool {
	return j != nil && j.Phase >= cluster.Starting && j.Phase <= cluster.Ending
}

// waitsAsDecided reports whether a pending record asks for what it did, and waits for the reason that was decided on,
// or if nothing was, for the same as before.
func waitsAsDecided(was, is *cluster.Job, said *cluster.Decision) bool {
	if was == nil || is == nil || !asksTheSame(was, is) {
		return false
	}
	if said != nil {
		sameReason := is.Wait == said.Wait && is.WaitNote == said.Note
		return said.Start == nil && sameReason && is.PlannedStart.Equal(said.StartsAt)
	}
	return is.Wait == was.Wait && is.WaitNote == was.WaitNote && is.PlannedStart.Equal(was.PlannedStart)
}

// asksTheSame reports whether nothing has changed of a record that the scheduler goes by.
func asksTheSame(was, is *cluster.Job) bool {
	return was.Spec == is.Spec && was.Held == is.Held && was.Limit == is.Limit &&
		asksForSameTasks(was, is) && mayGoTheSame(was, is)
}

// mayGoTheSame reports whether two records keep off the same nodes, and their burst buffers stand alike.
func mayGoTheSame(was, is *cluster.Job) bool {
	return slices.Equal(was.Avoid, is.Avoid) && stagedAlike(was, is)
}

// stagedAlike reports whether the burst buffers of two records stand alike.
func stagedAlike(was, is *cluster.Job) bool {
	if was.Burst == nil || is.Burst == nil {
		return was.Burst == is.Burst
	}
	return was.Burst.State == is.Burst.State
}

func asksForSameTasks(was, is *cluster.Job) bool {
	return was.ArrayID == is.ArrayID && was.Tasks.Equal(is.Tasks) && was.Eligible.Equal(is.Eligible) &&
		was.Depends.Any == is.Depends.Any && slices.Equal(was.Depends.Terms, is.Depends.Terms)
}

// isFirstBlocked reports whether a job is the first blocked one of a partition.
func (c *cycle) isFirstBlocked(id cluster.JobID) bool { return holdsJob(c.firstBlocked, id) }

func holdsJob(list map[*cluster.Partition]*cluster.Job, id cluster.JobID) bool {
	for _, j := range list {
		if j.ID == id {
			return true
		}
	}
	return false
}

// inView reports whether a place of the queue is among those looked at.
func (c *cycle) inView(p cluster.Place) bool { return c.horizon == nil || p.Before(*c.horizon) }

// reloadNodes takes over what is given out on some nodes.
func (ip *incrementalPass) reloadNodes(nodes map[cluster.NodeName]bool) error {
	c := ip.cycle
	if len(nodes) > maxFreedNodes {
		return errManyNodes
	}
	for name := range nodes {
		i, ok := c.free.Index(name)
		if !ok {
			continue
		}
		load := c.s.Load(name)
		if load.Closed != 0 && !c.free.HasOneUserNodes {
			return errOneUserNode
		}
		if asLeft := !c.free.Reload(i, load); !asLeft {
			ip.freedNodes = append(ip.freedNodes, i)
		}
	}
	slices.Sort(ip.freedNodes)
	fragmentationCounts := c.s.Config().Gradient // it follows the recent jobs
	ip.runningChanged = ip.runningChanged || len(nodes) > 0 || fragmentationCounts
	return nil
}

// sortDecisions puts decisions into the order of the queue.
func (c *cycle) sortDecisions(list []cluster.Decision) {
	slices.SortStableFunc(list, func(a, b cluster.Decision) int {
		x, _ := c.s.PlaceOf(a.Job)
		y, _ := c.s.PlaceOf(b.Job)
		return byQueuePlace(x, y)
	})
}

func byQueuePlace(a, b cluster.Place) int { return b2i(b.Before(a)) - b2i(a.Before(b)) }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
