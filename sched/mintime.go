package sched

import (
	"slices"
	"time"

	"dev.muster/cluster"
)

// Jobs with a least time limit (--time-min) get a shorter one if that lets them start at once: what is left until the
// next planned start, reservation or their own deadline, or what the partition allows. They are planned with their
// whole limit.

// withLimit is a job with a shorter time limit, in whole minutes; nil if that is less than it can do with.
func withLimit(j *cluster.Job, limit time.Duration) *cluster.Job {
	limit = limit.Truncate(time.Minute)
	if limit >= j.Limit || limit < j.Spec.LimitMin || limit <= 0 {
		return nil
	}
	short := *j
	short.Limit = limit
	return &short
}

// beforeDeadline cuts a job's limit to end before its deadline, if it may be cut.
func (c *cycle) beforeDeadline(j *cluster.Job) *cluster.Job {
	if at := j.Spec.Deadline; j.Spec.LimitMin > 0 && !at.IsZero() {
		if short := withLimit(j, at.Sub(c.now)); short != nil {
			return short
		}
	}
	return j
}

// tooLong reports whether a partition does not allow the job's limit.
func (c *cycle) tooLong(p *cluster.Partition, j *cluster.Job) bool {
	return p.MaxTime != 0 && p.MaxTime != cluster.Unlimited && j.Limit > p.MaxTime && !c.meter.Lifted(j)
}

// withinPartition cuts a job's limit to what the partition allows, if it may be cut.
func (c *cycle) withinPartition(p *cluster.Partition, j *cluster.Job) *cluster.Job {
	if j.Spec.LimitMin > 0 && c.tooLong(p, j) {
		if short := withLimit(j, p.MaxTime); short != nil {
			return short
		}
	}
	return j
}

// fitShorter finds the longest limit with which a job that does not fit would.
func (c *cycle) fitShorter(j *cluster.Job, fit func(*cluster.Job) *cluster.Alloc) (*cluster.Job, *cluster.Alloc) {
	var ends []time.Time
	for _, ps := range c.planned {
		ends = append(ends, ps.At)
	}
	for _, rn := range c.reserved {
		ends = append(ends, rn.Start)
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	for _, at := range slices.CompactFunc(ends, time.Time.Equal) {
		if short := withLimit(j, at.Sub(c.now)); short != nil {
			if a := fit(short); a != nil {
				return short, a
			}
		}
	}
	return nil, nil
}
