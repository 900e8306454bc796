package page

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/webpage"
	"dev.muster/cluster"
	"dev.muster/telemetry"
	"dev.muster/ui"
)

// Bounds of the curves of hardware.
const (
	curvesAge   = 20 * time.Second
	curvesStale = 2 * time.Minute // so old ones are shown while they are drawn again
	curvesWide  = 32              // nodes of a job of which all of its time is drawn
	wideBack    = 3 * time.Hour
	oddPart     = 0.25 // of the median, by which one may differ from the others
	oddLeast    = 3    // alike, to tell which is not
)

// comes is what stands for curves that are being drawn.
func comes(set *ui.CurveSet, ok bool) *ui.CurveSet {
	if !ok {
		return &ui.CurveSet{Comes: true}
	}
	return set
}

// hardwareOf is where samples of hardware are read; not ok: nowhere.
func hardwareOf(h webpage.History) (acct.Samples, bool) {
	db, ok := h.(*acct.DB)
	if !ok {
		return acct.Samples{}, false
	}
	return acct.SamplesOf(db), true
}

// plotted is one plot of hardware.
type plotted struct {
	title, unit, what string
	gpu               bool // of GPUs
	field             int
	scale             float64
}

var (
	gpuPlots = []plotted{{"GPU utilization", "%", "GPUs", true, telemetry.GPUUtil, 1},
		{
			"GPU memory", "GB", "GPUs", true, telemetry.GPUMem, 1.0 / 1024,
		}, {"GPU power", "W", "GPUs", true, telemetry.GPUPower, 1},
		{"GPU temperature", "°C", "GPUs", true, telemetry.GPUTemp, 1}}
	nodePlots = append(slices.Clone(gpuPlots), plotted{"CPUs busy", "%", "", false, telemetry.NodeCPU, 1},
		plotted{"Memory used", "GB", "", false, telemetry.NodeMem, 1.0 / 1024})
	jobPlots = append(slices.Clone(gpuPlots), plotted{"CPUs busy", "", "nodes", false, telemetry.JobCPU, 1},
		plotted{"Memory resident", "GB", "nodes", false, telemetry.JobMem, 1.0 / 1024})
)

// lineKey is whose line it is: a node's own, or that of one of its GPUs.
type lineKey struct {
	node cluster.NodeName
	gpu  int // -1: the node
}

func (k lineKey) name(one bool) string {
	switch {
	case k.gpu < 0:
		return string(k.node)
	case one:
		return fmt.Sprintf("GPU %d", k.gpu)
	}
	return fmt.Sprintf("%s GPU %d", k.node, k.gpu)
}

// lineSums are the means of the parts of a line, by plot.
type lineSums map[int64]*[2]float64

// hardwareLines gathers lines of samples.
type hardwareLines struct {
	plots []plotted
	width int64 // of a part, in seconds
	byGPU bool  // else GPUs of a node are one line
	lines []map[lineKey]lineSums
}

func newHardwareLines(plots []plotted, from, to time.Time, byGPU bool) *hardwareLines {
	width := int64(to.Sub(from).Seconds()) / pastParts
	h := &hardwareLines{plots: plots, width: max(width, 1), byGPU: byGPU}
	for range plots {
		h.lines = append(h.lines, map[lineKey]lineSums{})
	}
	return h
}

func (h *hardwareLines) add(row *acct.Hardware) {
	s, err := telemetry.Unpack(row.Data)
	if err != nil {
		return
	}
	h.width = max(h.width, int64(row.Span.Seconds()))
	at := row.At.Unix() / h.width * h.width
	for i, p := range h.plots {
		if !p.gpu {
			h.put(i, lineKey{row.Node, -1}, at, s.Own[p.field]*p.scale)
			continue
		}
		for _, g := range s.GPUs {
			key := lineKey{row.Node, g.Index}
			if !h.byGPU {
				key.gpu = -1
			}
			h.put(i, key, at, g.Values[p.field]*p.scale)
		}
	}
}

func (h *hardwareLines) put(plot int, key lineKey, at int64, v float64) {
	if v < 0 {
		return
	}
	line := h.lines[plot][key]
	if line == nil {
		line = lineSums{}
		h.lines[plot][key] = line
	}
	if line[at] == nil {
		line[at] = &[2]float64{}
	}
	line[at][0] += v
	line[at][1]++
}

// draw makes the plots, and says which lines are not like the others.
func (h *hardwareLines) draw(from, to time.Time) (out []ui.Plot, odd []string) {
	tick, stamp := ticksOf(to.Sub(from))
	for i, p := range h.plots {
		curves, means := h.curves(i)
		if len(curves) == 0 {
			continue
		}
		mid := markOdd(curves, means)
		if p.gpu && p.field == telemetry.GPUUtil || !p.gpu && p.what == "nodes" && len(out) == 0 {
			for k, c := range curves {
				if c.Odd {
					odd = append(odd, fmt.Sprintf("%s: %.0f %s where others have %.0f", c.Name, means[k], p.unit, mid))
				}
			}
		}
		what := p.what
		if p.gpu && !h.byGPU {
			what = "nodes"
		}
		out = append(out, ui.Curves(p.title, p.unit, what, curves, from, to, tick, stamp))
	}
	return out, odd
}

