package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	maxPacket   = 65536
	readPause   = 50 * time.Millisecond // after an error of the socket
	socketBytes = 1 << 20               // of packets that wait
)

// transport carries memberlist's packets over the one port's UDP socket and its streams over TLS
// connections.
type transport struct {
	cfg     Config
	vet     *vetter
	ip      net.IP
	port    int
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{}
	once    sync.Once
	running sync.WaitGroup
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

func newTransport(cfg Config, vet *vetter) (*transport, error) {
	addr, err := net.ResolveUDPAddr("udp", cfg.Self.Addr)
	if err != nil {
		return nil, fmt.Errorf("address %s of this member: %w", cfg.Self.Addr, err)
	}
	t := &transport{
		cfg: cfg, vet: vet, ip: addr.IP, port: addr.Port, packets: make(chan *memberlist.Packet),
		streams: make(chan net.Conn), done: make(chan struct{}),
	}
	if v4 := t.ip.To4(); v4 != nil {
		t.ip = v4
	}
	if c, ok := cfg.Packets.(*net.UDPConn); ok {
		_ = c.SetReadBuffer(socketBytes) // the system's limit may be lower
	}
	t.running.Go(t.receive)
	t.running.Go(t.accept)
	return t, nil
}

func (t *transport) receive() {
	buf := make([]byte, maxPacket)
	for {
		n, from, err := t.cfg.Packets.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			t.cfg.Log.Debug("a packet could not be read", "err", err)
			select {
			case <-time.After(readPause):
				continue
			case <-t.done:
				return
			}
		}
		if err := t.vet.packet(buf[:n]); err != nil {
			t.cfg.Log.Debug("a packet is left out", "from", from.String(), "err", err)
			continue
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: from, Timestamp: time.Now()}
		select {
		case t.packets <- p:
		case <-t.done:
			return
		}
	}
}

func (t *transport) accept() {
	for {
		conn, err := t.cfg.Streams.Accept()
		if err != nil {
			return
		}
		select {
		case t.streams <- &vettedConn{Conn: conn, vet: t.vet}:
		case <-t.done:
			conn.Close()
			return
		}
	}
}

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) { return t.ip, t.port, nil }

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return time.Time{}, err
	}
	_, err = t.cfg.Packets.WriteTo(b, to)
	return time.Now(), err
}

func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := t.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return &vettedConn{Conn: conn, vet: t.vet}, nil
}

func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streams }

// Shutdown implements memberlist.Transport.
func (t *transport) Shutdown() error {
	t.stop()
	return nil
}

func (t *transport) stop() {
	t.once.Do(func() {
		close(t.done)
		t.cfg.Packets.Close()
		_ = t.cfg.Streams.Close()
	})
	t.running.Wait()
}
