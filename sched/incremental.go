package sched

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dev.muster/cluster"
)

// Scheduler makes cycles that follow each other. It decides what Schedule would, always, but keeps what the last
// cycle has found out and looks only at what has changed since.
//
// Between two cycles it holds that every job looked at waits, and would wait again in a full pass over the same
// snapshot: a pass that is over has tried each job with the nodes that are free and the planned starts of those
// ahead of it, and as time goes on a job may only have to keep off more of these. So after a change only these
// jobs may start: those whose record has changed; those whose turn may come without that (see unstable); those that limits
// hold back no longer (see incremental_limits.go); and, where nodes have more free or a planned start keeps less of them, those whose
// shape can use such a node. They are looked at in the order of the queue, with the first blocked job of each partition,
// or the next in line where that has started (see inLine). Where the change reaches farther - to a reservation that a job
// could reach, to preemption, to anything that is not watched here - the pass is a full one.
type Scheduler struct {
	last        *cycle    // nil: nothing is known
	nodes       nodeCache // as of the last full pass
	mostRecords int       // records looked at in one cycle; 0: see depth
}

// Bounds of what is looked at again; beyond them a full pass is as quick.
const (
	maxUnstable   = 1000
	maxFreedNodes = 256 // nodes
	maxGrowth     = 1 << 17
)

// Schedule decides like the function of this name.
func (s *Scheduler) Schedule(snap *cluster.Snapshot, now time.Time) []cluster.Decision {
	if c := s.last; c != nil {
		s.last = nil
		if ip := (&incrementalPass{cycle: c, old: c.s, toVisit: map[cluster.JobID]bool{}, visited: map[cluster.JobID]bool{}}); ip.takeChanges(snap, now) && ip.visitAll() {
			if c.canContinue() {
				s.last = c
			}
			return c.decisions
		}
	}
	c := newCycleOn(s.nodes.freeSet(snap), snap, now)
	c.fullPass(cmp.Or(s.mostRecords, c.queueDepth()))
	c.book.fullPassShapes = len(c.book.list)
	if c.canContinue() {
		s.last = c
	}
	return c.decisions
}

// unstable reports whether a job may become ready, or cease to be, without a change of its record.
func unstable(j *cluster.Job, now time.Time) bool {
	s := j.Spec
	return len(j.Depends.Terms) > 0 || j.Eligible.After(now) || s.Begin.After(now) || s.Licenses != "" || s.Switches != 0 ||
		s.Array != nil && s.Array.Limit > 0
}

// allowsIncremental reports whether the cluster is one whose cycles may go on from each other.
func (c *cycle) allowsIncremental() bool {
	return !c.free.overlaps && !(c.responsive && c.hasTiers()) && c.s.Config().ReserveAge == nil && c.preemption == nil && (c.meter.Off() || !c.s.Config().LimitStop) &&
		len(c.completing) == 0
}

// canContinue reports whether the next cycle can go on from this one.
func (c *cycle) canContinue() bool {
	if !c.allowsIncremental() || c.nearReservation || c.hasHet || c.protectionFailed || c.book.perUser || c.free.hasOneUserNodes || len(c.unstable) > maxUnstable || len(c.started) >= maxStarts {
		return false
	}
	for _, j := range c.firstBlocked {
		if unstable(j, c.now) {
			return false
		}
	}
	return true
}

// growth is how much is kept that only a full pass forgets: of jobs that have
// changed, shapes that came since, changes of nodes, states that nodes were in.
func (c *cycle) growth() int {
	const each = 64 // cycles go through all shapes
	return len(c.book.changedIn) + c.book.members - c.looked + each*(len(c.book.list)-c.book.fullPassShapes) + len(c.free.changes) + len(c.free.classes.examples)
}

// incrementalPass is a cycle that goes on from the one before.
type incrementalPass struct {
	*cycle
	old             *cluster.Snapshot
	toVisit         map[cluster.JobID]bool              // jobs to look at by themselves; true: their shapes do not know them yet
	reopened        []int                               // numbers of shapes that may fit now, to join the line
	freedNodes      []int                               // indexes of nodes that may have more free than before
	gainedNodes     []int                               // these, and those of which a planned start keeps less
	runningChanged  bool                                // what runs has changed
	visited         map[cluster.JobID]bool              // looked at
	oldFirstBlocked map[*cluster.Partition]*cluster.Job // that were blocked as the first of their partitions

	// In the strict order:
	replanning    bool            // starts are planned anew from here on
	oldStarts     []*plannedStart // the planned starts that the last cycle has left
	oldOwners     []cluster.JobID // whose they are
	currentStarts []*plannedStart // these, or those that have taken their indexes
	startPlaces   []cluster.Place // of the jobs whose these are
}

