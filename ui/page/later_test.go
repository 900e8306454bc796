package page

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestLater: what was made recently is there at once, what is a little older meanwhile; nobody waits long, nor for what
// others want, and what fails is tried again.
func TestLater(t *testing.T) {
	const fresh, stale = 10 * time.Second, time.Minute
	type text = string
	is := func(t *testing.T, l *later[text], key string, do makes[text], want string, ok bool) {
		t.Helper()
		if got, here := l.of(t.Context(), key, do); got != want || here != ok {
			t.Errorf("%s: %q, %t; want %q, %t", key, got, here, want, ok)
		}
	}
	takes := func(d time.Duration, it text) makes[text] {
		return func(context.Context) (text, error) { time.Sleep(d); return it, nil }
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLater[text](fresh, stale)
		is(t, l, "quick", takes(time.Millisecond, "one"), "one", true)
		is(t, l, "slow", takes(time.Second, "one"), "", false)
		is(t, l, "slow", takes(time.Second, "two"), "", false)
		time.Sleep(2 * time.Second)
		is(t, l, "slow", takes(time.Second, "three"), "one", true)
		time.Sleep(fresh)
		is(t, l, "slow", takes(time.Second, "four"), "one", true)
		time.Sleep(2 * time.Second)
		is(t, l, "slow", nil, "four", true)
		time.Sleep(stale)
		is(t, l, "slow", takes(time.Second, "five"), "", false)
		fails := func(context.Context) (text, error) { return "", errors.New("busy") }
		is(t, l, "bad", fails, "", true)
		is(t, l, "bad", takes(0, "one"), "one", true)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := l.of(gone, "gone", takes(time.Second, "one")); ok {
			t.Error("who has gone waits")
		}
		time.Sleep(2 * time.Second)
		for i := range 2 * laterKept {
			is(t, l, string(rune('a'+i)), takes(0, "x"), "x", true)
		}
		if len(l.made) > laterKept+1 {
			t.Errorf("%d are kept", len(l.made))
		}
	})
}
