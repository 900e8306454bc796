package page

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/agent/eventlog"
	"dev.muster/agent/lookup"
	"dev.muster/agent/visibility"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// Bounds of these views.
const (
	pageEvents   = 200
	calendarDays = 14
	chartDays    = 30
	chartAge     = 5 * time.Minute // how old the chart's sums may be: they are of whole days but for the last
	liveTime     = 4 * time.Second // for a job's node to answer
)

// eventKinds are what the view of events may be narrowed to; the first is what needs somebody.
var eventKinds = []struct {
	name, text string
	has        func(t *eventlog.Record) bool
}{
	{"", "needs attention", needs},
	{"nodes", "nodes", func(t *eventlog.Record) bool { return t.Node != nil || t.Gone != "" }},
	{"failed", "failed jobs", failed},
	{"jobs", "all jobs", func(t *eventlog.Record) bool { return t.Job != nil }},
	{"reservations", "reservations", func(t *eventlog.Record) bool { return t.Resv != nil }},
}

// needs reports whether an administrator may have to look at an event: a node that is well needs nobody, and neither
// does a job that failed by its own program, or that was refused.
func needs(t *eventlog.Record) bool {
	if t.Node != nil {
		return !t.Node.Usable() || t.Node.Reason != ""
	}
	if t.Job != nil {
		return failed(t) && byPlatform(t.Job)
	}
	return t.Step == nil && t.Purged == 0
}

// byPlatform reports whether a job died of the cluster, and not of what its user did.
func byPlatform(j *cluster.Job) bool {
	blamed := j.Blame != nil && !j.Blame.Maybe
	return blamed || j.EndReason == cluster.EndLaunchFailure || j.Outcome.Lost()
}

// failed reports whether an event is a job's bad end.
func failed(t *eventlog.Record) bool {
	return t.Job != nil && t.Job.Phase == cluster.Ended && t.Job.Outcome != cluster.Completed &&
		t.Job.Outcome != cluster.Cancelled
}

func (s *pages) viewEvents(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	kind, find := r.URL.Query().Get("kind"), strings.TrimSpace(r.URL.Query().Get("find"))
	v := ui.Events{Kind: kind, Find: find}
	has := eventKinds[0].has
	for _, k := range eventKinds {
		if k.name == kind {
			has = k.has
		}
		q := ""
		if find != "" {
			q = "&find=" + url.QueryEscape(find)
		}
		v.Kinds = append(v.Kinds, ui.Link{Text: k.text, To: "/events?kind=" + k.name + q, Here: k.name == kind})
	}
	shown := func(t *eventlog.Record) bool {
		if !has(t) || !eventlog.Follows(&api.EventQuery{}, sees, t) {
			return false
		}
		return find == "" || strings.Contains(eventText(t), find)
	}
	for _, t := range s.Events.Latest(pageEvents, shown) {
		v.Rows = append(v.Rows, eventRow(&t))
	}
	return "events", "Events", v, nil
}

// eventText is what is looked through for a word.
func eventText(t *eventlog.Record) string {
	row := eventRow(t)
	return strings.Join([]string{row.What, row.State, row.Text}, " ")
}

// eventRow words an event for people.
func eventRow(t *eventlog.Record) ui.Happened {
	e := eventlog.Word(t)
	row := ui.Happened{At: t.At}
	switch {
	case e.Job != nil:
		row.What, row.To, row.State = "job "+jobID(t.Job), jobPath(t.Job), e.Job.State
		row.Text = strings.Join(strings.Fields(e.Job.Name+" "+e.Job.User+" "+e.Job.Reason+" "+e.Job.Nodes), " ")
		if e.Job.Exit != nil && *e.Job.Exit+e.Job.Signal != 0 {
			row.Text += ", " + exitText(cluster.ExitStatus{Code: *e.Job.Exit, Signal: e.Job.Signal})
		}
	case e.Node != nil:
		row.What, row.To, row.State = "node "+string(e.Node.Name), "/nodes/"+string(e.Node.Name), e.Node.State
		if row.Text = e.Node.Reason; e.Node.By != "" && e.Node.Reason != "" {
			row.Text += " (by " + e.Node.By + ")"
		}
	case e.Reservation != nil:
		row.What, row.To, row.State = "reservation "+e.Reservation.Name, "/reservations", e.Reservation.State
		row.Text = e.Reservation.Nodes
	}
	return row
}

