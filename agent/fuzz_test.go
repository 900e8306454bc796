package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"dev.muster/agent/server"
	"dev.muster/agent/trust"
	"dev.muster/api"
)

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// founder is the port of a first server.
func founder(t testing.TB) *port {
	t.Helper()
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	self, err := trust.SelfSigned(t.TempDir(), ca, "s1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return newPort(ln, ln.Addr().String(), true, newKeyring(self),
		func(trust.Peer, string) error { return nil }, silent)
}

// script is a connection on which the other side says one thing; what it is told is kept.
type script struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (c *script) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *script) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *script) Close() error                     { return nil }
func (c *script) SetDeadline(time.Time) error      { return nil }
func (c *script) SetReadDeadline(time.Time) error  { return nil }
func (c *script) SetWriteDeadline(time.Time) error { return nil }
func (c *script) RemoteAddr() net.Addr             { return advertised("10.0.0.9:9") }

// firstWords is what a machine begins with that speaks these protocols.
func firstWords(protos ...string) []byte {
	c := &script{in: bytes.NewReader(nil)}
	_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: protos}).Handshake()
	return c.out.Bytes()
}

// FuzzGreet: whatever the one port hears first, it goes on, and nobody gets to what is for members.
func FuzzGreet(f *testing.F) {
	p := founder(f)
	for _, proto := range []string{
		trust.ProtoAPI, trust.ProtoBeat, trust.ProtoRaft, trust.ProtoJoin, trust.ProtoGossip, "h2", "",
	} {
		f.Add(firstWords(proto))
	}
	f.Add(firstWords(trust.ProtoJoin, trust.ProtoAPI))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add([]byte{tlsHandshake, 3, 1, 0xff, 0xff})
	for _, l := range p.kinds {
		_ = l.Close() // whoever gets there is turned away
	}
	go func() {
		for {
			c, err := p.plain.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	f.Cleanup(func() { _ = p.plain.Close() })
	f.Fuzz(func(t *testing.T, in []byte) {
		p.greet(t.Context(), &script{in: bytes.NewReader(in)})
		if n := len(p.open); n != 0 {
			t.Fatalf("%x made %d members", in, n)
		}
	})
}

// FuzzJoinLane: whatever a machine that joins says on its connection, it gets to nothing but joining and renewing.
func FuzzJoinLane(f *testing.F) {
	for _, text := range []string{"POST /v1/join HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"POST /v1/renew HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"GET /v1/jobs?q={} HTTP/1.1\r\nHost: x\r\nMuster-Vouch: member s1\r\n\r\n",
		"POST /v1/members/admit HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"POST /v1/join HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n{}",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		f.Add([]byte(text))
	}
	p := founder(f)
	m := api.NewMux()
	(&server.Server{}).Routes(m)
	var mu sync.Mutex
	reached := ""
	for name, r := range m.All() {
		r.Handle = func(context.Context, api.Caller, []byte) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if r.Access != api.Joiner {
				reached = name
			}
			return api.Empty{}, nil
		}
		m.All()[name] = r
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = p.Run(ctx) })
	wg.Go(func() { _ = serveJoiners(ctx, p.kinds[trust.ProtoJoin], m, nil, silent) })
	f.Cleanup(func() { stop(); wg.Wait() })
	f.Fuzz(func(t *testing.T, in []byte) {
		conn, err := tls.Dial("tcp", p.ln.Addr().String(), &tls.Config{
			InsecureSkipVerify: true, NextProtos: []string{trust.ProtoJoin},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(in); err != nil {
			return
		}
		_ = conn.CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			if n, ok := err.(net.Error); ok && n.Timeout() {
				t.Fatalf("%q is not answered", in)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if reached != "" {
			t.Fatalf("%q reached %s", in, reached)
		}
	})
}
