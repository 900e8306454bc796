// Package pmi lets the tasks of a step find each other: it is the process manager of MPI's
// libraries. Beside the tasks of each node runs a Server, which speaks PMI-1 and PMI-2 with them;
// the Hub is in srun, which has a stream to each node. Values for all go from the servers to
// the hub and back. The package knows nothing of jobs, daemons or how its messages travel. Start
// with message.go, then hub.go and server.go.
package pmi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kind says what a message is for.
type Kind uint8

// The kinds of message.
const (
	// Fence is a node's part in a fence by the hub: Key names it, Nodes take part (all, if there are
	// none), Data is what the others are to have. ID is keepsOwn where the node needs not be sent
	// its own part.
	Fence Kind = 1
	// Fenced ends a fence by the hub: Data is that of all nodes, one behind the other, in the order of their
	// numbers. If ID is not 0 the node's own part is missing, which belongs at ID-1.
	Fenced Kind = 2
	// Call asks node Node something, or the hub (HubNode): Key says what, ID is the caller's.
	// The callee sees the caller in Node.
	Call Kind = 3
	// Reply answers the Call of that ID by Node; Key is empty, or says why there is no answer.
	Reply Kind = 4
	// Abort asks for the step's end: Key is a text for its user, ID the exit code, Node the
	// rank that asked.
	Abort Kind = 5
	// Lost tells a server that node Node is lost to the step.
	Lost Kind = 6
)

// keepsOwn is the ID of a Fence by a node that keeps its part.
const keepsOwn = 1

// HubNode is the hub as the target of a call.
const HubNode = -1

// Message is what servers and the hub tell each other.
type Message struct {
	Kind  Kind
	ID    uint64
	Node  int
	Nodes []int
	Key   string
	Data  []byte
}

// maxMessage bounds a message, so that a length that lies costs no memory.
const maxMessage = 256 << 20

// maxFence bounds how many nodes a message names.
const maxFence = 1 << 20

// ErrMessage is the error of a message that cannot be read.
var ErrMessage = errors.New("malformed PMI message")

// Append appends the encoding of m to b: its length, then kind, numbers and texts, all numbers as varints.
func (m Message) Append(b []byte) []byte {
	return append(m.appendHead(b, len(m.Data)), m.Data...)
}

// appendHead appends what goes before so many bytes of data.
func (m Message) appendHead(b []byte, data int) []byte {
	body := []byte{byte(m.Kind)}
	body = binary.AppendUvarint(body, m.ID)
	body = binary.AppendVarint(body, int64(m.Node))
	body = binary.AppendUvarint(body, uint64(len(m.Nodes)))
	for _, n := range m.Nodes {
		body = binary.AppendUvarint(body, uint64(n))
	}
	body = binary.AppendUvarint(body, uint64(len(m.Key)))
	body = append(body, m.Key...)
	b = slices.Grow(b, binary.MaxVarintLen64+len(body)+data)
	b = binary.AppendUvarint(b, uint64(len(body)+data))
	return append(b, body...)
}

// reader is what messages are read from.
type reader interface {
	io.Reader
	io.ByteReader
}

// ReadMessage reads one message. io.EOF is the end between two.
func ReadMessage(r reader) (Message, error) {
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return Message{}, err
	}
	if size < 5 || size > maxMessage {
		return Message{}, fmt.Errorf("%w: %d bytes", ErrMessage, size)
	}
	body := make([]byte, 0, min(size, 64<<10))
	for uint64(len(body)) < size { // it grows as the bytes come: a length alone is no reason
		part := min(size-uint64(len(body)), 1<<20)
		at := len(body)
		body = append(body, make([]byte, part)...)
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			return Message{}, fmt.Errorf("%w: %w", ErrMessage, io.ErrUnexpectedEOF)
		}
	}
	return decode(body)
}

// decode reads a message's body; Data is a part of it.
func decode(body []byte) (m Message, err error) {
	d := decoder{rest: body[1:]}
	m.Kind = Kind(body[0])
	m.ID = d.unsigned()
	m.Node = int(d.signed())
	count := d.unsigned()
	if count > maxFence || count > uint64(len(d.rest)) {
		return m, ErrMessage
	}
	for range count {
		m.Nodes = append(m.Nodes, int(d.unsigned()))
	}
	m.Key = string(d.text())
	if d.failed {
		return m, ErrMessage
	}
	m.Data = d.rest
	return m, nil
}

// decoder takes values off the front of rest.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) unsigned() uint64 {
	v, n := binary.Uvarint(d.rest)
	return v * d.skip(n)
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.rest)
	return v * int64(d.skip(n))
}

// skip passes n bytes by; it is 0 after a failure and else 1.
func (d *decoder) skip(n int) uint64 {
	if d.failed || n <= 0 || n > len(d.rest) {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return 1
}

func (d *decoder) text() []byte {
	n := d.unsigned()
	if n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return nil
	}
	text := d.rest[:n]
	d.rest = d.rest[n:]
	return text
}

// appendTexts appends texts, each with its length.
func appendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// readTexts reads what appendTexts has written.
func readTexts(b []byte) (texts []string, err error) {
	d := decoder{rest: b}
	for len(d.rest) > 0 {
		texts = append(texts, string(d.text()))
	}
	if d.failed {
		return nil, ErrMessage
	}
	return texts, nil
}
