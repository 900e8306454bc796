package page

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/eventlog"
	"dev.muster/agent/visibility"
	"dev.muster/agent/webpage"
	"dev.muster/cluster"
	"dev.muster/sched/explain"
	"dev.muster/ui"
)

// TestEventsView: what needs an administrator is first, which no job is that failed by itself; one kind or a word narrows it
// down; PrivateData counts.
func TestEventsView(t *testing.T) {
	s, _ := pageServer(t, 1, 0)
	at := time.Now()
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}, Name: "training", UID: 1000, User: "ada",
		Partitions: []string{"a"}}
	s.Events.Append([]eventlog.Record{
		{Index: 1, At: at, Event: cluster.Event{Node: &cluster.Node{Name: "n7", Drain: true, Registered: at, Up: true,
			Reason: "bad fan", ReasonBy: "root"}, Idle: true}},
		{Index: 2, At: at, Event: cluster.Event{Job: &cluster.Job{ID: 5, Spec: spec, Phase: cluster.Ended,
			Outcome: cluster.Completed}}},
		{Index: 3, At: at, Event: cluster.Event{Job: &cluster.Job{ID: 6, Spec: spec, Phase: cluster.Ended,
			Outcome: cluster.OutOfMemory, Exit: cluster.ExitStatus{Signal: 125}}}},
		{
			Index: 4, At: at,
			Event: cluster.Event{Resv: &cluster.Reservation{Name: "maint", Start: at, End: at.Add(time.Hour)}},
		},
	})
	for path, want := range map[string][4]bool{ // node, job 5, job 6, reservation
		"/events": {true, false, false, true}, "/events?kind=nodes": {true, false, false,
			false}, "/events?kind=failed": {false, false, true, false}, "/events?kind=jobs": {false, true, true, false},
		"/events?kind=reservations": {false, false, false, true}, "/events?find=fan": {true, false, false,
			false}, "/events?kind=jobs&find=ada": {false, true, true, false}, "/events?kind=nonsense": {true,
			false, false, true},
	} {
		body := get(t, s.handler(), "GET", path).Body.String()
		for i, text := range []string{"bad fan (by root)", "job 5<", "out_of_memory", "reservation maint"} {
			if strings.Contains(body, text) != want[i] {
				t.Errorf("%s: %q there: %v\n%s", path, text, !want[i], body)
			}
		}
	}
}

// TestCalendar: a reservation is drawn at its times, repeating ones on each of their days.
func TestCalendar(t *testing.T) {
	monday := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	now := monday.Add(12 * time.Hour)
	resv := func(flags cluster.ResvFlags, start time.Time) *cluster.Reservation {
		return &cluster.Reservation{Name: "r", Start: start, End: start.Add(2 * time.Hour), Flags: flags}
	}
	for name, c := range map[string]struct {
		r    *cluster.Reservation
		bars int
	}{
		"once":      {resv(0, now), 1},
		"over":      {resv(0, monday.Add(-48*time.Hour)), 0},
		"far off":   {resv(0, monday.AddDate(0, 0, 15)), 0},
		"daily":     {resv(cluster.ResvDaily, now), 14},
		"weekly":    {resv(cluster.ResvWeekly, now), 2},
		"work days": {resv(cluster.ResvWeekday, now), 10},
		"weekends":  {resv(cluster.ResvWeekend, monday.AddDate(0, 0, 5)), 4},
	} {
		cal := calendar([]*cluster.Reservation{c.r}, now)
		bars := 0
		for _, row := range cal.Rows {
			bars += len(row.Bars)
			for _, b := range row.Bars {
				if b.X < 0 || b.X+b.W > 1003 || b.W < 3 {
					t.Errorf("%s: a bar at %d, %d wide", name, b.X, b.W)
				}
			}
		}
		if bars != c.bars || len(cal.Days) != 14 || cal.Now != 35 {
			t.Errorf("%s: %d bars of %d, %d days, now at %d", name, bars, c.bars, len(cal.Days), cal.Now)
		}
	}
}

