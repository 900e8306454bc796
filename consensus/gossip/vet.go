package gossip

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// The first bytes of memberlist's messages.
const (
	pingMsg = iota
	indirectPingMsg
	ackMsg
	suspectMsg
	aliveMsg
	deadMsg
	pushPullMsg
	compoundMsg
	_ // of users
	_ // compressed
	sealedMsg
	nackMsg
	checkedMsg
	errorMsg
	labelled = 244
)

// Sizes of what is sealed: version, nonce, text, tag. A push-pull of 10,000 members takes 2 MB.
const (
	nonceAt   = 1
	textAt    = nonceAt + 12
	maxStream = 20 << 20
)

// vetter looks at what other members send before memberlist does, which trusts those who have the key: it ends the
// process where counts in a message are not true, and unpacks what is compressed without a bound. None of us
// compresses or sends messages of users.
type vetter struct {
	label string
	keys  func() [][]byte
}

// packet reports whether memberlist may see a packet.
func (v *vetter) packet(in []byte) error {
	head := len(v.label) + 2
	if len(in) < head || in[0] != labelled || string(in[2:head]) != v.label {
		return errors.New("it is not of this cluster")
	}
	text, err := v.open(in[head:], []byte(v.label))
	if err != nil {
		return err
	}
	if len(text) >= 5 && text[0] == checkedMsg {
		text = text[5:]
	}
	if len(text) == 0 {
		return errors.New("it is empty")
	}
	if text[0] != compoundMsg {
		return vetPart(text)
	}
	return vetCompound(text[1:])
}

// vetCompound looks at messages that come in one packet: their number, their lengths, themselves.
func vetCompound(in []byte) error {
	if len(in) == 0 || len(in) < 1+2*int(in[0]) {
		return errors.New("it is too short")
	}
	lengths, parts := in[1:1+2*int(in[0])], in[1+2*int(in[0]):]
	for ; len(lengths) > 0; lengths = lengths[2:] {
		n := int(binary.BigEndian.Uint16(lengths))
		if n > len(parts) {
			return errors.New("it is too short")
		}
		if err := vetPart(parts[:n]); err != nil {
			return err
		}
		parts = parts[n:]
	}
	return nil
}

func vetPart(in []byte) error {
	if len(in) == 0 {
		return errors.New("it is empty")
	}
	switch in[0] {
	case pingMsg, indirectPingMsg, ackMsg, nackMsg, suspectMsg, aliveMsg, deadMsg:
		return vetLengths(in[1:])
	}
	return fmt.Errorf("nobody here sends messages of kind %d", in[0])
}

// vetLengths reports whether a value is all there. memberlist reads it as a stream, and takes the memory that a
// time's length speaks of, up to 4 GiB, before it looks for that many bytes.
func vetLengths(in []byte) error {
	var whole codec.Raw
	return codec.NewDecoderBytes(in, &codec.MsgpackHandle{}).Decode(&whole)
}

// state is what a push-pull says of one member.
type state struct {
	Name        string
	Addr        []byte
	Port        uint16
	Meta        []byte
	Incarnation uint32
	State       int
	Vsn         []uint8
}

// streamed reports whether memberlist may see the message of a stream.
func streamed(text []byte) error {
	if len(text) == 0 {
		return errors.New("it is empty")
	}
	switch text[0] {
	case pingMsg, ackMsg, errorMsg:
		return vetLengths(text[1:])
	case pushPullMsg:
	default:
		return fmt.Errorf("nobody here sends messages of kind %d", text[0])
	}
	var head struct {
		Nodes, UserStateLen int
		Join                bool
	}
	in := codec.NewDecoderBytes(text[1:], &codec.MsgpackHandle{})
	if err := in.Decode(&head); err != nil {
		return err
	}
	if head.Nodes < 0 || head.Nodes > len(text) || head.UserStateLen != 0 {
		return fmt.Errorf("it speaks of %d members and %d bytes", head.Nodes, head.UserStateLen)
	}
	for range head.Nodes {
		var s state
		if err := in.Decode(&s); err != nil {
			return err
		}
		if len(s.Vsn) < 6 {
			return fmt.Errorf("member %q has %d versions", s.Name, len(s.Vsn))
		}
	}
	return nil
}

// open opens what was sealed with one of the keys.
func (v *vetter) open(in, with []byte) ([]byte, error) {
	if len(in) < textAt || in[0] != 1 {
		return nil, errors.New("it is not sealed")
	}
	for _, key := range v.keys() {
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		if text, err := gcm.Open(nil, in[nonceAt:textAt], in[textAt:], with); err == nil {
			return text, nil
		}
	}
	return nil, errors.New("none of the keys opens it")
}

// stream reads the one message that a stream has in each direction, and returns its bytes.
func (v *vetter) stream(from io.Reader) ([]byte, error) {
	var frame bytes.Buffer
	take := func(n int) ([]byte, error) {
		_, err := io.CopyN(&frame, from, int64(n))
		return frame.Bytes()[frame.Len()-min(n, frame.Len()):], err
	}
	first, err := take(1)
	if err != nil {
		return nil, err
	}
	if first[0] == labelled { // those who call say of which cluster they are
		size, err := take(1)
		if err != nil {
			return nil, err
		}
		if label, err := take(int(size[0])); err != nil || string(label) != v.label {
			return nil, errors.Join(err, errors.New("it is not of this cluster"))
		}
		if first, err = take(1); err != nil {
			return nil, err
		}
	}
	size, err := take(4)
	if err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size)
	if first[0] != sealedMsg || n > maxStream {
		return nil, fmt.Errorf("want a sealed message of %d bytes at most, got kind %d of %d", maxStream, first[0], n)
	}
	with := append([]byte{sealedMsg}, size...)
	body, err := take(int(n))
	if err != nil {
		return nil, err
	}
	text, err := v.open(body, append(with, v.label...))
	if err != nil {
		return nil, err
	}
	return frame.Bytes(), streamed(text)
}

// vettedConn gives memberlist a message that was looked at, and then the end.
type vettedConn struct {
	net.Conn
	vet *vetter
	in  *bytes.Reader
}

func (c *vettedConn) Read(b []byte) (int, error) {
	if c.in == nil {
		text, err := c.vet.stream(c.Conn)
		if err != nil {
			return 0, err
		}
		c.in = bytes.NewReader(text)
	}
	return c.in.Read(b)
}
