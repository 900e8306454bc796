package rest

import (
	"context"
	"io"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// BenchmarkListJobs: the list of 10,000 jobs, and when its first byte leaves.
func BenchmarkListJobs(b *testing.B) {
	f := fixed()
	some := f.Jobs
	for f.Jobs = nil; len(f.Jobs) < 10_000; {
		j := *some[len(f.Jobs)%len(some)]
		j.ID = cluster.JobID(1000 + len(f.Jobs))
		f.Jobs = append(f.Jobs, &j)
	}
	q := &api.RESTRequest{Method: "GET", Path: "/slurm/v0.0.44/jobs", Query: map[string][]string{}, Host: "here",
		Who: api.Caller{Identity: cluster.Identity{User: "root"}}, Dial: f.Dial(b),
		Direct: func(context.Context, string, string, any) (any, bool, error) {
			v, err := f.ListJobs(context.Background(), api.Caller{}, api.JobQuery{})
			return v, err == nil, err
		}}
	var first time.Duration
	for b.Loop() {
		began := time.Now()
		w := &countingWriter{}
		Answer(q, func(int, string) io.Writer {
			first += time.Since(began)
			return w
		})
		b.SetBytes(w.n)
	}
	b.ReportMetric(float64(first.Microseconds())/1000/float64(b.N), "ms/first")
}

// countingWriter counts what is written.
type countingWriter struct{ n int64 }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	return len(p), nil
}
