package page

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/samples"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// TestMeasured: a sample counts what is in use, free and out of service of each kind, what waits and why, and what
// has happened.
func TestMeasured(t *testing.T) {
	s, state := pageServer(t, 3, 5)
	reason := "fan"
	state.Apply(cluster.Entry{Index: 500, At: time.Now(), By: cluster.Identity{System: true}, Cmd: &cluster.NodeSet{
		Nodes: []cluster.NodeName{"n00002"}, Action: cluster.NodeDrain, Reason: &reason}})
	m := samples.Measure(s.Snapshot())
	m.Count(api.JobCounts{Started: 5, Failed: 2}, api.JobCounts{Started: 3, Failed: 4})
	for key, want := range map[[2]string][3]float64{
		{"node", ""}: {3, 3, 0}, {"cpu", ""}: {180, 24, 52}, {"gpu", "h100"}: {24, 24, 0}, {"queue", "pending"}: {0,
			2, 0},
		{"queue", "starting"}: {0, 3, 0}, {"reason", "not looked at yet"}: {0, 2, 0}, {"partition_gpu",
			"main"}: {24, 24, 0}, {"partition_cpu", "main"}: {180, 24, 52},
		{acct.Counted, "started"}: {0, 2, 0}, {acct.Counted, "failed"}: {0, 0, 0},
	} {
		got := m.Of(key[0], key[1])
		if got.Total != want[0] || got.Used != want[1] || got.Lost != want[2] {
			t.Errorf("%v: %+v, want %v", key, *got, want)
		}
	}
}

// TestFreeBlock: nodes that nobody has come first, then the most that one has left, and when by the jobs' limits
// there is more.
func TestFreeBlock(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		nodes, jobs int
		want        string
		then        int
	}{{4, 1, "3 × 8 h100", 1}, {3, 3, "0 × ", 1}, {0, 0, "0 × ", 0}} {
		s, _ := pageServer(t, c.nodes, c.jobs)
		b := freeBlock(s.Snapshot(), now)
		if got := strings.TrimSpace(several(float64(b.Nodes), "")[:1]) + " × " + b.Each; got != c.want ||
			len(b.Then) != c.then {
			t.Errorf("%d nodes, %d jobs: %s, then %v", c.nodes, c.jobs, got, b.Then)
		}
	}
}

// TestCurves: the overview draws what samples tell, breaks off where there are none, and counts the day.
func TestCurves(t *testing.T) {
	db, err := acct.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- db.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	s, _ := pageServer(t, 3, 5)
	s.History = db
	m := samples.Measure(s.Snapshot())
	m.Count(api.JobCounts{Completed: 1, Failed: 1}, api.JobCounts{})
	now := time.Now()
	for at := now.Add(-5 * time.Hour); !at.After(now); at = at.Add(5 * time.Minute) {
		if hole := now.Add(-2 * time.Hour); at.After(hole) && at.Before(hole.Add(time.Hour)) {
			continue
		}
		if err := acct.PastOf(db).Add(t.Context(), at, m.List()); err != nil {
			t.Fatal(err)
		}
	}
	endJobs(t, db, now, cluster.Completed)
	body := get(t, s.handler(), "GET", "/?past=hours").Body.String()
	for _, want := range []string{"h100 GPUs over time, 100 % in use on average", "Jobs over time, at most 2 wait",
		": 24 in use, 0 free, 0 out of service</title>",
		`aria-current="true">6 hours`} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in\n%s", want, body)
		}
	}
	_, area, _ := strings.Cut(body, `class="p-used" d="`)
	area, _, _ = strings.Cut(area, `"`)
	if strings.Count(area, "M") != 2 || strings.Count(area, "Z") != 2 {
		t.Errorf("the curve with a hole: %s", area)
	}
	if strings.Contains(body, `<a href="/queue?state=ended">0</a>`) {
		t.Error("nothing was counted in a day")
	}
}

// TestFirstLook: minutes after a cluster began, the overview counts the jobs that have ended meanwhile, and its curves
// show these minutes, in steps.
func TestFirstLook(t *testing.T) {
	db := runningHistory(t)
	s, _ := pageServer(t, 3, 5)
	s.History = db
	now := time.Now()
	endJobs(t, db, now, cluster.Completed, cluster.Completed, cluster.Failed, cluster.OutOfMemory, cluster.Cancelled,
		cluster.Requeued)
	m := samples.Measure(s.Snapshot())
	for _, at := range []time.Time{now.Add(-3 * time.Minute), now.Add(-2 * time.Minute)} {
		if err := acct.PastOf(db).Add(t.Context(), at, m.List()); err != nil {
			t.Fatal(err)
		}
	}
	body := get(t, s.handler(), "GET", "/").Body.String()
	for _, want := range []string{`<a href="/queue?state=ended">2</a> <small>completed`, "6 started", ">2 failed</a>",
		"1 cancelled"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in\n%s", want, body)
		}
	}
	_, area, _ := strings.Cut(body, `class="p-used" d="M`)
	if line, _, _ := strings.Cut(area, `"`); strings.Contains(line, "M") {
		t.Errorf("two minutes in a row are not one area: %s", line)
	}
	var x, y float64 // points are two minutes apart, so the first lies up to two minutes to the right
	if _, err := fmt.Sscanf(area, "%f %f", &x, &y); err != nil || x > 720*0.85 || x < 720*0.4 {
		t.Errorf("the curve of 3 of 10 minutes begins at %v, %v", x, err)
	}
}

// TestGPUTypes: GPUs of several types are one card with a row for each.
func TestGPUTypes(t *testing.T) {
	s, _ := pageServer(t, 1, 0)
	m := samples.Measure(s.Snapshot())
	if g := gpuGauge(m); g.Name != "h100 GPUs" || g.Have != 8 || g.Types != nil {
		t.Errorf("%+v", g)
	}
	m.Of("gpu", "a100").Total, m.Of("gpu", "a100").Used = 16, 4
	g := gpuGauge(m)
	if len(g.Types) != 2 || g.Name != "GPUs" || g.Have != 24 || g.Used != 4 || g.Types[0].Name != "a100 GPUs" {
		t.Errorf("%+v", g)
	}
	var out bytes.Buffer
	if err := ui.Render(&out, "overview", ui.Page{View: &ui.Overview{Gauges: []ui.Gauge{
		{Name: "GPUs", Have: 118108, Types: g.Types}}}}, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"of 118\u202f108 in use", "<span>a100 GPUs</span>", "4 of 16"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// runningHistory is an empty history that takes records until the test ends.
func runningHistory(t *testing.T) *acct.DB {
	t.Helper()
	db := historyOf(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- db.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return db
}

// endJobs adds jobs to a history that have ended a minute ago.
func endJobs(t *testing.T, db *acct.DB, now time.Time, how ...cluster.Outcome) {
	t.Helper()
	var events []cluster.Event
	for i, o := range how {
		events = append(events, cluster.Event{Job: &cluster.Job{ID: cluster.JobID(100 + i), Task: cluster.TaskAny,
			Phase: cluster.Ended, Outcome: o, Submitted: now.Add(-time.Hour), Started: now.Add(-2 * time.Minute),
			Ended: now.Add(-time.Minute), Attempt: 1, Spec: &cluster.JobSpec{Layout: &cluster.Layout{}, User: "ada"}}})
	}
	db.Apply(1, events)
	if err := db.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
