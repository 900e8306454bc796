package heartbeat

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"dev.muster/cluster"
)

// A new leader gives nobody up while nodes still come over from the old one.
func TestGraceWhileNodesCome(t *testing.T) {
	f := newField(t, "a", "b", "c")
	timeout := f.Snapshot().Config().NodeTimeout
	began := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	p := New()
	p.Grace(f.Snapshot(), began)
	p.found([]cluster.NodeName{"a", "b", "c"}, began)
	at := began
	for _, n := range []cluster.NodeName{"a", "b"} {
		at = at.Add(timeout - time.Second)
		p.Open([]cluster.NodeName{n}, time.Minute, at)
	}
	for _, c := range []struct {
		after time.Duration
		lost  bool
	}{{timeout - time.Second, false}, {timeout + time.Second, true}} {
		now := at.Add(c.after)
		if lost := p.Leases(f.Snapshot(), now)["c"].Until.Before(now); lost != c.lost {
			t.Errorf("%v after the last node came: lost %v", c.after, lost)
		}
	}
}

// A new leader's time for a node that does not come begins when its host is found; one that is not found has
// longer, and not indefinitely.
func TestGraceFromPath(t *testing.T) {
	f := newField(t, "a", "b", "c")
	timeout := f.Snapshot().Config().NodeTimeout
	began := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	p := New()
	p.Grace(f.Snapshot(), began)
	p.Open([]cluster.NodeName{"a"}, time.Minute, began)
	if got := p.missing(); len(got) != 2 {
		t.Errorf("neither have called nor were found: %v", got)
	}
	p.found([]cluster.NodeName{"b"}, began.Add(timeout-time.Second))
	p.found([]cluster.NodeName{"b"}, began.Add(timeout)) // again, which changes nothing
	if got := p.missing(); !slices.Equal(got, []cluster.NodeName{"c"}) {
		t.Errorf("neither have called nor were found: %v", got)
	}
	for _, c := range []struct {
		node  cluster.NodeName
		after time.Duration
		lost  bool
	}{
		{"b", timeout + time.Second, false}, {"b", 2*timeout - 2*time.Second, false}, {"b", 2 * timeout, true},
		{"c", 2 * timeout, false}, {"c", timeout + pathTime, false}, {"c", timeout + pathTime + time.Second, true},
		{"a", time.Minute, false},
	} {
		now := began.Add(c.after)
		l, known := p.Leases(f.Snapshot(), now)[c.node]
		if lost := known && l.Until.Before(now); lost != c.lost {
			t.Errorf("%s, %v after the new leader began: lost %v", c.node, c.after, lost)
		}
	}
	p.Grace(f.Snapshot(), began.Add(time.Hour)) // and the next leader, or this one again, begins again
	if got := p.missing(); len(got) != 2 {
		t.Errorf("after another beginning: %v", got)
	}
}

// A host that gives the leader no answer is not silent while its node calls through another server.
func TestSilentToOne(t *testing.T) {
	f, p, began := callers(t)
	b := []cluster.NodeName{"b"}
	silent := func(after time.Duration) bool {
		now := began.Add(after)
		p.silence(b, now)
		l, known := p.Leases(f.Snapshot(), now)["b"]
		return known && !l.Quiet.IsZero()
	}
	if !silent(time.Second) {
		t.Error("its call was open before its host fell silent: nothing says that it lives")
	}
	over := p.Open(b, time.Minute, began.Add(2*time.Second))
	if silent(3 * time.Second) {
		t.Error("it has called since")
	}
	over(began.Add(4 * time.Second))
	p.nodes["b"].open = 0 // the first call is over too
	p.Open(b, time.Minute, began.Add(4*time.Second))(began.Add(4 * time.Second))
	if !silent(5 * time.Second) {
		t.Error("it calls no more")
	}
}

// callers are two nodes that have called: the call of a is over, that of b is open.
func callers(t *testing.T) (f *field, p *Heartbeats, began time.Time) {
	p, began = New(), time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	p.Open([]cluster.NodeName{"a"}, 0, began)(began)
	p.Open([]cluster.NodeName{"b"}, time.Minute, began)
	return newField(t, "a", "b"), p, began
}

