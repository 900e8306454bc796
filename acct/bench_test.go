package acct

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"dev.muster/cluster"
)

var benchJobs = flag.Int("bench-jobs", 100_000, "jobs of one month in the history that is measured")

// benchMonth fills a history with a month of jobs of 200 users in 20 accounts, 300 shapes of them.
func benchMonth(b *testing.B) *DB {
	b.Helper()
	d, err := Open(b.TempDir(), quiet)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	began := time.Now()
	for at := 0; at < *benchJobs; {
		var events []cluster.Event
		for range 20_000 {
			at++
			user, size := r.IntN(200), 1+r.IntN(15)
			j := &cluster.Job{ID: cluster.JobID(at), Task: cluster.TaskAny, Attempt: 1,
				Phase: cluster.Ended, Outcome: cluster.Completed,
				Submitted: epoch.Add(time.Duration(at) * 30 * 24 * time.Hour / time.Duration(*benchJobs)),
				Spec: &cluster.JobSpec{Name: "train", User: fmt.Sprintf("user%03d", user),
					UID: uint32(1000 + user), GID: 100, Account: fmt.Sprintf("team%02d", user%20),
					Partitions: []string{"main"}, Layout: &cluster.Layout{Tasks: size}}}
			j.Eligible, j.Started = j.Submitted, j.Submitted.Add(time.Duration(r.Int64N(int64(time.Hour))))
			j.Ended = j.Started.Add(time.Duration(r.Int64N(int64(4 * time.Hour))))
			j.Alloc = &cluster.Alloc{Partition: "main",
				Shares: []cluster.Share{{Node: cluster.NodeName(fmt.Sprintf("n%04d", r.IntN(1000))),
					CPUs: cluster.RangeIDSet(0, size*4-1), MemMB: cluster.MemMB(size * 4096),
					GPUs: cluster.RangeIDSet(0, size%8)}}, Types: map[string]int64{"h100": int64(size%8 + 1)}}
			events = append(events, cluster.Event{Job: j})
		}
		if err := d.store(events, uint64(at)); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d jobs stored in %s", *benchJobs, time.Since(began).Round(time.Millisecond))
	n := &cluster.Node{Name: "n1", Up: true, Inventory: cluster.Inventory{CPUs: 128}}
	if err := d.store([]cluster.Event{{Node: n, At: epoch.Add(-time.Hour)}}, uint64(*benchJobs+1)); err != nil {
		b.Fatal(err)
	}
	return d
}

// BenchmarkMonth measures the questions that are asked of a month of history: go test -bench Month -bench-jobs=1000000.
func BenchmarkMonth(b *testing.B) {
	d := benchMonth(b)
	defer d.close()
	month := cluster.Span{From: epoch.Unix(), To: epoch.AddDate(0, 1, 0).Unix()}
	day := epoch.AddDate(0, 0, 14)
	jobs := func(q Query) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, err := range d.Jobs(ctx, q) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, c := range []struct {
		name string
		run  func(context.Context) error
	}{
		{
			"report",
			func(ctx context.Context) error { _, err := d.Usage(ctx, cluster.UsageQuery{Time: month}); return err },
		},
		{"sizes", func(ctx context.Context) error {
			_, err := d.Usage(ctx, cluster.UsageQuery{Time: month, By: cluster.BySize})
			return err
		}},
		{"utilization", func(ctx context.Context) error { _, err := d.Utilization(ctx, month); return err }},
		{"sacct-id", jobs(Query{Refs: []cluster.Ref{{Job: cluster.JobID(*benchJobs / 2)}}})},
		{"sacct-user-day", jobs(Query{Users: []uint32{1007}, From: day, To: day.AddDate(0, 0, 1)})},
		{"sacct-lately", jobs(Query{Users: []uint32{1007}, From: epoch.AddDate(0, 0, 29)})},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := c.run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompletions measures how many jobs a second go into a history that has a month already, with all that
// happens to each: it is submitted, starts, runs a step and ends, while thousands of others do. Nothing is queued
// for long: the log would wait.
func BenchmarkCompletions(b *testing.B) {
	const atOnce, perIndex = 2000, 50 // jobs between submission and end; events of one entry of the log
	d := benchMonth(b)
	ctx, end := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()
	index := uint64(*benchJobs + 1)
	var events []cluster.Event
	tell := func(e ...cluster.Event) {
		if events = append(events, e...); len(events) >= perIndex {
			index++
			d.Apply(index, events)
			events = nil
		}
	}
	lives := func(i int, phase cluster.Phase) *cluster.Job {
		at := epoch.AddDate(0, 1, 0).Add(time.Duration(i) * time.Millisecond / 2)
		j := &cluster.Job{ID: cluster.JobID(*benchJobs + 1 + i), Task: cluster.TaskAny, Attempt: 1,
			Phase: phase, Submitted: at, Eligible: at,
			Spec: &cluster.JobSpec{
				Name: "train", User: "user007", UID: 1007, GID: 100, Account: "team07",
				Partitions: []string{"main"}, Layout: &cluster.Layout{Tasks: 4},
			}}
		if phase != cluster.Pending {
			j.Started = at.Add(time.Second)
			j.Alloc = &cluster.Alloc{
				Partition: "main",
				Shares:    []cluster.Share{{Node: "n0001", CPUs: cluster.RangeIDSet(0, 3), MemMB: 4096}},
			}
		}
		if phase == cluster.Ended {
			j.Outcome, j.Ended = cluster.Completed, at.Add(2*time.Second)
		}
		return j
	}
	began := time.Now()
	for i := range b.N + atOnce {
		if i < b.N {
			tell(cluster.Event{Job: lives(i, cluster.Pending)},
				cluster.Event{Job: lives(i, cluster.Starting)},
				cluster.Event{Job: lives(i, cluster.Running)})
		}
		if k := i - atOnce; k >= 0 {
			j := lives(k, cluster.Ended)
			tell(cluster.Event{
				Step: &cluster.Step{
					ID: cluster.StepID{Job: j.ID, Step: cluster.BatchStep}, Attempt: 1, Started: j.Started,
					Ended: j.Ended,
				},
			}, cluster.Event{Job: j})
		}
	}
	d.Apply(index+1, events)
	if err := d.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "jobs/s")
	end()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkList is what sacct asks for: all of a day's 10,000 jobs, without and with their steps.
func BenchmarkList(b *testing.B) {
	ctx := context.Background()
	d, err := Open(b.TempDir(), quiet)
	if err != nil {
		b.Fatal(err)
	}
	var events []cluster.Event
	for i := range 10000 {
		j := job(cluster.JobID(i+1), cluster.Ended, cluster.Completed)
		j.Started, j.Ended = j.Submitted.Add(time.Second), j.Submitted.Add(2*time.Second)
		j.Alloc = &cluster.Alloc{
			Partition: "main",
			Shares:    []cluster.Share{{Node: "n0001", CPUs: cluster.RangeIDSet(0, 3), MemMB: 4096}},
		}
		step := &cluster.Step{
			ID: cluster.StepID{Job: j.ID, Step: cluster.BatchStep}, Attempt: 1, Name: "batch",
			Started: j.Started, Ended: j.Ended, Shares: j.Alloc.Shares,
		}
		events = append(events, cluster.Event{Step: step}, cluster.Event{Job: j})
	}
	if err := d.store(events, 1); err != nil {
		b.Fatal(err)
	}
	for _, q := range []Query{{}, {Steps: true}} {
		b.Run(fmt.Sprintf("steps=%v", q.Steps), func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, err := range d.Jobs(ctx, q) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != 10000 {
					b.Fatal(n, "jobs")
				}
			}
		})
	}
}
