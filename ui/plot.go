package ui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Size of a plot. Its curves are stretched to the width that there is; texts are placed by percent, so that they have
// one size in plots of any width.
const (
	plotWidth  = 720
	plotHeight = 180
	plotTop    = 12
	plotFoot   = 24
	plotGap    = 5 // parts that may be missing before a curve breaks off
)

// Plot is curves over time.
type Plot struct {
	Title, Now string
	Shapes     []Shape
	Ticks      []Tick
	Levels     []Level
	Hovers     []Bar
	Legend     []Cell
	Text       string // what it shows, for who cannot see it
}

// Width and Height of the drawing.
func (Plot) Width() int { return plotWidth }

// Height is that of the drawing.
func (Plot) Height() int { return plotHeight }

// Tick is a moment with its text, in percent of the width.
type Tick struct {
	At   float64
	Text string
}

// Shape is a line or an area.
type Shape struct{ Class, D, Title string }

// Level is a line across, with its value.
type Level struct {
	Y    int
	Text string
}

// PlotPoint is a moment of a curve.
type PlotPoint struct {
	At                time.Time
	Total, Used, Lost float64
}

// frame places moments and values in a plot.
type frame struct {
	from, to time.Time
	most     float64
	width    time.Duration // of the usual distance of two points
}

func (f frame) x(t time.Time) float64 {
	part := float64(t.Sub(f.from)) / float64(f.to.Sub(f.from))
	return min(max(part, 0), 1) * plotWidth
}

func (f frame) y(v float64) float64 {
	return plotTop + (1-min(max(v/f.most, 0), 1))*(plotHeight-plotTop-plotFoot)
}

// runs are the points without the gaps between them.
func (f frame) runs(points []PlotPoint) (out [][]PlotPoint) {
	start := 0
	for i := range points {
		if i > 0 && points[i].At.Sub(points[i-1].At) > plotGap*f.width/2 {
			out = append(out, points[start:i])
			start = i
		}
	}
	return append(out, points[start:])
}

// until is when the part of a run ends that a point stands for.
func (f frame) until(run []PlotPoint, i int) time.Time {
	if i+1 < len(run) {
		return run[i+1].At
	}
	return run[i].At.Add(f.width)
}

// area is the space between two values of all points. It goes in steps: each point is the mean of its time, and
// between two of them nothing is known.
func (f frame) area(class string, points []PlotPoint, low, high func(PlotPoint) float64) Shape {
	var b strings.Builder
	for _, run := range f.runs(points) {
		if len(run) == 0 {
			continue
		}
		f.steps(&b, run, high)
		for i := len(run) - 1; i >= 0; i-- {
			y := f.y(low(run[i]))
			fmt.Fprintf(&b, "L%.1f %.1fL%.1f %.1f", f.x(f.until(run, i)), y, f.x(run[i].At), y)
		}
		b.WriteString("Z")
	}
	return Shape{Class: class, D: b.String()}
}

// steps begins a path with the values of a run.
func (f frame) steps(b *strings.Builder, run []PlotPoint, value func(PlotPoint) float64) {
	for i, p := range run {
		y := f.y(value(p))
		fmt.Fprintf(b, "%s%.1f %.1fL%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], f.x(p.At), y,
			f.x(f.until(run, i)), y)
	}
}

// stepLine goes along a value in steps.
func (f frame) stepLine(class string, points []PlotPoint, value func(PlotPoint) float64) Shape {
	var b strings.Builder
	for _, run := range f.runs(points) {
		f.steps(&b, run, value)
	}
	return Shape{Class: class, D: b.String()}
}

// line goes along a value.
func (f frame) line(class string, points []PlotPoint, value func(PlotPoint) float64) Shape {
	var b strings.Builder
	for _, run := range f.runs(points) {
		for i, p := range run {
			fmt.Fprintf(&b, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[i == 0], f.x(p.At), f.y(value(p)))
		}
		if len(run) > 0 {
			fmt.Fprintf(&b, "L%.1f %.1f", f.x(run[len(run)-1].At.Add(f.width)), f.y(value(run[len(run)-1])))
		}
	}
	return Shape{Class: class, D: b.String()}
}

// newPlot makes a plot with its scales.
func newPlot(title string, from, to time.Time, most float64, points []PlotPoint, tick time.Duration,
	stamp string) (Plot, frame) {
	step, f := niceStep(most), frame{from: from, to: to, width: max(to.Sub(from)/96, time.Minute)}
	f.most = step
	for f.most < most {
		f.most += step
	}
	for i := 1; i < len(points); i++ {
		if d := points[i].At.Sub(points[i-1].At); d > 0 && d < f.width {
			f.width = d
		}
	}
	p := Plot{Title: title}
	for v := 0.0; v <= f.most; v += step {
		p.Levels = append(p.Levels, Level{int(f.y(v)), short(v)})
	}
	day := time.Date(from.Year(), from.Month(), from.Day(), 0, 0, 0, 0, from.Location())
	for t := day; t.Before(to); t = t.Add(tick) {
		if at := f.x(t) * 100 / plotWidth; t.After(from) && at > 4 && at < 96 {
			p.Ticks = append(p.Ticks, Tick{at, t.Format(stamp)})
		}
	}
	return p, f
}