// spans are the times of a reservation within a time, its repetitions too.
func spans(r *cluster.Reservation, from, to time.Time) (out [][2]time.Time) {
	length := r.End.Sub(r.Start)
	days := map[bool]int{true: 7, false: 1}[r.Flags&cluster.ResvWeekly != 0]
	repeats := r.Flags&(cluster.ResvDaily|cluster.ResvWeekly|cluster.ResvWeekday|cluster.ResvWeekend) != 0
	for start := r.Start; start.Before(to); start = start.AddDate(0, 0, days) {
		end := start.Add(length)
		weekend := start.Weekday() == time.Saturday || start.Weekday() == time.Sunday
		off := r.Flags&cluster.ResvWeekday != 0 && weekend || r.Flags&cluster.ResvWeekend != 0 && !weekend
		if end.After(from) && !off {
			out = append(out, [2]time.Time{start, end})
		}
		if !repeats {
			break
		}
	}
	return out
}

// calendar draws reservations over the next days.
func calendar(list []*cluster.Reservation, now time.Time) *ui.Calendar {
	from := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	to := from.AddDate(0, 0, calendarDays)
	c := &ui.Calendar{Now: place(now, from, to)}
	for d := range calendarDays {
		day := from.AddDate(0, 0, d)
		c.Days = append(c.Days, ui.Day{X: place(day, from, to), Text: day.Format("Mon 2")})
	}
	for _, r := range list {
		times := spans(r, from, to)
		if len(times) == 0 {
			continue
		}
		row := ui.CalendarRow{Name: r.Name, Y: 30 + 26*len(c.Rows)}
		for _, t := range times {
			x := place(t[0], from, to)
			row.Bars = append(row.Bars, ui.Bar{X: x, W: max(place(t[1], from, to)-x, 3),
				Title: fmt.Sprintf("%s: %s to %s", r.Name, t[0].Format("Jan 2 15:04"), t[1].Format("Jan 2 15:04"))})
		}
		if row.NameX = row.Bars[0].X + 6; 7*len(r.Name)+12 > row.Bars[0].W {
			row.NameX = row.Bars[0].X + row.Bars[0].W + 4 // it does not fit in
		}
		c.Rows = append(c.Rows, row)
	}
	c.Height = 34 + 26*len(c.Rows)
	return c
}

// place is where in a drawing of 1000 a moment is.
func place(t, from, to time.Time) int {
	return int(min(max(float64(t.Sub(from))/float64(to.Sub(from)), 0), 1) * 1000)
}

// daily is what was used on each of the last days, kept for a while.
type daily struct {
	mu   sync.Mutex
	at   time.Time
	days []dayUse
}

type dayUse struct {
	day  time.Time
	rows []cluster.UsageRow
}

// sums are the last days, the oldest first.
func (d *daily) sums(ctx context.Context, h webpage.History, now time.Time) ([]dayUse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.at) < chartAge {
		return d.days, nil
	}
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	var days []dayUse
	for i := range chartDays {
		from := today.AddDate(0, 0, i-chartDays+1)
		rows, err := h.Usage(ctx, cluster.UsageQuery{Time: cluster.Span{From: from.Unix(),
			To: min(from.AddDate(0, 0, 1).Unix(), now.Unix())}})
		if err != nil {
			return nil, fmt.Errorf("sum up %s: %w", from.Format("2006-01-02"), err)
		}
		days = append(days, dayUse{from, rows})
	}
	d.at, d.days = now, days
	return days, nil
}

