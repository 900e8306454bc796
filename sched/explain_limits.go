package sched

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
)

// explainLimits explains the limits that the job would go over, with what it asks for or with an allocation; false if
// there are none.
func (e *Explanation) explainLimits(c *cycle, p *cluster.Partition, j *cluster.Job, a *cluster.Alloc) bool {
	list := c.meter.Overruns(j, p.Name, a)
	for k := range list {
		e.explainLimit(c, "partition "+p.Name, &list[k])
	}
	return len(list) > 0
}

// explainLimit explains a limit that the job would go over: whose it is, what counts against it, and when there will
// be room.
func (e *Explanation) explainLimit(c *cycle, where string, o *cluster.Overrun) {
	number := func(n float64) string {
		switch {
		case o.Seconds:
			return spanText(time.Duration(n) * time.Second)
		case o.TRES == "mem" && !o.Minutes:
			return fmt.Sprintf("%.0f MB", n)
		case o.Least && o.TRES == "": // a share
			return fmt.Sprintf("%.3g", n)
		}
		return fmt.Sprintf("%.0f", n)
	}
	unit := map[bool]string{true: " minutes"}[o.Minutes]
	who, more := "the job asks", ""
	if o.Jobs != nil {
		who = componentsText(o.Jobs) + map[bool]string{true: " asks", false: " ask"}[len(o.Jobs) == 1]
		more = ", " + who + " for " + count(len(o.Jobs), "more", "more")
	}
	asks := fmt.Sprintf("%s for %s%s", who, number(o.Asks), unit)
	text := fmt.Sprintf("%s: %s=%s of %s: ", where, o.Limit, strings.ReplaceAll(number(o.Max), " ", ""), o.Of)
	switch {
	case o.Limit == "UsageThreshold":
		text += fmt.Sprintf("the fair share of the job's association is %s", number(o.Asks))
	case o.One:
		text += asks
	case o.Spent:
		text += fmt.Sprintf("%s%s used up", number(o.Used), unit)
		if o.Asks > 0 {
			text += ", " + asks
		}
	case o.TRES == "":
		text += fmt.Sprintf("%s now", count(int(o.Used), "job runs", "jobs run")) + more
	case o.Minutes:
		text += fmt.Sprintf("what runs has %s%s left, %s", number(o.Used), unit, asks)
	default:
		text += fmt.Sprintf("%s in use, %s", number(o.Used), asks)
	}
	if !o.Least && o.Asks > o.Max {
		text += "; it never fits"
	} else if at, last := c.roomAgainAt(o.Holders, o.Used, o.Asks, o.Max); last != nil {
		text += fmt.Sprintf("; there is room at %s when job %d is over", at.Format(time.DateTime), last.ID)
	}
	e.addCause(o.Reason, o.Show, "%s", text)
}

// explainJointLimits explains the limits that the components of a heterogeneous job would go over if they started
// now; false if there are none.
func (e *Explanation) explainJointLimits(c *cycle, comps []*component) bool {
	var claims []cluster.Claim
	for _, comp := range comps {
		one := cluster.Claim{Job: comp.job, Part: comp.job.Spec.Partitions[0]}
		for _, shape := range slices.Concat(comp.shapes, comp.limitedShapes) {
			one.Part = shape.demand.part.Name
			away := c.exclusionFor(shape.reservation, comp.job, c.now, endOf(c.now, comp.job.Limit))
			if a := shape.demand.allocateIn(c.freeWithOverlap(shape.demand.jobsPerCPU), away); a != nil {
				one.Alloc = a
				break
			}
		}
		claims = append(claims, one)
	}
	list := c.meter.Jointly(claims)
	for k := range list {
		e.explainLimit(c, fmt.Sprintf("heterogeneous job %d", comps[0].job.Het.ID), &list[k])
	}
	return len(list) > 0
}

// roomAgainAt is when enough of what is used is given back for what is asked, if all that hold some run to their
// limits, and the job that is the last of these; nil if that would not do, or if that job is not planned to end.
func (c *cycle) roomAgainAt(holders []cluster.Holder, used, asked, most float64) (time.Time, *cluster.Job) {
	over := func(h cluster.Holder) time.Time { return plannedEnd(h.Job, c.s.Config()) }
	slices.SortStableFunc(holders, func(a, b cluster.Holder) int { return over(a).Compare(over(b)) })
	for _, h := range holders {
		if used -= h.N; used+asked > most {
			continue
		}
		if at := over(h); at.Before(c.now.Add(endless / 2)) {
			return at, h.Job
		}
		break
	}
	return time.Time{}, nil
}
