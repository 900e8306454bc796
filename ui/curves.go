package ui

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Curve is a line of a plot of several that should be alike.
type Curve struct {
	Name   string
	Points []PlotPoint // Used is the value
	Odd    bool        // it is not like the others
}

// Bounds of a plot.
const (
	CurvesDrawn = 16 // lines, and those that are odd: people cannot tell more apart
	curveKeys   = 4  // lines that get a name of their own
)

// Curves draws lines that should be alike, with those marked that are not. what is the word for one of them.
func Curves(title, unit, what string, list []Curve, from, to time.Time, tick time.Duration,
	stamp string) Plot {
	most, sum, n := 0.0, 0.0, 0
	var long []PlotPoint
	for _, c := range list {
		for _, p := range c.Points {
			most, sum, n = max(most, p.Used), sum+p.Used, n+1
		}
		if len(c.Points) > len(long) {
			long = c.Points
		}
	}
	plot, f := newPlot(title, from, to, max(most, 1), long, tick, stamp)
	if unit != "" {
		plot.Title += ", " + unit
	}
	plot.Now = fmt.Sprintf("%s on average, %s at most", withUnit(sum/float64(max(n, 1)), unit), withUnit(most, unit))
	value := func(p PlotPoint) float64 { return p.Used }
	every := len(list)
	list = few(list)
	slices.SortStableFunc(list, func(a, b Curve) int { return oddness(a) - oddness(b) }) // those lie on top
	odd := 0
	for _, c := range list {
		class := "p-curve"
		if c.Odd {
			class = "p-odd"
			if odd++; odd <= curveKeys {
				plot.Legend = append(plot.Legend, Cell{Class: class, Title: c.Name})
			}
		}
		shape := f.line(class, c.Points, value)
		shape.Title = c.Name
		plot.Shapes = append(plot.Shapes, shape)
	}
	if odd > curveKeys {
		plot.Legend = append(plot.Legend, Cell{Class: "p-odd", Title: fmt.Sprintf("and %d more", odd-curveKeys)})
	}
	if what != "" && every > 1 && len(list) > odd {
		plot.Legend = append([]Cell{{Class: "p-curve", Title: alike(len(list)-odd, every-odd, what)}}, plot.Legend...)
	}
	plot.hover(f, long, func(at PlotPoint) string { return moment(list, at.At, unit) })
	plot.Text = title + " over time, " + plot.Now
	return plot
}

// alike says how many lines are drawn of those that are not odd.
func alike(drawn, every int, what string) string {
	if drawn == every {
		return fmt.Sprintf("%d %s", every, what)
	}
	return fmt.Sprintf("%d of %d %s", drawn, every, what)
}

// few are some of many lines, those that are odd among them.
func few(list []Curve) (out []Curve) {
	if len(list) <= CurvesDrawn {
		return list
	}
	step := (len(list) + CurvesDrawn - 1) / CurvesDrawn
	for i, c := range list {
		if c.Odd || i%step == 0 {
			out = append(out, c)
		}
	}
	return out
}

func oddness(c Curve) int {
	if c.Odd {
		return 1
	}
	return 0
}

// moment says what the curves were at a time.
func moment(list []Curve, at time.Time, unit string) string {
	var low, high, sum float64
	var lowest, highest string
	n := 0
	for _, c := range list {
		i, ok := slices.BinarySearchFunc(c.Points, at, func(p PlotPoint, at time.Time) int { return p.At.Compare(at) })
		if !ok {
			continue
		}
		v := c.Points[i].Used
		if n == 0 || v < low {
			low, lowest = v, c.Name
		}
		if n == 0 || v > high {
			high, highest = v, c.Name
		}
		sum, n = sum+v, n+1
	}
	switch {
	case n == 0:
		return "nothing is known"
	case n == 1:
		return withUnit(sum, unit)
	}
	return fmt.Sprintf("%s on average; %s has %s, %s has %s", withUnit(sum/float64(n), unit), lowest,
		withUnit(low, unit), highest, withUnit(high, unit))
}

func withUnit(v float64, unit string) string {
	digits := 0
	switch {
	case v == float64(int(v)):
	case v < 1:
		digits = 2
	case v < 10:
		digits = 1
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if unit == "" {
		return text
	}
	return text + " " + unit
}
