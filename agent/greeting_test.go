package agent

import (
	"net"
	"testing"
)

// from is a connection of an address.
type from struct {
	net.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr { return advertised(f.addr) }

// TestGreetings: an address has so many connections in their handshake, and all have; those that leave make room.
func TestGreetings(t *testing.T) {
	var g greetings
	var leave []func()
	for i := range maxGreetingFrom {
		done, ok := g.enter(from{addr: "192.0.2.1:1"})
		if !ok {
			t.Fatalf("connection %d is refused", i)
		}
		leave = append(leave, done)
	}
	if _, ok := g.enter(from{addr: "192.0.2.1:2"}); ok {
		t.Error("one more than the bound of an address is taken")
	}
	if _, ok := g.enter(from{addr: "192.0.2.2:1"}); !ok {
		t.Error("another address is refused")
	}
	leave[0]()
	leave[0]() // a second time counts for nothing
	if _, ok := g.enter(from{addr: "192.0.2.1:3"}); !ok {
		t.Error("one has left, and there is no room")
	}
	for i := g.all; i < maxGreeting; i++ {
		if _, ok := g.enter(from{addr: "127.0.0.1:1"}); !ok {
			t.Fatalf("connection %d of this machine is refused", i)
		}
	}
	if _, ok := g.enter(from{addr: "[::1]:1"}); ok {
		t.Error("one more than the bound of all is taken")
	}
}
