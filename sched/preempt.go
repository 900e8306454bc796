package sched

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched/place"
)

// Preemption: a job that cannot start otherwise makes others leave, the least important first, if it could start in
// their place. Their nodes are kept for it until they are gone. A heterogeneous job makes others leave only if then
// all of it could start, and is kept the nodes for all of it. A job of a reservation that lets others have its nodes
// meanwhile (MaxStartDelay) makes these leave.

// preemption is what a cycle knows of jobs that leave or may have to. A cycle has one if jobs preempt others at all.
type preemption struct {
	leaving      []place.Release                  // what jobs hold that end, or whose grace time runs
	leavingFor   map[cluster.JobID][]*cluster.Job // jobs that leave, by the job for which they do
	suspended    []*cluster.Job                   // jobs that were suspended for others
	runningJobs  []*cluster.Job                   // in the order of choice; of a heterogeneous job the first component
	victimsByKey map[victimsKey][]victim          // who may have to leave for jobs with this key
	preemptors   int                              // how many jobs have made others leave in this cycle
	evicted      map[cluster.JobID]bool           // chosen to leave in this cycle
	futile       map[futileKey]uint32             // for whom nobody can leave usefully, with the highest priority tried
	hetNumbers   map[futileKey]int                // numbers for prefixes of heterogeneous jobs, see futileHetKey
}

// victimsKey is what decides which jobs one may make leave.
type victimsKey struct {
	part *cluster.Partition
	own  *reservedNodes // if it lets others have its nodes meanwhile
	qos  string
	prio uint32 // where it counts
}

// futileKey is a shape as jobs of one QOS and time limit ask it.
type futileKey struct {
	shape  *jobShape
	mask   uint64
	qos    string
	limit  time.Duration  // where nodes are reserved
	signal cluster.Signal // onto reserved nodes
	// Of a heterogeneous job's component: its priority, and the number of what those before it ask, one at least.
	prio   uint32
	before int
}

// victim is who may have to leave, and how: a job, or a heterogeneous one with all its components.
type victim struct {
	*cluster.Job
	mode cluster.PreemptMode
	all  []*cluster.Job
}

// usesAny reports whether it runs on one of the nodes that count.
func (v victim) usesAny(counts func(cluster.NodeName) bool) bool {
	return slices.ContainsFunc(v.all, func(j *cluster.Job) bool {
		return slices.ContainsFunc(j.Alloc.Parts(), func(sh cluster.Share) bool { return counts(sh.Node) })
	})
}

// preemptClaim is where a job, or a component of a heterogeneous one, would be once others have left.
type preemptClaim struct {
	job         *cluster.Job
	shape       *jobShape
	alloc       *cluster.Alloc
	preemptible map[cluster.JobID]bool // those that it may make leave; nil: all that are in question
}

// needs reports whether the claim would be on nodes of a victim.
func (cl preemptClaim) needs(v victim) bool {
	return (cl.preemptible == nil || cl.preemptible[v.ID]) && v.usesAny(func(n cluster.NodeName) bool {
		return slices.ContainsFunc(cl.alloc.Shares, func(own cluster.Share) bool { return own.Node == n })
	})
}

func newPreemption(s *cluster.Snapshot, now time.Time) *preemption {
	cfg := s.Config()
	letsOthers := func(r *cluster.Reservation) bool { return r.MaxStartDelay > 0 }
	if cfg.Preempt.Type == cluster.PreemptNone && !slices.ContainsFunc(s.Reservations(), letsOthers) {
		return nil
	}
	pre := &preemption{leavingFor: map[cluster.JobID][]*cluster.Job{}, victimsByKey: map[victimsKey][]victim{},
		evicted: map[cluster.JobID]bool{},
		futile:  map[futileKey]uint32{}, hetNumbers: map[futileKey]int{}}
	ranks := map[cluster.JobID]int{}
	for j := range s.Live() {
		switch {
		case j.Phase == cluster.Ending:
			pre.leave(j, j.EndingAt, j.HeldShares())
		case j.Preempt == nil:
			ranks[j.ID], pre.runningJobs = s.PreemptRank(j), append(pre.runningJobs, j)
			continue
		case j.Preempt.Mode == cluster.PreemptSuspend:
			if j.Phase == cluster.Suspended {
				pre.suspended = append(pre.suspended, j)
			}
			continue
		default:
			pre.leave(j, j.Preempt.Until, j.Alloc.Parts())
		}
		if j.Preempt != nil {
			pre.leavingFor[j.Preempt.By] = append(pre.leavingFor[j.Preempt.By], j)
		}
	}
	slices.SortFunc(pre.runningJobs, func(a, b *cluster.Job) int {
		young := 0
		if cfg.Preempt.Youngest {
			young = b.Started.Compare(a.Started)
		}
		lost := time.Duration(0)
		if cfg.Preempt.LeastLost {
			lost = cluster.LostWork(a, now) - cluster.LostWork(b, now)
		}
		return cmp.Or(young, cmp.Compare(ranks[a.ID], ranks[b.ID]), cmp.Compare(lost, 0),
			cmp.Compare(len(a.Alloc.Shares), len(b.Alloc.Shares)),
			cmp.Compare(a.ID, b.ID))
	})
	pre.runningJobs, pre.suspended = firstComponents(pre.runningJobs), firstComponents(pre.suspended)
	return pre
}

