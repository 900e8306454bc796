package page

import (
	"net/http/httptest"
	"slices"
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

// TestPlanGroups: a cluster of many nodes fits into one picture, in which a large job is one rectangle, small jobs are
// summed, and each row leads to its nodes.
func TestPlanGroups(t *testing.T) {
	s, state := pageServer(t, 1000, 0)
	all := slices.Collect(state.Snapshot().Nodes())
	see := func(path string) *ui.Plan {
		t.Helper()
		_, _, data, err := viewPlan(s, visibility.Of(state.Snapshot(), visibility.Stranger),
			httptest.NewRequest("GET", path, nil))
		if err != nil {
			t.Fatal(err)
		}
		return data.(*ui.Plan)
	}
	v := see("/plan")
	if len(v.Rows) != 48 || v.Each != 21 || v.Rows[1].Name != "n[00021-00041]" || v.Rows[1].To != "/plan?from=22&span=day" {
		t.Fatalf("%d rows of %d nodes, the second %+v", len(v.Rows), v.Each, v.Rows[1])
	}
	if w := see(v.Rows[1].To); len(w.Rows) != planNodes || w.Rows[0].Name != "n00021" || w.Whole == "" {
		t.Errorf("a group leads to %d rows from %s on", len(w.Rows), w.Rows[0].Name)
	}

	now := time.Now()
	draw := func(first, last, gpus int) *ui.Plan {
		p := &planner{now: now, from: now.Add(-6 * time.Hour), to: now.Add(24 * time.Hour), v: &ui.Plan{},
			sees: visibility.Of(state.Snapshot(), visibility.Stranger)}
		p.place(1, true)
		j := &cluster.Job{ID: 1, Started: now, Phase: cluster.Running, Limit: time.Hour, Alloc: &cluster.Alloc{},
			Spec: &cluster.JobSpec{}}
		for _, n := range all[first:last] {
			j.Alloc.Shares = append(j.Alloc.Shares, cluster.Share{Node: n.Name, GPUs: cluster.RangeIDSet(0, gpus-1)})
		}
		p.job(j)
		p.shadeUse()
		return p.v
	}
	for name, c := range map[string]struct {
		first, last, gpus int
		bars, shades      int
	}{
		"504 nodes are one rectangle":        {21, 21 + 21*24, 8, 1, 0},
		"whole rows and a part of one":       {21, 21 + 21*2 + 7, 8, 2, 0},
		"few nodes are summed":               {21, 24, 8, 0, 1},
		"parts of nodes are summed":          {0, 21, 4, 0, 3}, // the first and the last moment in part
		"a few nodes behind whole rows, too": {0, 22, 8, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := draw(c.first, c.last, c.gpus)
			if len(v.Bars) != c.bars || len(v.Shades) != c.shades {
				t.Errorf("%d bars %+v, %d shades %+v", len(v.Bars), v.Bars, len(v.Shades), v.Shades)
			}
		})
	}
	if v := draw(21, 21+21*24, 8); v.Bars[0].H < 24*14-2 {
		t.Errorf("24 rows are %d high", v.Bars[0].H)
	}
	if v := draw(0, 21, 4); v.Shades[1].Class != "use u2" {
		t.Errorf("half of each node is %s", v.Shades[1].Class)
	}
}
