package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAsOf: what a server has is as of the last time at which the leader had no more.
func TestAsOf(t *testing.T) {
	o, began := newOthers(), time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	if !o.asOf(10).IsZero() {
		t.Error("nobody was asked")
	}
	for i, index := range []uint64{5, 5, 8, 20, 20, 21} {
		o.leads(progress{at(i), index})
	}
	o.leads(progress{at(9), 3}) // an answer that was late
	for _, c := range []struct {
		index uint64
		want  time.Time
	}{{4, time.Time{}}, {5, at(1)}, {19, at(2)}, {20, at(4)}, {40, at(5)}} {
		if got := o.asOf(c.index); !got.Equal(c.want) {
			t.Errorf("with entries up to %d: as of %v, want %v", c.index, got, c.want)
		}
	}
}

// TestNewestOfTheLeader checks that a server which lacked entries from its first moment does not pass for fresh.
func TestNewestOfTheLeader(t *testing.T) {
	o := newOthers()
	if o.newest() != 0 {
		t.Error("nobody was asked")
	}
	o.leads(progress{time.Now(), 500})
	if at := o.asOf(20); !at.IsZero() || o.newest() != 500 {
		t.Errorf("as of %v, newest %d", at, o.newest())
	}
}

// TestSilent: a server is silent once it has not answered for a while, since it last did.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOthers()
		silent := func(name string, want time.Time) {
			t.Helper()
			if got := o.silent(name); !got.Equal(want) {
				t.Errorf("%s is silent since %v, want %v", name, got, want)
			}
		}
		began := time.Now()
		o.hears("s2", time.Now(), true)
		o.hears("s3", time.Now(), false) // it was dead before
		time.Sleep(silentAfter - time.Second)
		o.hears("s2", time.Now(), false)
		silent("s2", time.Time{})
		time.Sleep(time.Second)
		silent("s2", began)
		silent("s3", began)
		o.hears("s2", time.Now(), true)
		silent("s2", time.Time{})
		silent("s4", time.Time{})
	})
}
