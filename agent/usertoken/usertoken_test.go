package usertoken

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

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
