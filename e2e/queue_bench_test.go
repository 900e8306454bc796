package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

var (
	benchQueue   = flag.Int("bench-queue", 0, "how many hollow nodes TestBenchQueue makes; 0: none")
	queueCallers = flag.Int("bench-callers", 16, "how many submit at once in TestBenchQueue, each one job after the other")
)

// Bars of the figures below, with whatever number of jobs in the queue.
const (
	queueRate  = 2000 // submissions a second
	queueWorst = 20 * time.Millisecond
	queueEach  = 100 // nodes a member
)

// TestBenchQueue measures submissions to the leader of three servers with many nodes, all of them busy, while its cycles go on: with
// nothing in the queue, with ten thousand jobs, and with fifty thousand. See make bench-queue.
func TestBenchQueue(t *testing.T) {
	if *benchQueue == 0 {
		t.Skip("see make bench-queue")
	}
	g := fullGroup(t, 0)
	g.fleet(*benchQueue/queueEach, queueEach, 100*time.Hour)
	g.wait("all nodes to be idle", func() bool { return count(g.must("s1", "sinfo", "-h", "-t", "idle", "-o", "%D")) == *benchQueue })
	g.must("s1", "sbatch", "-Q", "--exclusive", fmt.Sprintf("--array=1-%d", *benchQueue), "-o", "/dev/null", "--wrap", "sleep 100000")
	g.wait("all nodes to be busy", func() bool { return count(g.must("s1", "sinfo", "-h", "-t", "alloc", "-o", "%D")) == *benchQueue })
	d := g.at[g.awaitLeader("s1")]
	var out strings.Builder
	for _, queued := range []int{0, 10_000, 50_000} {
		if n := queued - g.queued(); n > 0 {
			g.submitFor(d, 0, n)
		}
		cpu, all := d.cpu(), g.cpu()
		took := g.submitFor(d, benchTime, 0)
		each, every := (d.cpu()-cpu)/time.Duration(len(took)), (g.cpu()-all)/time.Duration(len(took))
		slices.Sort(took)
		rate := float64(len(took)) / benchTime.Seconds()
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		fmt.Fprintf(&out, "\n%6d → %6d jobs in the queue   %6.0f submissions a second   p50 %8v   p90 %8v   p99 %8v   %6v of the leader's CPU each, %6v of all servers'   %d MiB",
			queued, g.queued(), rate, p50.Round(10*time.Microsecond), took[len(took)*9/10].Round(10*time.Microsecond), p99.Round(10*time.Microsecond), each.Round(time.Microsecond), every.Round(time.Microsecond), d.memory())
		if rate < queueRate || p99 > queueWorst {
			t.Errorf("with %d jobs in the queue %.0f submissions a second, and p99 %v; want %d and %v", queued, rate, p99, queueRate, queueWorst)
		}
	}
	t.Logf("%d nodes, %d callers%s", *benchQueue, *queueCallers, out.String())
}

// cpu is the CPU time that all servers have used.
func (g *group) cpu() (sum time.Duration) {
	for _, d := range g.at {
		sum += d.cpu()
	}
	return sum
}

func (g *group) queued() int {
	return strings.Count(g.must("s1", "squeue", "-h", "-t", "pending", "-o", "%i"), "\n")
}

// submitFor has callers submit jobs that have to wait, for a time or so many, and tells how long each took.
func (g *group) submitFor(d *dev, during time.Duration, jobs int) (took []time.Duration) {
	socket := d.dir + "/s"
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for i := range *queueCallers {
		wg.Go(func() {
			caller := &api.Client{Dial: func(ctx context.Context) (api.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) }}
			defer caller.Close()
			var own []time.Duration
			for n := i; n < jobs || jobs == 0 && time.Since(began) < during; n += *queueCallers {
				q := api.SubmitRequest{Spec: cluster.JobSpec{Name: "bench", WorkDir: "/", Stdout: "/dev/null", Limit: time.Duration(1+n%100) * time.Hour,
					Layout: &cluster.Layout{CPUsPerTask: 1 + n%8}}, Script: cluster.BlobText("#!/bin/sh\n")}
				at := time.Now()
				if _, err := api.Call(context.Background(), caller, api.SubmitJob, q); err != nil {
					g.t.Errorf("submit: %v", err)
					return
				}
				own = append(own, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
	}
	wg.Wait()
	return took
}
