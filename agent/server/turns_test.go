package server

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/agenttest"
	"dev.muster/api"
	"dev.muster/cluster"
)

const bobs, alices = 1001, 1002

// slowScript is a script for burst buffers each call of which takes a minute.
type slowScript struct{ now, most atomic.Int32 }

func (s *slowScript) Call(context.Context, api.BurstAsk, []byte, string) (api.BurstReply, error) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	time.Sleep(time.Minute)
	return api.BurstReply{Said: "ok"}, nil
}

// TestBurstTurns: a user who asks and submits ever so often has few processes of the script for burst buffers started,
// and keeps nobody else from asking.
func TestBurstTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := agenttest.Cluster(t, 1, 0)
		cfg := *state.Snapshot().Config()
		cfg.Burst = &cluster.BurstConfig{Directive: "BB"}
		cfg.Scripts = map[string]string{"burst_buffer.lua": "x"}
		out := state.Apply(cluster.Entry{Index: 100, At: time.Now(), By: cluster.Identity{System: true},
			Cmd: &cluster.Configure{Config: &cfg}})
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		snap, script := state.Snapshot(), &slowScript{}
		stages := burstStages(&Server{slog: slog.New(slog.DiscardHandler)})
		stages.Script, stages.Snapshot = script, func() *cluster.Snapshot { return snap }
		const many = 500
		began := time.Now()
		for i := range many {
			go func() {
				if i%2 == 0 {
					_, _ = stages.Status(t.Context(), bobs, nil)
					return
				}
				q := api.SubmitRequest{Spec: cluster.JobSpec{Layout: &cluster.Layout{}, UID: bobs},
					Script: cluster.BlobText("#!/bin/sh\n#BB x\n")}
				_ = stages.Submit(t.Context(), &q, -1)
			}()
		}
		synctest.Wait()
		if n := script.now.Load(); n != placesOfUser {
			t.Errorf("%d calls of one user at a time, want %d", n, placesOfUser)
		}
		said, err := stages.Status(t.Context(), alices, nil)
		if err != nil || said != "ok" || time.Since(began) != time.Minute {
			t.Errorf("another user was told %q, %v after %v", said, err, time.Since(began))
		}
		time.Sleep(many * time.Minute)
		if n := script.most.Load(); n > placesOfUser+1 {
			t.Errorf("%d calls at a time", n)
		}
	})
}

// TestForecastTurns: a user who has ever so many jobs tested holds up the test of another user's for a few only.
func TestForecastTurns(t *testing.T) {
	state := agenttest.Cluster(t, 1, 0)
	snap := state.Snapshot()
	s := &Server{slog: slog.New(slog.DiscardHandler)}
	var before atomic.Int32
	test := func(uid uint32) {
		spec := cluster.JobSpec{Layout: &cluster.Layout{}, UID: uid}
		_, _ = s.testStart(t.Context(), snap, api.Caller{Identity: cluster.Identity{UID: uid}}, &spec)
	}
	s.fore.mu.Lock()
	ended := make(chan struct{}, 1000)
	for range cap(ended) {
		go func() { test(bobs); before.Add(1); ended <- struct{}{} }()
	}
	time.Sleep(200 * time.Millisecond) // they wait
	alice := make(chan int32)
	go func() { test(alices); alice <- before.Load() }()
	time.Sleep(200 * time.Millisecond) // so does she
	s.fore.mu.Unlock()
	if n := <-alice; int(n) > cap(ended)/2 {
		t.Errorf("%d tests of another user came first", n)
	}
	for range cap(ended) {
		<-ended
	}
}
