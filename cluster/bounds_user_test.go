package cluster

import (
	"fmt"
	"testing"
	"time"
)

// TestEndingsOfUser: a user who ends many tokens one by one does not keep others from ending theirs.
func TestEndingsOfUser(t *testing.T) {
	w := newWorld(t, 1)
	named := alice
	named.User = "alice"
	end := func(user, token string) *JWTEnd {
		return &JWTEnd{User: user, Token: token, Until: w.now.Add(time.Hour)}
	}
	for i := range maxEndingsOf {
		cmd := end("alice", fmt.Sprint(i))
		if err := Check(w.s.Snapshot(), cmd); err != nil {
			t.Fatalf("ending %d: %v", i, err)
		}
		w.ok(named, cmd)
	}
	for _, c := range []struct {
		name string
		cmd  *JWTEnd
		want bool
	}{
		{"one more", end("alice", "more"), false},
		{"another user's", end("bob", "one"), true},
		{"all", &JWTEnd{User: "alice"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := Check(w.s.Snapshot(), c.cmd); (err == nil) != c.want {
				t.Error(err)
			}
		})
	}
	w.pass(2 * time.Hour)
	w.ok(sys, &NodeQuiet{})
	if err := Check(w.s.Snapshot(), end("alice", "later")); err != nil {
		t.Error(err)
	}
}

// TestManyOwnDefaults: a user who changes the own default account very often at once does not have each change look at
// all users.
func TestManyOwnDefaults(t *testing.T) {
	const users, times = 10_000, 50_000
	w := newWorld(t, 1)
	list := []Change{{Account: &Account{Name: "a"}}, {Assoc: &Association{Account: "a", Shares: 1}}}
	for i := range users {
		u := fmt.Sprint("u", i)
		list = append(list, Change{User: &User{Name: u, DefaultAccount: "a"}},
			Change{Assoc: &Association{Account: "a", User: u, Shares: 1}})
	}
	apply := func(by Identity, cmd Command) time.Duration {
		began := time.Now()
		if out := w.s.Apply(Entry{Index: w.s.Index + 1, At: w.now, By: by, Cmd: cmd}); out.Err != nil {
			t.Fatal(out.Err)
		}
		return time.Since(began)
	}
	apply(root, &ChangeAccounts{Changes: list})
	var many ChangeAccounts
	for range times {
		many.Changes = append(many.Changes, Change{User: &User{Name: "u7", DefaultAccount: "a"}})
	}
	if took := apply(Identity{UID: 7, User: "u7"}, &many); took > 5*time.Second {
		t.Errorf("%d changes took %v", times, took)
	}
}