// takeChanges takes over what has changed; false if that reaches too far.
func (ip *incrementalPass) takeChanges(s *cluster.Snapshot, now time.Time) bool {
	c := ip.cycle
	touched, ok := s.Since(ip.old.Moment())
	if !ok || s.Config() != ip.old.Config() || !c.reservationsUnchanged(s, now) || now.Before(c.now) || c.growth() > maxGrowth || len(partitionsCompleting(s, now)) > 0 || c.free.troubleOver(s.Now) {
		return false
	}
	said := make(map[cluster.JobID]*cluster.Decision, len(c.decisions))
	nodes := map[cluster.NodeName]bool{}
	for i := range c.decisions {
		d := &c.decisions[i]
		if d.Start != nil { // taken or not, as the state tells
			for _, sh := range d.Start.Shares {
				nodes[sh.Node] = true
			}
			if j, ok := ip.old.Job(d.Job); ok {
				c.meter.Stir(j, d.Start)
			}
		}
		said[d.Job] = d
		ip.visitChanged(d.Job)
	}
	c.s, c.now, c.decisions, c.started, c.licenses = s, now, nil, nil, nil
	c.meter.GoOn(s, now)
	c.book.invalidations = nil
	c.free.classes.workload = &workload{s: s}
	clear(c.startedTasks)
	c.book.pass++
	for _, t := range touched {
		switch {
		case t.Node != "", t.Book && !c.meter.Off():
			return false
		case t.Load != "":
			nodes[t.Load] = true
		default:
			ip.visitChanged(t.Job)
		}
	}
	return ip.filterChanged(said) && !c.protectionDue() && ip.reloadNodes(nodes) && ip.recheckLimits()
}

// troubleOver reports whether trouble that some node had is long enough ago by now.
func (fs *freeSet) troubleOver(now time.Time) bool {
	return fs.topology.troubled && slices.ContainsFunc(fs.nodes, func(free nodeFree) bool { return free.troubled && !free.node.Shaky(now) })
}

func (ip *incrementalPass) visitChanged(id cluster.JobID) { ip.toVisit[id] = true }

// visit has a job looked at by itself.
func (ip *incrementalPass) visit(id cluster.JobID) {
	if _, ok := ip.toVisit[id]; !ok {
		ip.toVisit[id] = false
	}
}

// filterChanged keeps of the jobs touched those to be looked at.
func (ip *incrementalPass) filterChanged(said map[cluster.JobID]*cluster.Decision) bool {
	shift := 0
	for id := range ip.toVisit {
		was, _ := ip.old.Job(id)
		is, _ := ip.s.Job(id)
		if is != nil && is.Het != nil && is.Phase == cluster.Pending {
			return false
		}
		if occupiesNodes(was) || occupiesNodes(is) {
			ip.runningChanged = true
			ip.markReleases(is)
			for _, j := range []*cluster.Job{was, is} {
				if occupiesNodes(j) {
					ip.meter.Stir(j, j.Alloc)
				}
			}
		}
		from, queued := ip.old.PlaceOf(id)
		to, queues := ip.s.PlaceOf(id)
		if queued && queues && from == to && waitsAsDecided(was, is, said[id]) {
			delete(ip.toVisit, id)
			continue
		}
		if queued && (ip.isFirstBlocked(id) || ip.limitedProtected[id]) {
			return false
		}
		if queues && ip.precedesProtected(to) {
			return false
		}
		ip.drainSooner(was, queued, is, queues)
		ip.book.changedIn[id] = ip.book.pass
		shift += b2i(queues && ip.inView(to)) - b2i(queued && ip.inView(from))
		if !queues {
			delete(ip.toVisit, id)
		}
	}
	if shift != 0 && (ip.horizon != nil || ip.looked+shift > ip.mostRecords) { // others come into view, or fall out of it
		return false
	}
	ip.looked += shift
	for _, j := range ip.firstBlocked {
		if p, ok := ip.s.PlaceOf(j.ID); !ok || !ip.inView(p) {
			return false
		}
	}
	return true
}

// precedesProtected reports whether a job at this place has its turn before one for which nodes are kept free.
func (ip *incrementalPass) precedesProtected(p cluster.Place) bool {
	for _, j := range ip.protectedJobs {
		if at, _ := ip.s.PlaceOf(j.ID); p.Before(at) {
			return true
		}
	}
	return len(ip.limitedProtected) > 0 && p.Before(ip.lastLimited)
}

