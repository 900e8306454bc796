package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/visibility"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/ui"
)

// Bounds of the plan.
const (
	planNodes   = 96   // rows of one page
	planPast    = 3000 // jobs of the past that are drawn at most
	planPastAge = 15 * time.Second
	planNext    = 30 // starts that are listed
)

// planSpans are how much of the past and of the future may be seen at once; the first is what is seen.
var planSpans = []struct {
	name, text  string
	back, ahead time.Duration
	tick        time.Duration
}{
	{"day", "24 h", 6 * time.Hour, 24 * time.Hour, 2 * time.Hour},
	{"hours", "6 h", time.Hour, 5 * time.Hour, 30 * time.Minute},
	{"days", "3 d", 12 * time.Hour, 60 * time.Hour, 6 * time.Hour},
	{"week", "7 d", 24 * time.Hour, 6 * 24 * time.Hour, 24 * time.Hour},
}

// planner draws jobs and reservations over time, a row a node.
type planner struct {
	sees     visibility.Scope
	from, to time.Time
	now      time.Time
	rows     map[cluster.NodeName]int
	nodes    []*cluster.Node
	groups   *planGrouping // none: each node has a row
	height   int           // of a row
	hues     map[cluster.JobID]int
	v        *ui.Plan
}

// lane is what part of a row something has, of 1000.
type lane struct{ from, to int }

var wholeRow = lane{0, 1000}

func takeWhole(cluster.NodeName) lane { return wholeRow }

// pastJobs are the jobs of the last hours that history knows, kept for a while.
type pastJobs struct {
	mu   sync.Mutex
	at   time.Time
	from time.Time
	list []*cluster.Job
}

func (p *pastJobs) since(ctx context.Context, h webpage.History, from, now time.Time) ([]*cluster.Job, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.at) < planPastAge && !p.from.After(from) && !p.from.Before(from.Add(-time.Minute)) {
		return p.list, nil
	}
	var list []*cluster.Job
	for r, err := range h.Jobs(ctx, acct.Query{From: from, Before: now.Add(time.Minute), Latest: planPast,
		Duplicates: true}) {
		if err != nil {
			return nil, err
		}
		if j := r.Job; j.Alloc != nil && !j.Started.IsZero() {
			list = append(list, j)
		}
	}
	p.at, p.from, p.list = now, from, list
	return list, nil
}

// viewPlan shows which jobs are, were and will be on which nodes.
func viewPlan(s *pages, sees visibility.Scope, r *http.Request) (string, string, any, error) {
	if err := sees.Nodes(); err != nil {
		return "", "", nil, err
	}
	form, now, v := r.URL.Query(), time.Now(), &ui.Plan{}
	span := planSpans[0]
	for _, o := range planSpans {
		if o.name == form.Get("span") {
			span = o
		}
	}
	link := func(name, value string) string {
		own := url.Values{}
		for _, k := range []string{"span", "partition"} {
			if x := form.Get(k); x != "" && k != name {
				own.Set(k, x)
			}
		}
		own.Set(name, value)
		return "/plan?" + own.Encode()
	}
	for _, o := range planSpans {
		v.Spans = append(v.Spans, ui.Link{Text: o.text, To: link("span", o.name), Here: o.name == span.name})
	}
	p := &planner{sees: sees, now: now, from: now.Add(-span.back), to: now.Add(span.ahead),
		hues: jobHues(sees.Snap), v: v}
	v.Partition = form.Get("partition")
	first, _ := strconv.Atoi(form.Get("from"))
	all := p.place(max(first, 1), form.Get("from") == "")
	v.From, v.All, v.To = max(first, 1), all, max(first, 1)+len(p.nodes)-1
	if v.To < all {
		v.Next = link("from", strconv.Itoa(v.To+1))
	}
	if v.From > 1 {
		v.Prev = link("from", strconv.Itoa(max(v.From-planNodes, 1)))
	}
	if all > planNodes && p.groups == nil {
		v.Whole = link("from", "")
	}
	p.scale(span.tick)
	p.shades()
	if err := p.jobs(r.Context(), s); err != nil {
		return "", "", nil, err
	}
	if p.groups != nil {
		v.Each = p.groups.each
		p.shadeUse()
	}
	return "plan", "Plan", v, nil
}

