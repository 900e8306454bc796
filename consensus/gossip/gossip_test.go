package gossip

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// wire is the network of one member, which can be cut.
type wire struct {
	net.PacketConn
	cut atomic.Bool
}

func (w *wire) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := w.PacketConn.ReadFrom(b)
		if err != nil || !w.cut.Load() {
			return n, from, err
		}
	}
}

func (w *wire) WriteTo(b []byte, to net.Addr) (int, error) {
	if w.cut.Load() {
		return len(b), nil
	}
	return w.PacketConn.WriteTo(b, to)
}

type instance struct {
	*Gossip
	addr string
	wire *wire
	// streams that are refused: the whole network is cut, not only UDP
	deaf atomic.Bool
}

type deafListener struct {
	net.Listener
	deaf *atomic.Bool
}

func (l deafListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || !l.deaf.Load() {
			return c, err
		}
		c.Close()
	}
}

func open(t *testing.T, name, cluster string, keys ...[]byte) *instance {
	t.Helper()
	return openAs(t, Config{Cluster: cluster, Self: Member{Name: name, Role: "node", Version: "1." + name}, Keys: keys})
}

// openAs opens a member on a free port of loopback.
func openAs(t *testing.T, cfg Config) *instance {
	t.Helper()
	var ln net.Listener
	var udp net.PacketConn
	for try := 0; udp == nil; try++ { // the port must be free for both
		var err error
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if udp, err = net.ListenPacket("udp", ln.Addr().String()); err != nil {
			ln.Close()
			if try > 20 {
				t.Fatal(err)
			}
		}
	}
	i := &instance{addr: ln.Addr().String(), wire: &wire{PacketConn: udp}}
	cfg.Self.Addr, cfg.Packets, cfg.Streams, cfg.Log = i.addr, i.wire, deafListener{ln, &i.deaf}, quiet
	cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		if i.deaf.Load() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	g, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	i.Gossip = g
	t.Cleanup(func() { _ = g.list.Shutdown() })
	return i
}

// awaits waits until what a member knows is as it should be.
func (i *instance) awaits(t *testing.T, what string, ok func([]Member) bool) time.Duration {
	t.Helper()
	began := time.Now()
	end := time.After(20 * time.Second)
	for !ok(i.Members()) {
		select {
		case <-i.Changes():
		case <-end:
			t.Fatalf("waited for %s; known are %+v", what, i.Members())
		}
	}
	return time.Since(began)
}

func alive(names ...string) func([]Member) bool {
	return func(list []Member) bool {
		var got []string
		for _, m := range list {
			if !m.Failed {
				got = append(got, m.Name)
			}
		}
		return slices.Equal(got, names)
	}
}

func three(t *testing.T) (a, b, c *instance) {
	t.Helper()
	a, b, c = open(t, "a", "one", key(1)), open(t, "b", "one", key(1)), open(t, "c", "one", key(1))
	if err := b.Join([]string{a.addr}); err != nil {
		t.Fatal(err)
	}
	if err := c.Join([]string{a.addr}); err != nil {
		t.Fatal(err)
	}
	a.awaits(t, "b and c", alive("b", "c"))
	b.awaits(t, "c, of whom only a has told", alive("a", "c"))
	c.awaits(t, "a and b", alive("a", "b"))
	return a, b, c
}

func TestJoinAndMeta(t *testing.T) {
	_, b, c := three(t)
	for _, m := range b.Members() {
		if m.Name == "c" && (m.Role != "node" || m.Addr != c.addr || m.Version != "1.c" || m.Failed || m.Since.IsZero()) {
			t.Errorf("b knows of c: %+v", m)
		}
	}
	long := Config{
		Cluster: "one", Self: Member{Name: "x", Addr: "127.0.0.1:1", Version: string(make([]byte, 600))},
		Keys: [][]byte{key(1)}, Log: quiet,
	}
	if _, err := Open(long); err == nil {
		t.Error("data of 600 bytes was taken")
	}
}

// TestRole: a member that wants to know of servers alone is not told of thousands of others.
func TestRole(t *testing.T) {
	as := func(name, role, wants string) *instance {
		return openAs(t, Config{
			Cluster: "one", Self: Member{Name: name, Role: role}, Keys: [][]byte{key(1)}, Role: wants,
		})
	}
	a, b, s := as("a", "node", "server"), as("b", "node", ""), as("s", "server", "")
	if err := a.Join([]string{b.addr}); err != nil {
		t.Fatal(err)
	}
	b.awaits(t, "a", alive("a"))
	select {
	case <-a.Changes():
		t.Errorf("a was told of %+v", a.Members())
	default:
	}
	if err := s.Join([]string{b.addr}); err != nil {
		t.Fatal(err)
	}
	a.awaits(t, "the server", alive("s"))
	b.awaits(t, "all", alive("a", "s"))
}

