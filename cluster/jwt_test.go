package cluster

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

func userKey(id string) UserKey { return UserKey{ID: id, Secret: make([]byte, userKeyBytes)} }

// TestJWTKeys: the first key is made once; older keys stay until they are cut; a snapshot keeps all.
func TestJWTKeys(t *testing.T) {
	w := newWorld(t, 1)
	w.refused(alice, &JWTKey{Key: userKey("a"), First: true}, ErrAccess)
	w.refused(root, &JWTKey{Key: UserKey{ID: "a", Secret: []byte("short")}}, "")
	w.ok(sys, &JWTKey{Key: userKey("a"), First: true})
	w.ok(sys, &JWTKey{Key: userKey("other"), First: true}) // of a server that did not know yet
	w.ok(root, &JWTKey{Key: userKey("b")})
	w.refused(root, &JWTKey{Key: userKey("b")}, "")
	u := w.s.UserTokens()
	if _, ok := u.Key("a"); len(u.Keys) != 2 || u.Keys[0].ID != "b" || !ok {
		t.Fatalf("keys %v", u.Keys)
	}
	made := w.now
	w.pass(time.Minute)
	w.ok(root, &JWTKey{Key: userKey("c"), Cut: true})
	var text bytes.Buffer
	if err := w.s.Snapshot().Encode(&text); err != nil {
		t.Fatal(err)
	}
	s, err := Decode(&text)
	if err != nil {
		t.Fatal(err)
	}
	u = s.UserTokens()
	if _, ok := u.Key("b"); ok || len(u.Keys) != 1 || !u.Over("alice", "", made) || u.Over("alice", "", w.now) {
		t.Errorf("after the cut %+v", u)
	}
	for k := range 2 * maxUserKeys {
		w.ok(root, &JWTKey{Key: userKey(fmt.Sprint(k))})
	}
	if n := len(w.s.UserTokens().Keys); n != maxUserKeys {
		t.Errorf("%d keys", n)
	}
}

// TestJWTEnd: one token, a user's tokens and everybody's are ended; who may, and what is made later is good.
func TestJWTEnd(t *testing.T) {
	w := newWorld(t, 1)
	named := alice
	named.User = "alice"
	w.refused(named, &JWTEnd{User: "bob"}, ErrAccess)
	w.refused(named, &JWTEnd{}, ErrAccess)
	w.refused(alice, &JWTEnd{User: ""}, ErrAccess)
	w.refused(root, &JWTEnd{Token: "x", Until: w.now.Add(time.Hour)}, "")
	w.refused(root, &JWTEnd{User: "bob", Token: "x", Until: w.now}, "")
	over := func(user, token string, made time.Time, want bool) {
		t.Helper()
		if got := w.s.UserTokens().Over(user, token, made); got != want {
			t.Errorf("%s's token %q is over: %v", user, token, got)
		}
	}
	w.ok(named, &JWTEnd{User: "alice", Token: "x", Until: w.now.Add(time.Minute)})
	w.ok(root, &JWTEnd{User: "bob", Token: "y", Until: w.now.Add(time.Hour)})
	over("alice", "x", w.now, true)
	over("alice", "y", w.now, false)
	over("alice", "", w.now, false)
	made := w.now
	w.pass(2 * time.Minute)
	w.ok(named, &JWTEnd{User: "alice"})
	over("alice", "z", made, true)
	over("alice", "z", w.now, false)
	over("bob", "z", made, false)
	over("bob", "y", made, true)
	if n := len(w.s.UserTokens().Ended); n != 2 {
		t.Errorf("what has ended by itself is kept: %v", w.s.UserTokens().Ended)
	}
	w.ok(root, &JWTEnd{})
	over("bob", "z", made, true)
	if n := len(w.s.UserTokens().Ended); n != 1 {
		t.Errorf("what is covered is kept: %v", w.s.UserTokens().Ended)
	}
	w.pass(time.Second)
	w.ok(root, &JWTEnd{})
	over("bob", "z", w.now.Add(-time.Millisecond), true)
}
