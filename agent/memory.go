package agent

import (
	"os"
	"runtime/debug"
	"syscall"
)

const (
	roomyGC   = 300 // per cent of what is in use that may be allocated before it is collected; Go's default is 100
	mostOfMem = 2   // the part of the machine's memory, 1/n, near which the collector runs as often as it must
)

// SpendMemory has the garbage collector run a third as often: what a server or a simulation has in use is small beside
// the memory of its machine, and most of what it allocates is soon garbage. $GOGC and $GOMEMLIMIT have precedence.
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
}
