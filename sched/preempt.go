package sched

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"dev.muster/cluster"
)

// Preemption: a job that can not start otherwise makes others leave, the least important first, if it
// could start in their place. Their nodes are kept for it until they are gone. A heterogeneous job makes others leave only
// if then all of it could start, and is kept the nodes for all of it. A job of a reservation that lets others have its nodes
// meanwhile (MaxStartDelay) makes these leave.

// evictor is what a cycle knows of jobs that leave or may have to. A cycle has one if jobs preempt others at all.
type evictor struct {
	soon   []release                        // of jobs that end, or whose grace runs
	owed   map[cluster.JobID][]*cluster.Job // jobs that leave, by the one that they leave for
	asleep []*cluster.Job                   // suspended to make room
	others []*cluster.Job                   // all that run, in the order in which they would be chosen; of a heterogeneous job the first
	may    map[rivalKey][]victim            // those that a kind of job may make leave
	rooms  int                              // jobs that make others leave in this cycle
	gone   map[cluster.JobID]bool           // chosen in this cycle
	vain   map[vainKey]uint32               // what made no room, or needs none, with the highest priority that asked
	sets   map[vainKey]int                  // numbers of what the first components of a heterogeneous job ask
}

// rivalKey is what jobs have in common that may make the same ones leave.
type rivalKey struct {
	part *cluster.Partition
	own  *keptNodes // if it lets others have its nodes meanwhile
	qos  string
	prio uint32 // where it counts
}

