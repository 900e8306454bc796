package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/heartbeat"
	"dev.muster/cluster"
)

// TestLease: a leader that does not hear of its majority for a while is none: held calls end, nothing is proposed.
// When it is heard of again, nodes begin again.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quietLeader(t, "a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if s.Leads() || s.leading().Err() == nil {
			t.Error("it leads before its term")
		}
		term := s.beginTerm(ctx, time.Now())
		held := s.leading()
		wants := func(what string, leads bool) {
			t.Helper()
			if _, done, err := s.underReign(ctx); (err == nil) != leads || s.Leads() != leads || (held.Err() == nil) != leads {
				t.Errorf("%s: leads %v, held calls %v, proposals %v", what, s.Leads(), held.Err(), err)
			} else if err == nil {
				done()
			}
		}
		answers := make(chan error, 1)
		awaited := make(chan error, 1)
		await := func() { awaited <- s.await(term, answers) }
		wants("at first", true)
		time.Sleep(leaseTime / 2)
		go await()
		answers <- nil
		<-awaited
		s.prolong(time.Now())
		time.Sleep(leaseTime - time.Millisecond)
		wants("the majority was heard of", true)
		go await()
		time.Sleep(2 * time.Millisecond)
		wants("it is silent", false)
		answers <- errors.New("not any more")
		if err := <-awaited; err == nil {
			t.Error("a refusal is an answer")
		}
		p := s.heartbeats
		p.Open([]cluster.NodeName{"a"}, time.Minute, time.Now())
		s.prolong(time.Now().Add(-2 * leaseTime))
		wants("it was heard of long ago", false)
		s.prolong(time.Now())
		held = s.leading()
		wants("it is heard of again", true)
		if snap := s.Snapshot(); !p.Leases(snap, time.Now())["a"].Since.IsZero() {
			t.Error("nodes do not begin anew")
		}
		s.endTerm()
		if s.Leads() || held.Err() == nil {
			t.Error("it leads after its term")
		}
	})
}

// quietLeader is a server without a log, whose state has a node with a call open.
func quietLeader(t *testing.T, name cluster.NodeName) *Server {
	t.Helper()
	s := &Server{slog: slog.New(slog.NewTextHandler(io.Discard, nil)), heartbeats: heartbeat.New(),
		others: newOthers(), wake: make(chan struct{}, 1), state: cluster.NewState()}
	config := cluster.DefaultConfig()
	for i, c := range []cluster.Command{
		&cluster.Configure{Config: &config},
		&cluster.NodeUp{Name: name, Owner: string(name), Inventory: cluster.Inventory{
			Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 1000,
		}},
	} {
		e := cluster.Entry{Index: uint64(i + 1), At: time.Now(), By: cluster.Identity{System: true}, Cmd: c}
		if a := s.state.Apply(e); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	s.heartbeats.Open([]cluster.NodeName{name}, time.Minute, time.Now())
	return s
}

// TestRefusalCounts: what a leader refuses counts only once a majority has said that it leads.
func TestRefusalCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(chan<- error)
		counts bool
	}{
		{"it leads", func(answer chan<- error) { answer <- nil }, true},
		{"it has been replaced", func(answer chan<- error) { answer <- errors.New("not any more") }, false},
		{"it is cut off", func(chan<- error) {}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan error, 1)
				c.answer(answer)
				if err := awaitLead(t.Context(), answer); (err == nil) != c.counts {
					t.Errorf("it says %v", err)
				}
			})
		})
	}
}
