package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestCurves: a plot says what it shows of how many, in which unit, and what all of them did.
func TestCurves(t *testing.T) {
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lines := func(n int, v float64) (out []Curve) {
		for i := range n {
			out = append(out, Curve{
				Name:   fmt.Sprintf("n%d", i),
				Points: []PlotPoint{{At: from, Used: v}, {At: from.Add(time.Minute), Used: v}},
			})
		}
		return out
	}
	many := lines(40, 80)
	many[1].Points[0].Used, many[7].Odd = 99, true
	for _, c := range []struct {
		list                     []Curve
		unit, title, now, legend string
		drawn                    int
	}{
		{list: lines(1, 0.05), unit: "GB", title: "X, GB", now: "0.05 GB on average, 0.05 GB at most", drawn: 1},
		{list: lines(8, 2.5), title: "X", now: "2.5 on average, 2.5 at most", legend: "8 nodes", drawn: 8},
		{
			list: many, unit: "%", title: "X, %", now: "80 % on average, 99 % at most",
			legend: "14 of 39 nodes; n7", drawn: 15,
		},
	} {
		p := Curves("X", c.unit, "nodes", c.list, from, from.Add(time.Hour), 10*time.Minute, "15:04")
		var keys []string
		for _, k := range p.Legend {
			keys = append(keys, k.Title)
		}
		if got := strings.Join(keys, "; "); p.Title != c.title || p.Now != c.now || got != c.legend || len(p.Shapes) != c.drawn ||
			p.Text != "X over time, "+c.now {
			t.Errorf("%q, %q, legend %q, %d lines, %q", p.Title, p.Now, got, len(p.Shapes), p.Text)
		}
	}
}