// usageCSV is what was used on each day by each user, for a spreadsheet.
func (s *pages) usageCSV(w http.ResponseWriter, r *http.Request) {
	if s.History == nil || !s.History.Whole() {
		http.Error(w, "this server is still loading the history; ask another one", http.StatusServiceUnavailable)
		return
	}
	who, _ := s.visitor(r)
	days, err := s.daily.sums(r.Context(), s.History, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	out, sees := csv.NewWriter(w), visibility.Of(s.Snapshot(), who)
	_ = out.Write([]string{"day", "account", "user", "gpu_hours", "cpu_hours", "jobs"})
	for _, d := range days {
		for _, row := range sees.OnlyOwn(slices.Clone(d.rows)) {
			_ = out.Write([]string{d.day.Format("2006-01-02"), row.Account, row.User,
				hours(cluster.AmountOf(row.Used, "gres/gpu")), hours(cluster.AmountOf(row.Used, "cpu")),
				strconv.FormatInt(row.Jobs, 10)})
		}
	}
	out.Flush()
}

// timeline is a job's life: what of it was waiting and running, and what happened when.
func (s *pages) timeline(j *cluster.Job, now time.Time) *ui.Timeline {
	end := now
	if !j.Ended.IsZero() {
		end = j.Ended
	}
	t := &ui.Timeline{}
	point := func(at time.Time, what string) {
		if !at.IsZero() {
			t.Points = append(t.Points, ui.Point{At: at, Text: what})
		}
	}
	point(j.Submitted, "submitted")
	if !j.Eligible.Equal(j.Submitted) {
		point(j.Eligible, "eligible")
	}
	state := ""
	for _, e := range slices.Backward(s.Events.Latest(pageEvents,
		func(t *eventlog.Record) bool { return t.Job != nil && t.Job.ID == j.ID })) {
		now := api.JobWord(e.Job)
		if now == "pending" && state != "" && state != "pending" {
			point(e.At, "requeued")
		} else if now == "suspended" || state == "suspended" && now == "running" {
			point(e.At, map[bool]string{true: "suspended", false: "resumed"}[now == "suspended"])
		}
		state = now
	}
	point(j.Started, "started"+map[bool]string{true: fmt.Sprintf(" (start %d)", j.Restarts+1)}[j.Restarts > 0])
	point(j.Ended, "ended: "+strings.ReplaceAll(api.JobWord(j), "_", " "))
	slices.SortStableFunc(t.Points, func(a, b ui.Point) int { return a.At.Compare(b.At) })
	began := end
	if !j.Started.IsZero() && !j.Started.After(end) {
		began = j.Started
	}
	if end.After(j.Submitted) {
		t.Wait = place(began, j.Submitted, end)
		t.Text = "waited " + span(began.Sub(j.Submitted))
		if end.After(began) {
			t.Text += ", ran " + span(end.Sub(began))
		}
	}
	return t
}

// viewSooner shows what would start a pending job sooner, to whom it belongs and to operators. Trying that out
// takes as long as many passes, so it is not done again whenever the cluster changes.
func (s *pages) viewSooner(sees visibility.Scope, r *http.Request) (string, string, any, error) {
	n, err := lookup.Find(r.Context(), s.History, sees, r.PathValue("id"))
	if err != nil {
		return "", "", nil, err
	}
	j := n.Job
	for _, task := range n.Tasks {
		if task.Phase == cluster.Pending {
			j = task
		}
	}
	if j.Phase != cluster.Pending {
		return "", "", nil, cluster.Errorf(cluster.Conflict, "", "job %s does not wait", n.Text)
	}
	if !owns(sees, j) {
		return "", "", nil, cluster.Errorf(cluster.Denied, cluster.ErrAccess,
			"only %[2]s and operators may see what would start job %[1]d sooner: log in (muster ui)",
			j.ID, j.Spec.User)
	}
	told, err := api.CallAs(r.Context(), s.Call, sees.Who, api.WhyJob, api.WhyRequest{Ref: cluster.Ref{Job: j.ID}})
	if err != nil {
		return "", "", nil, err
	}
	v := ui.One{State: api.JobWord(j), Head: fmt.Sprintf("%s, of %s", j.Spec.Name, j.Spec.User), Still: true}
	for _, c := range told.Changes {
		when := c.StartsAt.Format("2006-01-02 15:04")
		if c.Now {
			when = "now"
		}
		v.Changes = append(v.Changes, ui.Cause{Reason: when, Text: c.Change, Hint: c.Hint})
	}
	if v.Changes == nil {
		v.Note = "No single change of the job would start it sooner."
	}
	return "one", "Sooner: job " + n.Text, v, nil
}

// showsNothing says why there is neither use nor output of a job to be shown; "" if there is.
func showsNothing(j *cluster.Job) string {
	switch {
	case j.Phase == cluster.Starting:
		return "The job is starting. Its resource usage and output appear here in a moment."
	case j.Alloc == nil || len(j.Alloc.Shares) == 0 || j.Phase < cluster.Running:
		return "Resource usage and output appear here once the job runs."
	}
	return ""
}

// stepFigures words what a step uses.
func stepFigures(st *cluster.Step) ui.Figures {
	f := ui.Figures{Step: cmp.Or(map[int]string{cluster.BatchStep: "script"}[st.ID.Step],
		strconv.Itoa(st.ID.Step)), Name: st.Name, Tasks: st.Tasks}
	for _, m := range st.Usage.In {
		switch m.TRES {
		case cluster.MeasuredCPU:
			f.CPU = span(time.Duration(m.Tot) * time.Millisecond)
		case cluster.MeasuredMem:
			f.Mem = mebibytes(m.Tot)
		case cluster.MeasuredGPUUtil:
			f.GPU = fmt.Sprintf("%.0f %%", float64(m.Tot)/100)
		case cluster.MeasuredGPUMem:
			f.GPUMem = mebibytes(m.Tot)
		}
	}
	return f
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
