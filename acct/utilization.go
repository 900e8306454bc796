package acct

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// hours are the sums of a step function over the hours of a span, which begins with an hour: n-seconds each. The
// last hour is cut where the span ends, which is the present: no step is later.
func (d *DB) hours(ctx context.Context, what string, s cluster.Span) ([]float64, error) {
	out := make([]float64, len(hoursOf(s)))
	rows, err := d.r.QueryContext(ctx, `SELECT -1, sum(n), 0 FROM load WHERE what = ?1 AND hour < ?2
		UNION ALL SELECT * FROM (SELECT hour, n, moment FROM load WHERE what = ?1 AND hour >= ?2 AND hour * 3600 < ?3 ORDER BY hour)`, what, s.From/hour, s.To)
	if err != nil {
		return nil, fmt.Errorf("read load: %w", err)
	}
	defer rows.Close()
	level := make([]float64, len(out)+1) // at the beginning of each hour, less the one before
	for rows.Next() {
		var h int64
		var n, moment *int64
		if err := rows.Scan(&h, &n, &moment); err != nil {
			return nil, fmt.Errorf("read load: %w", err)
		}
		switch {
		case n == nil: // there was nothing before
		case h < 0:
			level[0] += float64(*n)
		default:
			i := int(h - s.From/hour)
			out[i] += float64(*n*min(hour, s.To-h*hour) - *moment)
			level[i+1] += float64(*n)
		}
	}
	now := 0.0
	for i, h := range hoursOf(s) {
		now += level[i]
		out[i] = max(out[i]+now*float64(h.To-h.From), 0)
	}
	return out, rows.Err()
}

// hoursOf parts a span at full hours.
func hoursOf(s cluster.Span) (out []cluster.Span) {
	for at := s.From; at < s.To; at += hour {
		out = append(out, cluster.Span{From: at, To: min(at+hour, s.To)})
	}
	return out
}

// supply is what there was of one resource in each hour, and what kept it from jobs.
type supply struct{ total, down, off, held []float64 }

// Utilization tells where the time of resources went, in a span that begins with an hour. In each hour what does not
// go together gives way in this order: down, planned down, planned.
func (d *DB) Utilization(ctx context.Context, s cluster.Span) ([]cluster.Utilization, error) {
	nodes, err := d.NodeSpans(ctx, s)
	if err != nil {
		return nil, err
	}
	resvs, err := d.resvSpans(ctx, s)
	if err != nil {
		return nil, err
	}
	d.files.RLock()
	defer d.files.RUnlock()
	var out []cluster.Utilization
	for _, tres := range kindsOf(nodes) {
		sup := d.supply(nodes, s, tres)
		if err := d.reserve(ctx, &sup, resvs, s, tres); err != nil {
			return nil, err
		}
		run, err := d.hours(ctx, loadRun+tres, s)
		if err != nil {
			return nil, err
		}
		wait, err := d.hours(ctx, loadWait+tres, s)
		if err != nil {
			return nil, err
		}
		u := cluster.Utilization{TRES: tres}
		for i := range run {
			u.Hour(sup.total[i], run[i]+sup.held[i], sup.down[i], sup.off[i], wait[i])
		}
		for i := range nodes {
			if nodes[i].Time().To >= s.To {
				u.Count += cluster.AmountOf(nodes[i].TRES, tres)
			}
		}
		out = append(out, u)
	}
	return out, nil
}

// kindsOf lists what nodes have, in order of name.
func kindsOf(nodes []cluster.NodeSpan) (names []string) {
	for i := range nodes {
		for _, a := range nodes[i].TRES {
			if !slices.Contains(names, a.TRES) {
				names = append(names, a.TRES)
			}
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// supply adds up the nodes.
func (d *DB) supply(nodes []cluster.NodeSpan, s cluster.Span, tres string) supply {
	hours := hoursOf(s)
	sup := supply{
		make([]float64, len(hours)), make([]float64, len(hours)), make([]float64, len(hours)),
		make([]float64, len(hours)),
	}
	for i := range nodes {
		n, has := &nodes[i], cluster.AmountOf(nodes[i].TRES, tres)
		eachHour(hours, n.Time(), func(i int, secs int64) {
			sup.total[i] += has * float64(secs)
			switch {
			case n.Out():
				sup.down[i] += has * float64(secs)
			case n.Off:
				sup.off[i] += has * float64(secs)
			}
		})
	}
	return sup
}

// reserve adds what reservations kept from jobs: those for maintenance as planned down, others as allocated. Those
// that ignore jobs count as if they were not there.
func (d *DB) reserve(ctx context.Context, sup *supply, resvs []cluster.ResvSpan, s cluster.Span, tres string) error {
	for i := range resvs {
		r := &resvs[i]
		if r.Flags&cluster.ResvIgnoreJobs != 0 {
			continue
		}
		used, err := d.hours(ctx, loadIn+r.Name+"/"+tres, s)
		if err != nil {
			return err
		}
		to := sup.held
		if r.Flags&cluster.ResvMaint != 0 {
			to = sup.off
		}
		has := cluster.AmountOf(r.TRES, tres)
		eachHour(hoursOf(s), cluster.Span{From: r.From, To: r.To}, func(i int, secs int64) {
			to[i] += max(has*float64(secs)-used[i], 0)
		})
	}
	return nil
}

// eachHour calls f for the hours that a span reaches into, with how many seconds.
func eachHour(hours []cluster.Span, s cluster.Span, f func(i int, secs int64)) {
	if len(hours) == 0 {
		return
	}
	for i := max(int((s.From-hours[0].From)/hour), 0); i < len(hours) && hours[i].From < s.To; i++ {
		if secs := s.Within(hours[i]); secs > 0 {
			f(i, secs)
		}
	}
}
