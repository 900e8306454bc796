package x11

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// The port of a display is open to every user of the node, and an X server may admit whoever comes from the job's
// owner without a proof. So a connection goes to the X server only if it begins with the cookie of the display. The
// format: X Window System Protocol, X Version 11, chapter 8, "Connection Setup".

// setupTime is how long a program may take to send the beginning.
const setupTime = 5 * time.Second

// setupHead is the length of the part of the beginning that has the lengths of the others in it, in bytes.
const setupHead = 12

// errCookie is why a connection is refused.
var errCookie = errors.New("muster: XAUTHORITY has not the cookie of this display")

// begun is a connection whose beginning was read, and is read again.
type begun struct {
	net.Conn
	head io.Reader
}

func (b *begun) Read(p []byte) (int, error) {
	n, err := b.head.Read(p)
	if n > 0 || err != io.EOF {
		return n, err
	}
	return b.Conn.Read(p)
}

// admit reads how a connection begins. It returns the connection as if nothing had been read, or an error if the
// program has not the cookie; the program is told.
func admit(conn net.Conn, cookie []byte) (net.Conn, error) {
	if err := conn.SetDeadline(time.Now().Add(setupTime)); err != nil {
		return nil, err
	}
	head, order, err := readSetup(conn, cookie)
	if err != nil {
		if order != nil {
			_, _ = conn.Write(failure(order, err.Error()))
		}
		return nil, err
	}
	return &begun{Conn: conn, head: bytes.NewReader(head)}, conn.SetDeadline(time.Time{})
}

// readSetup reads how a connection begins, and compares its cookie.
func readSetup(from io.Reader, cookie []byte) (text []byte, order binary.ByteOrder, err error) {
	head := make([]byte, setupHead)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, nil, err
	}
	switch head[0] {
	case 'B':
		order = binary.BigEndian
	case 'l':
		order = binary.LittleEndian
	default:
		return nil, nil, errors.New("a connection to a display does not begin with a byte order")
	}
	kindSize := int(order.Uint16(head[6:]))
	proofSize := int(order.Uint16(head[8:]))
	if kindSize != len(cookieKind) || proofSize != len(cookie) {
		return nil, order, errCookie
	}
	rest := make([]byte, padded(kindSize)+padded(proofSize))
	if _, err := io.ReadFull(from, rest); err != nil {
		return nil, order, err
	}
	kind := rest[:kindSize]
	proof := rest[padded(kindSize):][:proofSize]
	if string(kind) != cookieKind || subtle.ConstantTimeCompare(proof, cookie) != 1 {
		return nil, order, errCookie
	}
	return append(head, rest...), order, nil
}

// failure is what an X server answers if it refuses a connection; reason has fewer than 256 bytes.
func failure(order binary.ByteOrder, reason string) []byte {
	const version = 11
	out := []byte{0, byte(len(reason)), 0, 0, 0, 0, 0, 0}
	order.PutUint16(out[2:], version)
	order.PutUint16(out[6:], uint16(padded(len(reason))/4))
	out = append(out, reason...)
	return append(out, make([]byte, padded(len(reason))-len(reason))...)
}

// padded is a length rounded up to a multiple of 4.
func padded(n int) int { return (n + 3) &^ 3 }
