package agent

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

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

// TestCollectorRests: without work, the collector gives memory back once, and then rests until the process has grown.
func TestCollectorRests(t *testing.T) {
	percent := debug.SetGCPercent(100)
	limit := debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	debug.FreeOSMemory() // else the process does not grow by garbage for which earlier tests have left room
	th := &thrift{percent: roomyGC}
	th.start(time.Millisecond)
	resting := func() bool {
		th.mu.Lock()
		defer th.mu.Unlock()
		return th.resting
	}
	await(t, "the collector to rest", resting)
	rounds := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumGC
	}
	before := rounds()
	garbage := make([][]byte, 0, 3*worthBytes>>20)
	for range cap(garbage) {
		garbage = append(garbage, make([]byte, 1<<20))
	}
	runtime.KeepAlive(garbage)
	await(t, "a round of the collector, as the process has grown", func() bool { return rounds() > before })
	garbage = nil
	await(t, "the collector to rest again", resting)
}

// await waits until something holds that no event tells of.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a minute was not enough for %s", what)
		}
	}
}
