package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// Of the chart of accounts.
const (
	chartOwners = 8 // that have a color of their own; the others are one
	chartHigh   = 150
	chartFoot   = 170
	rateDays    = 7 // by which a budget's end is reckoned
)

// usedDays are the last days, of what a visitor may see; nil where history is not whole.
func (s *pages) usedDays(ctx context.Context, sees visibility.Scope) (days []dayUse, err error) {
	if s.History == nil || !s.History.Whole() {
		return nil, nil
	}
	all, err := s.daily.sums(ctx, s.History, time.Now())
	for _, d := range all {
		days = append(days, dayUse{d.day, sees.OnlyOwn(slices.Clone(d.rows))})
	}
	return days, err
}

// chartOf draws GPU hours per day by account or user; nil if nothing was used.
func chartOf(days []dayUse, r *http.Request) *ui.Chart {
	of := func(row *cluster.UsageRow) string { return row.Account }
	c := &ui.Chart{Unit: "GPU hours", By: []ui.Link{{Text: "account", To: "/accounts", Here: true},
		{Text: "user", To: "/accounts?by=user"}}}
	kind := "account"
	if r.FormValue("by") == "user" {
		of, kind = func(row *cluster.UsageRow) string { return row.User }, "user"
		c.By[0].Here, c.By[1].Here = false, true
	}
	sums, most, all := make([]map[string]float64, len(days)), 0.0, map[string]float64{}
	for i, d := range days {
		sums[i] = map[string]float64{}
		for k := range d.rows {
			if n := cluster.AmountOf(d.rows[k].Used, "gres/gpu") / 3600; n > 0 {
				sums[i][of(&d.rows[k])] += n
				all[of(&d.rows[k])] += n
			}
		}
		most = max(most, total(sums[i]))
	}
	if most == 0 {
		return nil
	}
	owners := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), strings.Compare(a, b))
	})
	c.Most, c.Half = axisText(most), axisText(most/2)
	for i, d := range days {
		c.Bars = append(c.Bars, dayBars(i, d.day, sums[i], owners, most)...)
	}
	for i, name := range owners[:min(len(owners), chartOwners)] {
		c.Legend = append(c.Legend, ui.Owner{Name: cmp.Or(name, "none"), Class: ownerClass(i), Hours: whole(all[name]),
			To: "/queue?state=ended&" + kind + "=" + name})
	}
	if rest := owners[min(len(owners), chartOwners):]; len(rest) > 0 {
		n := 0.0
		for _, name := range rest {
			n += all[name]
		}
		c.Legend = append(c.Legend, ui.Owner{Name: fmt.Sprintf("%d others", len(rest)), Class: "rest", Hours: whole(n)})
	}
	return c
}

func total(of map[string]float64) (n float64) {
	for _, v := range of {
		n += v
	}
	return n
}

// axisText words hours beside an axis.
func axisText(hours float64) string {
	if hours < 1 {
		return strconv.FormatFloat(hours, 'g', 2, 64)
	}
	return whole(hours)
}

// whole words hours.
func whole(hours float64) string { return strconv.FormatFloat(hours, 'f', b2i(hours < 100), 64) }

// ownerClass is the color of one of those who used most.
func ownerClass(i int) string {
	if i >= chartOwners {
		return "rest"
	}
	return "c" + strconv.Itoa(i)
}

// dayBars are the parts of a day's bar, the largest owner lowest; what is less than a line is part of the next.
func dayBars(i int, day time.Time, sums map[string]float64, owners []string, most float64) (out []ui.Bar) {
	x, w := i*1000/chartDays, 1000/chartDays-4
	foot := ui.Bar{X: x, W: w, Y: chartFoot}
	if i%5 == 0 {
		foot.Label = day.Format("Jan 2")
	}
	upTo, y, others := 0.0, chartFoot, 0.0
	part := func(hours float64, name, class string) {
		upTo += hours
		top := chartFoot - int(upTo/most*chartHigh+0.5)
		if hours > 0 && top < y {
			out = append(out, ui.Bar{X: x, W: w, Y: top, H: y - top, Class: class,
				Title: fmt.Sprintf("%s, %s: %.3g of %.3g GPU hours", day.Format("Jan 2"), name, hours, total(sums))})
			y = top
		}
	}
	for k, name := range owners {
		if k >= chartOwners {
			others += sums[name]
			continue
		}
		part(sums[name], cmp.Or(name, "none"), ownerClass(k))
	}
	part(others, "others", "rest")
	return append(out, foot)
}

