package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"dev.muster/acct"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/telemetry"
	"dev.muster/ui"
)

// working is a sample of so many GPUs, of which one is not like the others.
func working(k telemetry.Kind, gpus, odd int) *telemetry.Sample {
	s := telemetry.New(k)
	for i := range s.Own {
		s.Own[i] = 50
	}
	for i := range gpus {
		v := s.GPU(i).Values
		v[telemetry.GPUUtil], v[telemetry.GPUPower], v[telemetry.GPUTemp] = 93, 600, 61
		if i == odd {
			v[telemetry.GPUUtil] = 41
		}
	}
	return s
}

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
	s.hist = db
	j, _ := s.snapshot().Job(1)
	var list []acct.Hardware
	for at := time.Now().Add(-10 * time.Hour).Truncate(time.Minute); at.Before(time.Now()); at = at.Add(time.Minute) {
		list = append(list, acct.Hardware{Node: "n00000", At: at, Span: time.Minute, Data: working(telemetry.OfNode, 8, 3).Pack()})
	}
	for i := range 10 {
		list = append(list, acct.Hardware{Job: 1, Node: "n00000", At: j.Started.Add(time.Duration(5*i-50) * time.Second),
			Span: 5 * time.Second, Data: working(telemetry.OfJob, 8, 5).Pack()})
	}
	if err := acct.SamplesOf(db).Add(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	h := s.handler()
	for path, wants := range map[string][]string{
		"/nodes/n00000": {"What the hardware did", "Not like the others: GPU 3: 41 % where others have 93", "GPU utilization over time",
			`<path class="p-odd"`, "7 GPUs", "CPUs busy", "GPU power"},
		"/jobs/1": {"Not like the others: GPU 5: 41 % where others have 93", "muster samples 1", "Memory resident"},
	} {
		body := get(t, h, "GET", path).Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is not in\n%s", path, want, body)
			}
		}
	}
	if body := get(t, h, "GET", "/jobs/2").Body.String(); strings.Contains(body, "What the hardware did") {
		t.Error("curves of a job without samples")
	}
}

// TestSamplesTaken: a sample counts once, what is told late is no news, and another server fetches all of
// them in parts, once more from one that has started anew.
func TestSamplesTaken(t *testing.T) {
	h := newSamples()
	one := func(node cluster.NodeName, at int64) api.NodeSample {
		return api.NodeSample{Node: node, At: at, Span: 60, Data: working(telemetry.OfNode, 8, -1).Pack(),
			Jobs: []api.JobSample{{Job: 7, Data: working(telemetry.OfJob, 8, -1).Pack()}}}
	}
	now := time.Unix(36000, 0)
	h.take([]api.NodeSample{one("a", 36000), one("b", 36000), one("a", 36000), one("a", 35940), {Node: "c", Data: []byte{9}}})
	if l := h.latest["a"]; !l.at.Equal(now.Add(time.Minute)) || l.jobs[7] == nil || h.latest["c"] != nil && h.latest["c"].own != nil {
		t.Errorf("%+v", l)
	}
	list, hours := h.unwritten(now)
	if len(list) != 6 || len(hours) != 0 {
		t.Errorf("%d rows, hours %v", len(list), hours)
	}
	if _, hours = h.unwritten(now.Add(2 * time.Hour)); len(hours) != 2 {
		t.Errorf("hours %v", hours)
	}
	other := newSamples()
	r := h.after(api.CopyRequest{})
	other.take(r.Samples)
	if len(r.Samples) != 3 || r.More || other.told != 3 {
		t.Errorf("%d fetched, %d taken", len(r.Samples), other.told)
	}
	h.take([]api.NodeSample{one("b", 36060)})
	if r = h.after(api.CopyRequest{Boot: r.Boot, After: r.After}); len(r.Samples) != 1 || r.Samples[0].Node != "b" {
		t.Errorf("%+v", r)
	}
	if again := h.after(api.CopyRequest{Boot: "of before", After: 99}); len(again.Samples) != 4 {
		t.Errorf("%d fetched anew", len(again.Samples))
	}
	if none := h.after(api.CopyRequest{Boot: r.Boot, After: r.After}); len(none.Samples) != 0 {
		t.Errorf("%d more", len(none.Samples))
	}
}

// TestCurvesWait: who wants curves does not wait for others that are drawn, and what could not be read is tried again.
func TestCurvesWait(t *testing.T) {
	var c hardwareCurves
	drawing, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	go c.of(t.Context(), "slow", func(context.Context) (*ui.CurveSet, error) {
		close(drawing)
		<-end
		return nil, nil
	})
	<-drawing
	if set := c.of(t.Context(), "a", func(context.Context) (*ui.CurveSet, error) { return nil, errors.New("busy") }); set != nil {
		t.Errorf("curves that can not be read: %v", set)
	}
	for range 2 {
		if set := c.of(t.Context(), "a", func(context.Context) (*ui.CurveSet, error) { return &ui.CurveSet{Text: "drawn"}, nil }); set == nil || set.Text != "drawn" {
			t.Errorf("after an error: %v", set)
		}
	}
	m := c.entry("a")
	m.at = time.Now().Add(-curvesAge)
	began, drawn := make(chan struct{}), make(chan struct{})
	set := c.of(t.Context(), "a", func(context.Context) (*ui.CurveSet, error) {
		close(began)
		<-drawn
		return &ui.CurveSet{Text: "anew"}, nil
	})
	if set == nil || set.Text != "drawn" {
		t.Errorf("while they are drawn anew: %v", set)
	}
	<-began
	close(drawn)
	for set, _ := m.latest(); set.Text != "anew"; set, _ = m.latest() {
		runtime.Gosched()
	}
	m.mu.Lock()
	m.at = time.Now().Add(-curvesStale)
	m.mu.Unlock()
	set = c.of(t.Context(), "a", func(context.Context) (*ui.CurveSet, error) { return &ui.CurveSet{Text: "waited for"}, nil })
	if set == nil || set.Text != "waited for" {
		t.Errorf("those that are too old: %v", set)
	}
}

// largeHardware is pages of 1,000 nodes and 12,000 jobs, a day of samples of a node, of a job on it and of one on
// 32 nodes.
func largeHardware(t testing.TB) *pages {
	s, state := pageServer(t, 1000, 12_000)
	snap := state.Snapshot()
	s.snapshot = func() *cluster.Snapshot { return snap }
	db := historyOf(t)
	s.hist = db
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
				list = append(list, acct.Hardware{Job: job, Node: node, At: at, Span: time.Minute, Data: working(kind, 8, 3).Pack()})
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

// BenchmarkHardwarePages measures pages with curves that are drawn anew each time.
func BenchmarkHardwarePages(b *testing.B) {
	s := largeHardware(b)
	h := s.handler()
	for _, path := range []string{"/nodes/n00000", "/jobs/1", "/jobs/2"} {
		b.Run("again"+path, func(b *testing.B) {
			for b.Loop() {
				get(b, h, "GET", path)
			}
		})
		b.Run("anew"+path, func(b *testing.B) {
			size := 0
			for b.Loop() {
				s.hardware.mu.Lock()
				clear(s.hardware.made)
				s.hardware.mu.Unlock()
				size = get(b, h, "GET", path).Body.Len()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