// niceStep is the distance of about four levels.
func niceStep(most float64) float64 {
	step := 1.0
	for i := 0; step*4 < most; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	return max(step, 1)
}

// short is a value in few characters.
func short(v float64) string {
	if v >= 10_000 {
		return strconv.FormatFloat(v/1000, 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// Stacked draws what was in use, free and out of service.
func Stacked(title string, points []PlotPoint, from, to time.Time, tick time.Duration, stamp string) Plot {
	most, used, total := 1.0, 0.0, 0.0
	for _, p := range points {
		most = max(most, p.Total)
		used, total = used+p.Used, total+p.Total
	}
	plot, f := newPlot(title, from, to, most, points, tick, stamp)
	plot.Now = fmt.Sprintf("%.0f %% in use on average", 100*used/max(total, 1))
	inUse := func(p PlotPoint) float64 { return p.Used }
	plot.Shapes = []Shape{
		f.area("p-free", points, inUse, func(p PlotPoint) float64 { return p.Total - p.Lost }),
		f.area("p-used", points, func(PlotPoint) float64 { return 0 }, inUse),
		f.area("p-out", points, func(p PlotPoint) float64 { return p.Total - p.Lost },
			func(p PlotPoint) float64 { return p.Total }),
	}
	plot.Legend = []Cell{{Class: "p-used", Title: "in use"}, {Class: "p-free", Title: "free"}, {Class: "p-out",
		Title: "out of service"}}
	plot.hover(f, points, func(p PlotPoint) string {
		return fmt.Sprintf("%.0f in use, %.0f free, %.0f out of service", p.Used, p.Total-p.Used-p.Lost, p.Lost)
	})
	plot.Text = title + " over time, " + plot.Now
	return plot
}

// Lines draws how many there were of several things, by name and word.
func Lines(title string, what [][2]string, points map[string][]PlotPoint, from, to time.Time, tick time.Duration,
	stamp string) Plot {
	most, all := 1.0, map[int64]PlotPoint{}
	var long []PlotPoint
	for _, w := range what {
		for _, p := range points[w[0]] {
			most = max(most, p.Used)
		}
		if len(points[w[0]]) > len(long) {
			long = points[w[0]]
		}
	}
	plot, f := newPlot(title, from, to, most, long, tick, stamp)
	var texts []string
	for i, w := range what {
		class := fmt.Sprintf("p-line%d", i)
		plot.Shapes = append(plot.Shapes, f.stepLine(class, points[w[0]],
			func(p PlotPoint) float64 { return p.Used }))
		plot.Legend = append(plot.Legend, Cell{Class: class, Title: w[1]})
		peak := 0.0
		for _, p := range points[w[0]] {
			peak = max(peak, p.Used)
		}
		texts = append(texts, fmt.Sprintf("%.0f %s", peak, w[1]))
		for _, p := range points[w[0]] {
			sum := all[p.At.Unix()]
			sum.At = p.At
			if i == 0 {
				sum.Used = p.Used
			} else {
				sum.Total = p.Used
			}
			all[p.At.Unix()] = sum
		}
	}
	for i, p := range long {
		long[i].Used, long[i].Total = all[p.At.Unix()].Used, all[p.At.Unix()].Total
	}
	plot.hover(f, long, func(p PlotPoint) string {
		return fmt.Sprintf("%.0f %s, %.0f %s", p.Used, what[0][1], p.Total, what[1][1])
	})
	plot.Now = "at most " + strings.Join(texts, ", ")
	plot.Text = title + " over time, " + plot.Now
	return plot
}

// hover tells of each part of a plot what it shows.
func (p *Plot) hover(f frame, points []PlotPoint, text func(PlotPoint) string) {
	for _, at := range points {
		x := int(f.x(at.At))
		p.Hovers = append(p.Hovers, Bar{X: x, W: max(int(f.x(at.At.Add(f.width)))-x, 1), Y: plotTop,
			H:     plotHeight - plotTop - plotFoot,
			Title: at.At.Format("Jan 2 15:04") + ": " + text(at)})
	}
}

// Day is where a day begins.
type Day struct {
	X    int
	Text string
}

// Bar is a rectangle of a drawing, with what it stands for.
type Bar struct {
	X, Y, W, H   int
	Title, Label string
	Class, To    string
}

// Cell is a GPU of the map.
type Cell struct {
	Class, Title string
	To           string // the job that has it
}
