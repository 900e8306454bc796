package replay

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WriteSchedule writes job_id,start,end,nodes by start and place in the trace: nodes are node:share, parted by blanks.
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
			names[i] = t.Nodes[n].Name + ":" + thousandths(r.Parts[i])
		}
		if err := out.Write([]string{
			r.Job.ID, strconv.FormatInt(r.Start, 10), strconv.FormatInt(r.End, 10),
			strings.Join(names, " "),
		}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// thousandths writes so many of them: 8, 0.46.
func thousandths(n int) string { return strconv.FormatFloat(float64(n)/whole, 'f', -1, 64) }

// Size of a plot, in pixels, and how many spans of time it shows the means of.
const (
	plotWidth, plotHeight = 960, 220
	plotLeft, plotTop     = 70, 50
	plotRight             = 40
	plotPoints            = 240
	plotAll               = 2*(plotHeight+plotTop) + 60
)

var colours = []string{"#1b6ca8", "#d1495b", "#2e933c", "#edae49", "#6a4c93", "#00798c", "#8d6a3f"}

// plot is a picture (SVG) that is being drawn.
type plot struct {
	strings.Builder
	*Trace
	schedules  [][]Run
	begin, end int64
	what       string // is scarce
}

// Draw makes a picture (SVG) of schedules of the trace: how many units wait, and what share is in use, over time.
func (t *Trace) Draw(w io.Writer, title string, names []string, schedules [][]Run) error {
	p := t.plot(title, names, schedules)
	p.curves(0, "waiting "+p.what, 0, submitted, started)
	p.inUse(1)
	return p.write(w)
}

// DrawSizes makes one of how long jobs of each size wait, and what share is in use over time.
func (t *Trace) DrawSizes(w io.Writer, title string, names []string, schedules [][]Run) error {
	p := t.plot(title, names, schedules)
	p.sizes(0)
	p.inUse(1)
	return p.write(w)
}

func submitted(r Run) int64 { return r.Job.Submit }
func started(r Run) int64   { return r.Start }
func ended(r Run) int64     { return r.End }

// plot begins a picture with its title and the names of the schedules.
func (t *Trace) plot(title string, names []string, schedules [][]Run) *plot {
	p := &plot{Trace: t, schedules: schedules, end: 1, what: t.scarce()}
	if len(t.Jobs) > 0 {
		p.begin = t.Jobs[0].Submit
	}
	for _, runs := range schedules {
		for _, r := range runs {
			p.end = max(p.end, r.End)
		}
	}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth+plotLeft+plotRight, plotAll)
	p.printf(`<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="15">%s</text>`+"\n",
		plotLeft, html.EscapeString(title))
	for i, n := range names {
		p.printf(`<text x="%d" y="20" fill="%s">%s</text>`+"\n", plotLeft+260+110*i, colours[i%len(colours)], html.EscapeString(n))
	}
	return p
}

func (p *plot) printf(format string, args ...any) { fmt.Fprintf(&p.Builder, format, args...) }

