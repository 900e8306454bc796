package agent

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// How much garbage a server or a simulation may let lie before it is collected, in per cent of what is in use, by
// how much that is: a small heap may grow to four times its size, a large one by leastGC.
const (
	roomyGC    = 300
	leastGC    = 40
	roomyBytes = 64 << 20 // of garbage, between the two
	mostOfMem  = 2        // the part of the machine's memory, 1/n, near which the collector runs as often as it must
)

// When nothing has been collected for quietTime, the system gets back what is not in use, if that is as much as
// worthBytes. After that, nothing is collected until the process has grown by worthBytes: the runtime would go through
// all that is in use every two minutes, however little of it changes.
const (
	quietTime  = 15 * time.Second
	worthBytes = 16 << 20
)

// SpendMemory has the garbage collector run seldom while little is in use, and give memory back after a burst.
// $GOGC and $GOMEMLIMIT have precedence.
func SpendMemory() {
	if os.Getenv("GOGC") != "" {
		return
	}
	var si syscall.Sysinfo_t
	if syscall.Sysinfo(&si) != nil {
		return
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(uint64(si.Totalram) * uint64(si.Unit) / mostOfMem))
	}
	t := &thrift{percent: roomyGC}
	t.start(quietTime)
}

// thrift follows the collector: it looks after each of its rounds.
type thrift struct {
	mu        sync.Mutex
	percent   int
	limit     int64 // of memory, in bytes, unless it rests
	gaveBack  bool  // since it last rested
	resting   bool  // nothing is collected until more memory is in use
	quietTime time.Duration
	quiet     *time.Timer
}

// start follows the collector from now on. A time without a round of it is quiet if it is as long as this.
func (t *thrift) start(quietTime time.Duration) {
	debug.SetGCPercent(t.percent)
	t.limit = debug.SetMemoryLimit(-1)
	t.quietTime = quietTime
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet = time.AfterFunc(quietTime, t.calm)
	t.watch()
}

// round is garbage as soon as it is made, and so tells when the next round is over.
type round struct{ _ [16]byte }

func (t *thrift) watch() {
	runtime.SetFinalizer(&round{}, func(*round) {
		t.collected()
		t.watch()
	})
}

func (t *thrift) collected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet.Reset(t.quietTime)
	if t.resting {
		t.wake()
	}
	live, _ := t.measure()
	p := gcPercent(live)
	if d := p - t.percent; d > t.percent/8 || -d > t.percent/8 {
		t.percent = p
		debug.SetGCPercent(p)
	}
}

// gcPercent is how much garbage may lie, in per cent of the bytes that are in use.
func gcPercent(live uint64) int {
	return int(max(min(roomyBytes*100/max(live, 1), roomyGC), leastGC))
}

// calm returns to the system what is garbage or free, which is a round of the collector; after another quiet time it
// has the collector rest.
func (t *thrift) calm() {
	t.mu.Lock()
	live, held := t.measure()
	giveBack := held > live+worthBytes && !t.gaveBack
	t.gaveBack = true
	if !giveBack {
		t.rest()
	}
	t.mu.Unlock()
	if giveBack {
		debug.FreeOSMemory()
	}
}

// rest has nothing collected until the process has grown by worthBytes. Called with mu held.
func (t *thrift) rest() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.resting = true
	debug.SetMemoryLimit(min(int64(m.Sys-m.HeapReleased)+worthBytes, t.limit))
	debug.SetGCPercent(-1)
}

// wake has the collector work by percent again. Called with mu held.
func (t *thrift) wake() {
	t.resting = false
	t.gaveBack = false
	debug.SetGCPercent(t.percent)
	debug.SetMemoryLimit(t.limit)
}

// measure tells how many bytes were in use when the collector was last through, and how many the heap holds. Called
// with mu held.
func (t *thrift) measure() (live, held uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NextGC * 100 / uint64(100+t.percent), m.HeapInuse + m.HeapIdle - m.HeapReleased
}
