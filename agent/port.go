package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"dev.muster/agent/sparse"
	"dev.muster/agent/trust"
	"dev.muster/api"
	"dev.muster/cluster"
	"golang.org/x/sys/unix"
)

// Times of the network.
const (
	handshakeTime = 5 * time.Second
	dialTime      = 2 * time.Second
	keepAlive     = time.Second // probes of a silent connection: a host that is gone is seen in a few
)

// keyring holds this member's credentials, which change when they are renewed.
type keyring struct {
	at atomic.Pointer[trust.Credentials]
}

func newKeyring(c *trust.Credentials) *keyring {
	k := &keyring{}
	k.at.Store(c)
	return k
}

// Credentials are those of the moment.
func (k *keyring) Credentials() *trust.Credentials { return k.at.Load() }

// port is the one port of a member: every TLS connection goes to the listener of its protocol, and
// the UDP packets are the gossip's.
type port struct {
	ln      net.Listener
	packets net.PacketConn
	conf    *tls.Config
	admit   func(trust.Peer, string) error
	log     *slog.Logger
	kinds   map[string]*lane
	plain   *lane         // connections without TLS; nil: there is nothing for them
	room    chan struct{} // as many of them as there may be

	refused sparse.Lines

	most int // connections of one member that is no server, whose key may be in wrong hands

	greeting greetings

	mu   sync.Mutex
	open map[*memberConn]trust.Peer // connections of members
	have map[string]int             // how many, by key
}

// lane is a listener for the connections of one protocol.
type lane struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	addr  net.Addr
}

func (l *lane) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *lane) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *lane) Addr() net.Addr { return l.addr }

// advertised gives a lane the address that others know.
type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }

// openPort listens. admit decides of callers with valid certificates.
func openPort(bind, addr string, plain bool, ring trust.Keyring, admit func(trust.Peer, string) error,
	log *slog.Logger) (*port, error) {
	lc := net.ListenConfig{KeepAliveConfig: probes()}
	ln, err := lc.Listen(context.Background(), "tcp", bind)
	if err != nil {
		return nil, fmt.Errorf("open the port: %w", err)
	}
	packets, err := net.ListenPacket("udp", ln.Addr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the port for UDP: %w", err), ln.Close())
	}
	p := newPort(ln, addr, plain, ring, admit, log)
	p.packets = packets
	return p, nil
}

func newPort(ln net.Listener, addr string, plain bool, ring trust.Keyring,
	admit func(trust.Peer, string) error, log *slog.Logger) *port {
	p := &port{
		ln: ln, conf: trust.ServerTLS(ring, admit), admit: admit, log: log, kinds: map[string]*lane{},
		open: map[*memberConn]trust.Peer{}, have: map[string]int{}, most: fair(nil).most,
	}
	newLane := func() *lane {
		return &lane{conns: make(chan net.Conn), done: make(chan struct{}), addr: advertised(addr)}
	}
	for _, proto := range []string{trust.ProtoAPI, trust.ProtoRaft, trust.ProtoJoin, trust.ProtoGossip} {
		p.kinds[proto] = newLane()
	}
	if plain {
		p.plain, p.room = newLane(), make(chan struct{}, maxPlain)
	}
	return p
}

func probes() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 2}
}

// Run takes connections until ctx ends.
func (p *port) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		p.ln.Close()
		for _, l := range p.kinds {
			_ = l.Close()
		}
		if p.plain != nil {
			_ = p.plain.Close()
		}
	})
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := acceptNext(ctx, p.ln, p.log)
		if err != nil {
			return nil
		}
		leave, ok := p.greeting.enter(conn)
		if !ok {
			p.refused.Say(p.log.Warn, "connection refused", "from", conn.RemoteAddr().String(),
				"err", "too many connections are in their handshake")
			conn.Close()
			continue
		}
		wg.Go(func() {
			defer leave()
			p.greet(ctx, conn)
		})
	}
}

// greet does the handshake and hands the connection on; one that does not begin with a handshake is not a member's.
func (p *port) greet(ctx context.Context, raw net.Conn) {
	hctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = raw.SetReadDeadline(time.Unix(1, 0)) })
	begun, secure, err := sniff(raw)
	stop()
	if err == nil && !secure {
		p.welcomePlain(begun)
		return
	}
	var conn *tls.Conn
	if err == nil {
		conn = tls.Server(begun, p.conf)
		err = conn.HandshakeContext(hctx)
	}
	if err != nil {
		if errors.Is(err, io.EOF) { // somebody only looked whether this machine is there
			p.log.Debug("connection refused", "from", raw.RemoteAddr().String(), "err", err)
		} else {
			p.refused.Say(p.log.Warn, "connection refused", "from", raw.RemoteAddr().String(), "err", err)
		}
		raw.Close()
		return
	}
	state := conn.ConnectionState()
	proto := trust.Lane(state.NegotiatedProtocol)
	l, ok := p.kinds[proto]
	if !ok {
		conn.Close()
		return
	}
	member := &memberConn{Conn: conn, port: p}
	if who, err := trust.PeerOf(&state); err == nil {
		err := p.note(member, who)
		if err == nil {
			err = p.admit(who, proto) // revoked just now: recheck may not have seen it
		}
		if err != nil {
			p.refused.Say(p.log.Warn, "connection refused", "from", raw.RemoteAddr().String(), "err", err)
			member.Close()
			return
		}
	}
	select {
	case l.conns <- member:
	case <-l.done:
		member.Close()
	}
}

