package page

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/samples"
	"dev.muster/api"
	"dev.muster/cluster"
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
