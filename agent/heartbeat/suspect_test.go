package heartbeat

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"dev.muster/cluster"
)

// field is a leader without a log, and the answers of the hosts around it.
type field struct {
	*watch
	state   *cluster.State
	mu      sync.Mutex
	answers map[string]Answer // by address; others answer
	asked   map[string]int    // how often each was looked for
}

func newField(t *testing.T, members ...string) *field {
	t.Helper()
	f := &field{answers: map[string]Answer{}, asked: map[string]int{}}
	state := cluster.NewState()
	l := &Lookout{Heartbeats: New(), Rumours: NewRumours(), Snapshot: state.Snapshot, Poke: func() {},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	l.Reach = func(_ context.Context, addr string) Answer {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked[addr]++
		return f.answers[addr]
	}
	config := cluster.DefaultConfig()
	cmds := []cluster.Command{&cluster.Configure{Config: &config}}
	var names []cluster.NodeName
	for _, m := range members {
		n := cluster.NodeName(m)
		names = append(names, n)
		cmds = append(cmds, &cluster.NodeUp{
			Name: n, Owner: m,
			Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 1000},
		})
	}
	for i, c := range cmds {
		e := cluster.Entry{Index: uint64(i + 1), At: time.Now(), By: cluster.Identity{System: true}, Cmd: c}
		if a := state.Apply(e); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	l.Heartbeats.Open(names, time.Minute, time.Now())
	f.watch, f.state = newWatch(l), state
	f.say(members, "")
	f.look(t.Context())
	return f
}

// say makes gossip say that one of the members has failed.
func (f *field) say(members []string, failed string) {
	var list []Rumour
	for _, m := range members {
		list = append(list, Rumour{Name: m, Addr: m + ":1", Failed: m == failed || failed == "all"})
	}
	f.Rumours.Hear(list)
}

func (f *field) answer(addr string, a Answer) {
	f.mu.Lock()
	f.answers[addr] = a
	f.mu.Unlock()
}

// marked reports whether node a counts as not responding, and when its lease ends at the latest.
func (f *field) marked() (quiet bool, lease time.Duration) {
	now := time.Now()
	f.Heartbeats.whole = time.Time{} // that of a node which is well is asked for, too
	l := f.Heartbeats.Leases(f.Snapshot(), now)["a"]
	return !l.Quiet.IsZero(), l.Until.Sub(now)
}

func TestSilentHostIsLookedFor(t *testing.T) {
	all := []string{"a", "b"}
	f := newField(t, all...)
	f.answer("a:1", NoAnswer)
	f.say(all, "a")
	if next := f.look(t.Context()); next != lookEvery {
		t.Errorf("looks again in %v", next)
	}
	if quiet, lease := f.marked(); !quiet || lease > silentLease {
		t.Errorf("a silent host: not responding %v, lease for %v", quiet, lease)
	}
	f.say(all, "") // gossip hears of it again, but it must answer
	f.look(t.Context())
	if quiet, _ := f.marked(); !quiet {
		t.Error("gossip alone brought a node back")
	}
	f.answer("a:1", Answered)
	f.look(t.Context())
	if quiet, lease := f.marked(); quiet || lease < time.Minute {
		t.Errorf("after an answer: not responding %v, lease for %v", quiet, lease)
	}
}

// Each line is a reason why nothing may follow from what gossip says.
func TestGossipAloneKillsNothing(t *testing.T) {
	all := []string{"a", "b"}
	for name, arrange := range map[string]func(f *field){
		"the host answers":             func(*field) {},
		"this server could not look":   func(f *field) { f.answer("a:1", Unclear) },
		"no other host answers either": func(f *field) { f.answer("a:1", NoAnswer); f.answer("b:1", NoAnswer) },
		"it never answered here":       func(f *field) { f.answer("a:1", NoAnswer); clear(f.reached); f.reached["b"] = "b:1" },
	} {
		f := newField(t, all...)
		arrange(f)
		f.say(all, "a")
		f.look(t.Context())
		if quiet, lease := f.marked(); quiet || lease < time.Minute {
			t.Errorf("%s: not responding %v, lease for %v", name, quiet, lease)
		}
	}
	f := newField(t, all...)
	f.answer("a:1", NoAnswer)
	f.answer("b:1", NoAnswer)
	f.say(all, "all")
	f.look(t.Context())
	if quiet, _ := f.marked(); quiet {
		t.Error("all failed at once, which is this server's own network, and a node was marked")
	}
}

// A call of the node is a sign of life; a longer timeout than the usual stays one.
func TestSilenceEndsWithACall(t *testing.T) {
	f := newField(t, "a", "b")
	f.Heartbeats.silence([]cluster.NodeName{"a"}, time.Now())
	f.Heartbeats.Open([]cluster.NodeName{"a"}, time.Minute, time.Now())
	if quiet, _ := f.marked(); quiet {
		t.Error("a node whose client has called counts as not responding")
	}
	e := nodeContact{silent: time.Now()}
	if l := e.cut(Lease{Until: e.silent.Add(time.Hour)}, 5*time.Minute); l.Until.Sub(e.silent) < 4*time.Minute {
		t.Errorf("with a timeout of five minutes the lease ends after %v", l.Until.Sub(e.silent))
	}
}

// Gossip that calls a member failed again and again though it answers costs a look now and then only.
func TestGlances(t *testing.T) {
	all := []string{"a", "b"}
	f := newField(t, all...)
	f.say(all, "a")
	for range 10 {
		f.look(t.Context())
	}
	if n := f.asked["a:1"]; n != 2 { // when it was new, and when it was said to have failed
		t.Errorf("it was looked for %d times", n)
	}
	f.say(all, "")
	f.look(t.Context())
	f.say(all, "a")
	f.look(t.Context())
	if n := f.asked["a:1"]; n < 3 {
		t.Error("it was not looked for when it failed anew")
	}
}

// TestLeasesOfAnyTimeout: SlurmdTimeout may be minutes, or none at all: a node that says nothing is seen to be
// quiet at once all the same, a new leader is patient for no longer, and nothing is down before its time.
func TestLeasesOfAnyTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 5 * time.Minute, cluster.Unlimited} {
		f := newField(t, "n1")
		config := cluster.DefaultConfig()
		config.NodeTimeout = timeout
		e := cluster.Entry{Index: 9, At: time.Now(), By: cluster.Identity{System: true},
			Cmd: &cluster.Configure{Config: &config}}
		if a := f.state.Apply(e); a.Err != nil {
			t.Fatal(a.Err)
		}
		now := time.Now()
		snap := f.state.Snapshot()
		p := New()
		hungUp := p.Open([]cluster.NodeName{"n1"}, time.Minute, now)
		lease := func() Lease { return p.Leases(snap, now)["n1"] }
		if l := lease(); l.Until.Before(now.Add(time.Second)) {
			t.Errorf("timeout %v: a node with an open call has a lease of %v", timeout, l.Until.Sub(now))
		}
		hungUp(now)
		l, least := lease(), min(timeout, time.Hour)-time.Second
		if l.Quiet.After(now.Add(quietAfter+time.Second)) || l.Until.Before(now.Add(least)) {
			t.Errorf("timeout %v: a node without a call is quiet after %v, down after %v", timeout,
				l.Quiet.Sub(now), l.Until.Sub(now))
		}
		p.Grace(snap, now)
		if l := lease(); l.Quiet.After(now.Add(patience)) {
			t.Errorf("timeout %v: a new leader is patient for %v", timeout, l.Quiet.Sub(now))
		}
	}
}

// TestForgedRumours: who has the key of the gossip neither has a host be looked for where it is not, and so be taken
// for silent, nor have the leader look for hosts that are no members.
func TestForgedRumours(t *testing.T) {
	f := newField(t, "a", "b")
	e := cluster.Entry{Index: 10, At: time.Now(), By: cluster.Identity{System: true}, Cmd: &cluster.NodeUp{
		Name: "a", Owner: "a", Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1,
			MemMB: 1000, Addr: "a:1"},
	}}
	if a := f.state.Apply(e); a.Err != nil {
		t.Fatal(a.Err)
	}
	forge := func(failed bool) {
		f.Rumours.Hear([]Rumour{{Name: "a", Addr: "evil:1", Failed: failed}, {Name: "b", Addr: "b:1"},
			{Name: "nobody", Addr: "victim:22"}})
		f.look(t.Context())
	}
	forge(false)
	f.answer("evil:1", NoAnswer)
	forge(true)
	if quiet, _ := f.marked(); quiet {
		t.Error("a node is taken for silent, as a forged address of it gives no answer")
	}
	if f.asked["evil:1"]+f.asked["victim:22"] > 0 {
		t.Errorf("forged addresses are looked for: %v", f.asked)
	}
}
