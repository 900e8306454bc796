package gossip

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// seal seals a message as members do.
func seal(key, text, with []byte) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	out := append([]byte{1}, make([]byte, textAt-nonceAt)...)
	return gcm.Seal(out, out[nonceAt:], text, with)
}

func label(name string) []byte { return append([]byte{labelled, byte(len(name))}, name...) }

// sealedPacket and sealedStream are what a member that has the key would send.
func sealedPacket(text []byte) []byte {
	return append(label("one"), seal(key(1), text, []byte("one"))...)
}

func sealedStream(text []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{sealedMsg}, uint32(len(text)+textAt+16))
	return append(append(label("one"), head...), seal(key(1), text, append(bytes.Clone(head), "one"...))...)
}

// pushPull is a push-pull with this head, and members after it.
func pushPull(head map[string]any, members ...map[string]any) []byte {
	var out bytes.Buffer
	out.WriteByte(pushPullMsg)
	enc := codec.NewEncoder(&out, &codec.MsgpackHandle{})
	for _, v := range append([]map[string]any{head}, members...) {
		if err := enc.Encode(v); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// script is a connection on which the other side says one thing, and a socket for packets.
type script struct {
	net.Conn
	in   io.Reader
	once sync.Once
	done chan struct{}
}

func (c *script) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *script) Write(b []byte) (int, error)      { return len(b), nil }
func (c *script) Close() error                     { c.once.Do(func() { close(c.done) }); return nil }
func (c *script) SetDeadline(time.Time) error      { return nil }
func (c *script) SetReadDeadline(time.Time) error  { return nil }
func (c *script) SetWriteDeadline(time.Time) error { return nil }
func (c *script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }

// air is a network in which nobody else is; what is said in it comes from the test.
type air struct {
	net.PacketConn
	packets chan []byte
	streams chan net.Conn
	once    sync.Once
	done    chan struct{}
}

func (a *air) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case p := <-a.packets:
		return copy(b, p), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, nil
	case <-a.done:
		return 0, nil, net.ErrClosed
	}
}

func (a *air) WriteTo(b []byte, _ net.Addr) (int, error) { return len(b), nil }
func (a *air) Close() error                              { a.once.Do(func() { close(a.done) }); return nil }
func (a *air) Addr() net.Addr                            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }

func (a *air) Accept() (net.Conn, error) {
	select {
	case c := <-a.streams:
		return c, nil
	case <-a.done:
		return nil, net.ErrClosed
	}
}

// alone is a member in such a network.
func alone(t testing.TB) (*Gossip, *air) {
	t.Helper()
	a := &air{packets: make(chan []byte), streams: make(chan net.Conn), done: make(chan struct{})}
	g, err := Open(Config{Cluster: "one", Self: Member{Name: "a", Role: "server", Addr: "127.0.0.1:9"},
		Keys: [][]byte{key(1)}, Packets: a, Streams: a, Log: quiet,
		Dial: func(context.Context, string) (net.Conn, error) { return nil, errors.New("nobody is there") }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.list.Shutdown() })
	return g, a
}

// say has the member hear a stream to its end.
func (a *air) say(text []byte) {
	c := &script{in: bytes.NewReader(text), done: make(chan struct{})}
	a.streams <- c
	<-c.done
}

// hostile are messages by which a member that has the key, as every node does, ended the process of each other one.
func hostile() map[string][]byte {
	member := func(vsn int) map[string]any {
		return map[string]any{
			"Name": "x", "Addr": []byte{127, 0, 0, 1}, "Port": 9, "State": 0, "Incarnation": 1,
			"Vsn": make([]byte, vsn),
		}
	}
	return map[string][]byte{
		"nothing":               {},
		"fewer than no members": pushPull(map[string]any{"Nodes": -1, "UserStateLen": 0, "Join": true}),
		"more than there are":   pushPull(map[string]any{"Nodes": 1 << 40, "UserStateLen": 0, "Join": true}),
		"a large state":         pushPull(map[string]any{"Nodes": 0, "UserStateLen": 1 << 50, "Join": true}),
		"no versions":           pushPull(map[string]any{"Nodes": 1, "UserStateLen": 0, "Join": true}, member(1)),
		"a large message":       append([]byte{8}, "\x81\xaaUserMsgLen\xcf\x00\xff\xff\xff\xff\xff\xff\xff"...),
		"nothing, compressed":   append([]byte{9}, "\x82\xa4Algo\x00\xa3Buf\xc4\x03\x00\x03\x02"...),
	}
}