// vainKey is a question as jobs of one QOS and time limit ask it.
type vainKey struct {
	q     *question
	mask  uint64
	qos   string
	limit time.Duration  // where nodes are reserved
	let   cluster.Signal // onto reserved nodes
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

// on reports whether it has something of one of the nodes of which a set tells.
func (v victim) on(counts func(cluster.NodeName) bool) bool {
	return slices.ContainsFunc(v.all, func(j *cluster.Job) bool {
		return slices.ContainsFunc(j.Alloc.Shares, func(sh cluster.Share) bool { return counts(sh.Node) })
	})
}

// claim is where a job, or a component of a heterogeneous one, would be once others have left.
type claim struct {
	job   *cluster.Job
	q     *question
	alloc *cluster.Alloc
	may   map[cluster.JobID]bool // those that it may make leave; nil: all that are in question
}

// needs reports whether it would be in the place of one.
func (cl claim) needs(v victim) bool {
	return (cl.may == nil || cl.may[v.ID]) && v.on(func(n cluster.NodeName) bool {
		return slices.ContainsFunc(cl.alloc.Shares, func(own cluster.Share) bool { return own.Node == n })
	})
}

func newEvictor(s *cluster.Snapshot) *evictor {
	cfg := s.Config()
	if cfg.Preempt.Type == cluster.PreemptNone && !slices.ContainsFunc(s.Reservations(), func(r *cluster.Reservation) bool { return r.MaxStartDelay > 0 }) {
		return nil
	}
	e := &evictor{owed: map[cluster.JobID][]*cluster.Job{}, may: map[rivalKey][]victim{}, gone: map[cluster.JobID]bool{},
		vain: map[vainKey]uint32{}, sets: map[vainKey]int{}}
	ranks := map[cluster.JobID]int{}
	for j := range s.Live() {
		switch {
		case j.Phase == cluster.Ending:
			e.soon = append(e.soon, release{j.EndingAt, j.HeldShares(), !j.HoldsCPUs()})
		case j.Preempt == nil:
			ranks[j.ID], e.others = s.PreemptRank(j), append(e.others, j)
			continue
		case j.Preempt.Mode == cluster.PreemptSuspend:
			if j.Phase == cluster.Suspended {
				e.asleep = append(e.asleep, j)
			}
			continue
		default:
			e.soon = append(e.soon, release{j.Preempt.Until, j.Alloc.Shares, !j.HoldsCPUs()})
		}
		if j.Preempt != nil {
			e.owed[j.Preempt.By] = append(e.owed[j.Preempt.By], j)
		}
	}
	slices.SortFunc(e.others, func(a, b *cluster.Job) int {
		young := 0
		if cfg.Preempt.Youngest {
			young = b.Started.Compare(a.Started)
		}
		return cmp.Or(young, cmp.Compare(ranks[a.ID], ranks[b.ID]), cmp.Compare(len(a.Alloc.Shares), len(b.Alloc.Shares)), cmp.Compare(a.ID, b.ID))
	})
	e.others, e.asleep = firsts(e.others), firsts(e.asleep)
	return e
}

// firsts leaves of each heterogeneous job the first component alone.
func firsts(jobs []*cluster.Job) []*cluster.Job {
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

// goOn resumes those that were suspended to make room, before the first job that they need not make
// room for, nil at the end of the queue; if nobody has taken their CPUs. A heterogeneous job goes on as a whole.
func (c *cycle) goOn(j *cluster.Job) {
	c.evict.asleep = slices.DeleteFunc(c.evict.asleep, func(v *cluster.Job) bool {
		all := c.s.Whole(v)
		if j != nil && slices.ContainsFunc(c.whole(j), func(o *cluster.Job) bool {
			return slices.ContainsFunc(all, func(w *cluster.Job) bool { return c.s.ComesBefore(o, w) })
		}) {
			return false
		}
		if !slices.ContainsFunc(all, func(w *cluster.Job) bool { return !c.mayGoOn(w) }) {
			for _, w := range all {
				c.regain(w)
			}
			c.out = append(c.out, cluster.Decision{Job: v.ID, Task: cluster.TaskAny, Resume: true})
		}
		return true
	})
}

// regain takes of what is free the CPUs of a job that goes on.
func (c *cycle) regain(v *cluster.Job) {
	for _, sh := range v.Alloc.Shares {
		if i, ok := c.free.at(sh.Node); ok {
			c.pools(func(p *pool) {
				p.spaces[i].giveOut(sh.CPUs, v.Alloc.Over > 0)
				p.spaces[i].settle()
				p.note(i, false)
			})
		}
	}
}

// mayGoOn reports whether a job that was suspended waits for nobody, and its CPUs are free.
func (c *cycle) mayGoOn(v *cluster.Job) bool {
	if c.s.Yields(v, c.now) {
		return false
	}
	for _, sh := range v.Alloc.Shares {
		i, ok := c.free.at(sh.Node)
		taken := c.s.Load(sh.Node).Taken(v.Alloc.Over).Intersect(sh.CPUs)
		if ok {
			taken = sh.CPUs.Minus(c.row(v.Alloc.Over).spaces[i].cpus)
		}
		if !taken.Empty() || ok && slices.ContainsFunc(c.heads, func(h *reservation) bool { return h.nodes.has(i) }) {
			return false
		}
	}
	return true
}

// makeRoom deals with a job that does not fit in any of the questions' partitions: it keeps the nodes
// of those that leave for it, or chooses some that shall. False if it waits like any other job.
func (c *cycle) makeRoom(j *cluster.Job, qs []*question) bool {
	e := c.evict
	if !c.clears(j) {
		return false
	}
	for _, q := range qs {
		key := c.vainKey(j, q)
		if most, known := e.vain[key]; known && j.Priority <= most && len(e.owed[j.ID]) == 0 {
			continue
		}
		if c.makeRoomIn(j, q) {
			for _, q := range qs {
				c.waiting[q.want.part] = j
			}
			return true
		}
		if c.mayEvict(j) {
			e.vain[key] = max(e.vain[key], j.Priority)
		}
	}
	return false
}

// clears reports whether others leave for a job, or might.
func (c *cycle) clears(j *cluster.Job) bool {
	return c.evict != nil && len(c.heads) < maxHeads && (len(c.evict.owed[j.ID]) > 0 || c.mayEvict(j))
}

// mayEvict reports whether a job may make others leave now.
func (c *cycle) mayEvict(j *cluster.Job) bool {
	return c.evict.rooms < maxRooms && !j.Evicted.Next().After(c.now)
}

func (c *cycle) vainKey(j *cluster.Job, q *question) vainKey {
	mask, _ := c.mask(j)
	key := vainKey{q: q, mask: mask, qos: j.Spec.QOS}
	if len(c.reserved) > 0 {
		key.limit = j.Limit
		if j.Spec.Signal.Reservation {
			key.let = j.Spec.Signal
		}
	}
	return key
}

// soon is what will be free once those have left that leave already.
func (c *cycle) soon(over int) *pool {
	p := c.row(over).clone()
	for _, r := range c.evict.soon {
		p.give(r)
	}
	return p
}

func (c *cycle) makeRoomIn(j *cluster.Job, q *question) bool {
	e := c.evict
	rivals := c.rivals(j, q)
	if len(rivals) == 0 && len(e.owed[j.ID]) == 0 {
		return false
	}
	soon := c.soon(q.want.over)
	fit := func(gone []victim) []claim {
		p := soon.clone()
		for _, v := range gone {
			c.back(p, v)
		}
		if a := c.fitIn(p, q, j, nil); a != nil {
			return []claim{{job: j, q: q, alloc: a}}
		}
		return nil
	}
	if at := fit(nil); at != nil { // nobody else need leave
		if len(e.owed[j.ID]) > 0 {
			c.wait(j, cluster.WaitResources, "", c.hold(soon, at[0], e.gather(j)))
			return true
		}
		return false
	}
	if !c.mayEvict(j) {
		return false
	}
	chosen, at := c.victims(rivals, fit)
	if at == nil || c.limits.Blocked(j, q.want.part.Name, at[0].alloc) != cluster.NoReason {
		return false
	}
	for _, v := range chosen {
		c.back(soon, v)
	}
	r := c.hold(soon, at[0], c.now)
	c.out = append(c.out, c.evicts(at[0], chosen, r))
	e.rooms++
	return true
}

// evicts decides that of the chosen those leave in whose place a claim is.
func (c *cycle) evicts(at claim, chosen []victim, r *reservation) cluster.Decision {
	d := cluster.Decision{Job: at.job.ID, Task: cluster.TaskAny, Wait: cluster.WaitResources, Partition: at.q.want.part.Name, StartsAt: r.at, Nodes: r.list}
	if at.q.own != nil {
		d.Reservation = at.q.own.Name
	}
	for _, v := range chosen {
		if !c.evict.gone[v.ID] && at.needs(v) {
			c.evict.gone[v.ID] = true
			d.Evict = append(d.Evict, v.ID)
		}
	}
	return d
}

// gather is when the last of those that leave for a job will be gone.
func (e *evictor) gather(j *cluster.Job) (at time.Time) {
	for _, v := range e.owed[j.ID] {
		if v.Phase == cluster.Ending {
			at = later(at, v.EndingAt)
		} else {
			at = later(at, v.Preempt.Until)
		}
	}
	return at
}

// rivalKey is what decides which jobs one may make leave.
func (c *cycle) rivalKey(j *cluster.Job, q *question) rivalKey {
	key := rivalKey{part: q.want.part}
	if q.own != nil && q.own.MaxStartDelay > 0 {
		key.own = q.own
	}
	if c.s.Config().Preempt.Type == cluster.PreemptQOS {
		key.qos, key.prio = j.Spec.QOS, j.Priority
	}
	return key
}

// rivals are the jobs that one may make leave, in the order in which they would be chosen.
func (c *cycle) rivals(j *cluster.Job, q *question) []victim {
	key := c.rivalKey(j, q)
	list, ok := c.evict.may[key]
	if !ok {
		var own *cluster.Reservation
		if key.own != nil {
			own = key.own.Reservation
		}
		for _, v := range c.evict.others {
			if mode := c.s.Preempts(j, q.want.part, own, v, c.now); mode != cluster.PreemptOff {
				list = append(list, victim{v, mode, c.s.Whole(v)})
			}
		}
		c.evict.may[key] = list
	}
	here := make(nodeSet, len(c.free.spaces))
	for _, i := range c.free.members(q.want.part) {
		here[i] = true
	}
	var out []victim
	for _, v := range list {
		if !c.evict.gone[v.ID] && v.on(func(n cluster.NodeName) bool { i, ok := c.free.at(n); return ok && here[i] }) {
			out = append(out, v)
		}
	}
	return out
}

// victims chooses who leaves, and where those will be that they leave for: rivals are taken away in turn until all fit; then
// those are spared in whose place nobody will be, and it is tried again with the others first, led by the one that made it fit.
// Nil if nothing helps. fit is told who has left.
func (c *cycle) victims(rivals []victim, fit func(gone []victim) []claim) (chosen []victim, at []claim) {
	order := rivals
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
			if slices.ContainsFunc(now, func(cl claim) bool { return cl.needs(v) }) {
				useful = append(useful, v)
			}
		}
		if chosen, at = useful, now; len(useful) < 2 {
			break
		}
		k := len(useful) - 1 // the last one is certainly needed
		order = slices.Concat(useful[k:], useful[:k])
		for _, v := range rivals {
			if !slices.ContainsFunc(useful, func(u victim) bool { return u.ID == v.ID }) {
				order = append(order, v)
			}
		}
	}
	return chosen, at
}