// place gives the nodes their rows, and says how many there are in all. Where these are more than rows, whole puts
// neighbours into one row; else the rows begin with the node at place first.
func (p *planner) place(first int, whole bool) (all int) {
	nodes := p.sees.Snap.Nodes()
	if part, ok := p.sees.Snap.Partition(p.v.Partition); ok {
		nodes = p.sees.Snap.PartitionNodes(part)
	}
	p.nodes = slices.Collect(nodes)
	all = len(p.nodes)
	whole = whole && all > planNodes
	if !whole {
		p.nodes = p.nodes[min(first-1, all):min(first-1+planNodes, all)]
	}
	p.rows = map[cluster.NodeName]int{}
	for i, n := range p.nodes {
		p.rows[n.Name] = i
	}
	if whole {
		p.groupNodes()
	} else {
		p.placeRows()
	}
	p.v.Height = ui.PlanTop + len(p.v.Rows)*p.height + 8
	return all
}

// placeRows gives each node a row.
func (p *planner) placeRows() {
	p.height = 24
	if len(p.nodes) > 32 {
		p.height = 14
	}
	for i, n := range p.nodes {
		p.v.Rows = append(p.v.Rows, ui.PlanRow{Name: string(n.Name), To: "/nodes/" + string(n.Name),
			Y: ui.PlanTop + i*p.height, H: p.height})
	}
}

// x is where a moment is.
func (p *planner) x(t time.Time) int {
	part := float64(t.Sub(p.from)) / float64(p.to.Sub(p.from))
	return ui.PlanLeft + int(min(max(part, 0), 1)*(ui.PlanWidth-ui.PlanLeft))
}

// scale draws the hours.
func (p *planner) scale(tick time.Duration) {
	p.v.Now = p.x(p.now)
	midnight := time.Date(p.from.Year(), p.from.Month(), p.from.Day(), 0, 0, 0, 0, p.from.Location())
	for t := midnight; t.Before(p.to); t = t.Add(tick) {
		if !t.After(p.from) {
			continue
		}
		text := t.Format("15:04")
		if t.Hour() == 0 && t.Minute() == 0 {
			text = t.Format("Mon 2")
		}
		p.v.Hours = append(p.v.Hours, ui.Day{X: p.x(t), Text: text})
	}
}

// outage is why a node is out of service, and since when.
type outage struct {
	word, reason string
	from         time.Time
}

// shadeLost draws nodes that are out of service: neighbours with one reason as one.
func (p *planner) shadeLost() {
	lost := map[outage][]cluster.NodeName{}
	var order []outage
	for _, n := range p.nodes {
		word := n.Word(len(p.sees.Snap.Load(n.Name).Jobs) > 0)
		if n.Usable() || word == "off" {
			continue
		}
		o := outage{word, n.Reason, p.now}
		if !n.ReasonAt.IsZero() && n.ReasonAt.Before(p.now) {
			o.from = n.ReasonAt
		}
		if lost[o] == nil {
			order = append(order, o)
		}
		lost[o] = append(lost[o], n.Name)
	}
	for _, o := range order {
		title := fmt.Sprintf("%s: %s: %s", hostlist.CompressNames(lost[o]), o.word, o.reason)
		for _, b := range p.boxes(lost[o], o.from, p.to, takeWhole) {
			b.Class, b.Title = "lost", title
			p.v.Shades = append(p.v.Shades, b)
		}
	}
}