// drainSooner notes that a change of a record may make the queue shorter, and others wait longer than is their part of it.
func (ip *incrementalPass) drainSooner(was *cluster.Job, queued bool, is *cluster.Job, queues bool) {
	if ip.nextProtection.IsZero() {
		return
	}
	var less time.Duration
	if queued && was.Held == cluster.NotHeld {
		less = drainTime(was, ip.shareOf(was))
	}
	if queues && is.Held == cluster.NotHeld {
		less -= drainTime(is, ip.shareOf(is))
	}
	ip.nextProtection = ip.nextProtection.Add(-queueFactor * max(less, 0))
}

// markReleases notes that a job may leave its nodes at another time than was planned.
func (ip *incrementalPass) markReleases(j *cluster.Job) {
	if occupiesNodes(j) && j.Alloc != nil {
		for _, sh := range j.HeldShares() {
			if i, ok := ip.free.index(sh.Node); ok {
				ip.free.noteChange(i, false)
			}
		}
	}
}

func occupiesNodes(j *cluster.Job) bool {
	return j != nil && j.Phase >= cluster.Starting && j.Phase <= cluster.Ending
}

// waitsAsDecided reports whether a pending record waits as before, and its reason is the one that was decided on, if any was.
func waitsAsDecided(was, is *cluster.Job, said *cluster.Decision) bool {
	if was == nil || is == nil || was.Spec != is.Spec || was.Held != is.Held || was.Limit != is.Limit || was.ArrayID != is.ArrayID || !was.Tasks.Equal(is.Tasks) ||
		!was.Eligible.Equal(is.Eligible) || was.Depends.Any != is.Depends.Any || !slices.Equal(was.Depends.Terms, is.Depends.Terms) ||
		!slices.Equal(was.Avoid, is.Avoid) {
		return false
	}
	if said != nil {
		return said.Start == nil && is.Wait == said.Wait && is.WaitNote == said.Note && is.PlannedStart.Equal(said.StartsAt)
	}
	return is.Wait == was.Wait && is.WaitNote == was.WaitNote && is.PlannedStart.Equal(was.PlannedStart)
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

// inView reports whether a place is among those looked at.
func (c *cycle) inView(p cluster.Place) bool { return c.horizon == nil || p.Before(*c.horizon) }

// reloadNodes takes over what is given out on nodes, and asks again for whom that matters.
func (ip *incrementalPass) reloadNodes(nodes map[cluster.NodeName]bool) bool {
	c := ip.cycle
	if len(nodes) > maxFreedNodes {
		return false
	}
	for name := range nodes {
		i, ok := c.free.index(name)
		if !ok {
			continue
		}
		free := &c.free.nodes[i]
		l := c.s.Load(name)
		if l.Closed != 0 && !c.free.hasOneUserNodes {
			return false // shapes are told apart by user from now on
		}
		now := c.free.models[free.model].loadedNode(free.node, free.model, l)
		now.troubled, free.startedUser = free.troubled, 0
		if c.free.replaceNode(i, now) { // not as the last cycle left it
			ip.freedNodes = append(ip.freedNodes, i)
		}
	}
	slices.Sort(ip.freedNodes)
	ip.runningChanged = ip.runningChanged || len(nodes) > 0 || c.s.Config().Gradient // plans follow the jobs of late
	return true
}

// visitAll looks at the jobs that may start now; false if there is more to look at.
func (ip *incrementalPass) visitAll() bool {
	if ip.responsive {
		return ip.visitByScore()
	}
	return ip.visitInQueueOrder()
}

// sortDecisions puts decisions into the order of the queue.
func (c *cycle) sortDecisions(list []cluster.Decision) {
	slices.SortStableFunc(list, func(a, b cluster.Decision) int {
		x, _ := c.s.PlaceOf(a.Job)
		y, _ := c.s.PlaceOf(b.Job)
		return byQueuePlace(x, y)
	})
}

// protectionDue reports whether nodes may have to be kept free for another job than before.
func (c *cycle) protectionDue() bool {
	return !c.nextProtection.IsZero() && !c.now.Before(c.nextProtection)
}

// visitByScore is pass in the responsive order. The jobs for which nodes are kept free are planned anew if anything runs that
// did not; then those asked are tried by score, and the first in line of the other partitions are planned.
func (ip *incrementalPass) visitByScore() bool {
	c := ip.cycle
	firsts, lined := maps.Clone(c.firstBlocked), false
	maps.DeleteFunc(firsts, func(p *cluster.Partition, _ *cluster.Job) bool { return c.protectedJobs[p] != nil })
	line := func() { // the first in line are looked at, too
		c.releases, c.firstBlocked, lined = nil, maps.Clone(c.protectedJobs), true
		for _, j := range firsts {
			ip.visit(j.ID)
		}
	}
	c.planned, ip.oldFirstBlocked = c.planned[:c.protectedStarts], firsts
	if ip.runningChanged {
		ip.reopenShapes(ip.freedNodes, func(uint64) bool { return true })
		if c.firstBlocked = c.protectedJobs; !ip.replanProtected() {
			return false
		}
		line()
	}
	for _, id := range c.unstable {
		ip.visitChanged(id)
	}
	c.unstable = c.unstable[:0]
	ch := ip.newCandidateHeap()
	for _, cand := range ch.list {
		if cand.changed {
			j, _ := c.s.Job(cand.id)
			c.expectProtection(j, 0)
		}
	}
	if c.protectionDue() {
		return false
	}
	for cand := ch.next(); cand != nil; cand = ch.next() {
		j, _ := c.s.Job(cand.id)
		if c.revisited, c.current = !cand.changed, (queuedJob{queueWait: longestQueue}); cand.changed {
			c.current.share = c.scaleOfCluster().Share(j)
		}
		begun := len(c.started)
		if ip.decideCandidate(cand, j); len(c.started) >= maxStarts || len(c.started) > begun && !ip.recheckLaterLimits(ch, cand) {
			return false
		}
		ch.advance()
	}
	if !lined && (len(c.started) > 0 || slices.ContainsFunc(c.blocked, func(b blockedJob) bool { return !c.partitionsTaken(b.job) })) {
		line()
		c.revisited = true
		for _, j := range firsts {
			if is, ok := c.s.Job(j.ID); ok && !c.isBlocked(j.ID) {
				c.decide(is)
			}
		}
	}
	stuck := make([]queuedBlocked, len(c.blocked)) // in the order of the queue
	for k, b := range c.blocked {
		stuck[k].blockedJob = b
		stuck[k].place, _ = c.s.PlaceOf(b.job.ID)
	}
	slices.SortFunc(stuck, func(a, b queuedBlocked) int { return byQueuePlace(a.place, b.place) })
	if lined {
		for _, j := range firsts { // one that waits no more leaves its place to a job that is not looked at
			if !c.isBlocked(j.ID) {
				return false
			}
		}
	}
	for _, b := range stuck {
		for _, name := range b.job.Spec.Partitions {
			p, _ := c.s.Partition(name)
			if f := c.firstBlocked[p]; f != nil && c.protectedJobs[p] == nil && f.ID != b.job.ID {
				if x, _ := c.s.PlaceOf(f.ID); b.place.Before(x) {
					return false
				}
			}
		}
		c.planBlocked(b.blockedJob)
	}
	c.blocked = nil
	c.sortDecisions(c.decisions)
	return true
}

// isBlocked reports whether a job was looked at and could start nowhere.
func (c *cycle) isBlocked(id cluster.JobID) bool {
	return slices.ContainsFunc(c.blocked, func(b blockedJob) bool { return b.job.ID == id })
}

// invalidation is nodes that have more free, or of which a planned start keeps less: a shape that can use one of them may fit now
// beside sets of planned starts with which it failed.
type invalidation struct {
	nodes    []int
	most     capability             // that any of them had
	concerns func(mask uint64) bool // tells of which sets
}

// reopenShapes asks for the jobs of those shapes that can use one of the nodes. Only numbers are looked at here: most of these
// shapes will be out of the way when their turn comes, see candidateHeap.
func (ip *incrementalPass) reopenShapes(places []int, lost func(mask uint64) bool) {
	if len(places) == 0 {
		return
	}
	ip.gainedNodes = append(ip.gainedNodes, places...)
	d := invalidation{nodes: places, concerns: lost}
	_, d.most = ip.free.classify(places)
	ip.book.invalidations = append(ip.book.invalidations, d)
	for k := range ip.book.needs {
		if !ip.book.needs[k].exceeds(&d.most) {
			ip.reopened = append(ip.reopened, k)
		}
	}
}

// knownToFail reports whether a shape did not fit beside these planned starts, or fewer of them, and nothing is known by which it
// may fit now.
func (c *cycle) knownToFail(shape *jobShape, mask uint64) bool {
	c.applyInvalidations(shape)
	return slices.ContainsFunc(shape.failed, func(m uint64) bool { return m&mask == m })
}

// applyInvalidations forgets what is in doubt of a shape; it reports whether that was anything in this pass.
func (c *cycle) applyInvalidations(shape *jobShape) bool {
	if shape.checkedIn != c.book.pass {
		shape.checkedIn, shape.invalidations, shape.reopened = c.book.pass, 0, shape.reopened[:0]
	}
	for ; shape.invalidations < len(c.book.invalidations); shape.invalidations++ {
		d := &c.book.invalidations[shape.invalidations]
		if c.book.needs[shape.number].exceeds(&d.most) || !slices.ContainsFunc(shape.failed, d.concerns) || !shape.gainsFrom(c.free, d.nodes) {
			continue
		}
		shape.failed = slices.DeleteFunc(shape.failed, func(mask uint64) bool {
			if d.concerns(mask) {
				shape.reopened = append(shape.reopened, mask)
			}
			return d.concerns(mask)
		})
	}
	return len(shape.reopened) > 0
}

// gainsFrom reports whether some of the indexes are of use now, and enough together with what else there is.
func (shape *jobShape) gainsFrom(fs *freeSet, places []int) bool {
	useful := false
	for _, i := range places {
		if n := shape.tasksOn(fs, classedNode{i, fs.classOf(&fs.nodes[i])}); n > 0 {
			if n >= shape.demand.tasks && shape.demand.minNodes <= 1 {
				return true
			}
			useful = true
		}
	}
	return useful && !shape.fit.hopeless(fs.classIndex(nil, 0))
}

// tasksOn is how many tasks fit on a node.
func (shape *jobShape) tasksOn(fs *freeSet, s classedNode) int {
	if shape.fit.byNumbers {
		return int(shape.fit.tasksOnClass(fs, s.class))
	}
	if free := &fs.nodes[s.index]; shape.fit.suits(fs, free.model) {
		return shape.demand.tasksOn(free)
	}
	return 0
}

// replanProtected plans the starts of the jobs anew for which nodes are kept free. It holds on to a plan that has not changed; false
// if one comes later than before, or the jobs are others.
func (ip *incrementalPass) replanProtected() bool {
	c := ip.cycle
	old, firsts := c.planned, c.firstBlocked
	c.releases, c.planned, c.firstBlocked = nil, nil, map[*cluster.Partition]*cluster.Job{}
	c.revisited, c.current = true, queuedJob{}
	list := map[cluster.JobID]cluster.Place{}
	for _, j := range firsts {
		p, ok := c.s.PlaceOf(j.ID)
		if !ok || !c.inView(p) {
			return false
		}
		list[j.ID] = p
	}
	for _, id := range slices.SortedFunc(maps.Keys(list), func(a, b cluster.JobID) int { return byQueuePlace(list[a], list[b]) }) {
		j, _ := c.s.Job(id)
		c.decide(j)
		k := len(c.planned) - 1
		if len(c.started) > 0 || k >= len(old) {
			return false
		}
		if k < 0 || c.planned[k] == old[k] {
			continue
		}
		ps, was := c.planned[k], old[k]
		switch {
		case ps.job != was.job || ps.at.After(was.at):
			return false
		case ps.keepsSame(was):
			c.planned[k] = was
		default:
			ip.replaceStart(k, ps, was)
		}
	}
	if len(c.planned) != len(old) || len(c.firstBlocked) != len(firsts) {
		return false
	}
	for p, j := range firsts {
		if c.firstBlocked[p] == nil || c.firstBlocked[p].ID != j.ID {
			return false
		}
	}
	return true
}

// replaceStart has one of the planned starts be another one, which comes no later.
func (ip *incrementalPass) replaceStart(k int, ps, was *plannedStart) {
	eased, other := ps.compareLeftovers(was)
	ip.free.replaceStart(k, ps, other)
	ip.reopenShapes(eased, concernsStart(k))
}

// queuedBlocked is a job that could start nowhere, with its place in the queue.
type queuedBlocked struct {
	blockedJob
	place cluster.Place
}

func byQueuePlace(a, b cluster.Place) int { return b2i(b.Before(a)) - b2i(a.Before(b)) }

// decideCandidate decides a job, unless its shape plainly fails: then its record and reason are what they were.
func (ip *incrementalPass) decideCandidate(cand *candidate, j *cluster.Job) {
	if shape := cand.shape; shape != nil {
		mask, _ := ip.plannedAcross(j)
		if ip.knownToFail(shape, mask) || shape.find(ip.free, ip.planned, mask, exclusion{}) == nil && shape.noteFailure(mask) {
			return
		}
	}
	ip.visited[j.ID] = true
	ip.cycle.decide(j)
}
