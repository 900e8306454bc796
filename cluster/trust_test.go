package cluster

import (
	"strings"
	"testing"
	"time"
)

// TestTokenPut: what is wrong with a token is said, with the value.
func TestTokenPut(t *testing.T) {
	for _, c := range []struct {
		change func(*Token)
		want   string
	}{
		{func(k *Token) { k.Role = "worker" }, `"worker" is no role of a member: want server, client or login`},
		{func(k *Token) { k.Uses = 0 }, "a token for 0 machines is good for none: want one at least"},
		{func(k *Token) { k.Expires = time.Time{} }, "the token would expire at 0001-01-01 00:00:00, which is over"},
		{func(k *Token) { k.Verifier = "x" }, `token "nodes" has no id or verifier`},
	} {
		w := newWorld(t, 1)
		k := Token{
			ID: "nodes", Role: RoleNode, Uses: 5, Verifier: strings.Repeat("0a", 32),
			Expires: w.now.Add(time.Hour),
		}
		c.change(&k)
		if out := w.apply(root, &TokenPut{Token: k}); out.Err == nil || out.Err.Message != c.want {
			t.Errorf("%v, want %s", out.Err, c.want)
		}
	}
}