// TestHostile: what a member says that has the key and means harm is left out, and what is good is heard.
func TestHostile(t *testing.T) {
	g, a := alone(t)
	for name, text := range hostile() {
		a.say(sealedStream(text))
		a.packets <- sealedPacket(text)
		if n := len(g.Members()); n != 0 {
			t.Errorf("%s: %d members are known", name, n)
		}
	}
	a.say(sealedStream(pushPull(map[string]any{"Nodes": 1, "UserStateLen": 0, "Join": true},
		map[string]any{
			"Name": "x", "Addr": []byte{127, 0, 0, 1}, "Port": 9, "State": 0, "Incarnation": 1,
			"Vsn": []byte{1, 5, 2, 0, 0, 0}, "Meta": []byte("node\nx:1\nv"),
		})))
	if list := g.Members(); len(list) != 1 || list[0].Name != "x" || list[0].Addr != "x:1" {
		t.Errorf("known are %+v", list)
	}
}

// TestLengths: what a message says of its lengths is looked at before memory is taken for them, in fields that are
// known, in others, and in what is nested.
func TestLengths(t *testing.T) {
	g, a := alone(t)
	for name, text := range map[string]string{
		"a text":                     "\x81\xa4Node\xdb\xcc\xcc\xcc\xcc",
		"bytes":                      "\x81\xa7Payload\xc6\xcc\xcc\xcc\xcc",
		"a number of numbers":        "\x81\xa4Addr\xdd\x7f\xff\xff\xff",
		"an extension":               "\x81\xa4none\xc9\xcc\xcc\xcc\xcc\x00",
		"a time":                     "\x81\xa4none\xc9\xcc\xcc\xcc\xcc\xff",
		"a map":                      "\x81\xa4none\xdf\x7f\xff\xff\xff",
		"a key":                      "\x81\xdb\xcc\xcc\xcc\xcc",
		"a text in what is not read": "\x81\xa4none\x91\x91\xdb\xcc\xcc\xcc\xcc",
		"depth":                      "\x81\xa4none" + strings.Repeat("\x91", maxPacket/4),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, kind := range []byte{
			pingMsg, indirectPingMsg, ackMsg, suspectMsg, aliveMsg, deadMsg, nackMsg, pushPullMsg, errorMsg,
		} {
			a.packets <- sealedPacket(append([]byte{kind}, text...))
			a.say(sealedStream(append([]byte{kind}, text...)))
		}
		a.packets <- nil // now all was read
		g.Members()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s of 3 GB: %d MB were taken", name, took>>20)
		}
	}
	deep := "\x81\xa4none" + strings.Repeat("\x91", maxStream-100)
	a.say(sealedStream(append([]byte{pushPullMsg}, deep...)))
}

// FuzzGossip: nothing that comes by packet or stream ends the process, with or without the key.
func FuzzGossip(f *testing.F) {
	for _, text := range hostile() {
		for how := range uint8(4) {
			f.Add(how, text)
		}
	}
	member := map[string]any{
		"Node": "x", "Addr": []byte{127, 0, 0, 1}, "Port": 9, "Incarnation": 1,
		"Vsn": []byte{1, 5, 2, 0, 0, 0}, "Meta": []byte("node\nx:1\nv"),
	}
	one := pushPull(member)
	for _, kind := range []byte{pingMsg, indirectPingMsg, ackMsg, suspectMsg, aliveMsg, deadMsg, nackMsg} {
		one := append([]byte{kind}, one[1:]...)
		f.Add(uint8(3), one)
		f.Add(uint8(3), append([]byte{compoundMsg, 1, 0, byte(len(one))}, one...))
	}
	g, a := alone(f)
	f.Fuzz(func(t *testing.T, how uint8, text []byte) {
		if len(text) > maxPacket/2 {
			return
		}
		switch how % 4 {
		case 0:
			a.say(text)
		case 1:
			a.packets <- text
		case 2:
			a.say(sealedStream(text))
		case 3:
			a.packets <- sealedPacket(text)
			a.packets <- nil // now it was read
		}
		g.Members()
	})
}
