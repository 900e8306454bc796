package format

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

func TestSpan(t *testing.T) {
	for want, d := range map[string]time.Duration{"00:05:00": 5 * time.Minute, "01:30:00": 90 * time.Minute, "12:00:01": 12*time.Hour + time.Second,
		"1-02:03:00": 26*time.Hour + 3*time.Minute, "UNLIMITED": cluster.Unlimited} {
		if got := Span(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}
