package report

import (
	"cmp"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// goodputRow is a line of sreport cluster goodput: what time was spent on, and of whom it was lost.
type goodputRow struct {
	what, cause, tres string
	secs              float64
	jobs              int64
}

// LostTo says what attempts were lost to, and that their users were given back what they were charged; "" if to
// nothing.
func LostTo(u *cluster.UsageRow) (cause string) {
	switch {
	case u.Outcome == cluster.Requeued:
		cause = "requeued"
	case u.Outcome == cluster.Preempted:
		cause = "preempted"
	case u.Outcome.Lost():
		cause = "fault: " + cmp.Or(string(u.Cause), "boot failed")
	case u.Refunded:
		cause = "fault: blamed"
	}
	if u.Refunded {
		cause += ", not charged"
	}
	return cause
}

// goodput tells how much of what was allocated went into attempts of jobs that were to no avail: which ended since
// they were requeued or made room for others, or since something broke. An attempt counts as a whole; what
// a job has saved and goes on from is not known. It is muster's own report.
func (r *reporter) goodput(a *reportAsk) int {
	a.By = cluster.ByOutcome
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	var rows []goodputRow
	for _, t := range r.tres {
		list := []goodputRow{{what: "Allocated", tres: t}, {what: "Used", tres: t}}
		for i := range resp.Rows {
			u := &resp.Rows[i]
			x := cluster.AmountOf(u.Used, t)
			list[0].secs, list[0].jobs = list[0].secs+x, list[0].jobs+u.Jobs
			if cause := LostTo(u); cause != "" {
				list = append(list, goodputRow{"Lost", cause, t, x, u.Jobs})
			} else {
				list[1].secs, list[1].jobs = list[1].secs+x, list[1].jobs+u.Jobs
			}
		}
		slices.SortStableFunc(list[2:], func(a, b goodputRow) int { return strings.Compare(a.cause, b.cause) })
		rows = append(rows, list...)
	}
	if len(resp.Rows) == 0 {
		rows = nil
	}
	r.title(a, "Cluster Goodput", true, r.usageTitle())
	all := map[string]float64{}
	for _, g := range rows {
		all[g.tres] = max(all[g.tres], g.secs)
	}
	cols := []front.Column[goodputRow]{
		{Name: "Cluster", Head: "Cluster", Width: 9, Of: func(*goodputRow) string { return resp.Cluster }},
		{Name: "What", Head: "What", Width: -10, Of: func(g *goodputRow) string { return g.what }},
		{Name: "Cause", Head: "Cause", Width: -30, Of: func(g *goodputRow) string { return g.cause }},
		{Name: "TresName", Head: "TRES Name", Width: 14, Of: func(g *goodputRow) string { return g.tres }},
		{
			Name: "Time", Head: "Time", Width: r.unit.width(12, 0),
			Of: func(g *goodputRow) string { return r.unit.write(g.secs, all[g.tres]) },
		},
		{
			Name: "Share", Head: "Share", Width: 8,
			Of: func(g *goodputRow) string { return (&reportUnit{}).write(g.secs, all[g.tres]) },
		},
		{
			Name: "Attempts", Head: "Attempts", Width: 8,
			Of: func(g *goodputRow) string { return PlainNumber(float64(g.jobs)) },
		},
	}
	return printReport(r, a, cols, "Cluster,What,Cause,TresName,Time,Share,Attempts", rows)
}
