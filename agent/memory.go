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
// worthBytes.
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
	debug.SetGCPercent(roomyGC)
	t := &thrift{percent: roomyGC}
	t.quiet = time.AfterFunc(quietTime, t.giveBack)
	t.watch()
}

// thrift follows the collector: it looks after each of its rounds.
type thrift struct {
	mu      sync.Mutex
	percent int
	quiet   *time.Timer
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
	t.quiet.Reset(quietTime)
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

// giveBack returns to the system what is garbage or free.
func (t *thrift) giveBack() {
	t.mu.Lock()
	live, held := t.measure()
	t.mu.Unlock()
	if held > live+worthBytes {
		debug.FreeOSMemory()
	}
}

// measure tells how many bytes were in use when the collector was last through, and how many the heap holds. Called
// with mu held.
func (t *thrift) measure() (live, held uint64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NextGC * 100 / uint64(100+t.percent), m.HeapInuse + m.HeapIdle - m.HeapReleased
}
