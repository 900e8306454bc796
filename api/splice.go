package api

import (
	"context"
	"io"
)

// Splice copies both ways between two connections until either ends or ctx does, and closes both.
func Splice(ctx context.Context, a, b io.ReadWriteCloser) {
	stop := context.AfterFunc(ctx, func() { a.Close(); b.Close() })
	defer stop()
	done := make(chan struct{})
	go func() { // ends when either connection is closed, below at the latest
		defer close(done)
		_, _ = io.Copy(b, a)
		b.Close()
		a.Close()
	}()
	_, _ = io.Copy(a, b)
	a.Close()
	b.Close()
	<-done
}
