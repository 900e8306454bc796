package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/samples"
	"dev.muster/agent/visibility"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// Bounds of the past.
const (
	pastAge    = 20 * time.Second
	pastStale  = time.Hour        // so old counts are shown while new ones are made
	pastParts  = 96               // of a curve
	pastLeast  = 10 * time.Minute // that curves show of a cluster that has just begun
	pastMargin = 10               // part of a span that may be empty before it is cut to what is known
)

// between reads samples: acct.Past's Between.
type between func(ctx context.Context, kind string, from, to time.Time, parts int) ([]acct.Sample, error)

// pastOf is where samples are read; nil: nowhere.
func pastOf(h webpage.History) between {
	if db, ok := h.(*acct.DB); ok {
		return acct.PastOf(db).Between
	}
	return nil
}

// pastSpan is how far curves reach back.
type pastSpan struct {
	name, text string
	back       time.Duration
	tick       time.Duration
	stamp      string
}

// pastSpans are all of them; the first is what is seen.
var pastSpans = []pastSpan{
	{"day", "24 h", 24 * time.Hour, 4 * time.Hour, "15:04"},
	{"hours", "6 hours", 6 * time.Hour, time.Hour, "15:04"},
	{"week", "7 d", 7 * 24 * time.Hour, 24 * time.Hour, "Mon 2"},
	{"month", "30 d", 30 * 24 * time.Hour, 5 * 24 * time.Hour, "Jan 2"},
	{"year", "1 y", 365 * 24 * time.Hour, 30 * 24 * time.Hour, "Jan 2"},
}

// curves are those of the overview, kept for a while.
type curves struct {
	mu   sync.Mutex
	made map[string]madeCurves
}

type madeCurves struct {
	at    time.Time
	plots []ui.Plot
}

// of draws the curves of a span.
func (c *curves) of(ctx context.Context, read between, span string) (madeCurves, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.made[span]; ok && time.Since(m.at) < pastAge {
		return m, nil
	}
	m := madeCurves{at: time.Now()}
	p := pastSpans[max(slices.IndexFunc(pastSpans, func(p pastSpan) bool { return p.name == span }), 0)]
	to := m.at
	queue, err := read(ctx, "queue", to.Add(-p.back), to, pastParts)
	if err != nil {
		return m, err
	}
	p = p.known(queue, to)
	from := to.Add(-p.back)
	for _, kind := range []string{"gpu", "cpu"} {
		list, err := read(ctx, kind, from, to, pastParts)
		if err != nil {
			return m, err
		}
		for _, name := range namesOf(list) {
			if kind == "cpu" && len(m.plots) > 0 || len(m.plots) == 4 {
				continue
			}
			title := map[string]string{"gpu": strings.TrimSpace(name + " GPUs"), "cpu": "CPUs"}[kind]
			m.plots = append(m.plots, ui.Stacked(title, pointsOf(list, name), from, to,
				p.tick, p.stamp))
		}
	}
	if queue, err = read(ctx, "queue", from, to, pastParts); err != nil {
		return m, err
	}
	m.plots = append(m.plots, ui.Lines("Jobs", [][2]string{{"pending", "wait"}, {"running", "run"}},
		map[string][]ui.PlotPoint{"pending": pointsOf(queue, "pending"), "running": pointsOf(queue, "running")}, from,
		to, p.tick, p.stamp))
	if c.made == nil {
		c.made = map[string]madeCurves{}
	}
	c.made[p.name] = m
	return m, nil
}

// known cuts a span to the time of which something is known: a chart of a day says nothing of a cluster that is a
// minute old.
func (p pastSpan) known(list []acct.Sample, to time.Time) pastSpan {
	if len(list) == 0 {
		return p
	}
	age := max(to.Sub(list[0].At), pastLeast)
	if age > p.back-p.back/pastMargin {
		return p
	}
	p.back = age
	p.tick, p.stamp = ticksOf(age)
	return p
}

// lastDay counts what has become of jobs in the last 24 hours, by history: samples count from this server's start.
func (s *pages) lastDay(ctx context.Context) *ui.Today {
	db, ok := s.History.(*acct.DB)
	if !ok {
		return nil
	}
	made, ok := s.today.of(ctx, "day", func(ctx context.Context) (*ui.Today, error) {
		c, err := acct.PastOf(db).Count(ctx, time.Now().Add(-24*time.Hour))
		if err != nil {
			return nil, err
		}
		t := ui.Today{Started: c.Started, Completed: c.Ended[cluster.Completed], Cancelled: c.Ended[cluster.Cancelled]}
		for outcome, n := range c.Ended {
			if !slices.Contains(wellEnded, outcome) {
				t.Failed += n
			}
		}
		return &t, nil
	})
	if !ok || made == nil {
		return &ui.Today{Comes: true}
	}
	return made
}

