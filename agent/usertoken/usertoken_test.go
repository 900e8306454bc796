package usertoken

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"dev.muster/agent/sparse"
	"dev.muster/api"
	"dev.muster/cluster"
)

// follower is an issuer whose server knows the key from a moment on, and hears of each change of its state.
func follower(key cluster.UserKey) (k *Issuer, learn func()) {
	system := cluster.Identity{System: true}
	state := cluster.NewState()
	state.Apply(cluster.Entry{At: time.Now(), By: system, Cmd: &cluster.RaiseLevel{Level: cluster.Newest}})
	var now atomic.Pointer[cluster.Snapshot]
	now.Store(state.Snapshot())
	moved := make(chan struct{})
	k = &Issuer{
		Snapshot: now.Load,
		Leads:    func() bool { return false },
		Moved:    func() <-chan struct{} { return moved },
		Log:      slog.New(slog.DiscardHandler),
	}
	return k, func() {
		state.Apply(cluster.Entry{At: time.Now(), By: system, Cmd: &cluster.JWTKey{Key: key, First: true}})
		now.Store(state.Snapshot())
		close(moved)
	}
}

// TestKeyOnItsWay: a token may come before the key that has signed it, which another server has made; one whose key
// does not come is refused.
func TestKeyOnItsWay(t *testing.T) {
	key := newUserKey()
	claims := jwt.MapClaims{"sun": "bin", "iat": 0, "exp": int64(1) << 40} // the bubble's clock is another one
	signed := func(kid string) string {
		token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
		token.Header["kid"] = kid
		text, err := token.SignedString(key.Secret)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good, bad := signed(key.ID), signed("other")
	synctest.Test(t, func(t *testing.T) {
		k, learn := follower(key)
		began := time.Now()
		if _, err := k.read(bad); err == nil || time.Since(began) != keyOnWay {
			t.Errorf("a key that never comes: %v after %v", err, time.Since(began))
		}
		go func() {
			time.Sleep(keyOnWay / 2)
			learn()
		}()
		if c, err := k.read(good); err != nil || c.User != "bin" {
			t.Errorf("a key that comes: %+v, %v", c, err)
		}
	})
}

// TestMayMakeFor lists who makes tokens for others.
func TestMayMakeFor(t *testing.T) {
	system := cluster.Identity{System: true}
	daemon := api.Caller{Identity: cluster.Identity{UID: 1, User: "daemon"}}
	onNode := daemon
	onNode.Role = cluster.RoleNode
	for _, c := range []struct {
		name        string
		who         api.Caller
		level       string
		params      string
		slurmUser   string
		target      string
		may         bool
		targetAbove bool
	}{
		{"root", api.Caller{}, "", "", "", "bin", true, false},
		{"root for root", api.Caller{}, "", "", "", "root", true, false},
		{"the servers' user", api.Caller{Identity: cluster.Identity{UID: 5, Admin: true}}, "", "", "", "bin", true, false},
		{"a user", daemon, "", "", "", "bin", false, false},
		{"a user with the word", daemon, "", "operator_tokens", "", "bin", false, false},
		{"an operator", daemon, "Operator", "", "", "bin", false, false},
		{"an administrator", daemon, "Administrator", "", "", "bin", false, false},
		{"an operator with the word", daemon, "Operator", "jwks=/k,operator_tokens", "", "bin", true, false},
		{"an operator for root", daemon, "Operator", "operator_tokens", "", "root", false, false},
		{"an operator for an administrator", daemon, "Operator", "operator_tokens", "", "bin", false, true},
		{"SlurmUser", daemon, "", "", "daemon", "bin", true, false},
		{"SlurmUser for root", daemon, "", "", "daemon", "root", false, false},
		{"SlurmUser as a node has it", onNode, "", "", "daemon", "bin", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := cluster.NewState()
			cfg := cluster.DefaultConfig()
			cfg.Keys, cfg.ServerUser = map[string]string{"authaltparameters": c.params}, c.slurmUser
			state.Apply(cluster.Entry{At: time.Now(), By: system, Cmd: &cluster.RaiseLevel{Level: cluster.Newest}})
			if out := state.Apply(cluster.Entry{At: time.Now(), By: cluster.Identity{}, Cmd: &cluster.Configure{Config: &cfg}}); out.Err != nil {
				t.Fatal(out.Err)
			}
			k := &Issuer{Snapshot: state.Snapshot, Level: func(who api.Caller) string {
				if who.UID == c.who.UID {
					return c.level
				}
				return map[bool]string{true: "Administrator"}[c.targetAbove]
			}}
			if err := k.mayMakeFor(c.who, c.who.User, c.target); (err == nil) != c.may {
				t.Errorf("for %s: %v", c.target, err)
			}
		})
	}
}

// TestRefusalLines shows bad tokens: each refusal has one line, a flood of them a few, and the number of the others.
func TestRefusalLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := follower(newUserKey())
		k.Leads, k.Refused = func() bool { return true }, func() {}
		var text bytes.Buffer
		k.Log = slog.New(slog.NewTextHandler(&text, nil))
		for range 1000 {
			if _, err := k.Caller("a.b.c", "", "10.0.0.1:1"); err == nil {
				t.Fatal("a bad token is taken")
			}
			if _, err := k.Caller("", "", "10.0.0.1:1"); err == nil {
				t.Fatal("a call without a token is taken")
			}
		}
		if n := strings.Count(text.String(), "\n"); n != sparse.Most || !strings.Contains(text.String(), "from=10.0.0.1:1") {
			t.Errorf("%d lines: %s", n, text.String())
		}
		time.Sleep(sparse.Span)
		text.Reset()
		_, _ = k.Caller("a.b.c", "", "10.0.0.1:1")
		if !strings.Contains(text.String(), "others_without_a_line=1980") {
			t.Errorf("a minute later: %s", text.String())
		}
	})
}
