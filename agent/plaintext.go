package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of callers without TLS, who may be anybody.
const (
	maxPlain       = 512              // connections at a time; the next are closed
	plainHeader    = 5 * time.Second  // for the request to arrive
	plainStall     = 20 * time.Second // between two pieces of an answer that the caller takes
	plainTime      = 15 * time.Minute // for a whole answer
	maxPlainHeader = 8 << 10
)

// tlsHandshake is the first byte of every TLS connection: a record of the handshake. No method of HTTP begins with it.
const tlsHandshake = 0x16

// plainConn is a connection without TLS, of which one byte was read to find that out.
type plainConn struct {
	net.Conn
	first []byte
	free  func() // called once
}

func (c *plainConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 && len(b) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

func (c *plainConn) Close() error {
	c.free()
	return c.Conn.Close()
}

// sniff reads the first byte of a connection and gives it back: it says whether TLS begins here. A caller that sends
// nothing for too long is an error.
func sniff(raw net.Conn) (net.Conn, bool, error) {
	if err := raw.SetReadDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, false, err
	}
	first := make([]byte, 1)
	if _, err := raw.Read(first); err != nil {
		return nil, false, err
	}
	if err := raw.SetReadDeadline(time.Time{}); err != nil {
		return nil, false, err
	}
	return &plainConn{Conn: raw, first: first, free: func() {}}, first[0] == tlsHandshake, nil
}

// welcomePlain hands a connection without TLS to the one handler for such, if there is one and it has room.
func (p *port) welcomePlain(conn net.Conn) {
	if p.plain == nil {
		conn.Close()
		return
	}
	select {
	case p.room <- struct{}{}:
	default:
		p.log.Warn("connection refused", "from", conn.RemoteAddr().String(), "err", "too many without TLS")
		conn.Close()
		return
	}
	c := conn.(*plainConn)
	c.free = sync.OnceFunc(func() { <-p.room })
	select {
	case p.plain.conns <- c:
	case <-p.plain.done:
		c.Close()
	}
}

// servePlain answers callers without TLS until ctx ends. They get one answer a connection, and not indefinitely.
func servePlain(ctx context.Context, ln net.Listener, h http.Handler, log *slog.Logger) error {
	srv := &http.Server{Handler: paced(h), ReadHeaderTimeout: plainHeader, ReadTimeout: plainHeader,
		WriteTimeout: plainStall, MaxHeaderBytes: maxPlainHeader,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	srv.SetKeepAlivesEnabled(false)
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// paced gives up on callers who do not take their answer.
func paced(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&pacedWriter{
			ResponseWriter: w, ctl: http.NewResponseController(w), end: time.Now().Add(plainTime),
		}, r)
	})
}

type pacedWriter struct {
	http.ResponseWriter
	ctl *http.ResponseController
	end time.Time
}

// Write gives each piece plainStall, and all of them plainTime.
func (w *pacedWriter) Write(b []byte) (int, error) {
	until := time.Now().Add(plainStall)
	if until.After(w.end) {
		until = w.end
	}
	if err := w.ctl.SetWriteDeadline(until); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(b)
}