// A client that reports is alive, whether it has a call open or not; an open call's time stays what it was.
func TestHeartbeatsHear(t *testing.T) {
	f, p, began := callers(t)
	timeout := f.Snapshot().Config().NodeTimeout
	now := began.Add(timeout - time.Second)
	p.Hear([]cluster.NodeName{"a", "b"}, now)
	l := p.Leases(f.Snapshot(), now)
	if a := (Lease{Until: now.Add(timeout), Quiet: now.Add(quietAfter), Since: began}); l["a"] != a {
		t.Errorf("between calls: %+v, want %+v", l["a"], a)
	}
	if b := (Lease{Until: now.Add(timeout + time.Minute), Since: began}); l["b"] != b {
		t.Errorf("in a call: %+v, want %+v", l["b"], b)
	}
	p.silence([]cluster.NodeName{"a"}, now)
	p.Leases(f.Snapshot(), now)
	if p.Hear([]cluster.NodeName{"a"}, now); !p.Due(now) || !p.Leases(f.Snapshot(), now)["a"].Quiet.After(now) {
		t.Error("a host that speaks is still silent")
	}
}

// A leader that did not run gives nobody up for that time.
func TestHeartbeatsStall(t *testing.T) {
	f, p, began := callers(t)
	timeout := f.Snapshot().Config().NodeTimeout
	p.Tick(began.Add(time.Second))
	woke := began.Add(time.Hour) // a has been silent for a second of which the leader knows
	for at := woke; !at.After(woke.Add(2 * timeout)); at = at.Add(tickEvery) {
		l := p.Leases(f.Snapshot(), at)
		if lost, due := l["a"].Until.Before(at), at.After(woke.Add(timeout-time.Second)); lost != due {
			t.Errorf("%v after it ran again: a is lost %v, want %v", at.Sub(woke), lost, due)
		}
		if b, ok := l["b"]; ok && b.Until.Before(at) {
			t.Errorf("%v after it ran again: b is lost, whose call is open", at.Sub(woke))
		}
		p.Tick(at)
	}
}

// Nodes are gone through when there is something to find, and not in each cycle.
func TestHeartbeatsDue(t *testing.T) {
	f := newField(t, "a", "b")
	now := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	p, a := New(), []cluster.NodeName{"a"}
	p.Grace(f.Snapshot(), now)
	p.Open([]cluster.NodeName{"b"}, time.Minute, now)
	over := p.Open(a, time.Minute, now)
	want := func(what string, after time.Duration, due bool) {
		t.Helper()
		now = now.Add(after)
		if p.Due(now) != due {
			t.Errorf("%s: due %v, want %v", what, !due, due)
		}
		if p.Leases(f.Snapshot(), now); p.Due(now) {
			t.Errorf("%s: due right after", what)
		}
	}
	want("both came", 0, true)
	want("both calls are open", time.Hour, false)
	over(now)
	want("a call is over", LeaseChecks-1, false)
	want("it stays over", LeaseChecks, true)
	over = p.Open(a, time.Minute, now)
	want("the next call came in time", 0, false)
	over(now)
	now = now.Add(quietAfter)
	p.Open(a, time.Minute, now)
	want("the next call came late", 0, true)
	p.silence(a, now)
	want("its host is silent", 0, true)
	p.silence(a, now)
	want("its host is still silent", 0, false)
	want("and for longer", LeaseChecks, true)
	p.answer(a)
	want("its host is back", 0, true)
	want("all is well", time.Hour, false)
}

