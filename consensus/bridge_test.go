package consensus

import (
	"bytes"
	"log/slog"
	"testing"
)

// TestBridge: raft's words are warnings, but for the first election of a server that has started.
func TestBridge(t *testing.T) {
	for text, want := range map[string]string{
		"[WARN]  heartbeat timeout reached, starting election: last-leader-addr= last-leader-id=\n":           "",
		"[WARN]  heartbeat timeout reached, starting election: last-leader-addr=10.0.0.1 last-leader-id=s1\n": "level=WARN msg=raft text=\"[WARN]  heartbeat timeout reached, starting election: last-leader-addr=10.0.0.1 last-leader-id=s1\"\n",
	} {
		var b bytes.Buffer
		l := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		if n, err := (slogWriter{l}).Write([]byte(text)); n != len(text) || err != nil || b.String() != want {
			t.Errorf("%q: %d %v %q, want %q", text, n, err, b.String(), want)
		}
	}
}
