package cluster

import (
	"bytes"
	"testing"
	"time"
)

// TestSessionEnd logs sessions out: the state knows it until they would have ended, and only their users do it.
func TestSessionEnd(t *testing.T) {
	w := newWorld(t, 0)
	until := w.now.Add(12 * time.Hour)
	over := func(id string, want bool) {
		t.Helper()
		if got := SessionOver(w.s.Snapshot(), id, until); got != want {
			t.Errorf("session %s is over: %v", id, got)
		}
	}
	end := func(id string, until time.Time) *SessionEnd {
		return &SessionEnd{EndedSession{ID: id, UID: alice.UID, Until: until}}
	}
	w.ok(alice, end("a", until))
	w.ok(alice, end("a", until))
	w.ok(alice, end("old", w.now.Add(-time.Second)))
	w.refused(bob, end("b", until), ErrAccess)
	w.refused(alice, end("", until), "")
	w.refused(alice, end("b", w.now.Add(48*time.Hour)), "")
	over("a", true)
	over("b", false)
	var text bytes.Buffer
	snap := w.s.Snapshot()
	if err := snap.Encode(&text); err != nil {
		t.Fatal(err)
	}
	again, err := Decode(&text)
	if err != nil || !SessionOver(again.Snapshot(), "a", until) {
		t.Errorf("a snapshot does not keep it: %v", err)
	}
	if n := w.s.sessions.Len(); n != 1 {
		t.Errorf("%d sessions are kept", n)
	}
	w.now = until
	for _, c := range Due(w.s.Snapshot(), w.now) {
		w.ok(sys, c)
	}
	if n := w.s.sessions.Len(); n != 0 {
		t.Errorf("%d sessions are kept for nothing", n)
	}
}

// TestSessionEndBound logs many sessions of one user out: others are not affected.
func TestSessionEndBound(t *testing.T) {
	w := newWorld(t, 0)
	until := w.now.Add(time.Hour)
	for i := range maxUserSessions {
		w.ok(alice, &SessionEnd{EndedSession{ID: string(rune('a' + i)), UID: alice.UID, Until: until}})
	}
	w.refused(alice, &SessionEnd{EndedSession{ID: "more", UID: alice.UID, Until: until}}, ErrTooBig)
	w.ok(bob, &SessionEnd{EndedSession{ID: "x", UID: bob.UID, Until: until}})
}
