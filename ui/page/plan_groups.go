package page

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/ui"
)

// Bounds of a plan that shows groups of nodes.
const (
	planGroups    = 48 // rows at most
	planMoments   = 48 // parts of the time for which the use by small jobs is summed
	planSmallPart = 4  // a job that has less than a quarter of a group's row is drawn with other small ones
	planGroupName = 18 // characters of a group's name
)

// planGrouping shows a cluster of more nodes than one plan has rows: neighbouring nodes share a row. A node keeps its
// place in the row of its group, so a job on many nodes is one rectangle. The resources of small jobs are summed
// and shaded.
type planGrouping struct {
	each int         // nodes of a group; the last one may have fewer
	use  [][]float64 // by group and moment: how many of the group's nodes small jobs have
}

// groupNodes gives each group of nodes a row.
func (p *planner) groupNodes() {
	g := &planGrouping{each: (len(p.nodes) + planGroups - 1) / planGroups}
	p.groups = g
	p.height = 14
	i := 0
	for some := range slices.Chunk(p.nodes, g.each) {
		p.v.Rows = append(p.v.Rows, ui.PlanRow{Name: nameGroup(some), To: openGroup(p.v, i*g.each+1),
			Y: ui.PlanTop + i*p.height, H: p.height})
		g.use = append(g.use, make([]float64, planMoments))
		i++
	}
}

// openGroup is where the nodes of a group have rows of their own, from a place in the list of nodes on.
func openGroup(v *ui.Plan, first int) string {
	own := url.Values{"from": {strconv.Itoa(first)}}
	for _, o := range v.Spans {
		if to, err := url.Parse(o.To); err == nil && o.Here {
			own.Set("span", to.Query().Get("span"))
		}
	}
	if v.Partition != "" {
		own.Set("partition", v.Partition)
	}
	return "/plan?" + own.Encode()
}

// nameGroup is what a row of several nodes is called.
func nameGroup(nodes []*cluster.Node) string {
	var names []cluster.NodeName
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	text := hostlist.CompressNames(names)
	if len(text) <= planGroupName {
		return text
	}
	if first := string(names[0]); len(first) < planGroupName {
		return first + " …"
	}
	return text[:planGroupName-1] + "…"
}

// sizeOf is how many nodes a group has.
func (g *planGrouping) sizeOf(group, nodes int) int { return min(g.each, nodes-group*g.each) }

// run is neighbouring nodes of one group.
type run struct{ group, first, nodes int } // first: place in the group

// runsOf splits places of nodes, in order, at gaps and where a group ends.
func (g *planGrouping) runsOf(places []int) (out []run) {
	for k, i := range places {
		if k > 0 && places[k-1] == i-1 && i%g.each != 0 {
			out[len(out)-1].nodes++
			continue
		}
		out = append(out, run{group: i / g.each, first: i % g.each, nodes: 1})
	}
	return out
}

// groupBoxes are the rectangles of something on places of nodes. With parts above 1, runs of nodes that are less than
// one of so many parts of their group's row are not drawn: these are small.
func (p *planner) groupBoxes(places []int, x, w, parts int) (out []ui.Bar, small []run) {
	last := -2 // the group that the last box fills
	room := p.height - 2
	for _, r := range p.groups.runsOf(places) {
		size := p.groups.sizeOf(r.group, len(p.nodes))
		whole := r.nodes == size
		switch {
		case parts > 1 && r.nodes*parts < size:
			small = append(small, r)
			continue
		case whole && last == r.group-1:
			out[len(out)-1].H += p.height
		default:
			y := ui.PlanTop + r.group*p.height + 1 + r.first*room/size
			out = append(out, ui.Bar{X: x, W: w, Y: y, H: max(r.nodes*room/size, 2)})
		}
		last = -2
		if whole {
			last = r.group
		}
	}
	return out, small
}

// jobInGroups are the rectangles of a job that has many nodes of a group; its other nodes count as used.
func (p *planner) jobInGroups(share map[cluster.NodeName]*cluster.Share, from, to time.Time,
	part func(cluster.NodeName) lane) []ui.Bar {
	if !to.After(p.from) || !from.Before(p.to) || !to.After(from) {
		return nil
	}
	var whole []int
	for name := range share {
		i := p.rows[name]
		l := part(name)
		if l == wholeRow {
			whole = append(whole, i)
			continue
		}
		p.addUse(i/p.groups.each, float64(l.to-l.from)/1000, from, to)
	}
	slices.Sort(whole)
	x := p.x(from)
	boxes, small := p.groupBoxes(whole, x, max(p.x(to)-x, 2), planSmallPart)
	for _, r := range small {
		p.addUse(r.group, float64(r.nodes), from, to)
	}
	return boxes
}

// addUse counts nodes of a group as used for a time.
func (p *planner) addUse(group int, nodes float64, from, to time.Time) {
	moment := p.to.Sub(p.from) / planMoments
	for m := range planMoments {
		start := p.from.Add(time.Duration(m) * moment)
		both := min(to.Sub(start), moment) - max(from.Sub(start), 0)
		if both > 0 {
			p.groups.use[group][m] += nodes * float64(both) / float64(moment)
		}
	}
}

// shadeUse draws what small jobs have of each group: in quarters, neighbouring moments of one quarter as one.
func (p *planner) shadeUse() {
	moment := p.to.Sub(p.from) / planMoments
	for i, use := range p.groups.use {
		size := float64(p.groups.sizeOf(i, len(p.nodes)))
		last := 0
		for m, nodes := range use {
			quarter := min(int(math.Ceil(4*nodes/size-0.01)), 4)
			x := p.x(p.from.Add(time.Duration(m) * moment))
			w := p.x(p.from.Add(time.Duration(m+1)*moment)) - x
			switch {
			case quarter > 0 && quarter == last:
				p.v.Shades[len(p.v.Shades)-1].W += w
			case quarter > 0:
				p.v.Shades = append(p.v.Shades, ui.Bar{X: x, W: w, Y: ui.PlanTop + i*p.height, H: p.height - 1,
					Class: "use u" + strconv.Itoa(quarter),
					Title: fmt.Sprintf("%s: jobs on few nodes have up to %d %%", p.v.Rows[i].Name, quarter*25)})
			}
			last = quarter
		}
	}
}