func namesOf(list []acct.Sample) []string {
	names := map[string]bool{}
	for _, s := range list {
		names[s.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func pointsOf(list []acct.Sample, name string) (out []ui.PlotPoint) {
	for _, s := range list {
		if s.Name == name {
			out = append(out, ui.PlotPoint{At: s.At, Total: s.Total, Used: s.Used, Lost: s.Lost})
		}
	}
	return out
}

// blocks are nodes by what one of them has, such as "8 h100".
type blocks struct {
	free  map[string]int         // how many nobody has
	later map[string][]time.Time // when others are empty, by the limits of their jobs
	part  string                 // the most that one has left of which somebody has some
	left  int                    // how much of it that is
}

// freeBlock is the most that a job could have now: whole nodes if there are any, and when by the limits of jobs
// there are more.
func freeBlock(snap *cluster.Snapshot, now time.Time) (out ui.Block) {
	b := blocks{free: map[string]int{}, later: map[string][]time.Time{}}
	for n := range snap.Nodes() {
		if n.Usable() && n.Up {
			b.add(snap, n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.free)) {
		if b.free[name] > out.Nodes {
			out.Nodes, out.Each = b.free[name], name
		}
	}
	name := out.Each
	if out.Nodes == 0 && b.left > 0 {
		out.Nodes, out.Each = 1, b.part
	}
	for _, k := range slices.Sorted(maps.Keys(b.later)) {
		if b.free[name] == 0 && len(b.later[k]) > len(b.later[name]) {
			name = k
		}
	}
	out.Then = b.then(name, now)
	return out
}

// add takes in a node that can be used.
func (b *blocks) add(snap *cluster.Snapshot, n *cluster.Node) {
	l, inv := snap.Load(n.Name), &n.Inventory
	kind, whole, used := "CPUs", inv.JobCPUCount(), l.CPUs.Len()
	if len(inv.GPUs) > 0 {
		kind, whole, used = cmp.Or(inv.GPUs[0].Type, "GPUs"), len(inv.GPUs), l.GPUs.Len()
	}
	name := fmt.Sprintf("%d %s", whole, kind)
	if len(l.Jobs) == 0 {
		b.free[name]++
		return
	}
	if at := emptied(snap, l); !at.IsZero() {
		b.later[name] = append(b.later[name], at)
	}
	if left := whole - used; left > b.left && (kind != "CPUs" || b.part == "") {
		b.part, b.left = fmt.Sprintf("%d %s", left, kind), left
	}
}

// then says when the block of such nodes is larger, if nobody else takes them: the next two times.
func (b *blocks) then(name string, now time.Time) (out []string) {
	times := b.later[name]
	slices.SortFunc(times, time.Time.Compare)
	for i, at := range times {
		if i+1 < len(times) && times[i+1].Sub(at) < time.Minute || !at.After(now) {
			continue
		}
		stamp := "15:04"
		if at.YearDay() != now.YearDay() {
			stamp = "Mon 15:04"
		}
		if out = append(out, fmt.Sprintf("%d × %s at %s", b.free[name]+i+1, name, at.Format(stamp))); len(out) == 2 {
			break
		}
	}
	return out
}

// emptied is when the jobs of a node reach their limits; zero: nobody knows.
func emptied(snap *cluster.Snapshot, l *cluster.Load) (at time.Time) {
	for _, id := range l.Jobs {
		j, ok := snap.Job(id)
		if !ok || j.Limit <= 0 || j.Limit >= cluster.Unlimited || j.Started.IsZero() {
			return time.Time{}
		}
		if end := j.Started.Add(j.Limit + j.SuspendTotal); end.After(at) {
			at = end
		}
	}
	return at
}

func (s *pages) viewOverview(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	snap, now := sees.Snap, time.Now()
	m := samples.Measure(snap)
	v := ui.Overview{Unit: "GPUs", Empty: snap.NodeCount() == 0, NoJobs: snap.JobCount() == 0}
	if gpus := gpuGauge(m); gpus.Have > 0 {
		v.Gauges = append(v.Gauges, gpus)
	} else {
		v.Unit = "CPUs"
	}
	v.Gauges = append(v.Gauges, gaugeOf("CPUs", m.Of("cpu", "")), gaugeOf("nodes", m.Of("node", "")))
	s.overviewJobs(&v, sees, now)
	v.Block = freeBlock(snap, now)
	v.Sick = sick(sees)
	for _, one := range s.idle(sees, now) {
		v.Idle += one.Idle
	}
	for _, srv := range s.Servers() {
		v.Servers = append(v.Servers, ui.Server{Name: srv.Name, Addr: srv.Addr, Leads: srv.Leader, Voter: srv.Voter})
	}
	for _, p := range pastSpans {
		v.Spans = append(v.Spans, ui.Link{Text: p.text, To: "/?past=" + p.name,
			Here: p.name == cmp.Or(r.FormValue("past"), "day")})
	}
	if read := pastOf(s.History); read != nil && sees.All {
		made, err := s.curves.of(r.Context(), read, r.FormValue("past"))
		if err != nil {
			return "", "", nil, err
		}
		v.Plots, v.Today = made.plots, s.lastDay(r.Context())
	}
	return "overview", "Overview", &v, nil
}

// gpuGauge is how many GPUs are in use, and of several types how many of each.
func gpuGauge(m samples.Measures) ui.Gauge {
	all := ui.Gauge{Name: "GPUs"}
	for _, g := range m.List() {
		if g.Kind != "gpu" {
			continue
		}
		one := gaugeOf(strings.TrimSpace(g.Name+" GPUs"), &g)
		all.Used, all.Out, all.Have = all.Used+one.Used, all.Out+one.Out, all.Have+one.Have
		all.Types = append(all.Types, one)
	}
	slices.SortFunc(all.Types, func(a, b ui.Gauge) int { return strings.Compare(a.Name, b.Name) })
	if len(all.Types) == 1 {
		all.Name, all.Types = all.Types[0].Name, nil
	}
	return all
}

func gaugeOf(name string, s *acct.Sample) ui.Gauge {
	return ui.Gauge{Name: name, Used: int(s.Used), Out: int(s.Lost), Have: int(s.Total)}
}

// overviewJobs counts jobs by state and reason, and what users have.
func (s *pages) overviewJobs(v *ui.Overview, sees visibility.Scope, now time.Time) {
	states, reasons, users := map[string]int{}, map[string]int{}, map[string]int{}
	var oldest time.Time
	for j := range sees.Snap.Jobs() {
		if !sees.Job(j) {
			continue
		}
		n := max(1, j.Tasks.Len())
		states[api.JobWord(j)] += n
		switch {
		case j.Phase == cluster.Pending:
			reasons[api.WaitWord(j)] += n
			v.Waiting += n
			if ready := j.Eligible; !ready.IsZero() && ready.Before(now) && j.Held == cluster.NotHeld &&
				(oldest.IsZero() || ready.Before(oldest)) {
				oldest = ready
			}
		case j.Alloc != nil && j.Phase != cluster.Ended:
			v.Running++
			for i := range j.Alloc.Shares {
				users[j.Spec.User] += map[bool]int{true: j.Alloc.Shares[i].GPUs.Len(),
					false: j.Alloc.Shares[i].CPUs.Len()}[v.Unit == "GPUs"]
			}
		}
	}
	if !oldest.IsZero() {
		v.Oldest = span(now.Sub(oldest))
	}
	v.Jobs = top(states, pageTop, func(name string) string { return "/queue?state=" + url.QueryEscape(name) })
	for i := range v.Jobs {
		v.Jobs[i].State = v.Jobs[i].Name
	}
	v.Reasons = top(reasons, pageTop, func(name string) string {
		return "/queue?state=pending&reason=" + url.QueryEscape(name)
	})
	maps.DeleteFunc(users, func(_ string, n int) bool { return n == 0 })
	hues, most := userHues(sees), 0
	for _, c := range top(users, pageTop, func(name string) string { return "/queue?user=" + url.QueryEscape(name) }) {
		most = max(most, c.N)
		v.Users = append(v.Users, ui.Use{Count: c, Class: ui.Color(hues[c.Name]), Percent: 100 * c.N / most})
	}
}

// sick lists nodes that cannot be used.
func sick(sees visibility.Scope) (out []ui.Node) {
	if sees.Nodes() != nil {
		return nil
	}
	for n := range sees.Snap.Nodes() {
		if word := n.Word(len(sees.Snap.Load(n.Name).Jobs) > 0); !n.Usable() && len(out) < pageSick {
			out = append(out, ui.Node{Name: string(n.Name), State: word, Reason: n.Reason})
		}
	}
	return out
}
