package agent

import "testing"

// TestGCPercent: little in use may lie beside three times as much garbage, much beside as much again.
func TestGCPercent(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, roomyGC}, {10 * mb, roomyGC}, {roomyBytes / 3, roomyGC}, {roomyBytes / 2, 200},
		{roomyBytes, 100}, {roomyBytes * 100 / leastGC, leastGC}, {1000 * mb, leastGC},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("with %d bytes in use %d per cent, want %d", c.live, got, c.want)
		}
	}
}
