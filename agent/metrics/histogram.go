// Package metrics is what a server counts of itself as it works: how long things take, by buckets, what was refused,
// and the figures of its process.
package metrics

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Times are those of a server's work, and what it refused.
type Times struct {
	// Fsync is how long entries take to be on the disk, Submission a call of sbatch, srun or salloc, Pass one of the
	// scheduler.
	Fsync, Submission, Pass Histogram
	// RefusedTokens are those of users that were not taken.
	RefusedTokens atomic.Uint64
}

// Bounds are the upper ends of buckets, in seconds; what is above them has a bucket, too.
var Bounds = [...]float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
	2.5, 5, 10}

// Histogram counts durations by size.
type Histogram struct {
	counts [len(Bounds) + 1]atomic.Uint64
	nanos  atomic.Int64
}

// Observe counts one.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(Bounds) && d.Seconds() > Bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.nanos.Add(int64(d))
}

// Read returns how many there were up to each bound, with all of them at the end, and their sum in seconds.
func (h *Histogram) Read() (upTo [len(Bounds) + 1]uint64, sum float64) {
	n := uint64(0)
	for i := range h.counts {
		n += h.counts[i].Load()
		upTo[i] = n
	}
	return upTo, time.Duration(h.nanos.Load()).Seconds()
}

// Figure is one of a process, by the name that Prometheus' clients give it.
type Figure struct {
	Name, Help string
	Value      float64
	Rises      bool // it is a counter
}

// ticks is how many a second has in /proc, on all systems that Go runs on.
const ticks = 100

// Process are the figures of this process, as far as /proc tells.
func Process() []Figure {
	words := statWords()
	if words == nil {
		return nil
	}
	open, _ := os.ReadDir("/proc/self/fd")
	var most syscall.Rlimit
	_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most)
	return []Figure{
		{"process_cpu_seconds_total", "CPU time of this process", (words[11] + words[12]) / ticks, true},
		{"process_start_time_seconds", "when it began, in seconds since 1970", booted() + words[19]/ticks, false},
		{"process_virtual_memory_bytes", "its address space", words[20], false},
		{"process_resident_memory_bytes", "memory of this process", words[21] * float64(os.Getpagesize()), false},
		{"process_open_fds", "files that it has open", float64(len(open)), false},
		{"process_max_fds", "how many it may have open", float64(most.Cur), false},
	}
}

// statWords are the numbers of /proc/self/stat that follow its name, with the state as the first.
func statWords() []float64 {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return nil
	}
	list := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	out := make([]float64, max(len(list), 22))
	for i, w := range list {
		out[i], _ = strconv.ParseFloat(w, 64)
	}
	return out
}

// booted is when the machine was, in seconds since 1970.
func booted() float64 {
	text, _ := os.ReadFile("/proc/stat")
	_, rest, _ := strings.Cut(string(text), "\nbtime ")
	word, _, _ := strings.Cut(rest, "\n")
	at, _ := strconv.ParseFloat(word, 64)
	return at
}