// leave notes that a job gives back shares at a time.
func (pre *preemption) leave(j *cluster.Job, at time.Time, shares []cluster.Share) {
	pre.leaving = append(pre.leaving, place.Release{At: at, Shares: shares, NoCPUs: !j.HoldsCPUs()})
}

// firstComponents leaves of each heterogeneous job the first component alone.
func firstComponents(jobs []*cluster.Job) []*cluster.Job {
	sets := map[cluster.JobID]bool{}
	return slices.DeleteFunc(jobs, func(j *cluster.Job) bool {
		if j.Het == nil {
			return false
		}
		known := sets[j.Het.ID]
		sets[j.Het.ID] = true
		return known
	})
}

// resumeSuspended resumes those that were suspended to make room, before the first job that they need not make
// room for, nil at the end of the queue; if nobody has taken their CPUs. A heterogeneous job goes on as a whole.
func (c *cycle) resumeSuspended(j *cluster.Job) {
	c.preemption.suspended = slices.DeleteFunc(c.preemption.suspended, func(v *cluster.Job) bool {
		all := c.s.Whole(v)
		if j != nil && slices.ContainsFunc(c.hetMembers(j), func(o *cluster.Job) bool {
			return slices.ContainsFunc(all, func(w *cluster.Job) bool { return c.s.ComesBefore(o, w) })
		}) {
			return false
		}
		if !slices.ContainsFunc(all, func(w *cluster.Job) bool { return !c.canResume(w) }) {
			for _, w := range all {
				c.retakeCPUs(w)
			}
			c.decisions = append(c.decisions, cluster.Decision{Job: v.ID, Task: cluster.TaskAny, Resume: true})
		}
		return true
	})
}

// retakeCPUs takes the CPUs of a job that is resumed.
func (c *cycle) retakeCPUs(v *cluster.Job) {
	c.eachFreeSet(func(fs *place.FreeSet) { fs.RetakeCPUs(v.Alloc) })
}

// canResume reports whether a job that was suspended waits for nobody, and its CPUs are free.
func (c *cycle) canResume(v *cluster.Job) bool {
	if c.s.Yields(v, c.now) {
		return false
	}
	for _, sh := range v.Alloc.Parts() {
		i, ok := c.free.Index(sh.Node)
		taken := c.s.Load(sh.Node).Taken(v.Alloc.Over).Intersect(sh.CPUs)
		if ok {
			taken = c.freeWithOverlap(v.Alloc.Over).CPUsTaken(i, sh.CPUs)
		}
		if !taken.Empty() || ok && slices.ContainsFunc(c.planned,
			func(ps *place.PlannedStart) bool { return ps.Nodes.Has(i) }) {
			return false
		}
	}
	return true
}

// preempt deals with a job that does not fit in any of the shapes' partitions: it keeps the nodes
// of those that leave for it, or chooses some that shall. False if it waits like any other job.
func (c *cycle) preempt(j *cluster.Job, shapes []*jobShape) bool {
	pre := c.preemption
	if !c.mayPreempt(j) {
		return false
	}
	for _, shape := range shapes {
		key := c.futileKeyOf(j, shape)
		if most, known := pre.futile[key]; known && j.Priority <= most && len(pre.leavingFor[j.ID]) == 0 {
			continue
		}
		if c.preemptForShape(j, shape) {
			for _, shape := range shapes {
				c.firstBlocked[shape.part] = j
			}
			return true
		}
		if c.mayEvict(j) {
			pre.futile[key] = max(pre.futile[key], j.Priority)
		}
	}
	return false
}

