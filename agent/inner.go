package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"

	"dev.muster/agent/server"
	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Connections whose caller is known by another way than the kernel's: a peer's tunnel, a token's, those that the REST
// interface makes within this process. All of them are served by one server.

// serveInner serves such connections until ctx ends, those of tokens among them.
func serveInner(ctx context.Context, as *handler, s *server.Server) *innerConns {
	p := newInner(ctx.Done())
	srv := &http.Server{Handler: as, ReadHeaderTimeout: webHeaderTime,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, callerKey{}, c.(*innerConn).who)
		}}
	context.AfterFunc(ctx, func() { srv.Close() })
	go func() { _ = srv.Serve(p) }() // ends with ctx
	tokenRoutes(as.mux, s, p)
	return p
}

// innerConns are connections within this process.
type innerConns struct {
	conns chan net.Conn
	done  <-chan struct{}
	users *fairListener // counts those of each user
}

func newInner(done <-chan struct{}) *innerConns {
	return &innerConns{conns: make(chan net.Conn), done: done, users: fair(nil)}
}

// innerConn is one, of a caller.
type innerConn struct {
	net.Conn
	who caller
}

func (p *innerConns) dial(who api.Caller) (api.Conn, error) {
	near, far := net.Pipe()
	if !p.put(&innerConn{far, caller{Caller: who, token: true}}) {
		return nil, net.ErrClosed
	}
	return near, nil
}

// put has a connection served; it is closed, and false returned, where its user has too many or nobody serves any more.
func (p *innerConns) put(c *innerConn) bool {
	if uid := c.who.UID; uid != 0 && !c.who.Admin {
		if !p.users.take(uid) {
			p.users.refuse(c.Conn, uid)
			return false
		}
		c = &innerConn{&userConn{Conn: c.Conn, free: sync.OnceFunc(func() { p.users.release(uid) })}, c.who}
	}
	select {
	case p.conns <- c:
		return true
	case <-p.done:
		c.Close()
		return false
	}
}

// Accept is for net/http.
func (p *innerConns) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close is for net/http.
func (p *innerConns) Close() error { return nil }

// Addr is for net/http.
func (p *innerConns) Addr() net.Addr { return &net.UnixAddr{Name: "rest", Net: "unix"} }

// tokenRoutes registers the tunnel in which a token's user is served.
func tokenRoutes(m *api.Mux, s *server.Server, inner *innerConns) {
	whose := func(body []byte) (api.Caller, error) {
		var q api.TokenQuery
		if err := wire.Unmarshal(body, &q); err != nil {
			return api.Caller{}, cluster.Errorf(cluster.Invalid, "", "the token cannot be read: %v", err)
		}
		return s.TokenCaller(q.Token, "", "a member")
	}
	check := func(_ api.Caller, body []byte) error {
		_, err := whose(body)
		return err
	}
	serve := func(ctx context.Context, by api.Caller, body []byte, conn api.Conn) error {
		who, err := whose(body)
		if err != nil {
			return err
		}
		who.Origin += "@" + by.Origin // token:ID@host:NAME
		held := &heldConn{Conn: conn.(net.Conn), closed: make(chan struct{})}
		if err := inner.take(held, who); err != nil {
			return err
		}
		select { // who calls this closes the connection when it returns
		case <-held.closed:
		case <-ctx.Done():
		}
		return nil
	}
	api.HandleTunnel(m, api.CallByToken, api.User, check, serve)
}

// heldConn tells when it is closed.
type heldConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

// Close is for net/http.
func (c *heldConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// take tells a caller as whom it is served, and serves it.
func (p *innerConns) take(conn net.Conn, who api.Caller) error {
	if _, err := io.WriteString(conn, api.Reached(who.Identity)); err != nil {
		conn.Close()
		return err
	}
	if !p.put(&innerConn{conn, caller{Caller: who, token: true}}) {
		return net.ErrClosed
	}
	return nil
}

// callByToken is the same tunnel on the port of the page.
func (x *rest) callByToken(w http.ResponseWriter, r *http.Request) {
	who, err := x.byToken(r)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	case r.Header.Get("Upgrade") != api.TokenProtocol:
		http.Error(w, "this path is a tunnel for muster's commands", http.StatusBadRequest)
		return
	}
	conn, err := upgrade(w, api.TokenProtocol)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = x.conns.take(conn, who) // else it is closed
}