// fleet is so many nodes with a call open, of which the last one is quiet and heard of again.
func fleet(t testing.TB, nodes int) (s *cluster.State, p *Heartbeats, now time.Time) {
	s, p, now = cluster.NewState(), New(), time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	do := func(c cluster.Command) {
		e := cluster.Entry{Index: s.Index + 1, At: now, By: cluster.Identity{System: true}, Cmd: c}
		if a := s.Apply(e); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	last := []cluster.NodeName{""}
	for i := range nodes {
		last[0] = cluster.NodeName(fmt.Sprintf("n%05d", i))
		do(&cluster.NodeUp{
			Name:      last[0],
			Inventory: cluster.Inventory{Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, CPUs: 1, MemMB: 1000},
		})
		p.Open([]cluster.NodeName{last[0]}, time.Minute, now)
	}
	do(&cluster.NodeQuiet{Nodes: last, Quiet: true})
	return s, p, now
}

// Between two looks at all nodes those are found that have fallen silent, that the state takes for quiet though
// they are there, and whose time is over; a call that never ends is found by the look at all.
func TestLeasesBetweenLooks(t *testing.T) {
	s, p, now := fleet(t, 5)
	timeout := s.Config().NodeTimeout
	expect := func(after time.Duration, want ...cluster.Command) {
		t.Helper()
		now = now.Add(after)
		if got := p.Leases(s.Snapshot(), now).Commands(s.Snapshot(), now); !reflect.DeepEqual(got, want) {
			t.Errorf("after %v: %+v, want %+v", now.Sub(p.whole), got, want)
		}
	}
	back := &cluster.NodeQuiet{Nodes: []cluster.NodeName{"n00004"}}
	expect(0, back)
	expect(time.Second, back) // it was not taken: it is said again
	p.Open([]cluster.NodeName{"n00001"}, time.Minute, now)(now)
	over := p.Open([]cluster.NodeName{"n00002"}, time.Minute, now)
	p.nodes["n00001"].open, p.nodes["n00002"].open = 1, 1
	over(now)
	p.silence([]cluster.NodeName{"n00001"}, now.Add(-time.Millisecond))
	expect(quietAfter, &cluster.NodeQuiet{Nodes: []cluster.NodeName{"n00001"}, Quiet: true}, back)
	expect(time.Millisecond, &cluster.NodeQuiet{Nodes: []cluster.NodeName{"n00001", "n00002"}, Quiet: true}, back)
	p.answer([]cluster.NodeName{"n00001"})
	expect(time.Second, &cluster.NodeQuiet{Nodes: []cluster.NodeName{"n00002"}, Quiet: true}, back)
	p.whole = now.Add(timeout + 2*time.Minute)
	if now = p.whole.Add(wholeChecks - 1); len(p.Leases(s.Snapshot(), now)) != 2 {
		t.Error("all nodes are looked at before it is time")
	}
	expect(1, &cluster.NodeDown{
		Nodes: []cluster.NodeName{"n00000", "n00001", "n00002", "n00003", "n00004"}, Why: "Not responding",
		Keep: true,
	})
}

// BenchmarkLeases is a look for nodes of which something is to be said, among 10,000 of which one is between two
// calls.
func BenchmarkLeases(b *testing.B) {
	s, p, now := fleet(b, 10_000)
	p.Open([]cluster.NodeName{"n00000"}, time.Minute, now)
	p.nodes["n00000"].open = 0
	snap := s.Snapshot()
	for b.Loop() {
		now = now.Add(LeaseChecks)
		p.Leases(snap, now).Commands(snap, now)
	}
}

// TestClockSet: the leader's clock is set back, a launch is written down by it, and it is set right again: the
// launch has its time by the clock that is never set.
func TestClockSet(t *testing.T) {
	wall, passed := time.Date(2026, 11, 24, 22, 10, 0, 0, time.UTC), time.Duration(0)
	var w wallClock
	for _, step := range []struct {
		set    time.Duration
		passes time.Duration
		jumped bool
	}{
		{0, 0, false}, {0, time.Minute, false}, {-22 * time.Second, time.Second, true}, {0, time.Second, false},
		{22 * time.Second, 0, true}, {500 * time.Millisecond, time.Hour, false},
	} {
		wall, passed = wall.Add(step.set+step.passes), passed+step.passes
		if got := w.moved(wall, passed); got != step.jumped {
			t.Errorf("set by %v, %v later: jumped %v", step.set, step.passes, got)
		}
	}
}

// TestGiveTime: after the clock was set a node has the whole launch timeout again, one that never called has what
// it had.
func TestGiveTime(t *testing.T) {
	began := time.Now()
	p := New()
	p.Open([]cluster.NodeName{"a"}, time.Minute, began)
	p.beat("b")
	later := began.Add(time.Hour)
	p.giveTime(later)
	if got := p.nodes["a"].since; !got.Equal(later) {
		t.Errorf("a node that calls has its time from %v, want %v", got, later)
	}
	if got := p.nodes["b"].since; !got.IsZero() {
		t.Errorf("a node that never called has called at %v", got)
	}
}
