package sched

import (
	"cmp"
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
// of submission. docs/adr/0006-responsive-order.md has the figures.
const (
	longLimit  = 24 * time.Hour
	patientFor = 6 * time.Hour
	patience   = 4                  // times the queue
	mostLimit  = 7 * 24 * time.Hour // that counts for how long the queue takes

	longestQueue = 10 * endless // sums with it must not overflow
)

// blocked is a job that could start nowhere, its place among those looked at, and the questions that no limit keeps it from.
type blocked struct {
	job   *cluster.Job
	at    int
	open  []*question
	parts []*part // of a heterogeneous job
}

// turn is a job of one tier, and its place among those looked at.
type turn struct {
	job   *cluster.Job
	at    int
	merit float64
	share float64
	// patience is how much longer than by itself the job waits before nodes are kept free for it: its part of the queue.
	patience time.Duration
}

// binds reports whether nodes are kept free for a job that does not fit.
func (c *cycle) binds(j *cluster.Job, more time.Duration) bool {
	if p, _ := c.s.PlaceOf(j.ID); p.Priority() < c.s.Config().ReservePriority {
		return false
	}
	wait := c.waited(j)
	switch least := c.s.Config().ReserveAge; {
	case least != nil:
		return wait >= *least
	case c.responsive:
		return j.Spec.Priority != nil || wait >= patientFor+min(j.Limit, longLimit)+more
	}
	return true
}

// waited is how long a job has waited, a second at least.
func (c *cycle) waited(j *cluster.Job) time.Duration {
	return wait(c.now, waitsSince(j))
}

// waitsSince is when a job began to wait.
func waitsSince(j *cluster.Job) time.Time {
	if j.Eligible.IsZero() {
		return j.Submitted
	}
	return j.Eligible
}

// wait is how long a job has waited that began to at a time, a second at least.
func wait(now, since time.Time) time.Duration { return max(now.Sub(since), time.Second) }

// ahead reports whether each of the job's partitions has a job for which nodes are kept free, or which is the first in line.
func (c *cycle) ahead(j *cluster.Job) bool {
	for _, name := range c.partitions(j) {
		if p, ok := c.s.Partition(name); ok && c.waiting[p] == nil {
			return false
		}
	}
	return true
}

// turns looks at so many records of the queue in the responsive order, tier by tier, and after those of a tier at its
// jobs that were blocked, in the order of the queue: the first of a partition delays all of lower tiers.
func (c *cycle) turns(most int, consider func(*cluster.Job), line func(blocked)) {
	c.most = most
	var tier []turn
	level, tiers := 0, c.tiers()
	flush := func() {
		c.turnsOf(tier, consider)
		tier = tier[:0]
		list := c.blocked
		c.blocked = nil
		slices.SortFunc(list, func(a, b blocked) int { return a.at - b.at })
		for _, b := range list {
			line(b)
		}
	}
	for j := range c.s.Queue() {
		if c.looked >= most {
			p, _ := c.s.PlaceOf(j.ID)
			c.edge = &p
			break
		}
		if c.looked++; j.Held != cluster.NotHeld {
			continue
		}
		if tiers {
			p, _ := c.s.PlaceOf(j.ID)
			if p.Tier() != level {
				flush()
				level = p.Tier()
			}
		}
		if j.Follows() { // its leader's turn is its own
			c.het = true
			continue
		}
		share := c.share(j)
		c.drain = min(c.drain+drains(j, share), longestQueue)
		tier = append(tier, turn{job: j, at: c.looked, patience: patience * c.drain,
			share: share, merit: c.merit(c.waited(j), share, j.Limit)})
	}
	flush()
}

// tiers reports whether there is more than one.
func (c *cycle) tiers() bool {
	list := c.s.Config().Partitions
	return slices.ContainsFunc(list, func(p cluster.Partition) bool { return p.PriorityTier != list[0].PriorityTier })
}

func byMerit(a, b turn) int {
	return cmp.Or(cmp.Compare(a.job.Spec.Nice, b.job.Spec.Nice), cmp.Compare(b.merit, a.merit), a.at-b.at)
}

// merit ranks a job of this share and limit that has waited so long; with SchedulerParameters=shortest_first by its limit alone.
func (c *cycle) merit(waited time.Duration, share float64, limit time.Duration) float64 {
	if c.s.Config().ShortestFirst {
		return 1 / max(limit, time.Second).Seconds()
	}
	return waited.Seconds() * share / max(min(limit, longLimit), time.Second).Seconds()
}

// sizes tells jobs' shares of the cluster.
func (c *cycle) sizes() *cluster.Scale {
	if c.scale == nil {
		c.scale = c.s.Scale()
	}
	return c.scale
}

// soonest notes that nodes may be kept free for a job from some time on, if it waits so much longer than by itself.
func (c *cycle) soonest(j *cluster.Job, more time.Duration) {
	at := c.now
	if j.Spec.Priority == nil {
		at = at.Add(patientFor + min(j.Limit, longLimit) + more - c.waited(j))
	}
	if c.bindAt.IsZero() || at.Before(c.bindAt) {
		c.bindAt = at
	}
}

// drains is how long the cluster takes for a record of this share if it is full and each job runs to its limit.
func drains(j *cluster.Job, share float64) time.Duration {
	d := share * float64(min(j.Limit, mostLimit)) * float64(max(j.Tasks.Len(), 1))
	return time.Duration(min(d, float64(longestQueue)))
}

// turnsOf looks at the jobs of one tier: first at those for which nodes are kept free, then at the others by their merit.
func (c *cycle) turnsOf(tier []turn, consider func(*cluster.Job)) {
	look := func(t turn) {
		c.turn = t
		consider(t.job)
	}
	rest := make([]turn, 0, len(tier))
	for _, t := range tier {
		if j := t.job; !c.ahead(j) && len(c.begun) < maxStarts {
			if c.binds(j, t.patience) {
				begun := len(c.begun)
				look(t)
				if c.held && !c.blocks(j.ID) {
					c.early[j.ID] = true
					c.earlyTo, _ = c.s.PlaceOf(j.ID)
				} else {
					c.strays = c.strays || !c.blocks(j.ID) && (len(c.begun) == begun || !j.Tasks.Empty())
				}
				continue
			}
			c.soonest(j, t.patience)
		}
		rest = append(rest, t)
	}
	c.bound, c.binders = len(c.heads), maps.Clone(c.waiting)
	slices.SortFunc(rest, byMerit)
	for _, t := range rest {
		if len(c.begun) >= maxStarts {
			return
		}
		look(t)
	}
}
