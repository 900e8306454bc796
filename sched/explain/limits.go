package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/sched"
	"dev.muster/sched/place"
)

// explainLimits explains limits that the job would go over in a partition.
func (e *Explanation) explainLimits(s *cluster.Snapshot, now time.Time, p *cluster.Partition, list []cluster.Overrun) {
	for k := range list {
		e.explainLimit(s, now, "partition "+p.Name, &list[k])
	}
}

// explainLimit explains a limit that the job would go over: whose it is, what counts against it, and when there will
// be room.
func (e *Explanation) explainLimit(s *cluster.Snapshot, now time.Time, where string, o *cluster.Overrun) {
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
	who := "the job asks"
	more := ""
	if o.Jobs != nil {
		who = componentsText(o.Jobs) + map[bool]string{true: " asks", false: " ask"}[len(o.Jobs) == 1]
		more = ", " + who + " for " + place.Count(len(o.Jobs), "more", "more")
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
		text += fmt.Sprintf("%s now", place.Count(int(o.Used), "job runs", "jobs run")) + more
	case o.Minutes:
		text += fmt.Sprintf("what runs has %s%s left, %s", number(o.Used), unit, asks)
	default:
		text += fmt.Sprintf("%s in use, %s", number(o.Used), asks)
	}
	if !o.Least && o.Asks > o.Max {
		text += "; it never fits"
	} else if at, last := (&shortfall{o.Holders, o.Used, o.Asks, o.Max}).overAt(s, now); last != nil {
		text += fmt.Sprintf("; there is room at %s when %s is over", at.Format(time.DateTime), e.jobText(last))
	}
	e.addCause(o.Reason, o.Show, "%s", text)
}

// shortfall is that more is asked for than is left of what a limit or a license allows.
type shortfall struct {
	holders           []cluster.Holder
	used, asked, most float64
}

// overAt is when enough of what is used is given back for what is asked, if all that hold some run to their limits, and
// the job that is the last of these; nil if that would not do, or if that job is not planned to end.
func (f *shortfall) overAt(s *cluster.Snapshot, now time.Time) (time.Time, *cluster.Job) {
	over := func(h cluster.Holder) time.Time { return sched.PlannedEnd(h.Job, s.Config()) }
	slices.SortStableFunc(f.holders, func(a, b cluster.Holder) int { return over(a).Compare(over(b)) })
	left := f.used
	for _, h := range f.holders {
		left -= h.N
		if left+f.asked > f.most {
			continue
		}
		if at := over(h); at.Before(now.Add(sched.Endless / 2)) {
			return at, h.Job
		}
		break
	}
	return time.Time{}, nil
}
