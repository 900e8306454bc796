package server

import (
	"bytes"
	"testing"
	"time"

	"dev.muster/cluster"
)

// TestGossipKeysInTurn: a key that is new encrypts only when all have had the time to learn it.
func TestGossipKeysInTurn(t *testing.T) {
	now := time.Now()
	fresh, old, older := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 32)
	ca := &cluster.CA{Gossip: [][]byte{fresh, old, older}, GossipAt: now}
	for _, c := range []struct {
		age  time.Duration
		want [][]byte
	}{{0, [][]byte{old, fresh}}, {keySettling, [][]byte{fresh, old}}, {2 * keySettling, [][]byte{fresh}}} {
		got := usable(ca, now.Add(c.age))
		if !bytes.Equal(bytes.Join(got, nil), bytes.Join(c.want, nil)) {
			t.Errorf("after %v the keys are %v", c.age, got)
		}
	}
	s := cluster.NewState()
	for i, c := range []cluster.Command{
		&cluster.TrustInit{CA: *ca, Member: cluster.Member{Name: "s"}}, &cluster.MemberRevoke{Name: "s"},
	} {
		at := now.Add(time.Duration(i) * time.Second)
		e := cluster.Entry{Index: uint64(i + 1), At: at, By: cluster.Identity{System: true}, Cmd: c}
		if a := s.Apply(e); a.Err != nil {
			t.Fatal(a.Err)
		}
		snap := s.Snapshot()
		if !stale(snap, now.Add(keyLife)) || stale(snap, now.Add(2*keySettling-time.Second)) {
			t.Error("the key is not changed once a day, or in the middle of a change")
		}
		if got := stale(snap, now.Add(2*keySettling)); got != (i == 1) {
			t.Errorf("a member was revoked: %v; the key is changed: %v", i == 1, got)
		}
	}
}
