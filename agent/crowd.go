package agent

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"dev.muster/api"
)

// Bounds of callers who have shown nobody who they are: machines that join, and visitors of the page. Each connection
// takes memory and a descriptor, which members and users need.
const (
	maxJoiners  = 1 << 10          // connections at a time
	maxVisitors = 4 << 10          // likewise
	joinBody    = 16 << 10         // of a request to join or to renew: a key and some names
	joinIdle    = 10 * time.Second // between two requests, and for one to arrive
	joinAnswer  = time.Minute      // for an answer, which may wait for a leader
	crowdPart   = 8                // of the open files that the process may have
	acceptPause = 50 * time.Millisecond
)

// crowd bounds the connections to a server of net/http. If there are too many, one closes: that which has been silent
// for the longest time, else that whose request is the oldest. So whoever keeps connections keeps nobody else out.
type crowd struct {
	most int

	mu          sync.Mutex
	silent, ask list.List // connections without and with a request, in the order in which they became so
	at          map[net.Conn]spot
}

// spot is where a connection is listed.
type spot struct {
	in *list.List
	e  *list.Element
}

// newCrowd admits so many connections, and no more than a part of the open files.
func newCrowd(most int) *crowd {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		most = int(min(uint64(most), max(files.Cur/crowdPart, 1)))
	}
	return &crowd{most: most, at: map[net.Conn]spot{}}
}

// note is called by net/http whenever a connection changes its state. A connection that is taken over does not count:
// it has a user, who has a bound of its own.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	if over := c.move(conn, state); over != nil {
		go func() { _ = over.Close() }() // TLS may take some seconds to say goodbye
	}
}

// move lists a connection by its state, and returns the one that is to close.
func (c *crowd) move(conn net.Conn, state http.ConnState) (over net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.at[conn]; ok {
		old.in.Remove(old.e)
		delete(c.at, conn)
	}
	var to *list.List
	switch state {
	case http.StateNew, http.StateIdle:
		to = &c.silent
	case http.StateActive:
		to = &c.ask
	default:
		return nil
	}
	c.at[conn] = spot{to, to.PushBack(conn)}
	if state != http.StateNew || len(c.at) <= c.most {
		return nil
	}
	return c.oldest()
}

// oldest returns the connection that is to close for the newest, which is the last of the silent. It does not count any
// more: until it has closed, as many others may have come.
func (c *crowd) oldest() net.Conn {
	from := &c.silent
	if c.silent.Len() == 1 && c.ask.Len() > 0 {
		from = &c.ask
	}
	over := from.Remove(from.Front()).(net.Conn)
	delete(c.at, over)
	return over
}

// serveJoiners answers machines that join or renew until ctx ends.
func serveJoiners(ctx context.Context, ln net.Listener, mux *api.Mux, d *gateway, log *slog.Logger) error {
	srv := callServer(ctx, mux, d, log)
	srv.ReadTimeout, srv.IdleTimeout, srv.WriteTimeout = joinIdle, joinIdle, joinAnswer
	srv.MaxHeaderBytes = maxPlainHeader
	srv.ConnState = newCrowd(maxJoiners).note
	return serveUntil(ctx, srv, ln)
}

// acceptNext accepts a connection, and waits where there are no descriptors until some are free.
func acceptNext(ctx context.Context, ln net.Listener, log *slog.Logger) (net.Conn, error) {
	for {
		conn, err := ln.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return conn, err
		}
		log.Warn("a connection could not be taken", "err", err)
		select {
		case <-time.After(acceptPause):
		case <-ctx.Done():
			return nil, net.ErrClosed
		}
	}
}