// curves are the lines of a plot, and the mean of each.
func (h *hardwareLines) curves(plot int) (out []ui.Curve, means []float64) {
	keys := make([]lineKey, 0, len(h.lines[plot]))
	nodes := map[cluster.NodeName]bool{}
	for k := range h.lines[plot] {
		keys = append(keys, k)
		nodes[k.node] = true
	}
	slices.SortFunc(keys, func(a, b lineKey) int {
		if a.node != b.node {
			return cluster.CompareNodes(a.node, b.node)
		}
		return a.gpu - b.gpu
	})
	for _, k := range keys {
		c, sum := ui.Curve{Name: k.name(len(nodes) == 1)}, 0.0
		for at, v := range h.lines[plot][k] {
			c.Points = append(c.Points, ui.PlotPoint{At: time.Unix(at, 0), Used: v[0] / v[1]})
			sum += v[0] / v[1]
		}
		slices.SortFunc(c.Points, func(a, b ui.PlotPoint) int { return a.At.Compare(b.At) })
		out, means = append(out, c), append(means, sum/float64(len(c.Points)))
	}
	return out, means
}

// markOdd marks the lines that are far from the middle one, if there are enough and most are near it. It
// returns the median.
func markOdd(curves []ui.Curve, means []float64) float64 {
	sorted := slices.Sorted(slices.Values(means))
	mid := sorted[len(sorted)/2]
	var odd []int
	for i, v := range means {
		if math.Abs(v-mid) > oddPart*max(mid, 4) {
			odd = append(odd, i)
		}
	}
	if len(curves)-len(odd) < oddLeast || len(odd) > len(curves)/4 && len(odd) > 1 {
		return mid
	}
	for _, i := range odd {
		curves[i].Odd = true
	}
	return mid
}

// ticksOf are the distance of marks in a time, and how they are written.
func ticksOf(d time.Duration) (tick time.Duration, stamp string) {
	tick = time.Minute
	for _, t := range []time.Duration{
		5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour, 5 * 24 * time.Hour,
	} {
		if d/tick > 8 {
			tick = t
		}
	}
	if tick >= 24*time.Hour {
		return tick, "Jan 2"
	}
	return tick, "15:04"
}

// nodeCurves are a day of a node.
func nodeCurves(ctx context.Context, s *pages, n *cluster.Node) *ui.CurveSet {
	kept, ok := hardwareOf(s.History)
	if !ok {
		return nil
	}
	return comes(s.hardware.of(ctx, "node "+string(n.Name), func(ctx context.Context) (*ui.CurveSet, error) {
		to := time.Now()
		from := to.Add(-24 * time.Hour)
		list, err := kept.Node(ctx, n.Name, from, to)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		return drawn(nodePlots, list, newer(from, list[0].At), to, true, "last 24 h"), nil
	}))
}

// jobCurves are all of a job's time; of one with many nodes the last hours.
func jobCurves(ctx context.Context, s *pages, j *cluster.Job) *ui.CurveSet {
	kept, ok := hardwareOf(s.History)
	if !ok || j.Started.IsZero() || j.Alloc == nil {
		return nil
	}
	name := fmt.Sprintf("job %d.%d", j.ID, j.Attempt)
	return comes(s.hardware.of(ctx, name, func(ctx context.Context) (*ui.CurveSet, error) {
		from, to, text := j.Started, time.Now(), "run time"
		if !j.Ended.IsZero() {
			to = j.Ended.Add(time.Second)
		}
		nodes, gpus := len(j.Alloc.Shares), 0
		for i := range j.Alloc.Shares {
			gpus += j.Alloc.Shares[i].GPUs.Len()
		}
		if nodes > curvesWide {
			from, text = newer(from, to.Add(-wideBack)), "last 3 h"
		}
		list, err := kept.Job(ctx, j.ID, "", from.Add(-time.Minute), to)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		return drawn(jobPlots, list, from, to, gpus <= ui.CurvesDrawn,
			text+" (muster samples "+jobPath(j)[len("/jobs/"):]+")"), nil
	}))
}

func newer(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// drawn draws samples.
func drawn(plots []plotted, list []acct.Hardware, from, to time.Time, byGPU bool, text string) *ui.CurveSet {
	h := newHardwareLines(plots, from, to, byGPU)
	for i := range list {
		h.width = max(h.width, int64(list[i].Span.Seconds()))
	}
	for i := range list {
		h.add(&list[i])
	}
	set := &ui.CurveSet{Text: text}
	var odd []string
	set.Plots, odd = h.draw(from, to)
	if len(odd) > 0 {
		set.Odd = "Outliers: " + strings.Join(odd, "; ")
	}
	return set
}