// shades draws what nobody can have: nodes out of service, and reservations.
func (p *planner) shades() {
	p.shadeLost()
	for _, r := range p.sees.Snap.Reservations() {
		if !p.sees.Reservation(r) {
			continue
		}
		r = r.At(p.now)
		var on []cluster.NodeName
		for _, name := range p.sees.Snap.Reserved(r) {
			if _, ok := p.rows[name]; ok {
				on = append(on, name)
			}
		}
		for _, t := range spans(r, p.from, p.to) {
			title := fmt.Sprintf("reservation %s: %s to %s", r.Name, t[0].Format("Jan 2 15:04"),
				t[1].Format("Jan 2 15:04"))
			for _, b := range p.boxes(on, t[0], t[1], takeWhole) {
				b.Class, b.Title = "resv", title
				if b.W > 7*len(r.Name)+12 && b.H > 12 {
					b.Label = r.Name
				}
				p.v.Shades = append(p.v.Shades, b)
			}
		}
	}
}

// boxes are the rectangles of something that is on nodes for a time: one for neighbours that it has whole.
func (p *planner) boxes(nodes []cluster.NodeName, from, to time.Time, part func(cluster.NodeName) lane) (out []ui.Bar) {
	if !to.After(p.from) || !from.Before(p.to) || !to.After(from) {
		return nil
	}
	x := p.x(from)
	w := max(p.x(to)-x, 2)
	rows := make([]int, 0, len(nodes))
	for _, name := range nodes {
		if i, ok := p.rows[name]; ok {
			rows = append(rows, i)
		}
	}
	slices.Sort(rows)
	if p.groups != nil {
		drawn, _ := p.groupBoxes(rows, x, w, 1)
		return drawn
	}
	room, last := p.height-2, -2
	for _, i := range rows {
		l := part(p.nodes[i].Name)
		if n := len(out); n > 0 && l == wholeRow && last == i-1 {
			out[n-1].H += p.height
		} else {
			y := ui.PlanTop + i*p.height + 1
			out = append(out, ui.Bar{X: x, W: w, Y: y + l.from*room/1000, H: max((l.to-l.from)*room/1000, 2)})
		}
		if last = i; l != wholeRow {
			last = -2
		}
	}
	return out
}

// laneOf is what part of a node a job has: by its GPUs, or its CPUs where the node has none.
func laneOf(n *cluster.Node, sh *cluster.Share) lane {
	ids, have := sh.CPUs, n.Inventory.CPUs
	if len(n.Inventory.GPUs) > 0 {
		if ids, have = sh.GPUs, len(n.Inventory.GPUs); ids.Empty() {
			return lane{880, 1000}
		}
	}
	if ids.Empty() || have == 0 {
		return wholeRow
	}
	l := lane{ids.Min() * 1000 / have, (ids.Max() + 1) * 1000 / have}
	if l.to-l.from >= 970 {
		return wholeRow
	}
	return l
}

// jobs draws the jobs: of the past, of now, and those that are planned.
func (p *planner) jobs(ctx context.Context, s *pages) error {
	drawn := map[cluster.JobID]bool{}
	var waiting []*cluster.Job
	for j := range p.sees.Snap.Jobs() {
		switch {
		case j.Phase == cluster.Pending:
			waiting = append(waiting, j)
		case j.Alloc != nil && !j.Started.IsZero():
			drawn[j.ID] = true
			p.job(j)
		}
	}
	if s.History != nil && s.History.Whole() {
		past, err := s.past.since(ctx, s.History, p.from, p.now)
		if err != nil {
			return err
		}
		for _, j := range past {
			if !drawn[j.ID] || j.Phase == cluster.Ended && j.Outcome == cluster.Requeued {
				p.job(j)
			}
		}
	}
	s.Foretell(p.sees.Snap, waiting)
	unplanned := func(j *cluster.Job) bool { return j.PlannedStart.IsZero() || !p.sees.Job(j) }
	waiting = slices.DeleteFunc(waiting, unplanned)
	slices.SortStableFunc(waiting, func(a, b *cluster.Job) int { return starts(a).Compare(starts(b)) })
	for _, j := range waiting {
		p.planned(j)
	}
	return nil
}

