// Package sched decides: from a snapshot of the cluster and a time, which pending jobs start
// where, and for every other job looked at why it waits. Everything here is a pure function.
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
	maxStarts = 512     // starts in one Decide; the next cycle follows at once
	maxLooked = 10_000  // pending records looked at in one cycle
	maxWide   = 100_000 // where the next cycles look only at what has changed
	maxHeads  = 64      // reservations: one a partition at most, and one for each job that others leave for
	maxRooms  = 16      // jobs that make others leave; the next cycle follows at once
	breath    = 128     // records looked at between which others may use the processor
)

// cycle is the working state of one pass.
type cycle struct {
	s       *cluster.Snapshot
	now     time.Time
	free    *pool
	rows    []*pool   // see row
	bare    *pool     // see idle
	ends    []release // when what runs will be over; nil until it is asked for
	heads   []*reservation
	waiting map[*cluster.Partition]*cluster.Job // the first blocked job of each partition
	stopped map[*cluster.Partition]bool         // start nothing any more, see Config.LimitStop
	asked   map[shape]*question
	posed   []*question // these, in turn
	least   []brief     // what they need of a node, in one row: events ask all of them
	bounds  []bound     // of the turns of their jobs
	doubts  []doubt     // of this round
	begun   []release   // starts of this cycle
	out     []cluster.Decision
	gated   map[*cluster.Gate]map[*question][]*member // jobs by what limits them and what they ask
	held    bool                                      // limits hold back the job at hand
	looked  int
	steps   int                   // records considered, ever
	members int                   // that have asked
	first   int                   // how many questions were posed in the full pass
	used    map[string]int        // licenses; nil until it is asked for
	running map[cluster.JobID]int // array tasks started in this cycle
	limits  *cluster.Meter        // of associations, QOS and partitions

	reserved []*keptNodes // by operators, and not over, by start
	offs     map[offKey]off
	near     bool          // some job keeps off one of them, or would run in it
	longest  time.Duration // for which a job may run that has looked for nodes
	evict    *evictor      // nil where no job makes room for another

	fickle []cluster.JobID // see there
	most   int             // records looked at in it
	edge   *cluster.Place  // the first job that was not looked at; nil if there is none
	rounds int             // how often it was gone on from, see Scheduler
	// touched is the round in which a record last changed: what asked before it is no more.
	touched map[cluster.JobID]int
	scale   *cluster.Scale // nil until it is asked for
	users   bool           // some job's nodes depend on whose it is
	known   bool           // the job at hand was looked at before
	het     bool           // there are heterogeneous jobs

	responsive bool          // the order of turns
	turn       turn          // of the job at hand
	drain      time.Duration // of the queue so far
	blocked    []blocked
	settling   map[*cluster.Partition]*cluster.Job // in which nothing starts yet, for these end
	resting    nodeSet                             // nodes of these, which others do not get either

	// In the responsive order, of the last full pass:
	bound   int                                 // planned starts that bind others; those behind them are of the first in line
	binders map[*cluster.Partition]*cluster.Job // the jobs for which nodes are kept free
	bindAt  time.Time                           // from when on nodes may be kept free for another one; zero: never
	strays  bool                                // for a job nodes would be kept free, if it could use them
	early   map[cluster.JobID]bool              // for these they would be, if limits did not hold them back
	earlyTo cluster.Place                       // of the last of these
}

func newCycle(s *cluster.Snapshot, now time.Time) *cycle { return cycleOn(newPool(s), s, now) }

// cycleOn is a cycle with what is free.
func cycleOn(free *pool, s *cluster.Snapshot, now time.Time) *cycle {
	c := &cycle{s: s, now: now, free: free, waiting: map[*cluster.Partition]*cluster.Job{},
		asked: map[shape]*question{}, running: map[cluster.JobID]int{}, touched: map[cluster.JobID]int{}, limits: s.Meter(now), gated: map[*cluster.Gate]map[*question][]*member{}, early: map[cluster.JobID]bool{}, offs: map[offKey]off{}, evict: newEvictor(s)}
	cfg := s.Config()
	c.responsive = !cfg.Priority.Multifactor && !cfg.StrictOrder
	c.gatherReserved()
	c.settling = settling(s, now)
	c.resting = c.rests()
	return c
}

