package replay

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteSchedule writes job_id,start,end,nodes by start and place in the trace; the names of nodes are parted by blanks.
func (t *Trace) WriteSchedule(w io.Writer, runs []Run) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"job_id", "start", "end", "nodes"}); err != nil {
		return err
	}
	place := make(map[*Job]int, len(t.Jobs))
	for i := range t.Jobs {
		place[&t.Jobs[i]] = i
	}
	for _, r := range slices.SortedStableFunc(slices.Values(runs), func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(place[a.Job], place[b.Job]))
	}) {
		names := make([]string, len(r.Nodes))
		for i, n := range r.Nodes {
			names[i] = t.Nodes[n].Name
		}
		if err := out.Write([]string{r.Job.ID, strconv.FormatInt(r.Start, 10), strconv.FormatInt(r.End, 10), strings.Join(names, " ")}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Size of a plot, in pixels, and how many spans of time it shows the means of.
const (
	plotWidth, plotHeight = 960, 220
	plotLeft, plotTop     = 70, 50
	plotRight             = 40
	plotPoints            = 240
)

var colours = []string{"#1b6ca8", "#d1495b", "#2e933c", "#edae49", "#6a4c93", "#00798c", "#8d6a3f"}

// Draw makes a picture (SVG) of schedules of the trace: how many units wait, and what share is in use, over time.
func (t *Trace) Draw(w io.Writer, title string, names []string, schedules [][]Run) error {
	units, has := t.units()
	what := "CPUs"
	if slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.GPUs > 0 }) {
		what = "GPUs"
	}
	all, begin, end := 0, int64(0), int64(1)
	for i := range t.Nodes {
		all += has(&t.Nodes[i])
	}
	if len(t.Jobs) > 0 {
		begin = t.Jobs[0].Submit
	}
	for _, runs := range schedules {
		for _, r := range runs {
			end = max(end, r.End)
		}
	}
	at := func(k int) int64 { return begin + (end-begin)*int64(k)/plotPoints } // where span k begins
	submit := func(r Run) int64 { return r.Job.Submit }
	started := func(r Run) int64 { return r.Start }
	ended := func(r Run) int64 { return r.End }
	var b strings.Builder
	height := 2*(plotHeight+plotTop) + 60
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth+plotLeft+plotRight, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="15">%s</text>`+"\n", plotLeft, html.EscapeString(title))
	for i, n := range names {
		fmt.Fprintf(&b, `<text x="%d" y="20" fill="%s">%s</text>`+"\n", plotLeft+260+110*i, colours[i%len(colours)], html.EscapeString(n))
	}
	for panel, p := range []struct {
		label    string
		from, to func(Run) int64
		most     float64 // 0: what is found
	}{{"waiting " + what, submit, started, 0}, {what + " in use", started, ended, float64(all)}} {
		top := plotTop + panel*(plotHeight+plotTop)
		var curves [][]float64
		most := p.most
		for _, runs := range schedules {
			c := curve(runs, units, at, p.from, p.to)
			curves = append(curves, c)
			if p.most == 0 {
				most = max(most, slices.Max(c))
			}
		}
		most = max(most, 1)
		label := fmt.Sprintf("%.0f", most)
		if p.most > 0 {
			label = "100 %"
		}
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#bbb"/><text x="%d" y="%d">%s</text>`+"\n", plotLeft, top, plotWidth, plotHeight, plotLeft, top-6, p.label)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><text x="%d" y="%d" text-anchor="end">0</text>`+"\n", plotLeft-6, top+12, label, plotLeft-6, top+plotHeight)
		for i, c := range curves {
			fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.3" stroke-opacity="0.85" points="`, colours[i%len(colours)])
			for k, y := range c {
				fmt.Fprintf(&b, "%.1f,%.1f ", plotLeft+(float64(k)+.5)*plotWidth/plotPoints, float64(top+plotHeight)-y/most*plotHeight)
			}
			b.WriteString("\"/>\n")
		}
	}
	const ticks = 6
	for i := range ticks + 1 {
		days := float64((end-begin)*int64(i)/ticks) / 86400
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%.1f d</text>`+"\n", plotLeft+plotWidth*i/ticks, height-35, days)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// curve is how many units are between from and to in the mean of each span of the plot; span k is from at(k) to at(k+1).
func curve(runs []Run, units func(*Job) int, at func(int) int64, from, to func(Run) int64) []float64 {
	type change struct {
		at int64
		by int
	}
	var list []change
	for _, r := range runs {
		list = append(list, change{from(r), units(r.Job)}, change{to(r), -units(r.Job)})
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	out, n, i := make([]float64, plotPoints), 0, 0
	for k := range out {
		begin, end := at(k), at(k+1)
		sum, last := 0.0, begin
		for ; i < len(list) && list[i].at < end; i++ {
			sum += float64(n) * float64(list[i].at-last)
			n, last = n+list[i].by, list[i].at
		}
		sum += float64(n) * float64(end-last)
		out[k] = sum / float64(max(end-begin, 1))
	}
	return out
}