// back gives to a pool what a job leaves: all that it has, or when it is suspended its CPUs.
func (c *cycle) back(p *pool, v victim) {
	for _, j := range v.all {
		if v.mode != cluster.PreemptSuspend {
			p.give(release{shares: j.Alloc.Shares, noCPUs: !j.HoldsCPUs()})
			continue
		}
		for _, sh := range j.Alloc.Shares {
			if i, ok := p.at(sh.Node); ok {
				sp := &p.spaces[i]
				sp.takeBack(sh.CPUs)
				sp.settle()
				p.note(i, true)
			}
		}
	}
}

// fitIn is fit in another pool than what is free now, away from nodes that are taken.
func (c *cycle) fitIn(p *pool, q *question, j *cluster.Job, taken nodeSet) *cluster.Alloc {
	mask, over := c.mask(j)
	if q.gauge.hopeless(p.scene(c.heads, mask)) {
		return nil
	}
	return q.gauge.view(p, c.heads, mask).find(c.off(q.own, j, c.now, over).and(taken))
}

// hold keeps what a job claims of a pool for it, against all later ones of the cycle.
func (c *cycle) hold(p *pool, at claim, when time.Time) *reservation {
	r := c.planned(p, at, when)
	c.heads = append(c.heads, r)
	return r
}

