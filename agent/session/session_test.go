package session

import (
	"strings"
	"testing"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// TestSessionsOfCluster: every server of a cluster takes a session, none of another cluster does; links are bounded.
func TestSessionsOfCluster(t *testing.T) {
	now := time.Now()
	at := func(key string) *Store {
		return New("of "+key, func() *cluster.CA {
			if key == "" {
				return nil
			}
			return &cluster.CA{Key: key}
		}, func(who *Session) bool { return who.User == "eve" })
	}
	one, two, foreign, alone := at("k1"), at("k1"), at("k2"), at("")
	who := api.Caller{Identity: cluster.Identity{UID: 7, User: "ada"}}
	secret, _, err := one.Invite(who, now)
	if err != nil {
		t.Fatal(err)
	}
	in, ok := one.Open(secret, now)
	if !ok {
		t.Fatal("the link does not open")
	}
	if _, ok := two.Open(secret, now); ok {
		t.Error("another server opens the link by itself")
	}
	if maker := Maker(secret); maker != "of k1" {
		t.Errorf("the link was made by %q", maker)
	}
	value, err := one.Seal(&in)
	if err != nil {
		t.Fatal(err)
	}
	if got := two.Read(value, now); got == nil || got.User != "ada" || !two.Meant(got, one.CSRF(&in)) {
		t.Errorf("another server reads %+v", got)
	}
	for name, s := range map[string]*Store{"another cluster": foreign, "a cluster of one process": alone} {
		if s.Read(value, now) != nil {
			t.Errorf("%s takes the session", name)
		}
	}
	if value, err := one.Seal(&Session{ID: "x", User: "eve", Until: in.Until}); err != nil || two.Read(value, now) != nil {
		t.Errorf("a session that the state has as logged out is taken: %v", err)
	}
	two.End(in.ID, in.Until, now)
	if two.Read(value, now) != nil {
		t.Error("a session that has ended is taken")
	}
	two.End("x", now.Add(1000*time.Hour), now)
	two.End("y", now.Add(time.Hour), now.Add(13*time.Hour))
	if len(two.ended) != 0 {
		t.Errorf("%d ended sessions are kept for nothing", len(two.ended))
	}
	first, _, _ := one.Invite(who, now)
	for i := range 2 * maxUserLink {
		if _, _, err := one.Invite(who, now.Add(time.Duration(i+1)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := one.Open(first, now); ok || len(one.links) > maxUserLink {
		t.Errorf("%d links of one user wait", len(one.links))
	}
}

// TestFormToken: the token of a session's forms is never written the same way twice, and no other one is taken.
func TestFormToken(t *testing.T) {
	s := New("s1", func() *cluster.CA { return nil }, func(*Session) bool { return false })
	a, b := &Session{ID: "a"}, &Session{ID: "b"}
	one, two := s.CSRF(a), s.CSRF(a)
	if one == two || one[:8] == two[:8] || one[len(one)-8:] == two[len(two)-8:] {
		t.Errorf("it is written alike: %s, %s", one, two)
	}
	if !s.Meant(a, one) || !s.Meant(a, two) {
		t.Error("its own is not taken")
	}
	for _, bad := range []string{"", "x", one[:len(one)-2], one + "00", s.CSRF(b), strings.Repeat("0", len(one))} {
		if s.Meant(a, bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}
