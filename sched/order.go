package sched

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"dev.muster/cluster"
)

// The order in which jobs are tried is that of the queue where the cluster has a policy of its own (multifactor
// priorities), or asks for it (SchedulerParameters=strict_order): then the first of each partition that does not fit
// delays all that would delay it (EASY backfill).
//
// Otherwise it is the responsive order. Of the jobs of one tier those are tried first that have waited long for
// what they ask, and large ones, while short ones hardly have to wait: by wait × share / limit, largest first.
// share is that of the cluster's CPUs or GPUs, whichever is more; limits over a day count as one, lest long
// jobs pile up. Whatever fits starts. Nodes are kept free, in the order of submission for the first job of each
// partition, only once it has waited for six hours, its limit, and four times what the queue up to it takes if nothing
// is lost: keeping nodes free costs all others more than it gives one job, as long as large ones are tried first. With
// less than that the oldest always has nodes kept free where more is asked for than there is, and the queue is in order
// of submission. For the same reason nodes are kept free for no other job while those that started in this way hold
// half of the cluster. docs/adr/0006-responsive-order.md has the figures.
const (
	longLimit      = 24 * time.Hour
	minProtectWait = 6 * time.Hour
	queueFactor    = 4                  // times the queue
	maxDrainLimit  = 7 * 24 * time.Hour // that counts for how long the queue takes

	longestQueue = 10 * Endless // sums with it must not overflow
)

// blockedJob is a job that could start nowhere, its place among those looked at, and the shapes that no limit keeps
// it from.
type blockedJob struct {
	job        *cluster.Job
	at         int
	shapes     []*jobShape
	components []*component // of a heterogeneous job
}

// queuedJob is a job of one tier, and its place among those looked at.
type queuedJob struct {
	job   *cluster.Job
	at    int
	score float64
	share float64
	// patience is how much longer than by itself the job waits before nodes are kept free for it: its part of the
	// queue.
	queueWait time.Duration
	protected bool // nodes are kept free for it, since it has waited so long
}

// earnsProtection reports whether nodes are kept free for a job that does not fit.
func (c *cycle) earnsProtection(j *cluster.Job, more time.Duration) bool {
	if p, _ := c.s.PlaceOf(j.ID); p.Priority() < c.s.Config().ReservePriority {
		return false
	}
	wait := c.waited(j)
	switch least := c.s.Config().ReserveAge; {
	case least != nil:
		return wait >= *least
	case c.responsive:
		return protectedAtOnce(j) || wait >= minProtectWait+min(j.Limit, longLimit)+more &&
			!c.protected.isFull(c.s, c.scaleOfCluster())
	}
	return true
}

// protectedAtOnce reports whether nodes are kept free for a job however short its wait.
func protectedAtOnce(j *cluster.Job) bool { return cluster.Expedited(j) || j.Spec.Priority != nil }

// waited is how long a job has waited, a second at least.
func (c *cycle) waited(j *cluster.Job) time.Duration {
	return waitedSince(c.now, waitingSince(j))
}

// waitingSince is when a job began to wait.
func waitingSince(j *cluster.Job) time.Time {
	if j.Eligible.IsZero() {
		return j.Submitted
	}
	return j.Eligible
}

// waitedSince is how long a job has waited that began to at a time, a second at least.
func waitedSince(now, since time.Time) time.Duration { return max(now.Sub(since), time.Second) }

// partitionsTaken reports whether each of the job's partitions has a job for which nodes are kept free, or which is
// the first in line.
func (c *cycle) partitionsTaken(j *cluster.Job) bool {
	for _, name := range c.partitionsOf(j) {
		if p, ok := c.s.Partition(name); ok && c.firstBlocked[p] == nil {
			return false
		}
	}
	return true
}

// order yields the records of the queue that are looked at, of the first so many, each when its turn comes. plan is
// told of the blocked jobs of a tier once all others of it have had their turn.
func (c *cycle) order(most int, plan func(blockedJob)) iter.Seq[*cluster.Job] {
	c.mostRecords = most
	if !c.responsive {
		return c.orderOfQueue
	}
	return func(yield func(*cluster.Job) bool) { c.orderByScore(yield, plan) }
}

// orderOfQueue yields records in the order of the queue, which the state keeps.
func (c *cycle) orderOfQueue(yield func(*cluster.Job) bool) {
	for j := range c.s.Queue() {
		if c.looked >= c.mostRecords || len(c.started) >= maxStarts {
			c.endAt(j)
			return
		}
		c.looked++
		if j.Held == cluster.NotHeld && !yield(j) {
			return
		}
	}
}

// endAt makes a record the first that is not looked at.
func (c *cycle) endAt(j *cluster.Job) {
	p, _ := c.s.PlaceOf(j.ID)
	c.horizon = &p
}

// orderByScore yields records in the responsive order, tier by tier. The blocked jobs of a tier are planned after it,
// in the order of the queue, since the first of a partition delays all of lower tiers.
func (c *cycle) orderByScore(yield func(*cluster.Job) bool, plan func(blockedJob)) {
	var tier []queuedJob
	level := 0
	tiers := c.hasTiers()
	for j := range c.s.Queue() {
		if c.looked >= c.mostRecords {
			c.endAt(j)
			break
		}
		c.looked++
		if j.Held != cluster.NotHeld {
			continue
		}
		if own := tierOf(c, j, tiers); own != level {
			c.orderTier(tier, yield, plan)
			tier, level = tier[:0], own
		}
		if j.Follows() { // it has its leader's turn
			c.hasHet = true
			continue
		}
		tier = append(tier, c.queued(j))
	}
	c.orderTier(tier, yield, plan)
}