// planned is the start of a claim.
func (c *cycle) planned(p *pool, at claim, when time.Time) *reservation {
	r := newReservation(p, when, at.alloc, nil)
	_, over := c.mask(at.job)
	r.job, r.barred = at.job.ID, c.off(at.q.own, at.job, c.now, over).cpus
	return r
}

// preemption explains who leaves for a job, whom it lets go first, and why it makes nobody leave now.
func (e *Explanation) preemption(c *cycle, j *cluster.Job) {
	if c.evict == nil {
		return
	}
	if c.s.Yields(j, c.now) {
		e.add(cluster.WaitPriority, "", "it made room for job %d, which goes first", j.Preempt.By)
	}
	j = c.whole(j)[0] // others leave for all of a heterogeneous job
	var ids []string
	for _, v := range c.evict.owed[j.ID] {
		ids = append(ids, fmt.Sprint(v.ID))
	}
	if ids != nil {
		e.add(cluster.WaitResources, "", "%s to leave for it: %s", count(len(ids), "job is", "jobs are"), strings.Join(ids, ", "))
	}
	if next := j.Evicted.Next(); next.After(c.now) && ids == nil {
		e.add(cluster.WaitResources, "", "it has made others leave %s, last at %s, and did not stay running: it may again from %s on",
			count(j.Evicted.Count, "time", "times"), j.Evicted.Last.Format(time.DateTime), next.Format(time.DateTime))
	}
}
