package server

import (
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestSessionsOfCluster: every server of a cluster takes a session, none of another cluster does; links are bounded.
func TestSessionsOfCluster(t *testing.T) {
	now := time.Now()
	at := func(key string) *sessions {
		return newSessions(func() *cluster.CA {
			if key == "" {
				return nil
			}
			return &cluster.CA{Key: key}
		})
	}
	one, two, foreign, alone := at("k1"), at("k1"), at("k2"), at("")
	who := api.Caller{Identity: cluster.Identity{UID: 7, User: "ada"}}
	secret, _, err := one.invite(who, now)
	if err != nil {
		t.Fatal(err)
	}
	in, ok := one.open(secret, now)
	if !ok {
		t.Fatal("the link does not open")
	}
	if _, ok := two.open(secret, now); ok {
		t.Error("another server opens the link")
	}
	value, err := one.seal(&in)
	if err != nil {
		t.Fatal(err)
	}
	if got := two.read(value, now); got == nil || got.User != "ada" || two.csrf(got) != one.csrf(&in) {
		t.Errorf("another server reads %+v", got)
	}
	for name, s := range map[string]*sessions{"another cluster": foreign, "a cluster of one process": alone} {
		if s.read(value, now) != nil {
			t.Errorf("%s takes the session", name)
		}
	}
	two.end(in.ID, in.Until, now)
	if two.read(value, now) != nil {
		t.Error("a session that has ended is taken")
	}
	two.end("x", now.Add(1000*time.Hour), now)
	two.end("y", now.Add(time.Hour), now.Add(13*time.Hour))
	if len(two.ended) != 0 {
		t.Errorf("%d ended sessions are kept for nothing", len(two.ended))
	}
	first, _, _ := one.invite(who, now)
	for i := range 2 * maxUserLink {
		if _, _, err := one.invite(who, now.Add(time.Duration(i+1)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := one.open(first, now); ok || len(one.links) > maxUserLink {
		t.Errorf("%d links of one user wait", len(one.links))
	}
}