// tierOf is the tier of a pending record; 0 where there is only one.
func tierOf(c *cycle, j *cluster.Job, several bool) int {
	switch {
	case cluster.Expedited(j):
		return cluster.ExpeditedTier
	case !several:
		return 0
	}
	p, _ := c.s.PlaceOf(j.ID)
	return p.Tier()
}

// queued is a record with what gives it its turn; its drain time counts for those behind it.
func (c *cycle) queued(j *cluster.Job) queuedJob {
	share := c.shareOf(j)
	c.queueDrain = min(c.queueDrain+drainTime(j, share), longestQueue)
	return queuedJob{
		job: j, at: c.looked, share: share,
		score:     c.scoreOf(c.waited(j), share, j.Limit),
		queueWait: queueFactor * c.queueDrain,
	}
}

// hasTiers reports whether there is more than one.
func (c *cycle) hasTiers() bool {
	list := c.s.Config().Partitions
	return slices.ContainsFunc(list, func(p cluster.Partition) bool { return p.PriorityTier != list[0].PriorityTier })
}

func byScore(a, b queuedJob) int {
	return cmp.Or(cmp.Compare(a.job.Spec.Nice, b.job.Spec.Nice), cmp.Compare(b.score, a.score), a.at-b.at)
}

// scoreOf ranks a job of this share and limit that has waited so long; with SchedulerParameters=shortest_first by its
// limit alone.
func (c *cycle) scoreOf(waited time.Duration, share float64, limit time.Duration) float64 {
	if c.s.Config().ShortestFirst {
		return 1 / max(limit, time.Second).Seconds()
	}
	return waited.Seconds() * share / max(min(limit, longLimit), time.Second).Seconds()
}

// scaleOfCluster tells jobs' shares of the cluster.
func (c *cycle) scaleOfCluster() *cluster.Scale {
	if c.clusterScale == nil {
		c.clusterScale = c.s.Scale()
	}
	return c.clusterScale
}

// expectProtection notes that nodes may be kept free for a job from some time on, if it waits so much longer than by
// itself.
func (c *cycle) expectProtection(j *cluster.Job, more time.Duration) {
	at := c.now
	if j.Spec.Priority == nil {
		at = at.Add(minProtectWait + min(j.Limit, longLimit) + more - c.waited(j))
	}
	if c.nextProtection.IsZero() || at.Before(c.nextProtection) {
		c.nextProtection = at
	}
}

// drainTime is how long the cluster takes for a record of this share if it is full and each job runs to its limit.
func drainTime(j *cluster.Job, share float64) time.Duration {
	d := share * float64(min(j.Limit, maxDrainLimit)) * float64(max(j.Tasks.Len(), 1))
	return time.Duration(min(d, float64(longestQueue)))
}

// orderTier yields the jobs of one tier, first those for which nodes are to be kept free, then the others by score,
// and has those that are blocked planned.
func (c *cycle) orderTier(tier []queuedJob, yield func(*cluster.Job) bool, plan func(blockedJob)) {
	rest := c.orderProtected(tier, yield)
	c.protectedStarts, c.protectedJobs = len(c.planned), maps.Clone(c.firstBlocked)
	slices.SortFunc(rest, byScore)
	for _, qj := range rest {
		if len(c.started) >= maxStarts {
			break
		}
		c.current = qj
		yield(qj.job)
	}
	list := c.blocked
	c.blocked = nil
	slices.SortFunc(list, func(a, b blockedJob) int { return a.at - b.at })
	for _, b := range list {
		plan(b)
	}
}

// orderProtected yields the jobs of a tier that have earned protection where their partitions have no protected job
// yet, in the order of the queue. It returns the others.
func (c *cycle) orderProtected(tier []queuedJob, yield func(*cluster.Job) bool) []queuedJob {
	rest := make([]queuedJob, 0, len(tier))
	for _, qj := range tier {
		if c.partitionsTaken(qj.job) || len(c.started) >= maxStarts {
			rest = append(rest, qj)
			continue
		}
		if !c.earnsProtection(qj.job, qj.queueWait) {
			if !c.protected.isFull(c.s, c.scaleOfCluster()) {
				c.expectProtection(qj.job, qj.queueWait)
			}
			rest = append(rest, qj)
			continue
		}
		before := len(c.started)
		qj.protected = c.s.Config().ReserveAge == nil && !protectedAtOnce(qj.job)
		c.current = qj
		yield(qj.job)
		c.checkProtection(qj.job, len(c.started) > before)
	}
	return rest
}

// checkProtection notes what became of a job that has earned protection and had its turn, where it is not protected
// now: the next cycle must know of it.
func (c *cycle) checkProtection(j *cluster.Job, started bool) {
	switch {
	case c.isFirstBlocked(j.ID):
	case c.limited:
		c.limitedProtected[j.ID] = true
		c.lastLimited, _ = c.s.PlaceOf(j.ID)
	case !started || !j.Tasks.Empty():
		c.protectionFailed = true
	}
}
