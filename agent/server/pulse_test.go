package server

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

// A new leader gives nobody up while nodes still come over from the old one.
func TestGraceWhileNodesCome(t *testing.T) {
	f := newField(t, "a", "b", "c")
	timeout := f.Snapshot().Config().NodeTimeout
	began := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	p := NewPulse()
	p.Grace(f.Snapshot(), began)
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
