package client

import (
	"context"
	"time"
)

// Between tries of a call to the servers.
const (
	retryMin = 20 * time.Millisecond
	retryMax = 2 * time.Second
)

// sleep waits a while; it reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits a while that doubles up to retryMax; it reports whether ctx goes on.
func pause(ctx context.Context, d *time.Duration) bool {
	*d = min(max(*d*2, retryMin), retryMax)
	return sleep(ctx, *d)
}

// sooner is the earlier of two times; zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
