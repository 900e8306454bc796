package usertoken

import (
	"sync"
	"time"
)

// refusals bounds the lines of the log about refused tokens: anybody may show tokens, and each line costs the disk.
type refusals struct {
	mu      sync.Mutex
	since   time.Time
	lines   int
	omitted int
}

// Bounds of lines.
const (
	refusalSpan  = time.Minute
	refusalLines = 20 // in a span
)

// line reports whether a refusal has a line now, and how many before it had none.
func (r *refusals) line(now time.Time) (omitted int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= refusalSpan {
		r.since, r.lines = now, 0
	}
	if r.lines >= refusalLines {
		r.omitted++
		return 0, false
	}
	r.lines++
	omitted, r.omitted = r.omitted, 0
	return omitted, true
}
