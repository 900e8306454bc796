package demo

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"dev.muster/agent/machine"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// TestMake: what a past says can have been: no GPU or CPU has two jobs at once, jobs lie within the time and their
// nodes, samples count what the jobs have, and history takes the records.
func TestMake(t *testing.T) {
	to := time.Date(2026, 11, 29, 15, 0, 0, 0, time.UTC)
	from := to.Add(-24 * time.Hour)
	for _, text := range []string{"8x16c64g8gpu:h100", "3x8c32g", "1x4c8g1gpu:a100"} {
		t.Run(text, func(t *testing.T) {
			nodes, err := machine.ParseHollow(text)
			if err != nil {
				t.Fatal(err)
			}
			day := Make(nodes, "main", from, to, 7)
			if again := Make(nodes, "main", from, to, 7); !reflect.DeepEqual(day, again) {
				t.Error("the same seed gives another past")
			}
			if len(day.Jobs) < 10 {
				t.Errorf("%d jobs only", len(day.Jobs))
			}
			for _, j := range day.Jobs {
				checkJob(t, j, nodes, from, to)
			}
			checkApart(t, day.Jobs)
			checkSamples(t, &day, nodes)
		})
	}
}

func checkJob(t *testing.T, j *cluster.Job, nodes []machine.Node, from, to time.Time) {
	t.Helper()
	text, err := wire.Marshal(j)
	if err == nil {
		err = cluster.CheckImported(Cluster, j, nil, len(text))
	}
	if err != nil {
		t.Fatalf("job %d: %v", j.ID, err)
	}
	if j.Submitted.Before(from) || j.Started.Before(j.Submitted) || !j.Ended.After(j.Started) || j.Ended.After(to) {
		t.Errorf("job %d: submitted %v, started %v, ended %v", j.ID, j.Submitted, j.Started, j.Ended)
	}
	if j.Ended.Sub(j.Started) > j.Limit || j.Outcome == cluster.TimedOut && j.Ended.Sub(j.Started) != j.Limit {
		t.Errorf("job %d: %v ran %v of %v", j.ID, j.Outcome, j.Ended.Sub(j.Started), j.Limit)
	}
	for _, sh := range j.Alloc.Shares {
		i := slices.IndexFunc(nodes, func(n machine.Node) bool { return n.Name == sh.Node })
		if i < 0 || sh.CPUs.Empty() || sh.CPUs.Max() >= nodes[i].Inventory.CPUs ||
			!sh.GPUs.Empty() && sh.GPUs.Max() >= len(nodes[i].Inventory.GPUs) {
			t.Fatalf("job %d has %+v", j.ID, sh)
		}
	}
}

// checkApart looks at each pair of jobs that ran at the same time.
func checkApart(t *testing.T, jobs []*cluster.Job) {
	t.Helper()
	for i, a := range jobs {
		for _, b := range jobs[:i] {
			if !a.Started.Before(b.Ended) || !b.Started.Before(a.Ended) {
				continue
			}
			for _, x := range a.Alloc.Shares {
				for _, y := range b.Alloc.Shares {
					if x.Node == y.Node && !x.CPUs.Intersect(y.CPUs).Union(x.GPUs.Intersect(y.GPUs)).Empty() {
						t.Errorf("jobs %d and %d share CPUs %v or GPUs %v of %s", a.ID, b.ID,
							x.CPUs.Intersect(y.CPUs), x.GPUs.Intersect(y.GPUs), x.Node)
					}
				}
			}
		}
	}
}

// checkSamples compares what is in use with the jobs that had started by then, and the average with what is meant.
func checkSamples(t *testing.T, day *Day, nodes []machine.Node) {
	t.Helper()
	used, total := 0.0, 0.0
	for _, m := range day.Minutes {
		for _, s := range m.Samples {
			switch {
			case s.Used > s.Total && s.Total > 0:
				t.Errorf("%v: %+v", m.At, s)
			case s.Kind == "cpu":
				used, total = used+s.Used, total+s.Total
			}
		}
	}
	hours := 0.0
	for _, j := range day.Jobs {
		for _, sh := range j.Alloc.Shares {
			hours += float64(sh.CPUs.Len()) * j.Ended.Sub(j.Started).Hours()
		}
	}
	sampled := used * sampleEvery.Hours()
	if sampled < 0.9*hours || sampled > 1.1*hours+float64(len(nodes)) {
		t.Errorf("samples say %.0f CPU hours, jobs %.0f", sampled, hours)
	}
	if share := used / total; share < 0.4 || share > 0.95 {
		t.Errorf("%.0f %% in use on average", 100*share)
	}
}