func TestStrangersStayOut(t *testing.T) {
	a := open(t, "a", "one", key(1))
	for _, x := range []*instance{open(t, "x", "one", key(2)), open(t, "y", "two", key(1))} {
		if err := x.Join([]string{a.addr}); err == nil {
			t.Errorf("a stranger joined: %+v", a.Members())
		}
		if n := len(a.Members()) + len(x.Members()); n != 0 {
			t.Errorf("a stranger is known: %+v, %+v", a.Members(), x.Members())
		}
	}
}

func TestRotateWhileRunning(t *testing.T) {
	a, b, c := three(t)
	all := []*instance{a, b, c}
	for _, keys := range [][][]byte{{key(1), key(2)}, {key(2), key(1)}, {key(2)}} { // add, use, remove
		for _, i := range all {
			if err := i.Rotate(keys); err != nil {
				t.Fatal(err)
			}
		}
	}
	d := open(t, "d", "one", key(2))
	if err := d.Join([]string{b.addr}); err != nil {
		t.Fatal(err)
	}
	for _, i := range []*instance{a, c} { // b's word reaches them as a packet with the new key
		i.awaits(t, "d", func(list []Member) bool { return len(list) == 3 && list[2].Name == "d" })
	}
	if old := open(t, "e", "one", key(1)); old.Join([]string{a.addr}) == nil {
		t.Error("the removed key still opens")
	}
	for _, i := range all {
		if slices.ContainsFunc(i.Members(), func(m Member) bool { return m.Failed }) {
			t.Errorf("the rotation made members fail: %+v", i.Members())
		}
	}
	if a.Rotate(nil) == nil || a.Rotate([][]byte{{1}}) == nil {
		t.Error("no key, or a short one, was taken")
	}
}

func TestLeaveAndFail(t *testing.T) {
	a, b, c := three(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for _, i := range []*instance{a, c} {
		i.awaits(t, "b to have left", func(list []Member) bool { return len(list) == 1 && !list[0].Failed })
	}
	c.wire.cut.Store(true)
	c.deaf.Store(true)
	took := a.awaits(t, "c to have failed", func(list []Member) bool { return len(list) == 1 && list[0].Failed })
	t.Logf("failure seen after %v", took)
	c.wire.cut.Store(false)
	c.deaf.Store(false)
	if err := c.Join([]string{a.addr}); err != nil {
		t.Fatal(err)
	}
	a.awaits(t, "c to be back", alive("c"))
}

// A member whose packets alone are lost is asked over a stream and stays.
func TestPacketsLost(t *testing.T) {
	a, b, c := three(t)
	c.wire.cut.Store(true)
	end := time.After(6 * probeEvery) // long enough to fail: see TestLeaveAndFail
	for {
		select {
		case <-a.Changes():
		case <-b.Changes():
		case <-end:
			return
		}
		for _, i := range []*instance{a, b} {
			if slices.ContainsFunc(i.Members(), func(m Member) bool { return m.Name == "c" && m.Failed }) {
				t.Fatal("c counts as failed: only its packets are lost")
			}
		}
	}
}

// TestMadeUpMembers: who has the key cannot fill the memory of others with members that there are not.
func TestMadeUpMembers(t *testing.T) {
	g := &Gossip{members: map[string]Member{}, heard: map[string]time.Time{}}
	alive := func(name string, meta int) error {
		return events{g}.NotifyAlive(&memberlist.Node{Name: name, Meta: make([]byte, meta)})
	}
	if alive(strings.Repeat("a", maxName+1), 0) == nil || alive("a", memberlist.MetaMaxSize+1) == nil {
		t.Error("a member of any size is taken in")
	}
	for i := range maxMembers {
		if err := alive(strconv.Itoa(i), 10); err != nil {
			t.Fatal(err)
		}
	}
	if alive("one more", 10) == nil {
		t.Error("any number of members is taken in")
	}
	if err := alive("7", 10); err != nil {
		t.Errorf("one that is known is kept out: %v", err)
	}
	g.swept = time.Time{}
	for name := range g.heard {
		g.heard[name] = time.Now().Add(-2 * failedKept)
	}
	if err := alive("one more", 10); err != nil {
		t.Errorf("those of before are not forgotten: %v", err)
	}
}
