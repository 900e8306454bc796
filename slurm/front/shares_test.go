package front

import (
	"testing"
	"time"

	"dev.muster/cluster"
)

func TestCPUCounts(t *testing.T) {
	share := func(n int) cluster.Share { return cluster.Share{CPUs: cluster.RangeIDSet(0, n-1)} }
	if got := CPUCounts([]cluster.Share{share(2), share(2), share(1)}); got != "2(x2),1(x1)" {
		t.Error(got)
	}
}

func TestSpanText(t *testing.T) {
	for want, d := range map[string]time.Duration{"00:05:00": 5 * time.Minute, "01:30:00": 90 * time.Minute,
		"1-02:03:00": 26*time.Hour + 3*time.Minute, "UNLIMITED": cluster.Unlimited} {
		if got := SpanText(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}
