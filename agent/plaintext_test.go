package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/trust"
)

// doorstep is a port on pipes in a synctest bubble, as the first server of a cluster has it.
type doorstep struct {
	t  *testing.T
	ln *pipes
	p  *port
	// ring has the credentials of the server.
	ring *keyring
}

func newDoorstep(t *testing.T, plain http.Handler) *doorstep {
	t.Helper()
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	creds, err := trust.SelfSigned(t.TempDir(), ca, "s1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	d := &doorstep{t: t, ln: newPipes(), ring: newKeyring(creds)}
	d.p = newPort(d.ln, "s1:7440", plain != nil, d.ring, func(trust.Peer, string) error { return nil }, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- d.p.Run(ctx) }()
	go func() {
		if plain == nil {
			ended <- nil
			return
		}
		ended <- servePlain(ctx, d.p.plain, plain, quiet)
	}()
	t.Cleanup(func() {
		cancel()
		d.ln.Close()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second) // net/http lingers on connections that it closes
	})
	return d
}

func (d *doorstep) dial() net.Conn {
	d.t.Helper()
	c, err := d.ln.dial(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.(net.Conn).Close() })
	return c.(net.Conn)
}

// ends waits until the other end has hung up, and tells how long that took.
func (d *doorstep) ends(c net.Conn) time.Duration {
	d.t.Helper()
	began := time.Now()
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		d.t.Errorf("the connection ended with %v", err)
	}
	return time.Since(began)
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") })

// TestPlainAndTLS finds both on one port.
func TestPlainAndTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t, hello)
		c := d.dial()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: s1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r.Body); err != nil || string(body) != "hello" || !r.Close {
			t.Errorf("got %q, %v, closed %v", body, err, r.Close)
		}
		s := tls.Client(d.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{trust.ProtoJoin}})
		if err := s.Handshake(); err != nil {
			t.Errorf("a machine that joins: %v", err)
		}
		// Without a protocol of ours a TLS caller gets nowhere, not to the plain handler either.
		s = tls.Client(d.dial(), &tls.Config{InsecureSkipVerify: true})
		if err := s.Handshake(); err == nil {
			if _, err = io.WriteString(s, "GET / HTTP/1.1\r\nHost: s1\r\n\r\n"); err == nil {
				_, err = s.Read(make([]byte, 1))
			}
			if err == nil {
				t.Error("plain answers came over TLS")
			}
		}
	})
}

// TestPlainElsewhere: a member that has nothing for callers without TLS hangs up on them.
func TestPlainElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t, nil)
		c := d.dial()
		if _, err := io.WriteString(c, "G"); err != nil {
			t.Fatal(err)
		}
		if took := d.ends(c); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestPlainSlow bounds callers who are slow in any way.
func TestPlainSlow(t *testing.T) {
	for name, c := range map[string]struct {
		send string
		max  time.Duration
	}{
		"silent":        {"", handshakeTime},
		"half a header": {"GET / HTTP/1.1\r\nHost:", plainHeader + time.Second},
		"no body":       {"POST / HTTP/1.1\r\nHost: s1\r\nContent-Length: 10\r\n\r\n", plainHeader + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoorstep(t,
					http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
				conn := d.dial()
				go func() { _, _ = io.WriteString(conn, c.send) }()
				if took := d.ends(conn); took > c.max {
					t.Errorf("it took %v, want %v at most", took, c.max)
				}
			})
		})
	}
	t.Run("never reads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gone := make(chan time.Duration, 1)
			d := newDoorstep(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				began, piece := time.Now(), make([]byte, 32<<10)
				for {
					if _, err := w.Write(piece); err != nil {
						gone <- time.Since(began)
						return
					}
				}
			}))
			if _, err := io.WriteString(d.dial(), "GET / HTTP/1.1\r\nHost: s1\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if took := <-gone; took > plainStall+time.Second {
				t.Errorf("it took %v", took)
			}
		})
	})
}

// TestPlainCrowd: more callers than there is room for are turned away, and the room comes back.
func TestPlainCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t, hello)
		for range maxPlain {
			if _, err := io.WriteString(d.dial(), "G"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		c := d.dial()
		if _, err := io.WriteString(c, "G"); err != nil {
			t.Fatal(err)
		}
		if took := d.ends(c); took != 0 {
			t.Errorf("one too many was held for %v", took)
		}
		time.Sleep(plainHeader + plainStall + time.Second)
		synctest.Wait()
		if n := len(d.p.room); n != 0 {
			t.Errorf("%d places are still taken", n)
		}
		s := tls.Client(d.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{trust.ProtoJoin}})
		if err := s.Handshake(); err != nil {
			t.Error(err)
		}
	})
}

// TestPlainHeader: a header without end is refused.
func TestPlainHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoorstep(t, hello)
		c := d.dial()
		go func() {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: s1\r\nX: "+strings.Repeat("x", 4*maxPlainHeader))
		}()
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("got %v, %v", r, err)
		}
	})
}
