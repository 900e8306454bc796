package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// beatingPipe is a connection whose other side says that it beats.
type beatingPipe struct{ net.Conn }

func (beatingPipe) Beats() bool { return true }

// other answers one call as its function says, on a connection of its own.
func other(t *testing.T, answer func(net.Conn)) *Client {
	return &Client{Dial: func(context.Context) (Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			r, err := http.ReadRequest(bufio.NewReader(far))
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			answer(far)
		}()
		return beatingPipe{near}, nil
	}}
}

// TestBeats: a call may take as long as it likes while the other side beats, and is over soon when it does not.
func TestBeats(t *testing.T) {
	say := func(c net.Conn, text string) { _, _ = io.WriteString(c, text) }
	wait := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) } // until the caller has gone
	beat := "HTTP/1.1 102 Processing\r\nSome: header\r\n\r\n"
	for _, c := range []struct {
		name   string
		answer func(net.Conn)
		want   string // of the error; "" for none
		took   time.Duration
	}{
		{"it beats for a minute", func(c net.Conn) {
			for range 60 {
				time.Sleep(BeatEvery)
				say(c, beat)
			}
			say(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}, "", time.Minute},
		{"it says nothing", func(c net.Conn) { wait(c) }, "no sign of life", beatLimit},
		{
			"it says no more", func(c net.Conn) { time.Sleep(BeatEvery); say(c, beat); wait(c) },
			"no sign of life", BeatEvery + beatLimit,
		},
		{"it stops in its answer", func(c net.Conn) {
			say(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")
			wait(c)
		}, "no sign of life", beatLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl, began := other(t, c.answer), time.Now()
				defer cl.Close()
				_, err := Call(t.Context(), cl, GetWork, WorkRequest{})
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if err != nil && !errors.Is(err, ErrUnreachable) {
					t.Errorf("%v is not that it cannot be reached", err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// TestBeatsCancel: the end of the caller's own time is not taken for the other side's silence.
func TestBeatsCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := other(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		defer cl.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Call(ctx, cl, GetWork, WorkRequest{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// TestBeatsIdle: that a connection was used before is no reason to ask once more where nobody answers.
func TestBeatsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := other(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			_, _ = io.Copy(io.Discard, c)
		})
		defer cl.Close()
		began := time.Now()
		_, first := Call(t.Context(), cl, GetWork, WorkRequest{})
		_, second := Call(t.Context(), cl, GetWork, WorkRequest{})
		if took := time.Since(began); first != nil || !errors.Is(second, errSilent) || took != beatLimit {
			t.Errorf("%v, %v after %v", first, second, took)
		}
	})
}

// TestBeatsTunnel: a tunnel may be silent.
func TestBeatsTunnel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := other(t, func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
			time.Sleep(time.Hour)
			_, _ = io.WriteString(c, "at last")
		})
		conn, err := cl.ForwardTunnel(t.Context(), AttachStep, "x", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if text, err := io.ReadAll(conn); err != nil || string(text) != "at last" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// usedConn is an idle connection whose other side may have hung up.
type usedConn struct {
	net.Conn
	dead *bool
}

func (c usedConn) Dead() bool { return *c.dead }

// TestSentOnce: a request that may have been read is not sent again by itself: not one that changes something, nor
// one with an assertion, which is good for one use. One on a connection that had been closed before is.
func TestSentOnce(t *testing.T) {
	for _, c := range []struct {
		name          string
		dead          bool // the connection is known to be
		method, vouch string
		requests      int  // that arrive, after the first
		failed        bool // the second call
	}{
		{"its end is known", true, "POST", "", 1, false},
		{"its end is known, with an assertion", true, "GET", "v", 1, false},
		{"it breaks when it is used", false, "POST", "", 1, true},
		{"an assertion", false, "GET", "v", 1, true},
		{"a read", false, "GET", "", 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			requests, conns, dead := 0, 0, false
			cl := &Client{Dial: func(context.Context) (Conn, error) {
				near, far := net.Pipe()
				conns++
				first := conns == 1
				go func() {
					defer far.Close()
					for in, n := bufio.NewReader(far), 0; ; n++ {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						if _, err := io.Copy(io.Discard, r.Body); err != nil {
							return
						}
						requests++
						if first && n > 0 {
							return // it dies with the request
						}
						_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
					}
				}()
				return usedConn{near, &dead}, nil
			}}
			defer cl.Close()
			if _, err := cl.Forward(t.Context(), Request{Method: "GET", Path: "/v1/x"}); err != nil {
				t.Fatal(err)
			}
			requests, dead = 0, c.dead
			_, err := cl.Forward(t.Context(), Request{
				Method: c.method, Path: "/v1/x", Vouch: c.vouch, Body: []byte("{}"),
			})
			if (err != nil) != c.failed || errors.Is(err, ErrNotSent) || requests != c.requests {
				t.Errorf("%d requests arrived, %v", requests, err)
			}
		})
	}
}
