package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dev.muster/agent/trust"
	"dev.muster/agent/webpage"
	"dev.muster/api"
	"dev.muster/cluster"
)

// TestCrowd: one connection too many closes the one that has been silent longest, and only then one with a request.
func TestCrowd(t *testing.T) {
	conn := func() net.Conn { c, _ := net.Pipe(); return c }
	a, b, d, e, f, g := conn(), conn(), conn(), conn(), conn(), conn()
	c := newCrowd(3)
	for i, step := range []struct {
		conn  net.Conn
		state http.ConnState
		over  net.Conn
	}{
		{a, http.StateNew, nil}, {b, http.StateNew, nil}, {d, http.StateNew, nil},
		{a, http.StateActive, nil},
		{e, http.StateNew, b}, {b, http.StateClosed, nil},
		{d, http.StateActive, nil}, {e, http.StateActive, nil},
		{f, http.StateNew, a}, {a, http.StateClosed, nil},
		{d, http.StateHijacked, nil}, {e, http.StateIdle, nil},
		{a, http.StateNew, nil}, {b, http.StateNew, f},
		{g, http.StateNew, e}, // while the last one closes
	} {
		if over := c.move(step.conn, step.state); over != step.over {
			t.Errorf("step %d: the wrong connection closes: %v", i, over)
		}
	}
	if n := len(c.at); n != c.silent.Len()+c.ask.Len() || n != 3 {
		t.Errorf("%d connections are listed", n)
	}
}

// lobby serves machines that join at a doorstep, and connects as one.
func lobby(t *testing.T, m *api.Mux) (join func() net.Conn) {
	d := newDoorstep(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- serveJoiners(ctx, d.p.kinds[trust.ProtoJoin], m, nil, quiet) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return func() net.Conn {
		s := tls.Client(d.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{trust.ProtoJoin}})
		if err := s.Handshake(); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// TestJoinersHoldNothing: whoever reaches the port can keep no connection open without a request, before one or after.
func TestJoinersHoldNothing(t *testing.T) {
	m := api.NewMux()
	api.Handle(m, api.Renew, func(context.Context, api.Caller, api.RenewRequest) (api.RenewResponse, error) {
		return api.RenewResponse{}, nil
	})
	for name, says := range map[string]string{
		"nothing":    "",
		"a request":  "POST /v1/renew HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"half a one": "POST /v1/renew HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
	} {
		synctest.Test(t, func(t *testing.T) {
			conn := lobby(t, m)()
			began := time.Now()
			go func() { _, _ = io.WriteString(conn, says) }()
			done := make(chan struct{})
			go func() { defer close(done); _, _ = io.Copy(io.Discard, conn) }()
			select {
			case <-done:
			case <-time.After(time.Hour):
				t.Errorf("%s: the connection is open after %v", name, time.Since(began))
			}
			conn.Close()
		})
	}
}

// TestJoinersBodies: of callers whom nobody knows no more is read than joining takes, and nothing for other calls.
func TestJoinersBodies(t *testing.T) {
	m := api.NewMux()
	api.Handle(m, api.SubmitJob, nil)
	api.Handle(m, api.Join, nil)
	api.Handle(m, api.ReportWork, nil)
	h := &handler{mux: m, log: slog.New(slog.DiscardHandler), ctx: t.Context()}
	for path, most := range map[string]int64{
		api.SubmitJob.Path: 0, api.ReportWork.Path: 0, api.Join.Path: joinBody + 1,
	} {
		body := &io.LimitedReader{R: zeros(8 << 20), N: 8 << 20}
		r := httptest.NewRequest("POST", path, body)
		from := caller{Caller: api.Caller{Exported: []byte("secret")}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, from)))
		if read := 8<<20 - body.N; w.Code < 400 || read > most {
			t.Errorf("%s: %d, and %d bytes were read", path, w.Code, read)
		}
	}
}

// short is a listener of a process that has no descriptors for a while.
type short struct {
	net.Listener
	left int
}