// Schedule is one cycle: 1 order, 2 limits, 3 feasible, 4 place, 5 timeline, 6 preempt. Jobs of one shape
// are one question: what does not fit once is not tried again in the cycle.
func Schedule(s *cluster.Snapshot, now time.Time) []cluster.Decision {
	c := newCycle(s, now)
	return c.pass(c.depth())
}

// depth is how many records of the queue are looked at.
func (c *cycle) depth() int {
	if c.steady() && len(c.reserved) == 0 {
		return maxWide
	}
	return maxLooked
}

// pass looks at so many records of the queue.
func (c *cycle) pass(most int) []cluster.Decision {
	if c.responsive {
		c.turns(most, c.consider, c.line)
	} else {
		c.inOrder(most)
	}
	if c.evict != nil {
		c.goOn(nil)
	}
	return c.out
}

// inOrder looks at so many records of the queue, in its order.
func (c *cycle) inOrder(most int) {
	c.most = most
	for j := range c.s.Queue() { // 1: the queue is kept in order by Apply
		if c.looked >= most || len(c.begun) >= maxStarts {
			p, _ := c.s.PlaceOf(j.ID)
			c.edge = &p
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
	if c.steps++; c.steps%breath == 0 { // else who serves a caller may wait for ten milliseconds, at each of several steps
		runtime.Gosched()
	}
	if c.evict != nil {
		c.goOn(j)
	}
	c.held = false
	if c.settles(j) {
		return
	}
	if j.Het != nil {
		c.set(j)
		return
	}
	if fickle(j, c.now) {
		c.fickle = append(c.fickle, j.ID)
	}
	tasks, why := c.s.Ready(j, c.now) // 2
	if why == cluster.NoReason && c.evict != nil && c.s.Yields(j, c.now) {
		why = cluster.WaitPriority
	}
	if why != cluster.NoReason {
		c.wait(j, why, "", nil)
		return
	}
	var room [4]*question
	qs, why, note := c.questions(j, room[:0]) // 3
	if j.Tasks.Empty() {
		c.one(j, cluster.TaskAny, qs, why, note)
		return
	}
	for task := range tasks.All() {
		if len(c.begun) >= maxStarts || !c.one(j, task, qs, why, note) {
			return
		}
	}
}

// questions lists what the job asks of each partition that could run it; if there is none, why.
func (c *cycle) questions(j *cluster.Job, qs []*question) ([]*question, cluster.Reason, string) {
	var room [4]*keptNodes
	parts, why := c.parts(j, room[:0])
	note := ""
	if len(parts) > 0 {
		why = cluster.WaitPartitionDown
	}
	for _, own := range parts {
		for _, name := range j.Spec.Partitions {
			p, ok := c.s.Partition(name)
			if !ok || c.settling[p] != nil {
				continue
			}
			if r := c.closed(p, j); r != cluster.NoReason {
				if why, note = r, ""; !c.limits.Off() && p.Barred(j.Spec) != cluster.NoReason { // limits come before that
					c.fickle = append(c.fickle, j.ID)
				}
				continue
			}
			q := c.ask(p, j, own)
			if q.why != cluster.NoReason {
				why, note = q.why, q.note
				continue
			}
			qs = append(qs, q)
		}
	}
	return qs, why, note
}

// one tries to start a job or one task of an array record; it reports whether it did.
func (c *cycle) one(j *cluster.Job, task int, qs []*question, why cluster.Reason, note string) bool {
	if a := j.Spec.Array; j.ArrayID != 0 && a != nil && a.Limit > 0 &&
		c.s.RunningTasks(j.ArrayID)+c.running[j.ArrayID] >= a.Limit {
		c.wait(j, cluster.WaitArrayLimit, "", nil)
		return false
	}
	if len(qs) == 0 {
		c.wait(j, why, note, nil)
		return false
	}
	if j.Spec.Licenses != "" && !c.licensed(j) {
		c.wait(j, cluster.WaitLicenses, "", nil)
		return false
	}
	full := j
	j = c.beforeDeadline(j)
	var room [4]*question
	open := room[:0] // those in which no limit holds it back
	for _, q := range qs {
		own := c.allowed(q.want.part, j)
		if why = c.holds(q, own); why != cluster.NoReason { // 2
			continue
		}
		alloc := c.fit(q, own) // 4, 5
		if alloc == nil && j.Spec.LimitMin > 0 {
			own, alloc = c.shorter(own, func(short *cluster.Job) *cluster.Alloc { return c.fit(q, short) })
		}
		if alloc == nil {
			open = append(open, q)
		} else if why = c.limits.Blocked(own, q.want.part.Name, alloc); why == cluster.NoReason {
			if q.own != nil {
				alloc.Reservation = q.own.Name
			}
			c.start(own, task, alloc)
			if own != full {
				c.out[len(c.out)-1].Limit = own.Limit
			}
			return true
		} else { // with other nodes it may be none
			c.fickle = append(c.fickle, j.ID)
		}
	}
	if len(open) == 0 { // others may pass it
		c.held = true
		if c.s.Config().LimitStop {
			c.stop(qs)
		}
		c.wait(j, why, "", nil)
		return false
	}
	if c.makeRoom(j, open) { // 6
		return false
	}
	if b := (blocked{job: j, at: c.turn.at, open: open}); !c.responsive || c.binds(j, c.turn.patience) && !c.ahead(j) {
		c.line(b)
	} else {
		b.open = slices.Clone(open)
		c.blocked = append(c.blocked, b)
	}
	return false
}

// line records why a job that could start nowhere waits, and when it is planned to start.
func (c *cycle) line(b blocked) {
	if b.parts != nil {
		c.lineSet(b)
		return
	}
	why, head := c.reserve(b.job, b.open)
	note := ""
	if len(c.reserved) > 0 {
		if note = c.reservedNote(b.open[0], b.job); note != "" {
			why = cluster.WaitNodeNotAvail
		}
	}
	c.wait(b.job, why, note, head)
}

// idle is the same nodes without any job.
func (c *cycle) idle() *pool {
	if c.bare == nil {
		c.bare = c.free.emptied()
	}
	return c.bare
}

// closed tells why a partition starts nothing of this job now.
func (c *cycle) closed(p *cluster.Partition, j *cluster.Job) cluster.Reason {
	switch {
	case p.State == cluster.PartitionDown:
		return cluster.WaitPartitionDown
	case p.State == cluster.PartitionInactive:
		return cluster.WaitPartitionInactive
	case c.stopped[p]:
		return cluster.WaitPriority
	case c.tooLong(p, j) && c.allowed(p, j) == j:
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

// mask tells of which planned starts a job must keep off if it starts now, and until when it may run.
func (c *cycle) mask(j *cluster.Job) (mask uint64, over time.Time) { return c.maskOf(j.Limit) }

func (c *cycle) maskOf(limit time.Duration) (mask uint64, over time.Time) {
	over = until(c.now, limit)
	for i, h := range c.heads {
		if over.After(h.at) {
			mask |= 1 << i
		}
	}
	return mask, over
}

// fit finds an allocation that is free now and delays no reservation: a job that would still run
// when a reserved start comes takes of its nodes only what they will have left beside it.
func (c *cycle) fit(q *question, j *cluster.Job) *cluster.Alloc {
	mask, over := c.mask(j)
	off := c.off(q.own, j, c.now, over)
	c.near = c.near || q.own != nil || !off.none()
	c.longest = max(c.longest, over.Sub(c.now))
	if off.none() && c.fails(q, mask) {
		return nil
	}
	alloc := c.find(q, mask, off)
	if alloc == nil && off.none() {
		q.fail(mask)
	}
	return alloc
}

func (c *cycle) start(j *cluster.Job, task int, alloc *cluster.Alloc) {
	c.pools(func(p *pool) { p.start(alloc, j.Spec) })
	c.license(j)
	c.limits.Start(j, alloc.Partition, alloc)
	for _, h := range c.heads {
		if until(c.now, j.Limit).After(h.at) {
			h.outlives(c.free, alloc.Shares)
		}
	}
	c.begun = append(c.begun, release{at: until(c.now, j.Limit), shares: alloc.Shares})
	if task != cluster.TaskAny {
		c.running[j.ArrayID]++
	}
	c.out = append(c.out, cluster.Decision{Job: j.ID, Task: task, Start: alloc, Backfilled: len(c.heads) > 0})
}

// reserve gives the first job of each partition that does not fit a planned start that later
// jobs of this cycle can not delay (EASY backfill). Reservations keep off each other's nodes.
func (c *cycle) reserve(j *cluster.Job, qs []*question) (cluster.Reason, *reservation) {
	first := false
	var best *reservation
	if !c.responsive && !c.binds(j, 0) {
		return cluster.WaitPriority, nil
	}
	for _, q := range qs {
		if c.waiting[q.want.part] != nil {
			continue
		}
		first, c.waiting[q.want.part] = true, j
		if len(c.heads) >= maxHeads || !c.limits.Reserves(j, q.want.part.Name) {
			continue
		}
		if r := c.plan(q, j); r != nil && (best == nil || r.at.Before(best.at)) {
			best = r
		}
	}
	if !first {
		return cluster.WaitPriority, nil
	}
	if best != nil {
		best.job = j.ID
		c.heads = append(c.heads, best)
	}
	return cluster.WaitResources, best
}

// timeline is when what runs, and what this cycle has started, will be over.
func (c *cycle) timeline() []release {
	if c.ends == nil {
		c.ends = releases(c.s)
		for _, k := range c.reserved { // moments at which more can be had, too
			c.ends = append(c.ends, release{at: k.End})
			if k.Start.After(c.now) {
				c.ends = append(c.ends, release{at: k.Start})
			}
		}
		slices.SortStableFunc(c.ends, func(a, b release) int { return a.at.Compare(b.at) })
	}
	if len(c.begun) == 0 {
		return c.ends
	}
	all := slices.Concat(c.ends, c.begun)
	slices.SortStableFunc(all, func(a, b release) int { return a.at.Compare(b.at) })
	return all
}

// kept is the nodes of all reservations.
func (c *cycle) kept() nodeSet {
	if len(c.heads) == 0 {
		return nil
	}
	set := make(nodeSet, len(c.free.spaces))
	for _, h := range c.heads {
		for i, in := range h.nodes {
			set[i] = set[i] || in
		}
	}
	return set
}

// stop closes the partitions of questions for the rest of the cycle.
func (c *cycle) stop(qs []*question) {
	if c.stopped == nil {
		c.stopped = map[*cluster.Partition]bool{}
	}
	for _, q := range qs {
		c.stopped[q.want.part] = true
	}
}

// wait records why a job waits, if that is news.
func (c *cycle) wait(j *cluster.Job, why cluster.Reason, note string, head *reservation) {
	if head == nil && j.Wait == why && j.WaitNote == note && j.PlannedStart.IsZero() {
		return
	}
	d := cluster.Decision{Job: j.ID, Task: cluster.TaskAny, Wait: why, Note: note}
	if head != nil {
		d.StartsAt, d.Nodes = head.at, head.list
	}
	if j.Wait == why && j.WaitNote == note && j.PlannedStart.Equal(d.StartsAt) {
		return
	}
	c.out = append(c.out, d)
}
