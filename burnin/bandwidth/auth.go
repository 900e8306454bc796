package bandwidth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

const (
	secretLen = 32
	nonceLen  = 16
	macLen    = sha256.Size
)

// Texts that the two sides of a connection prove; they differ, so that neither can repeat the proof of the other.
const (
	provesDialer   = "muster burnin dial"
	provesListener = "muster burnin listen"
)

var errStranger = errors.New("the other side does not know the secret of this test")

// header says what a connection is for.
type header struct {
	Phase, From, To uint32
	Rail, Stream    uint16
	Millis          uint32 // the duration of the transfer
	Tunnel          bool   // for ib_write_bw
}

const headerLen = 21

func (h header) bytes() []byte {
	b := make([]byte, 0, headerLen)
	for _, n := range []uint32{h.Phase, h.From, h.To, h.Millis} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = binary.BigEndian.AppendUint16(b, h.Rail)
	b = binary.BigEndian.AppendUint16(b, h.Stream)
	if h.Tunnel {
		return append(b, 1)
	}
	return append(b, 0)
}

func parseHeader(b []byte) header {
	u := func(i int) uint32 { return binary.BigEndian.Uint32(b[i:]) }
	s := func(i int) uint16 { return binary.BigEndian.Uint16(b[i:]) }
	return header{Phase: u(0), From: u(4), To: u(8), Millis: u(12), Rail: s(16), Stream: s(18), Tunnel: b[20] == 1}
}

func mac(secret []byte, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, secret)
	for _, p := range parts { // each has a fixed length
		m.Write(p)
	}
	return m.Sum(nil)
}

// greet opens a connection that this side has dialed: both sides prove that they know the secret.
func greet(c net.Conn, secret []byte, h header) error {
	_ = c.SetDeadline(time.Now().Add(handshakeTime)) // an error shows in what follows
	theirs := make([]byte, nonceLen)
	if _, err := io.ReadFull(c, theirs); err != nil {
		return err
	}
	own := make([]byte, nonceLen)
	_, _ = rand.Read(own) // never fails
	text := h.bytes()
	proof := mac(secret, []byte(provesDialer), theirs, own, text)
	if _, err := c.Write(append(append(append([]byte(nil), own...), text...), proof...)); err != nil {
		return err
	}
	answer := make([]byte, macLen)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if !hmac.Equal(answer, mac(secret, []byte(provesListener), theirs, own, text)) {
		return errStranger
	}
	return c.SetDeadline(time.Time{})
}

// welcome is greet on the side that listens. It returns what the connection is for.
func welcome(c net.Conn, secret []byte) (header, error) {
	_ = c.SetDeadline(time.Now().Add(handshakeTime)) // an error shows in what follows
	own := make([]byte, nonceLen)
	_, _ = rand.Read(own) // never fails
	if _, err := c.Write(own); err != nil {
		return header{}, err
	}
	said := make([]byte, nonceLen+headerLen+macLen)
	if _, err := io.ReadFull(c, said); err != nil {
		return header{}, err
	}
	theirs, text, proof := said[:nonceLen], said[nonceLen:nonceLen+headerLen], said[nonceLen+headerLen:]
	if !hmac.Equal(proof, mac(secret, []byte(provesDialer), own, theirs, text)) {
		return header{}, errStranger
	}
	if _, err := c.Write(mac(secret, []byte(provesListener), own, theirs, text)); err != nil {
		return header{}, err
	}
	return parseHeader(text), c.SetDeadline(time.Time{})
}