// mayPreempt reports whether others are leaving for a job, or may have to.
func (c *cycle) mayPreempt(j *cluster.Job) bool {
	return c.preemption != nil && len(c.planned) < maxPlannedStarts &&
		(len(c.preemption.leavingFor[j.ID]) > 0 || c.mayEvict(j))
}

// mayEvict reports whether a job may make others leave now.
func (c *cycle) mayEvict(j *cluster.Job) bool {
	return c.preemption.preemptors < maxPreemptors && !j.Evicted.Next().After(c.now)
}

func (c *cycle) futileKeyOf(j *cluster.Job, shape *jobShape) futileKey {
	mask, _ := c.plannedAcross(j)
	key := futileKey{shape: shape, mask: mask, qos: j.Spec.QOS}
	if len(c.reserved) > 0 {
		key.limit = j.Limit
		if j.Spec.Signal.Reservation {
			key.signal = j.Spec.Signal
		}
	}
	return key
}

// freeAfterLeaving is what will be free once those have left that are leaving already.
func (c *cycle) freeAfterLeaving(over int) *place.FreeSet {
	fs := c.freeWithOverlap(over).Clone()
	for _, r := range c.preemption.leaving {
		fs.GiveBack(r)
	}
	return fs
}

func (c *cycle) preemptForShape(j *cluster.Job, shape *jobShape) bool {
	pre := c.preemption
	candidates := c.victimsFor(j, shape)
	if len(candidates) == 0 && len(pre.leavingFor[j.ID]) == 0 {
		return false
	}
	soon := c.freeAfterLeaving(shape.demand.JobsPerCPU)
	fit := func(gone []victim) []preemptClaim {
		fs := soon.Clone()
		for _, v := range gone {
			c.giveBackVictim(fs, v)
		}
		if a := c.fitInSet(fs, shape, j, nil); a != nil {
			return []preemptClaim{{job: j, shape: shape, alloc: a}}
		}
		return nil
	}
	if at := fit(nil); at != nil { // nobody else need leave
		if len(pre.leavingFor[j.ID]) > 0 {
			c.recordWait(j, cluster.WaitResources, "", c.holdClaim(soon, at[0], pre.allGoneAt(j)))
			return true
		}
		return false
	}
	if !c.mayEvict(j) {
		return false
	}
	chosen, at := c.chooseVictims(candidates, fit)
	if at == nil || c.meter.Blocked(j, shape.part.Name, at[0].alloc) != cluster.NoReason {
		return false
	}
	for _, v := range chosen {
		c.giveBackVictim(soon, v)
	}
	ps := c.holdClaim(soon, at[0], c.now)
	c.decisions = append(c.decisions, c.evictDecision(at[0], chosen, ps))
	pre.preemptors++
	return true
}

// evictDecision decides that of the chosen those leave in whose place a claim is.
func (c *cycle) evictDecision(at preemptClaim, chosen []victim, ps *place.PlannedStart) cluster.Decision {
	d := cluster.Decision{Job: at.job.ID, Task: cluster.TaskAny, Wait: cluster.WaitResources,
		Partition: at.shape.part.Name, StartsAt: ps.At, Nodes: ps.Names}
	if at.shape.reservation != nil {
		d.Reservation = at.shape.reservation.Name
	}
	for _, v := range chosen {
		if !c.preemption.evicted[v.ID] && at.needs(v) {
			c.preemption.evicted[v.ID] = true
			d.Evict = append(d.Evict, v.ID)
		}
	}
	return d
}

// allGoneAt is when the last of those that leave for a job will be gone.
func (pre *preemption) allGoneAt(j *cluster.Job) (at time.Time) {
	for _, v := range pre.leavingFor[j.ID] {
		if v.Phase == cluster.Ending {
			at = laterOf(at, v.EndingAt)
		} else {
			at = laterOf(at, v.Preempt.Until)
		}
	}
	return at
}

// victimsKeyOf is the key of a job of a shape.
func (c *cycle) victimsKeyOf(j *cluster.Job, shape *jobShape) victimsKey {
	key := victimsKey{part: shape.part}
	if shape.reservation != nil && shape.reservation.MaxStartDelay > 0 {
		key.own = shape.reservation
	}
	if c.s.Config().Preempt.Type == cluster.PreemptQOS {
		key.qos = j.Spec.QOS
		key.prio = j.Priority
	}
	return key
}

