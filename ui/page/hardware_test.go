package page

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/agent/agenttest"
	"dev.muster/cluster"
	"dev.muster/telemetry"
	"dev.muster/ui"
)

// historyOf opens a history that runs until the test ends.
func historyOf(t testing.TB) *acct.DB {
	t.Helper()
	db, err := acct.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestHardwareCurves: the pages of a node and of a job draw what their GPUs did, with the one marked that
// is not like the others, and a page is made in no time once its curves are known.
func TestHardwareCurves(t *testing.T) {
	s, _ := pageServer(t, 3, 3)
	db := historyOf(t)
	s.History = db
	j, _ := s.Snapshot().Job(1)
	var list []acct.Hardware
	for at := time.Now().Add(-10 * time.Hour).Truncate(time.Minute); at.Before(time.Now()); at = at.Add(time.Minute) {
		list = append(list, acct.Hardware{
			Node: "n00000", At: at, Span: time.Minute,
			Data: agenttest.Working(telemetry.OfNode, 8, 3).Pack(),
		})
	}
	for i := range 10 {
		list = append(list, acct.Hardware{
			Job: 1, Node: "n00000", At: j.Started.Add(time.Duration(5*i-50) * time.Second),
			Span: 5 * time.Second, Data: agenttest.Working(telemetry.OfJob, 8, 5).Pack(),
		})
	}
	if err := acct.SamplesOf(db).Add(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	h := s.handler()
	for path, wants := range map[string][]string{
		"/nodes/n00000": {
			"Resource usage", "Outliers: GPU 3: 41 % where others have 93",
			"GPU utilization over time", `<path class="p-odd"`, "7 GPUs", "CPUs busy", "GPU power",
		},
		"/jobs/1": {"Outliers: GPU 5: 41 % where others have 93", "muster samples 1", "Memory resident"},
	} {
		body := get(t, h, "GET", path).Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is not in\n%s", path, want, body)
			}
		}
	}
	if body := get(t, h, "GET", "/jobs/2").Body.String(); strings.Contains(body, "Resource usage") {
		t.Error("curves of a job without samples")
	}
}

// largeHardware is pages of 1,000 nodes and 12,000 jobs, a day of samples of a node, of a job on it and of one on
// 32 nodes.
func largeHardware(t testing.TB) *pages {
	s, state := pageServer(t, 1000, 12_000)
	snap := state.Snapshot()
	of(s).state = func() *cluster.Snapshot { return snap }
	db := historyOf(t)
	s.History = db
	now := time.Now().Truncate(time.Minute)
	from := now.Add(-24 * time.Hour)
	var list []acct.Hardware
	add := func(job cluster.JobID, nodes int) {
		if j, ok := snap.Job(job); ok {
			j.Started = from
			for len(j.Alloc.Shares) < nodes {
				one := j.Alloc.Shares[0]
				one.Node = cluster.NodeName(fmt.Sprintf("n%05d", len(j.Alloc.Shares)))
				j.Alloc.Shares = append(j.Alloc.Shares, one)
			}
		}
		kind := telemetry.OfJob
		if job == 0 {
			kind = telemetry.OfNode
		}
		for i := range nodes {
			node := cluster.NodeName(fmt.Sprintf("n%05d", i))
			for at := from; at.Before(now); at = at.Add(time.Minute) {
				list = append(list, acct.Hardware{
					Job: job, Node: node, At: at, Span: time.Minute,
					Data: agenttest.Working(kind, 8, 3).Pack(),
				})
			}
		}
	}
	add(0, 1)
	add(1, 1)
	add(2, 32)
	if err := acct.SamplesOf(db).Add(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return s
}

// BenchmarkHardwarePages measures pages with curves that are drawn again each time.
func BenchmarkHardwarePages(b *testing.B) {
	s := largeHardware(b)
	h := s.handler()
	forget := func() {
		s.hardware.mu.Lock()
		clear(s.hardware.made)
		s.hardware.mu.Unlock()
	}
	for _, path := range []string{"/nodes/n00000", "/jobs/1", "/jobs/2"} {
		b.Run("first"+path, func(b *testing.B) {
			s.hardware.wait = laterWait
			for b.Loop() {
				forget()
				get(b, h, "GET", path)
				b.StopTimer()
				for _, m := range s.hardware.made {
					<-m.remake(func(context.Context) (*ui.CurveSet, error) { return nil, nil })
				}
				b.StartTimer()
			}
		})
		s.hardware.wait = time.Minute
		get(b, h, "GET", path)
		b.Run("again"+path, func(b *testing.B) {
			for b.Loop() {
				get(b, h, "GET", path)
			}
		})
		b.Run("anew"+path, func(b *testing.B) {
			size := 0
			for b.Loop() {
				forget()
				size = get(b, h, "GET", path).Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