func (l *short) Accept() (net.Conn, error) {
	if l.left--; l.left >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// TestPageWithoutDescriptors: the page is there again once there are descriptors.
func TestPageWithoutDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		ln := newPipes()
		x := &webTLS{log: quiet, settings: func() webpage.Settings { return webpage.Settings{} },
			authority: func() *cluster.CA { return nil }}
		srv := openServer(ctx, hello, quiet)
		done := make(chan error)
		go func() { done <- srv.Serve(x.listen(ctx, &short{ln, 3})) }()
		conn, err := ln.dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		said := make(chan string, 1)
		go func() {
			_, _ = fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: s1\r\nConnection: close\r\n\r\n")
			text, _ := io.ReadAll(bufio.NewReader(conn))
			said <- string(text)
		}()
		select {
		case text := <-said:
			if !strings.Contains(text, "hello") {
				t.Errorf("it answers %q", text)
			}
		case <-time.After(time.Hour):
			t.Error("the page does not answer any more")
		}
		cancel()
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		conn.Close()
		time.Sleep(time.Second)
	})
}

// TestConnsOfMember: a node's key opens no more connections than a part of what the daemon may have; servers' do.
func TestConnsOfMember(t *testing.T) {
	p := founder(t)
	p.most = 3
	open := func(name string, role cluster.Role) (*memberConn, error) {
		c := &memberConn{Conn: &script{}, port: p}
		return c, p.note(c, trust.Peer{Name: name, Key: "key of " + name, Role: role})
	}
	for range 10 {
		if _, err := open("s2", cluster.RoleServer); err != nil {
			t.Fatal(err)
		}
	}
	var last *memberConn
	for range p.most {
		c, err := open("n1", cluster.RoleNode)
		if err != nil {
			t.Fatal(err)
		}
		last = c
	}
	more, err := open("n1", cluster.RoleNode)
	if err == nil {
		t.Error("one more is let in")
	}
	_ = more.Close() // which takes nothing off the count
	if _, err := open("n1", cluster.RoleNode); err == nil {
		t.Error("one more is let in after that one was closed")
	}
	if _, err := open("n2", cluster.RoleNode); err != nil {
		t.Errorf("another node: %v", err)
	}
	for range 2 {
		_ = last.Close()
	}
	if _, err := open("n1", cluster.RoleNode); err != nil {
		t.Errorf("in the place of one that was closed: %v", err)
	}
	if _, err := open("n1", cluster.RoleNode); err == nil {
		t.Error("a connection that was closed twice has made two places")
	}
}

// TestVisitorsWhoSayNothing: visitors of whom it is not known yet whether they speak TLS hold a few connections, and
// keep nobody else out.
func TestVisitorsWhoSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		ln := newPipes()
		x := &webTLS{log: quiet, settings: func() webpage.Settings {
			return webpage.Settings{Certificate: webpage.ByCluster}
		}, authority: func() *cluster.CA { return nil }, hosts: func() []string { return nil }}
		in := x.listen(ctx, ln).(*tlsListener)
		in.silent.mu.Lock()
		in.silent.most = 3
		in.silent.mu.Unlock()
		const all = 20
		closed := make(chan struct{}, all)
		var conns []api.Conn
		for range all {
			conn, err := ln.dial(ctx)
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			go func() { _, _ = io.Copy(io.Discard, conn); closed <- struct{}{} }()
			synctest.Wait()
		}
		if n := len(closed); n != all-3 {
			t.Errorf("%d of %d are closed", n, all)
		}
		speaks, err := ln.dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = speaks.Write([]byte("G")) }()
		if conn, err := in.Accept(); err != nil {
			t.Error(err)
		} else {
			conn.Close()
		}
		time.Sleep(2 * handshakeTime)
		if n := len(closed); n != all || len(in.silent.at) != 0 {
			t.Errorf("in the end %d of %d are closed, and %d are counted", n, all, len(in.silent.at))
		}
		cancel()
		ln.Close()
		for _, conn := range append(conns, speaks) {
			conn.Close()
		}
	})
}
