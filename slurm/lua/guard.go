package lua

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Bounds of one call of a script.
const (
	maxCall = time.Second
	// maxGrowth is by how many bytes the process may grow while a script runs.
	maxGrowth  = 256 << 20
	guardEvery = 20 * time.Millisecond
)

var (
	errTime   = fmt.Errorf("it took longer than %v", maxCall)
	errMemory = fmt.Errorf("it used more than %d MB of memory", maxGrowth>>20)
)

// running are the calls under way in this process, with when they began. Memory is counted for the process, so the
// call that has run longest answers for its growth: others take a few milliseconds.
var running = struct {
	sync.Mutex
	calls map[*int]time.Time
}{calls: map[*int]time.Time{}}

// guard returns a context that ends a call when it takes too long or too much memory. Call stop when the call is over.
func guard(ctx context.Context, longest time.Duration) (_ context.Context, stop func()) {
	ctx, timeout := context.WithTimeoutCause(ctx, longest, errTime)
	ctx, cancel := context.WithCancelCause(ctx)
	call := new(int)
	running.Lock()
	running.calls[call] = time.Now()
	running.Unlock()
	go watch(ctx, call, cancel)
	return ctx, func() {
		running.Lock()
		delete(running.calls, call)
		running.Unlock()
		cancel(nil)
		timeout()
	}
}

// watch ends a call by whose doing the process has grown too much.
func watch(ctx context.Context, call *int, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(guardEvery)
	defer tick.Stop()
	var most uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if most == 0 {
			most = heap() + maxGrowth
		}
		if heap() <= most || !longestRunning(call) {
			continue
		}
		if runtime.GC(); heap() > most { // what counts is in use
			cancel(errMemory)
			return
		}
	}
}

// longestRunning reports whether no other call under way is older.
func longestRunning(call *int) bool {
	running.Lock()
	defer running.Unlock()
	began, ok := running.calls[call]
	for _, other := range running.calls {
		if other.Before(began) {
			return false
		}
	}
	return ok
}

// heap returns how many bytes this process has in use. Package runtime/metrics would not stop the process for it, but
// each front-end would initialize that (TestTidyInit).
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
