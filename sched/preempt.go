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
// could start in their place. Their nodes are kept for it until they are gone.

// evictor is what a cycle knows of jobs that leave or may have to. A cycle has one if jobs preempt others at all.
type evictor struct {
	soon   []release                        // of jobs that end, or whose grace runs
	owed   map[cluster.JobID][]*cluster.Job // jobs that leave, by the one that they leave for
	asleep []*cluster.Job                   // suspended to make room
	others []*cluster.Job                   // all that run, in the order in which they would be chosen
	may    map[rivalKey][]victim            // those that a kind of job may make leave
	rooms  int                              // jobs that make others leave in this cycle
	gone   map[cluster.JobID]bool           // chosen in this cycle
	vain   map[vainKey]uint32               // what made no room, or needs none, with the highest priority that asked
}

// rivalKey is what jobs have in common that may make the same ones leave.
type rivalKey struct {
	part *cluster.Partition
	qos  string
	prio uint32 // where it counts
}

// vainKey is a question as jobs of one QOS and time limit ask it.
type vainKey struct {
	q     *question
	mask  uint64
	qos   string
	limit time.Duration // where nodes are reserved
}

// victim is a job that may have to leave, and how.
type victim struct {
	*cluster.Job
	mode cluster.PreemptMode
}

func newEvictor(s *cluster.Snapshot) *evictor {
	cfg := s.Config()
	if cfg.Preempt.Type == cluster.PreemptNone {
		return nil
	}
	e := &evictor{owed: map[cluster.JobID][]*cluster.Job{}, may: map[rivalKey][]victim{}, gone: map[cluster.JobID]bool{}, vain: map[vainKey]uint32{}}
	ranks := map[cluster.JobID]int{}
	for j := range s.Live() {
		switch {
		case j.Phase == cluster.Ending:
			e.soon = append(e.soon, release{j.EndingAt, left(j), !j.HoldsCPUs()})
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
	return e
}

// left is what a job that ends still holds.
func left(j *cluster.Job) []cluster.Share {
	return slices.DeleteFunc(slices.Clone(j.Alloc.Shares), func(sh cluster.Share) bool { return !slices.Contains(j.Waiting, sh.Node) })
}

// goOn resumes those that were suspended to make room, before the first job that they need not make
// room for, nil at the end of the queue; if nobody has taken their CPUs.
func (c *cycle) goOn(j *cluster.Job) {
	c.evict.asleep = slices.DeleteFunc(c.evict.asleep, func(v *cluster.Job) bool {
		if j != nil && c.s.ComesBefore(j, v) {
			return false
		}
		if !c.s.Yields(v, c.now) && c.mayGoOn(v) {
			for _, sh := range v.Alloc.Shares {
				if i, ok := c.free.at[sh.Node]; ok {
					c.pools(func(p *pool) {
						p.spaces[i].giveOut(sh.CPUs, v.Alloc.Over > 0)
						p.spaces[i].settle()
						p.note(i, false)
					})
				}
			}
			c.out = append(c.out, cluster.Decision{Job: v.ID, Task: cluster.TaskAny, Resume: true})
		}
		return true
	})
}

func (c *cycle) mayGoOn(v *cluster.Job) bool {
	for _, sh := range v.Alloc.Shares {
		i, ok := c.free.at[sh.Node]
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
	if e == nil || len(c.heads) >= maxHeads || len(e.owed[j.ID]) == 0 && (e.rooms >= maxRooms || j.Evicted.Next().After(c.now)) {
		return false
	}
	for _, q := range qs {
		mask, _ := c.mask(j)
		key := vainKey{q: q, mask: mask, qos: j.Spec.QOS}
		if len(c.reserved) > 0 {
			key.limit = j.Limit
		}
		if most, known := e.vain[key]; known && j.Priority <= most && len(e.owed[j.ID]) == 0 {
			continue
		}
		if c.makeRoomIn(j, q) {
			for _, q := range qs {
				c.waiting[q.want.part] = j
			}
			return true
		}
		e.vain[key] = max(e.vain[key], j.Priority)
	}
	return false
}

func (c *cycle) makeRoomIn(j *cluster.Job, q *question) bool {
	e := c.evict
	rivals := c.rivals(j, q)
	if len(rivals) == 0 && len(e.owed[j.ID]) == 0 {
		return false
	}
	soon := c.row(q.want.over).clone()
	for _, r := range e.soon {
		soon.give(r)
	}
	if alloc := c.fitIn(soon, q, j); alloc != nil { // nobody else need leave
		if len(e.owed[j.ID]) > 0 {
			c.wait(j, cluster.WaitResources, "", c.hold(soon, q, j, alloc, e.gather(j)))
			return true
		}
		return false
	}
	if e.rooms >= maxRooms || j.Evicted.Next().After(c.now) {
		return false
	}
	chosen, alloc := c.victims(soon, rivals, q, j)
	if alloc == nil || c.limits.Blocked(j, q.want.part.Name, alloc) != cluster.NoReason {
		return false
	}
	d := cluster.Decision{Job: j.ID, Task: cluster.TaskAny, Wait: cluster.WaitResources, Partition: q.want.part.Name}
	for _, v := range chosen {
		e.gone[v.ID] = true
		c.back(soon, v)
		d.Evict = append(d.Evict, v.ID)
	}
	e.rooms++
	r := c.hold(soon, q, j, alloc, c.now)
	d.StartsAt, d.Nodes = r.at, r.list
	c.out = append(c.out, d)
	return true
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

// rivals are the jobs that one may make leave, in the order in which they would be chosen.
func (c *cycle) rivals(j *cluster.Job, q *question) []victim {
	key := rivalKey{part: q.want.part}
	if c.s.Config().Preempt.Type == cluster.PreemptQOS {
		key.qos, key.prio = j.Spec.QOS, j.Priority
	}
	list, ok := c.evict.may[key]
	if !ok {
		for _, v := range c.evict.others {
			if mode := c.s.Preempts(j, q.want.part, v, c.now); mode != cluster.PreemptOff {
				list = append(list, victim{v, mode})
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
		if !c.evict.gone[v.ID] && slices.ContainsFunc(v.Alloc.Shares, func(sh cluster.Share) bool { i, ok := c.free.at[sh.Node]; return ok && here[i] }) {
			out = append(out, v)
		}
	}
	return out
}

// victims chooses who leaves, and where the job will be: rivals are taken away in turn until it fits; then those that
// have no node in common with it are spared, and it is tried again with the others first, led by the one that made it fit.
// Nil if nothing helps.
func (c *cycle) victims(soon *pool, rivals []victim, q *question, j *cluster.Job) (chosen []victim, alloc *cluster.Alloc) {
	order := rivals
	for range 1 + c.s.Config().Preempt.Reorders {
		without := func(n int) *cluster.Alloc {
			p := soon.clone()
			for _, v := range order[:n] {
				c.back(p, v)
			}
			return c.fitIn(p, q, j)
		}
		if alloc == nil && without(len(order)) == nil {
			return nil, nil
		}
		n := 1 + sort.Search(len(order)-1, func(n int) bool { return without(n+1) != nil })
		a := without(n)
		if a == nil { // less may do where more does not
			break
		}
		var useful []victim
		for _, v := range order[:n] {
			if slices.ContainsFunc(v.Alloc.Shares, func(sh cluster.Share) bool {
				return slices.ContainsFunc(a.Shares, func(own cluster.Share) bool { return own.Node == sh.Node })
			}) {
				useful = append(useful, v)
			}
		}
		if chosen, alloc = useful, a; len(useful) < 2 {
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
	return chosen, alloc
}

// back gives to a pool what a job leaves: all that it has, or when it is suspended its CPUs.
func (c *cycle) back(p *pool, v victim) {
	if v.mode != cluster.PreemptSuspend {
		p.give(release{shares: v.Alloc.Shares, noCPUs: !v.HoldsCPUs()})
		return
	}
	for _, sh := range v.Alloc.Shares {
		if i, ok := p.at[sh.Node]; ok {
			sp := &p.spaces[i]
			sp.takeBack(sh.CPUs)
			sp.settle()
			p.note(i, true)
		}
	}
}

// fitIn is fit in another pool than what is free now.
func (c *cycle) fitIn(p *pool, q *question, j *cluster.Job) *cluster.Alloc {
	mask, over := c.mask(j)
	if q.gauge.hopeless(p.scene(c.heads, mask)) {
		return nil
	}
	return q.gauge.view(p, c.heads, mask).find(c.off(q.own, c.now, over))
}

// hold keeps an allocation of a pool for a job, against all later ones of the cycle.
func (c *cycle) hold(p *pool, q *question, j *cluster.Job, alloc *cluster.Alloc, at time.Time) *reservation {
	r := newReservation(p, at, alloc, q.want.wholeCore, nil)
	_, over := c.mask(j)
	r.job, r.barred = j.ID, c.off(q.own, c.now, over).cpus
	p.take(alloc)
	c.heads = append(c.heads, r)
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
