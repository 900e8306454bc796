package page

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dev.muster/agent/visibility"
	"dev.muster/cluster"
	"dev.muster/ui"
)

// TestPlan: what runs, ran and will run is drawn where and when it is, neighbours as one; what is hidden has no name.
func TestPlan(t *testing.T) {
	s, state := pageServer(t, 4, 5)
	snap := state.Snapshot()
	now := time.Now()
	of(s).foretell = func(_ *cluster.Snapshot, jobs []*cluster.Job) {
		for i, j := range jobs {
			known := *j
			known.PlannedStart, known.PlannedNodes = now.Add(2*time.Hour), []cluster.NodeName{"n00000", "n00001",
				"n00003"}
			jobs[i] = &known
		}
	}
	_, _, data, err := viewPlan(s, visibility.Of(snap, visibility.Stranger), httptest.NewRequest("GET", "/plan", nil))
	if err != nil {
		t.Fatal(err)
	}
	v := data.(*ui.Plan)
	if len(v.Rows) != 4 || len(v.List) != 1 || v.List[0].Nodes != "n[00000-00001,00003]" {
		t.Errorf("%d rows, %+v", len(v.Rows), v.List)
	}
	planned := 0
	for _, b := range v.Bars {
		if b.X < ui.PlanLeft || b.X+b.W > ui.PlanWidth+2 || b.Y < ui.PlanTop || b.Y+b.H > v.Height {
			t.Errorf("out of the picture: %+v", b)
		}
		if strings.Contains(b.Class, "planned") {
			planned++
		}
	}
	if planned != 2 { // the two that are neighbours are one
		t.Errorf("%d boxes of a job on three nodes", planned)
	}
	p := &planner{from: now, to: now.Add(time.Hour), now: now, rows: map[cluster.NodeName]int{"a": 0, "b": 1},
		height: 24,
		nodes:  []*cluster.Node{{Name: "a"}, {Name: "b"}}, v: &ui.Plan{}}
	for name, c := range map[string]struct {
		from, to time.Time
		part     lane
		boxes    int
	}{
		"whole":     {now, now.Add(time.Minute), wholeRow, 1},
		"half":      {now, now.Add(time.Minute), lane{0, 500}, 2},
		"before":    {now.Add(-2 * time.Hour), now.Add(-time.Hour), wholeRow, 0},
		"after":     {now.Add(2 * time.Hour), now.Add(3 * time.Hour), wholeRow, 0},
		"backwards": {now.Add(time.Minute), now, wholeRow, 0},
	} {
		if got := p.boxes([]cluster.NodeName{"b", "a", "elsewhere"}, c.from, c.to,
			func(cluster.NodeName) lane { return c.part }); len(got) != c.boxes {
			t.Errorf("%s: %+v", name, got)
		}
	}
	gpus := &cluster.Node{Inventory: cluster.Inventory{CPUs: 64, GPUs: make([]cluster.GPU, 8)}}
	for _, c := range []struct {
		sh   cluster.Share
		want lane
	}{
		{cluster.Share{GPUs: cluster.RangeIDSet(0, 7)}, wholeRow}, {cluster.Share{GPUs: cluster.RangeIDSet(2, 3)},
			lane{250, 500}},
		{cluster.Share{CPUs: cluster.RangeIDSet(0, 63)}, lane{880, 1000}},
	} {
		if got := laneOf(gpus, &c.sh); got != c.want {
			t.Errorf("%+v: %+v", c.sh, got)
		}
	}
}
