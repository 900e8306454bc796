package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/server"
	"dev.muster/api"
	"dev.muster/cluster"
)

// burstCalls are the calls of a script that fails and waits as it is told.
type burstCalls struct {
	mu    sync.Mutex
	list  []cluster.BurstCall
	takes map[cluster.BurstCall]time.Duration
	fails map[cluster.BurstCall]string
	ended []cluster.BurstCall // before their time
}

func (b *burstCalls) Call(ctx context.Context, ask api.BurstAsk, _ []byte, _ string) (out api.BurstReply, err error) {
	b.mu.Lock()
	b.list = append(b.list, ask.Call)
	takes, fails := b.takes[ask.Call], b.fails[ask.Call]
	b.mu.Unlock()
	select {
	case <-time.After(takes):
		return api.BurstReply{Failed: fails}, nil
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ended = append(b.ended, ask.Call)
		return out, context.Cause(ctx)
	}
}

// set changes what a call does from now on.
func (b *burstCalls) set(call cluster.BurstCall, takes time.Duration, fails string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takes[call], b.fails[call] = takes, fails
}

// want checks what was called since the last time.
func (b *burstCalls) want(t *testing.T, want ...cluster.BurstCall) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.list, want) {
		t.Errorf("called was %v, want %v", b.list, want)
	}
	b.list = nil
}

// newBurstBubble is a bubble whose jobs have burst buffers, with jobs of ten seconds.
func newBurstBubble(t *testing.T) (*bubble, *burstCalls) {
	calls := &burstCalls{takes: map[cluster.BurstCall]time.Duration{}, fails: map[cluster.BurstCall]string{}}
	b := newBubbleWith(t, "1x4c8g", 10*time.Second, quiet, func(s *server.Config, c *cluster.Config) {
		s.Dialect, s.Hooks.Burst = plainDialect{}, calls
		c.Scripts = map[string]string{"burst_buffer.lua": "x"}
		c.Burst = &cluster.BurstConfig{Directive: "BB", StageIn: time.Hour, StageOut: time.Hour, Other: time.Minute,
			Validate: time.Second}
	})
	time.Sleep(10 * time.Second)
	return b, calls
}

var stagedSpec = cluster.JobSpec{Layout: &cluster.Layout{BurstBuffer: "#BB x"}, Kind: cluster.Batch}

// TestBubbleBurst: a job goes through all calls, however long they take; the time of staging counts for nothing.
func TestBubbleBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, calls := newBurstBubble(t)
		calls.set(cluster.CallDataIn, 50*time.Minute, "")
		calls.set(cluster.CallPreRun, 30*time.Second, "")
		calls.set(cluster.CallDataOut, 50*time.Minute, "")
		id := b.submit(stagedSpec)
		time.Sleep(49 * time.Minute)
		calls.want(t, api.BurstProcess, cluster.CallSetup, cluster.CallDataIn)
		if j := b.job(id); j.Phase != cluster.Pending || j.Wait != cluster.WaitStageIn {
			t.Errorf("while it stages in: %v %q", j.Phase, j.Wait)
		}
		time.Sleep(time.Minute + 10*time.Second)
		if j := b.job(id); !j.Preparing() {
			t.Errorf("with its nodes: %v %+v", j.Phase, j.Burst)
		}
		time.Sleep(5 * time.Minute)
		if j := b.job(id); !cluster.StagesOut(j) || j.Outcome != cluster.Completed {
			t.Errorf("after its end: %v %+v", j.Phase, j.Burst)
		}
		time.Sleep(50 * time.Minute)
		calls.want(t, cluster.CallPreRun, cluster.CallPostRun, cluster.CallDataOut, cluster.CallTeardown)
	})
}

// TestBubbleBurstEnds: a call whose job is cancelled is ended at once, one that takes too long when its time is over.
func TestBubbleBurstEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, calls := newBurstBubble(t)
		calls.set(cluster.CallDataIn, 2*time.Hour, "")
		id := b.submit(stagedSpec)
		time.Sleep(time.Minute)
		_, err := api.Call(context.Background(), b.api, api.CancelJob, cluster.Cancel{Ref: cluster.Ref{Job: id}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		calls.want(t, api.BurstProcess, cluster.CallSetup, cluster.CallDataIn, cluster.CallTeardown)
		if !slices.Equal(calls.ended, []cluster.BurstCall{cluster.CallDataIn}) {
			t.Errorf("ended was %v", calls.ended)
		}
		if j := b.job(id); j.Burst.State != cluster.BurstComplete {
			t.Errorf("it stands at %+v", j.Burst)
		}
		id = b.submit(stagedSpec)
		time.Sleep(time.Hour + time.Minute)
		if j := b.job(id); j.Held != cluster.HeldAdmin ||
			j.Burst.Why != "burst_buffer/lua: slurm_bb_data_in: it took longer than 1h0m0s "+
				"(StageInTimeout of burst_buffer.conf)" {
			t.Errorf("after its time: %v %+v", j.Held, j.Burst)
		}
	})
}

// TestBubbleBurstRefused: the script may refuse a job, and has its time for that.
func TestBubbleBurstRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, calls := newBurstBubble(t)
		spec := stagedSpec
		spec.Name, spec.WorkDir = "job", "/"
		for _, row := range []struct {
			takes time.Duration
			fails string
		}{{0, "no"}, {time.Minute, ""}} {
			calls.set(api.BurstProcess, row.takes, row.fails)
			_, err := api.Call(context.Background(), b.api, api.SubmitJob, api.SubmitRequest{Spec: spec})
			var e *api.Error
			if !errors.As(err, &e) || e.Kind != cluster.ErrBurst {
				t.Errorf("got %v", err)
			}
		}
		calls.want(t, api.BurstProcess, api.BurstProcess)
	})
}

// TestBubbleBurstTeardown: a buffer that cannot be torn down is given up after the third time, ten seconds apart.
func TestBubbleBurstTeardown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, calls := newBurstBubble(t)
		calls.set(cluster.CallTeardown, 0, "no")
		id := b.submit(stagedSpec)
		time.Sleep(15 * time.Second)
		if j := b.job(id); j.Burst.State != cluster.BurstTeardown || j.Burst.Fails == 0 {
			t.Errorf("after the first: %+v", j.Burst)
		}
		time.Sleep(30 * time.Second)
		calls.want(t, api.BurstProcess, cluster.CallSetup, cluster.CallDataIn, cluster.CallPreRun, cluster.CallPostRun,
			cluster.CallDataOut, cluster.CallTeardown, cluster.CallTeardown, cluster.CallTeardown)
		if j := b.job(id); j.Burst.State != cluster.BurstComplete {
			t.Errorf("in the end: %+v", j.Burst)
		}
	})
}