// job draws one that has begun.
func (p *planner) job(j *cluster.Job) {
	end, till := j.Ended, "to "
	if end.IsZero() {
		if end, till = p.to.Add(time.Hour), "without a limit"; j.Limit < cluster.Unlimited && j.Limit > 0 {
			end, till = j.Started.Add(j.Limit+j.SuspendTotal), "until "
		}
		if end.Before(p.now) { // it is over its limit
			end = p.now
		}
	}
	share := map[cluster.NodeName]*cluster.Share{}
	for i, s := range j.Alloc.Shares {
		if _, shown := p.rows[s.Node]; shown {
			share[s.Node] = &j.Alloc.Shares[i]
		}
	}
	part := func(name cluster.NodeName) lane {
		n, _ := p.sees.Snap.Node(name)
		return laneOf(n, share[name])
	}
	var boxes []ui.Bar
	if p.groups != nil {
		boxes = p.jobInGroups(share, j.Started, end, part)
	} else {
		boxes = p.boxes(slices.Collect(maps.Keys(share)), j.Started, end, part)
	}
	if len(boxes) == 0 {
		return
	}
	if till != "without a limit" {
		till += end.Format("Jan 2 15:04")
	}
	hue, ok := p.hues[j.ID]
	if !ok {
		hue = int(j.ID) * 5 % ui.Colors
	}
	b := ui.Bar{Class: "job " + ui.Color(hue), Title: fmt.Sprintf("in use, from %s %s",
		j.Started.Format("Jan 2 15:04"), till)}
	if p.sees.Job(j) {
		b.Label, b.To = j.Spec.Name, jobPath(j)
		b.Title = fmt.Sprintf("%s %s of %s, %s from %s %s", jobID(j), j.Spec.Name, j.Spec.User,
			ui.Words(api.JobWord(j)), j.Started.Format("Jan 2 15:04"), till)
	}
	if j.Phase == cluster.Ended {
		b.Class += " past"
	}
	p.draw(j, b, boxes)
}

// planned draws one that waits and whose start is known, and lists it.
func (p *planner) planned(j *cluster.Job) {
	limit := j.Limit
	if limit <= 0 || limit >= cluster.Unlimited {
		limit = p.to.Sub(p.now)
	}
	on := hostlist.CompressNames(j.PlannedNodes)
	start := j.PlannedStart.Format("2006-01-02T15:04:05")
	b := ui.Bar{Class: "job planned", Label: j.Spec.Name, To: jobPath(j),
		Title: fmt.Sprintf("%s %s of %s, planned for %s on %s", jobID(j), j.Spec.Name, j.Spec.User, start, on)}
	p.draw(j, b, p.boxes(j.PlannedNodes, j.PlannedStart, j.PlannedStart.Add(limit),
		takeWhole))
	if len(p.v.List) < planNext {
		row := jobRow(p.sees.Snap, j, p.now)
		row.Reason, row.Nodes = start, on
		row.For = "now"
		if wait := j.PlannedStart.Sub(p.now); wait > time.Second {
			row.For = "in " + span(wait)
		}
		p.v.List = append(p.v.List, row)
	}
}

// draw puts a job's boxes into the picture; the largest one has its name.
func (p *planner) draw(j *cluster.Job, like ui.Bar, boxes []ui.Bar) {
	mine := p.sees.Who.UID == j.Spec.UID
	for _, b := range boxes {
		b.Class, b.Title, b.To = like.Class, like.Title, like.To
		if mine && b.H > 8 {
			b.Class += " mine"
		}
		if b.H >= 13 && b.W >= 24 {
			b.Label = like.Label
			if room := (b.W - 12) / 7; len(b.Label) > room {
				b.Label = strings.ToValidUTF8(b.Label[:max(room-1, 0)], "") + "…"
			}
		}
		p.v.Bars = append(p.v.Bars, b)
	}
}