// TestTimeline: waiting and running have their parts, and each requeue its moment.
func TestTimeline(t *testing.T) {
	s, _ := pageServer(t, 1, 0)
	at := func(min int) time.Time {
		return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(min) * time.Minute)
	}
	spec := &cluster.JobSpec{Layout: &cluster.Layout{}}
	j := &cluster.Job{ID: 3, Spec: spec, Phase: cluster.Running, Submitted: at(0), Eligible: at(10),
		Started: at(40), Restarts: 1}
	s.Events.Append([]eventlog.Record{
		{Index: 1, At: at(0), Event: cluster.Event{Job: &cluster.Job{ID: 3, Spec: spec}}},
		{Index: 2, At: at(20), Event: cluster.Event{Job: &cluster.Job{ID: 3, Spec: spec, Phase: cluster.Running}}},
		{Index: 3, At: at(30), Event: cluster.Event{Job: &cluster.Job{ID: 3, Spec: spec}}},
		{Index: 4, At: at(40), Event: cluster.Event{Job: j}},
	})
	line := s.timeline(j, at(160))
	var got []string
	for _, p := range line.Points {
		got = append(got, p.At.Format("15:04 ")+p.Text)
	}
	if text := strings.Join(got,
		"; "); text != "03:00 submitted; 03:10 eligible; 03:30 requeued; 03:40 started (start 2)" {
		t.Error(text)
	}
	if line.Wait != 250 || line.Run() != 750 || line.Text != "waited 40 min 0 s, ran 2 h 0 min" {
		t.Errorf("%d, %d, %s", line.Wait, line.Run(), line.Text)
	}
	if w := get(t, s.handler(), "GET", "/jobs/1/log"); w.Code != 404 {
		t.Errorf("a job that is none: %d", w.Code)
	}
	s, _ = pageServer(t, 1, 1)
	if w := get(t, s.handler(), "GET", "/jobs/1/log"); w.Code != 403 {
		t.Errorf("output without a login: %d", w.Code)
	}
}

// fixedUse is a history in which every day had the same use.
type fixedUse struct {
	webpage.History
	asked int
}

func (*fixedUse) Whole() bool { return true }
func (h *fixedUse) Usage(context.Context, cluster.UsageQuery) ([]cluster.UsageRow, error) {
	h.asked++
	row := cluster.UsageRow{Used: []cluster.Amount{{TRES: "gres/gpu", N: 7200}}, Jobs: 1}
	row.Account, row.User = "ml", "ada"
	return []cluster.UsageRow{row}, nil
}
func (*fixedUse) Jobs(context.Context, acct.Query) iter.Seq2[acct.Record, error] { return nil }

// TestUsageViews: budgets with their limits, the chart of each day, and the same as CSV; the sums are made once.
func TestUsageViews(t *testing.T) {
	s, state := pageServer(t, 1, 0)
	h := &fixedUse{}
	s.History = h
	out := state.Apply(cluster.Entry{Index: 100, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.ChangeAccounts{Changes: []cluster.Change{{Account: &cluster.Account{Name: "ml"}},
			{Assoc: &cluster.Association{Account: "ml", Parent: 1, Shares: 1,
				Limits: cluster.Limits{{Name: "GrpTRESMins", TRES: "gres/gpu", Max: 6000}}}}}}})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	unheld := get(t, s.handler(), "GET", "/accounts").Body.String()
	for _, want := range []string{"no job waits for it: AccountingStorageEnforce=limits", `<td class="num">not counted</td>`} {
		if !strings.Contains(unheld, want) {
			t.Errorf("%q is not in %s", want, unheld)
		}
	}
	cfg := *s.Snapshot().Config()
	cfg.Priority.Multifactor, cfg.Enforce.Limits = true, true
	out = state.Apply(cluster.Entry{Index: 101, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Configure{Config: &cfg}})
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	body := get(t, s.handler(), "GET", "/accounts").Body.String()
	if strings.Contains(body, "no job waits for it") {
		t.Errorf("limits that are enforced are told as if they were not: %s", body)
	}
	for _, want := range []string{"<td>account ml</td><td>GPU hours</td>", ">100.0</td>", "GPU hours per day",
		", ml: 2 of 2 GPU hours</title>", `href="/queue?state=ended&amp;account=ml">ml</a> <small>60.0</small>`,
		`<td class="num">2.`, time.Now().AddDate(0, 0, 45).Format("2006")} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	csv := get(t, s.handler(), "GET", "/usage.csv").Body.String()
	if lines := strings.Split(strings.TrimSpace(csv), "\n"); len(lines) != 1+chartDays ||
		!strings.HasSuffix(lines[1], ",ml,ada,2.0,0.0,1") {
		t.Errorf("%s", csv)
	}
	if h.asked != chartDays {
		t.Errorf("history was asked %d times", h.asked)
	}
}