// victimsFor are the jobs that one may make leave, in the order in which they would be chosen.
func (c *cycle) victimsFor(j *cluster.Job, shape *jobShape) []victim {
	key := c.victimsKeyOf(j, shape)
	list, ok := c.preemption.victimsByKey[key]
	if !ok {
		var own *cluster.Reservation
		if key.own != nil {
			own = key.own.Reservation
		}
		for _, v := range c.preemption.runningJobs {
			if mode := c.s.Preempts(j, shape.part, own, v, c.now); mode != cluster.PreemptOff {
				list = append(list, victim{v, mode, c.s.Whole(v)})
			}
		}
		c.preemption.victimsByKey[key] = list
	}
	here := c.free.NoNodes()
	for _, i := range c.free.Members(shape.part) {
		here[i] = true
	}
	var out []victim
	for _, v := range list {
		if !c.preemption.evicted[v.ID] && v.usesAny(func(n cluster.NodeName) bool {
			i, ok := c.free.Index(n)
			return ok &&
				here[i]
		}) {
			out = append(out, v)
		}
	}
	return out
}

// chooseVictims chooses who leaves, and where those will be that they leave for: candidates are taken away in turn
// until all fit; then those are spared in whose place nobody will be, and it is tried again with the others first,
// led by the one that made it fit. Nil if nothing helps. fit is told who has left.
func (c *cycle) chooseVictims(
	candidates []victim, fit func(gone []victim) []preemptClaim,
) (chosen []victim, at []preemptClaim) {
	order := candidates
	for range 1 + c.s.Config().Preempt.Reorders {
		if at == nil && (len(order) == 0 || fit(order) == nil) {
			return nil, nil
		}
		n := 1 + sort.Search(len(order)-1, func(n int) bool { return fit(order[:n+1]) != nil })
		now := fit(order[:n])
		if now == nil { // less may do where more does not
			break
		}
		var useful []victim
		for _, v := range order[:n] {
			if slices.ContainsFunc(now, func(cl preemptClaim) bool { return cl.needs(v) }) {
				useful = append(useful, v)
			}
		}
		chosen = useful
		at = now
		if len(useful) < 2 {
			break
		}
		k := len(useful) - 1 // the last one is certainly needed
		order = slices.Concat(useful[k:], useful[:k])
		for _, v := range candidates {
			if !slices.ContainsFunc(useful, func(u victim) bool { return u.ID == v.ID }) {
				order = append(order, v)
			}
		}
	}
	return chosen, at
}

// giveBackVictim returns to a free set what a victim leaves: all that it has, or if it is suspended its CPUs.
func (c *cycle) giveBackVictim(fs *place.FreeSet, v victim) {
	for _, j := range v.all {
		if v.mode != cluster.PreemptSuspend {
			fs.GiveBack(place.Release{Shares: j.Alloc.Parts(), NoCPUs: !j.HoldsCPUs()})
			continue
		}
		fs.GiveBackCPUs(j.Alloc.Parts())
	}
}

// fitInSet finds an allocation in another free set than the cycle's, away from nodes that are taken.
func (c *cycle) fitInSet(fs *place.FreeSet, shape *jobShape, j *cluster.Job, taken place.NodeSet) *cluster.Alloc {
	mask, over := c.plannedAcross(j)
	if shape.fit.HopelessIn(fs, c.planned, mask) {
		return nil
	}
	away := c.exclusionFor(shape.reservation, j, c.now, over).WithNodes(taken)
	return shape.fit.FindOnce(fs, c.planned, mask, away)
}

// holdClaim keeps what a job claims of a free set for it, against all later ones of the cycle.
func (c *cycle) holdClaim(fs *place.FreeSet, at preemptClaim, when time.Time) *place.PlannedStart {
	ps := c.planClaim(fs, at, when)
	c.planned = append(c.planned, ps)
	return ps
}

// planClaim is the start of a claim.
func (c *cycle) planClaim(fs *place.FreeSet, at preemptClaim, when time.Time) *place.PlannedStart {
	_, over := c.plannedAcross(at.job)
	away := c.exclusionFor(at.shape.reservation, at.job, c.now, over)
	ps := place.PlanAlloc(fs, when, at.alloc, away.Parts)
	ps.Job = at.job.ID
	return ps
}