// budgets lists the limits on what may be used in all, and when they are used up if it goes on as in the last week.
func budgets(sees visibility.Scope, days []dayUse, now time.Time) (out []ui.Budget) {
	add := func(of string, limits cluster.Limits, spent cluster.Spent, whose func(*cluster.UsageRow) bool) {
		for l := range limits.Named("GrpTRESMins") {
			used := cluster.AmountOf(spent.TRES, l.TRES) / 60
			if l.TRES == "billing" {
				used = spent.Raw / 60
			}
			what := map[string]string{"gres/gpu": "GPU hours", "cpu": "CPU hours", "node": "node hours"}[l.TRES]
			b := ui.Budget{Of: of, TRES: cmp.Or(what, l.TRES+" hours"), Used: hours(used * 60),
				Limit: hours(float64(l.Max) * 60),
				Bar:   ui.Gauge{Name: l.TRES + " minutes", Used: int(used), Have: int(l.Max)}}
			b.Rate, b.Lasts = lasts(days, l.TRES, (float64(l.Max)-used)/60, whose, now)
			if !sees.Snap.Config().Priority.Multifactor {
				b.Used, b.Rate, b.Lasts = "not counted", "", ""
			}
			out = append(out, b)
		}
	}
	for a := range sees.Snap.Assocs() {
		if sees.Owner(cluster.PrivateUsage, a.User, a.Account) {
			below := accountsBelow(sees.Snap, a)
			add(strings.TrimSpace("account "+a.Account+" "+a.User), a.Limits, a.Spent, func(r *cluster.UsageRow) bool {
				return below[r.Account] && (a.User == "" || a.User == r.User)
			})
		}
	}
	for q := range sees.Snap.QOSes() {
		add("QOS "+q.Name, q.Limits, q.Spent, nil)
	}
	slices.SortStableFunc(out, func(a, b ui.Budget) int { return b.Bar.Percent() - a.Bar.Percent() })
	return out
}

// accountsBelow are an association's account and those under it.
func accountsBelow(snap *cluster.Snapshot, top *cluster.Association) map[string]bool {
	parent := map[cluster.AssocID]*cluster.Association{}
	for a := range snap.Assocs() {
		parent[a.ID] = a
	}
	below := map[string]bool{top.Account: true}
	if top.User != "" {
		return below
	}
	for _, a := range parent {
		for up := a; up != nil; up = parent[up.Parent] {
			if up.ID == top.ID {
				below[a.Account] = true
				break
			}
			if up.Parent == up.ID {
				break
			}
		}
	}
	return below
}

// lasts reckons the day on which hours that are left are used up, by what was used a day in the last week.
func lasts(days []dayUse, tres string, left float64, whose func(*cluster.UsageRow) bool, now time.Time) (rate,
	day string) {
	if left <= 0 {
		return "", "used up"
	}
	if whose == nil || len(days) < rateDays {
		return "", ""
	}
	used := 0.0
	for _, d := range days[len(days)-rateDays:] {
		for k := range d.rows {
			if whose(&d.rows[k]) {
				used += cluster.AmountOf(d.rows[k].Used, tres) / 3600
			}
		}
	}
	since := now.Sub(days[len(days)-rateDays].day).Hours() / 24
	if used == 0 {
		return "0", "not expected"
	}
	perDay := used / since
	switch n := left / perDay; {
	case n > 3650:
		day = "not expected"
	default:
		day = now.Add(time.Duration(n * 24 * float64(time.Hour))).Format("2 Jan 2006")
	}
	return whole(perDay), day
}