// TestDenseTiles: where a tile has no cells its color is that of who has most of the node, as the legend says, and
// nobody whom the visitor may not see is named.
func TestDenseTiles(t *testing.T) {
	s, _ := pageServer(t, pageCells+1, 2)
	h := s.handler()
	hue := ui.Color(userHues(visibility.Of(s.Snapshot(), visibility.Stranger))["a\"><img src=x>"])
	body := get(t, h, "GET", "/map?by=user").Body.String()
	for _, want := range []string{" " + hue + ` l4" href="/nodes/n00000"`, "most of it a&#34;&gt;&lt;img src=x&gt;",
		"A node has the color of the user with the largest share"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in\n%.3000s", want, body)
		}
	}
	if body := get(t, h, "GET", "/map?by=job").Body.String(); !strings.Contains(body, "most of it job 1 of") {
		t.Errorf("by job: %.3000s", body)
	}
	if body := get(t, h, "GET", "/map?by=health").Body.String(); strings.Contains(body, "most of it") {
		t.Error("by health a tile names somebody")
	}
}

// TestHolders: a job that holds something is linked itself, with how long it is until that is over.
func TestHolders(t *testing.T) {
	s, state := pageServer(t, 1, 1)
	now := time.Now()
	j, _ := state.Snapshot().Job(1)
	list := []explain.Holder{{Job: j, Nodes: []cluster.NodeName{"n1"}, Until: now.Add(57 * time.Minute)},
		{Job: j, Nodes: []cluster.NodeName{"n2"}, Until: now.Add(9000 * time.Hour), Endless: true}}
	rows := holderRows(visibility.Of(s.Snapshot(), visibility.Stranger), list, now)
	want := "n1, over in 57 min (" + now.Add(57*time.Minute).Format("2006-01-02 15:04") + ") at the latest"
	if rows[0].Link != "/jobs/1" || rows[0].To != "" || rows[0].Value != want {
		t.Errorf("%+v, want %s", rows[0], want)
	}
	if rows[1].Value != "n2, without a time limit" {
		t.Errorf("%+v", rows[1])
	}
}

// TestPriorityRows: a part of the priority that is nothing has no row, and no minus.
func TestPriorityRows(t *testing.T) {
	s, state := pageServer(t, 1, 2)
	cfg := *state.Snapshot().Config()
	cfg.Priority.Multifactor, cfg.Priority.Weights.Age = true, 1000
	if out := state.Apply(cluster.Entry{Index: 900, At: time.Now(), By: cluster.Identity{System: true},
		Cmd: &cluster.Configure{Config: &cfg}}); out.Err != nil {
		t.Fatal(out.Err)
	}
	j, _ := s.Snapshot().Job(2)
	for _, row := range priorityRows(s.Snapshot(), j, time.Now().Add(time.Hour)) {
		if row.Name == "nice" || row.Value == "0" || strings.HasPrefix(row.Value, "-") {
			t.Errorf("%+v", row)
		}
	}
}

// TestPasted: the line that submitted a job does the same again when it is pasted into a shell.
func TestPasted(t *testing.T) {
	for _, c := range []struct {
		spec         cluster.JobSpec
		script, want string
	}{
		{cluster.JobSpec{SubmitLine: "sbatch -N1 job.sh"}, "#!/bin/sh\ntrue\n", "sbatch -N1 job.sh"},
		{cluster.JobSpec{SubmitLine: "sbatch --wrap for s in $(seq 3); do echo 'x'; done"},
			wrapped + "for s in $(seq 3); do echo 'x'; done\n",
			`sbatch --wrap 'for s in $(seq 3); do echo '\''x'\''; done'`},
		{cluster.JobSpec{SubmitLine: "sbatch --wrap=a | b -N1 -J my job", Name: "my job"}, wrapped + "a | b\n",
			"sbatch --wrap='a | b' -N1 -J 'my job'"},
		{cluster.JobSpec{SubmitLine: "sbatch -J a&b job.sh", Name: "a&b"}, "", "sbatch -J 'a&b' job.sh"},
	} {
		c.spec.Layout = &cluster.Layout{}
		if got := pasted(&c.spec, c.script); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