func (p *plot) write(w io.Writer) error {
	p.WriteString("</svg>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// panel begins one of the two panels, with what its upper edge stands for; it returns where that is.
func (p *plot) panel(n int, label, most string) (top int) {
	top = plotTop + n*(plotHeight+plotTop)
	p.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#bbb"/><text x="%d" y="%d">%s</text>`+"\n",
		plotLeft, top, plotWidth, plotHeight, plotLeft, top-6, label)
	p.printf(`<text x="%d" y="%d" text-anchor="end">%s</text><text x="%d" y="%d" text-anchor="end">0</text>`+"\n",
		plotLeft-6, top+12, most, plotLeft-6, top+plotHeight)
	return top
}

// inUse draws what share of all is in use.
func (p *plot) inUse(n int) {
	_, has := p.units()
	all := 0
	for i := range p.Nodes {
		all += has(&p.Nodes[i])
	}
	p.curves(n, p.what+" in use", float64(all), started, ended)
	const ticks = 6
	for i := range ticks + 1 {
		days := float64((p.end-p.begin)*int64(i)/ticks) / 86400
		p.printf(`<text x="%d" y="%d" text-anchor="middle">%.1f d</text>`+"\n", plotLeft+plotWidth*i/ticks, plotAll-35, days)
	}
}

// curves draws how many units are between two moments of their jobs, over time; most is all that there can be, 0
// what is found.
func (p *plot) curves(n int, label string, most float64, from, to func(Run) int64) {
	units, _ := p.units()
	at := func(k int) int64 { return p.begin + (p.end-p.begin)*int64(k)/plotPoints } // where span k begins
	edge := "100 %"
	var curves [][]float64
	for _, runs := range p.schedules {
		curves = append(curves, curve(runs, units, at, from, to))
	}
	if most == 0 {
		for _, c := range curves {
			most = max(most, slices.Max(c))
		}
		edge = fmt.Sprintf("%.0f", max(most, 1))
	}
	most = max(most, 1)
	top := p.panel(n, label, edge)
	for i, c := range curves {
		p.printf(`<polyline fill="none" stroke="%s" stroke-width="1.3" stroke-opacity="0.85" points="`, colours[i%len(colours)])
		for k, y := range c {
			p.printf("%.1f,%.1f ", plotLeft+(float64(k)+.5)*plotWidth/plotPoints,
				float64(top+plotHeight)-y/most*plotHeight)
		}
		p.WriteString("\"/>\n")
	}
}

// sizes draws how long jobs wait by the class of their size, a bar for each schedule.
func (p *plot) sizes(n int) {
	var waits []map[int]float64
	classes, most := map[int]int{}, 1.0
	for _, runs := range p.schedules {
		mean, jobs := p.waitsBySize(runs)
		waits = append(waits, mean)
		for class, wait := range mean {
			classes[class], most = jobs[class], max(most, wait)
		}
	}
	top := p.panel(n, "wait by size of the job, on average", fmt.Sprintf("%.1f h", most/3600))
	list := slices.Sorted(maps.Keys(classes))
	for k, class := range list {
		width := float64(plotWidth) / float64(len(list))
		left := plotLeft + width*float64(k)
		bar := 0.8 * width / float64(len(waits))
		for i, mean := range waits {
			height := mean[class] / most * plotHeight
			p.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n",
				left+0.1*width+bar*float64(i), float64(top+plotHeight)-height, bar, height, colours[i%len(colours)])
		}
		p.below(left+width/2, top+plotHeight+15, width, sizeName(list, k)+" "+many(class, p.what))
		p.below(left+width/2, top+plotHeight+29, width,
			fmt.Sprintf("%d %s", classes[class], many(classes[class], "jobs")))
	}
}

// many is a word for so many of something: its last letter is for more than one.
func many(n int, word string) string {
	if n == 1 {
		return word[:len(word)-1]
	}
	return word
}

// below writes a text around x that is no wider than what it stands under; a letter is about 0.6 of its height.
func (p *plot) below(x float64, y int, width float64, text string) {
	size := min(12, width/0.62/float64(len(text)))
	p.printf(`<text x="%.1f" y="%d" text-anchor="middle" font-size="%.1f">%s</text>`+"\n", x, y, size, text)
}

// sizeName names a class of sizes: the numbers that are in it.
func sizeName(classes []int, k int) string {
	class := classes[k]
	if class <= 2 {
		return strconv.Itoa(class)
	}
	return fmt.Sprintf("%d-%d", class/2+1, class)
}

// sizeClass is the least power of two that a job does not exceed.
func sizeClass(units int) (most int) {
	for most = 1; most < units; most *= 2 {
	}
	return most
}

// waitsBySize are the mean waits of the jobs of each class, and how many these are.
func (t *Trace) waitsBySize(runs []Run) (waits map[int]float64, jobs map[int]int) {
	units, _ := t.units()
	waits, jobs = map[int]float64{}, map[int]int{}
	for _, r := range runs {
		class := sizeClass(units(r.Job))
		waits[class] += float64(r.Start - r.Job.Submit)
		jobs[class]++
	}
	for class, n := range jobs {
		waits[class] /= float64(n)
	}
	return waits, jobs
}

// curve is how many units are between from and to in the mean of each span of the plot; span k is from at(k) to
// at(k+1).
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
