package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

var (
	benchQueue   = flag.Int("bench-queue", 0, "how many hollow nodes TestBenchQueue makes; 0: none")
	queueCallers = flag.Int("bench-callers", 16,
		"how many submit as fast as they can in TestBenchQueue, each one job after the other")
)

// Bars of the figures below, with whatever number of jobs in the queue.
const (
	queueRate  = 2000                  // submissions a second
	queueWorst = 20 * time.Millisecond // for 99 % of them when so many come
	queueEach  = 100                   // nodes a member
	queueOpen  = 64                    // callers of which each submits when it is due
)

// TestBenchQueue measures submissions to the leader of three servers with many nodes, all of them busy, while its
// cycles go on: with nothing in the queue, with ten thousand jobs, and with fifty thousand. How many it takes at
// most is told by callers of which each submits again when it was answered; how long an answer takes by some that
// submit at fixed times, whether the last answer has come or not, from those times on. See make bench-queue.
func TestBenchQueue(t *testing.T) {
	if *benchQueue == 0 {
		t.Skip("see make bench-queue")
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf") // one process is the whole fleet: that it is late says nothing of a node
	if err := os.WriteFile(conf, []byte("ClusterName=bench\nPartitionName=main Nodes=ALL Default=YES\nSlurmdTimeout=60\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := fullGroup(t, 0, "--conf", conf)
	g.fleet(*benchQueue/queueEach, queueEach, 100*time.Hour)
	g.awaitAll("idle", *benchQueue)
	g.must("s1", "sbatch", "-Q", "--exclusive", fmt.Sprintf("--array=1-%d", *benchQueue), "-o", "/dev/null",
		"--wrap", "sleep 100000")
	g.awaitAll("alloc", *benchQueue)
	g.awaitCalm()
	d := g.at[g.awaitLeader("s1")]
	var out strings.Builder
	for _, queued := range []int{0, 10_000, 50_000} {
		if n := queued - g.queued(); n > 0 {
			g.submit(d, load{callers: *queueCallers, jobs: n})
		}
		cpu, all := d.cpu(), g.cpu()
		most := g.submit(d, load{callers: *queueCallers, during: benchTime})
		each, every := (d.cpu()-cpu)/time.Duration(len(most)), (g.cpu()-all)/time.Duration(len(most))
		due := g.submit(d, load{callers: queueOpen, during: benchTime, rate: queueRate})
		rate, late := float64(len(most))/benchTime.Seconds(), rank(due, 99)
		fmt.Fprintf(&out, "\n%6d → %6d jobs in the queue   %6.0f submissions a second at most   p50 %v p90 %v p99 %v   %v of the leader's CPU each, %v of all servers'   "+
			"%d a second: p50 %v p90 %v p99 %v   %d MiB", queued, g.queued(), rate, rank(most, 50), rank(most, 90), rank(most, 99),
			each.Round(time.Microsecond), every.Round(time.Microsecond), queueRate, rank(due, 50), rank(due, 90), late, d.memory())
		if rate < queueRate || late > queueWorst {
			t.Errorf("with %d jobs in the queue %.0f submissions a second at most, and p99 %v of %d a second; want %d and %v",
				queued, rate, late, queueRate, queueRate, queueWorst)
		}
	}
	t.Logf("%d nodes, %d callers%s", *benchQueue, *queueCallers, out.String())
}

// awaitAll waits for so many nodes to be in a state. To ask for it is work for the servers, too.
func (g *group) awaitAll(state string, nodes int) {
	g.t.Helper()
	for end := time.Now().Add(5 * time.Minute); count(g.must("s1", "sinfo", "-h", "-t", state, "-o", "%D")) != nodes; time.Sleep(time.Second) {
		if time.Now().After(end) {
			g.t.Fatalf("waited five minutes for %d nodes in state %s", nodes, state)
		}
	}
}

// awaitCalm waits until the servers and this process, which is all nodes, have little to do: what ten thousand
// starts have to report takes its time, and members that were late for lack of a processor are taken for lost and
// found again.
func (g *group) awaitCalm() {
	g.t.Helper()
	own := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			g.t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for end := time.Now().Add(2 * time.Minute); ; {
		servers, nodes := g.cpu(), own()
		time.Sleep(time.Second)
		if servers, nodes = g.cpu()-servers, own()-nodes; servers < 200*time.Millisecond && nodes < 300*time.Millisecond {
			return
		}
		if time.Now().After(end) {
			g.t.Fatalf("two minutes after the last start the servers use %v of a second, the nodes %v", servers, nodes)
		}
	}
}

// rank is what so many percent of a sorted list do not exceed.
func rank(list []time.Duration, percent int) time.Duration {
	return list[len(list)*percent/100].Round(10 * time.Microsecond)
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

// load is submissions of some callers, for a time or so many of them.
type load struct {
	callers int
	during  time.Duration // 0: until all jobs are submitted
	jobs    int
	rate    int // a second; 0: each caller submits when it was answered
}

// submit has callers submit jobs that have to wait; it tells how long each took, sorted.
func (g *group) submit(d *dev, l load) (took []time.Duration) {
	socket := d.dir + "/s"
	var mu sync.Mutex
	var wg sync.WaitGroup
	var next atomic.Int64
	began := time.Now()
	for range l.callers {
		wg.Go(func() {
			caller := &api.Client{
				Dial: func(ctx context.Context) (api.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) },
			}
			defer caller.Close()
			var own []time.Duration
			for {
				n, at := int(next.Add(1)-1), time.Now()
				if l.rate > 0 {
					at = began.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
				}
				if l.during == 0 && n >= l.jobs || l.during > 0 && at.Sub(began) >= l.during {
					break
				}
				time.Sleep(time.Until(at))
				q := api.SubmitRequest{Spec: cluster.JobSpec{Name: "bench", WorkDir: "/",
					Stdout: "/dev/null", Limit: time.Duration(1+n%100) * time.Hour,
					Layout: &cluster.Layout{CPUsPerTask: 1 + n%8}}, Script: cluster.BlobText("#!/bin/sh\n")}
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
	slices.Sort(took)
	return took
}
