// Package backoff waits: a while, or between tries longer and longer. It knows nothing of what is waited for. Start
// with Pause.
package backoff

import (
	"context"
	"time"
)

// Between tries of a call to the servers.
const (
	shortest = 20 * time.Millisecond
	longest  = 2 * time.Second
)

// Sleep waits a while; it reports whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Pause waits 20 ms where d is 0, else twice as long as d says, 2 s at most, and notes that in d; it reports whether
// ctx goes on. A caller that has succeeded sets d to 0 again.
func Pause(ctx context.Context, d *time.Duration) bool {
	*d = min(max(*d*2, shortest), longest)
	return Sleep(ctx, *d)
}
