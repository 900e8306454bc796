package e2e

import (
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

var benchGroup = flag.Int("bench-group", 0, "how often TestBenchGroup kills a leader; 0: not at all")

// Bars of the figures below.
const (
	failoverHalf  = 800 * time.Millisecond
	failoverWorst = 1500 * time.Millisecond
	seenWithin    = time.Second
	groupShare    = 0.5 // of the throughput of one server, by sbatch
	benchCallers  = 8
	benchTime     = 4 * time.Second
)

// TestBenchGroup measures a group of three servers: failover, throughput, and how soon a dead client is
// seen. See make bench-group.
func TestBenchGroup(t *testing.T) {
	if *benchGroup == 0 {
		t.Skip("see make bench-group")
	}
	one := newGroup(t)
	single, singleCmd := one.throughput("s1"), one.throughputOfCommand("s1")
	g := fullGroup(t, 1)
	leader := g.awaitLeader("s1")
	led, ledCmd := g.throughput(leader), g.throughputOfCommand(leader)
	all := g.throughput("s1", "s2", "s3")
	allCmd := g.throughputOfCommand("s1", "s2", "s3")
	seen := g.seen(5) // before the lead moves: a new leader is patient at first
	failover := g.failovers(*benchGroup)
	slices.Sort(failover)
	slices.Sort(seen)
	half, worst := failover[len(failover)/2], failover[len(failover)-1]
	t.Logf("\n"+`leader killed → next sbatch answered (of %d)   p50 %v   worst %v
client killed → sinfo shows it (of %d)          p50 %v   worst %v
submissions a second, %d callers               1 server   3, by the leader   3, by all
  of one call each                              %8.0f   %16.0f   %9.0f
  by sbatch                                     %8.0f   %16.0f   %9.0f`, len(failover), half.Round(time.Millisecond), worst.Round(time.Millisecond),
		len(seen), seen[len(seen)/2].Round(time.Millisecond), seen[len(seen)-1].Round(time.Millisecond), benchCallers, single, led, all, singleCmd, ledCmd, allCmd)
	if half > failoverHalf || worst > failoverWorst {
		t.Errorf("failover takes longer than %v and %v", failoverHalf, failoverWorst)
	}
	if seen[len(seen)-1] > seenWithin {
		t.Errorf("a dead client is seen later than after %v", seenWithin)
	}
	for _, share := range []float64{ledCmd / singleCmd, allCmd / singleCmd} {
		if share < groupShare {
			t.Errorf("three servers do %.2f of what one does, less than %.2f", share, groupShare)
		}
	}
}

// rate calls submit from several callers for a while and tells how often it succeeded in a second.
func (g *group) rate(submit func(caller int) error) float64 {
	var count atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range benchCallers {
		wg.Go(func() {
			for time.Since(begin) < benchTime {
				if err := submit(i); err != nil {
					g.t.Errorf("submit: %v", err)
					return
				}
				count.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(count.Load()) / time.Since(begin).Seconds()
}

func (g *group) throughput(at ...string) float64 {
	callers := make([]*api.Client, benchCallers)
	for i := range callers {
		socket := g.at[at[i%len(at)]].dir + "/s"
		callers[i] = &api.Client{
			Dial: func(ctx context.Context) (api.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) },
		}
		defer callers[i].Close()
	}
	q := api.SubmitRequest{
		Spec: cluster.JobSpec{
			Layout: &cluster.Layout{}, Name: "bench", WorkDir: "/", Stdout: "/dev/null", JobFlags: cluster.JobFlags{Hold: true},
		},
		Script: cluster.BlobText("#!/bin/sh\n"),
	}
	return g.rate(func(i int) error {
		_, err := api.Call(context.Background(), callers[i], api.SubmitJob, q)
		return err
	})
}

func (g *group) throughputOfCommand(at ...string) float64 {
	return g.rate(func(i int) error {
		if _, errs, rc := g.run(at[i%len(at)], "sbatch", "-H", "--wrap", "true"); rc != 0 {
			return fmt.Errorf("exit code %d: %s", rc, errs)
		}
		return nil
	})
}

// failovers kills the leader n times and tells how long it took until the next sbatch was answered.
func (g *group) failovers(n int) (took []time.Duration) {
	for range n {
		leader := g.awaitLeader("s1")
		other := g.others(leader)[len(took)%2]
		g.wait("all to follow", func() bool {
			return g.leader("s1") == leader && g.leader("s2") == leader && g.leader("s3") == leader
		})
		g.at[leader].kill()
		_, d := g.submitUntil(other, "-H", "--wrap", "true")
		took = append(took, d)
		g.start(leader)
	}
	return took
}

// seen kills a client n times and tells how long it took until sinfo showed that.
func (g *group) seen(n int) (took []time.Duration) {
	state := func() string { return g.must("s1", "sinfo", "-hN", "-n", "c1-001", "-o", "%T") }
	for range n {
		g.wait("the node", func() bool { return state() == "idle" })
		begin := time.Now()
		g.at["c1"].kill()
		g.wait("sinfo to show it",
			func() bool { s := state(); return strings.HasSuffix(s, "*") || strings.HasPrefix(s, "down") })
		took = append(took, time.Since(begin))
		g.start("c1")
	}
	return took
}
