package acct

import (
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"dev.muster/cluster"
	"dev.muster/telemetry"
)

func openTest(t testing.TB) *DB {
	t.Helper()
	d, err := Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.close() })
	return d
}

// packed is a sample with so many GPUs at work.
func packed(k telemetry.Kind, gpus int, util float64) []byte {
	s := telemetry.New(k)
	for i := range s.Own {
		s.Own[i] = 10 * util
	}
	for i := range gpus {
		v := s.GPU(i).Values
		v[telemetry.GPUUtil], v[telemetry.GPUUtilMax], v[telemetry.GPUMem], v[telemetry.GPUMemMax] =
			util, util+3, 61234, 62000
		v[telemetry.GPUPower], v[telemetry.GPUPowerMax], v[telemetry.GPUTemp], v[telemetry.GPUTempMax] =
			612, 701, 61, 64
		v[telemetry.GPUThrottle], v[telemetry.GPULinkIn], v[telemetry.GPULinkOut] = 4, 120_000_000+util, 119_000_000
		v[telemetry.GPUBusIn], v[telemetry.GPUBusOut] = 1_200_000+util, 900_000
	}
	return s.Pack()
}

// TestHardware: samples of nodes are read as they came for two days, and as hours before; told twice they
// count once; a job of ten days keeps two days of minutes and no more than 240 points of the time before;
// SQL reads all of them.
func TestHardware(t *testing.T) {
	d := openTest(t)
	s, now := SamplesOf(d), time.Now().Truncate(time.Hour)
	began := now.Add(-10 * 24 * time.Hour)
	var list []Hardware
	for at := began; at.Before(now); at = at.Add(time.Minute) {
		util := 10.0
		if at.Minute() >= 30 {
			util = 30
		}
		list = append(list, Hardware{Node: "n1", At: at, Span: time.Minute, Data: packed(telemetry.OfNode, 2, util)},
			Hardware{Job: 7, Node: "n1", At: at, Span: time.Minute, Data: packed(telemetry.OfJob, 1, util)},
			Hardware{Job: 7, Node: "n2", At: at, Span: time.Minute, Data: packed(telemetry.OfJob, 1, util)})
	}
	list = append(list, Hardware{Job: 8, Node: "n1", At: began, Span: time.Minute, Data: packed(telemetry.OfJob, 0, 1)})
	for range 2 {
		if err := s.Add(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	for at := began; at.Before(now); at = at.Add(time.Hour) {
		if err := s.Hour(t.Context(), at, began); err != nil { // nothing is too old yet
			t.Fatal(err)
		}
	}
	if err := s.Hour(t.Context(), now.Add(-time.Hour), now); err != nil {
		t.Fatal(err)
	}
	got, err := s.Node(t.Context(), "n1", now.Add(-24*time.Hour), now)
	if err != nil || len(got) != 24*60 {
		t.Fatalf("a day of minutes: %d, %v", len(got), err)
	}
	if got, err = s.Node(t.Context(), "n1", began, now); err != nil || len(got) != 240 || got[0].Span != time.Hour {
		t.Fatalf("ten days of hours: %d, %v", len(got), err)
	}
	one, err := telemetry.Unpack(got[0].Data)
	if err != nil || one.GPUs[1].Values[telemetry.GPUUtil] != 20 || one.GPUs[1].Values[telemetry.GPUUtilMax] != 33 {
		t.Errorf("an hour: %+v, %v", one, err)
	}
	for after := cluster.JobID(0); ; {
		if after, err = s.Thin(t.Context(), now, after); err != nil {
			t.Fatal(err)
		}
		if after == 0 {
			break
		}
	}
	got, err = s.Job(t.Context(), 7, "n2", began, now)
	minutes, points, seconds := 0, 0, time.Duration(0)
	for _, h := range got {
		seconds += h.Span
		if h.Span == time.Minute {
			minutes++
		} else {
			points++
		}
	}
	if err != nil || minutes < 48*60 || minutes > 49*60+10 || points > jobPoints || points < 100 ||
		seconds < 239*time.Hour || seconds > 241*time.Hour {
		t.Errorf("a long job: %d minutes and %d points for %v, %v", minutes, points, seconds, err)
	}
	for q, want := range map[string]string{
		"SELECT count(*) FROM node_samples WHERE seconds = 60 AND node = 'n1'":         "2880",
		"SELECT round(avg(util), 1) FROM gpu_samples WHERE gpu = 1 AND seconds = 3600": "20",
		"SELECT max(util_max), min(nvlink_in_kbs) > 1000, count(DISTINCT node) FROM job_gpu_samples" +
			" WHERE job = 7": "33 1 2",
		"SELECT count(*), max(cpus) FROM job_samples WHERE job = 8": "1 10",
	} {
		table, err := d.SQL(t.Context(), q)
		if err != nil {
			t.Fatal(q, err)
		}
		if got := fmt.Sprint(table.Rows[0]); got != "["+want+"]" {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	if _, err := s.Thin(t.Context(), now.Add(jobKept+time.Hour), 0); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Job(t.Context(), 8, "", began, now); err != nil || len(got) != 0 {
		t.Errorf("a job of last year: %d, %v", len(got), err)
	}
}

// BenchmarkHardwareMinute writes a minute of 1,000 nodes with eight GPUs and a job each.
func BenchmarkHardwareMinute(b *testing.B) {
	d := openTest(b)
	s, at := SamplesOf(d), time.Now().Truncate(time.Hour)
	list := make([]Hardware, 0, 2000)
	n := 0
	for b.Loop() {
		list = list[:0]
		for i := range 1000 {
			node := cluster.NodeName(fmt.Sprintf("gpu-node-%04d", i))
			util := 50 + float64((i*7+n*13)%500)/10
			list = append(list,
				Hardware{Node: node, At: at, Span: time.Minute, Data: packed(telemetry.OfNode, 8, util)},
				Hardware{Job: cluster.JobID(1 + i/4), Node: node, At: at, Span: time.Minute,
					Data: packed(telemetry.OfJob, 8, util)})
		}
		if err := s.Add(b.Context(), list); err != nil {
			b.Fatal(err)
		}
		at, n = at.Add(time.Minute), n+1
	}
	b.StopTimer()
	if err := s.Hour(b.Context(), at.Add(-time.Hour), at); err != nil {
		b.Fatal(err)
	}
	if _, err := d.w.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		b.Fatal(err)
	}
	st, err := os.Stat(d.path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(st.Size())/float64(n)/2000, "bytes/row")
	b.ReportMetric(float64(len(list[0].Data)), "bytes/packed")
}