// note counts a connection of a member, until it is closed; an error is that the member has too many.
func (p *port) note(conn *memberConn, who trust.Peer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if who.Role != cluster.RoleServer && p.have[who.Key] >= p.most {
		return fmt.Errorf("%s %s has %d connections", who.Role, who.Name, p.most)
	}
	p.open[conn] = who
	p.have[who.Key]++
	return nil
}

// forget takes a connection off the count.
func (p *port) forget(conn *memberConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, ok := p.open[conn]
	if !ok {
		return
	}
	delete(p.open, conn)
	if p.have[who.Key]--; p.have[who.Key] <= 0 {
		delete(p.have, who.Key)
	}
}

// recheck cuts the connections of members that would not be let in any more.
func (p *port) recheck() {
	p.mu.Lock()
	open := maps.Clone(p.open)
	p.mu.Unlock()
	for c, who := range open {
		if err := p.admit(who, trust.Lane(c.tls().ConnectionState().NegotiatedProtocol)); err != nil {
			p.log.Warn("connection cut", "member", who.Name, "from", c.RemoteAddr().String(), "err", err)
			c.Close()
		}
	}
}

// memberConn hides from net/http that the connection is TLS: it would drop protocols it does not know.
type memberConn struct {
	net.Conn
	port *port
	heed sync.Once // of mustAnswer
}

func (c *memberConn) tls() *tls.Conn { return c.Conn.(*tls.Conn) }

func (c *memberConn) Close() error {
	c.port.forget(c)
	return c.Conn.Close()
}

// mustAnswer has the kernel break the connection when the other side takes nothing for as long as a silent connection's
// probes go unanswered: what is written to a host that is gone would keep these from being sent.
func (c *memberConn) mustAnswer() {
	tcp, ok := c.tls().NetConn().(syscall.Conn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	const most = 3 * keepAlive
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(most.Milliseconds()))
	})
}

// revocations are the members that were revoked, by key, as this process knows.
type revocations struct {
	keys atomic.Pointer[map[string]bool]
}

// set replaces them; it reports whether there are others than before.
func (s *revocations) set(keys []string) bool {
	next := map[string]bool{}
	for _, k := range keys {
		next[k] = true
	}
	old := s.keys.Swap(&next)
	return old == nil || !maps.Equal(*old, next)
}

func (s *revocations) check(p trust.Peer) error {
	if m := s.keys.Load(); m != nil && (*m)[p.Key] {
		return fmt.Errorf("%s %s was revoked", p.Role, p.Name)
	}
	return nil
}

// clientTLS is how this process calls members of some roles that were not revoked.
func (s *revocations) clientTLS(ring trust.Keyring, proto string, roles ...cluster.Role) *tls.Config {
	conf := trust.ClientTLS(ring, proto, roles...)
	verify := conf.VerifyConnection
	conf.VerifyConnection = func(state tls.ConnectionState) error {
		if err := verify(state); err != nil {
			return err
		}
		p, err := trust.PeerOf(&state)
		if err != nil {
			return err
		}
		return s.check(p)
	}
	return conf
}

// calledConn is a connection to a member.
type calledConn struct {
	*tls.Conn
	addr string
}

// Beats reports whether the member shows that it is there while it works on a call (api.Beating).
func (c *calledConn) Beats() bool { return c.ConnectionState().NegotiatedProtocol == trust.ProtoBeat }

// Dead reports whether the member has hung up while nothing was asked of it: a server that was started again, say.
// It never says anything by itself, so what there is to read is its end.
func (c *calledConn) Dead() bool {
	tcp, ok := c.NetConn().(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	dead := true
	err = raw.Control(func(fd uintptr) {
		_, _, perr := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		dead = !errors.Is(perr, unix.EAGAIN)
	})
	return dead || err != nil
}

// dialMember connects to a member for calls.
func dialMember(ctx context.Context, addr string, conf *tls.Config) (api.Conn, error) {
	conn, err := dialTLS(ctx, addr, conf)
	if err != nil {
		return nil, err
	}
	return &calledConn{conn, addr}, nil
}

// dialTLS connects to a member at an address.
func dialTLS(ctx context.Context, addr string, conf *tls.Config) (*tls.Conn, error) {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTime, KeepAliveConfig: probes()}, Config: conf}
	ctx, cancel := context.WithTimeout(ctx, dialTime+handshakeTime)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return conn.(*tls.Conn), nil
}

// peers are the clients of other members, by address.
type peers struct {
	conf *tls.Config
	mu   sync.Mutex
	by   map[string]*api.Client
}

func newPeers(conf *tls.Config) *peers {
	return &peers{conf: conf, by: map[string]*api.Client{}}
}

// at is the client of the member at an address.
func (p *peers) at(addr string) *api.Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.by[addr]
	if !ok {
		c = &api.Client{Dial: func(ctx context.Context) (api.Conn, error) { return dialMember(ctx, addr, p.conf) }}
		p.by[addr] = c
	}
	return c
}
