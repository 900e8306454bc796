package agent

import (
	"net"
	"net/netip"
	"sync"
)

// Bounds of connections that have not ended their handshake: in all, and from one address, which may be of many members
// only on this machine itself.
const (
	maxGreeting     = 4096
	maxGreetingFrom = 256
)

// greetings counts the connections whose other end is not known yet: anybody who reaches the port can open some. The
// zero value is ready.
type greetings struct {
	mu   sync.Mutex
	all  int
	from map[netip.Addr]int
}

// enter counts a connection, if there is room for it; leave ends that. One without an address is this process's own.
func (g *greetings) enter(conn net.Conn) (leave func(), ok bool) {
	at, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	from := at.Addr().Unmap()
	shared := !from.IsValid() || from.IsLoopback()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all >= maxGreeting || !shared && g.from[from] >= maxGreetingFrom {
		return nil, false
	}
	if g.from == nil {
		g.from = map[netip.Addr]int{}
	}
	g.all++
	g.from[from]++
	return sync.OnceFunc(func() { g.leave(from) }), true
}

func (g *greetings) leave(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	if g.from[from]--; g.from[from] == 0 {
		delete(g.from, from)
	}
}
