// Package cast is the language between a front-end that puts files on the nodes of a job, or takes some
// from there, and the process that does it on each node as the job's user (package cast/node). Orders and
// answers are lines of JSON; what a file holds travels in chunks.
package cast

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"syscall"

	"dev.muster/wire"
)

// Order is what the process on a node is to do next. It answers each with an Answer. After a Put that
// it has agreed to comes the file in chunks, which it answers once all has arrived whole; then, with
// Commit, the file takes its name. After the answer to a Get the process sends the chunks.
type Order struct {
	Put    string `json:"put,omitempty"`    // the file to be
	Get    string `json:"get,omitempty"`    // the file to send
	List   string `json:"list,omitempty"`   // the folder to tell of
	Dir    string `json:"dir,omitempty"`    // the folder to be, the user's alone
	Remove string `json:"remove,omitempty"` // the file that is not needed any more
	Commit bool   `json:"commit,omitempty"`
	// Go: the step's tasks may start. There is no answer.
	Go bool `json:"go,omitempty"`

	Force bool `json:"force,omitempty"` // what has the name of a Put gives way
	Times bool `json:"times,omitempty"` // it gets these times
	About
}

// About is what is told of a file beside what it holds.
type About struct {
	Mode     uint32 `json:"mode,omitempty"`
	Size     int64  `json:"size,omitempty"`
	Accessed int64  `json:"accessed,omitempty"` // nanoseconds since 1970
	Modified int64  `json:"modified,omitempty"`
}

// Answer is what came of an Order.
type Answer struct {
	Errno int    `json:"errno,omitempty"`
	Error string `json:"error,omitempty"` // empty: it was done
	About
	Files []string `json:"files,omitempty"` // of a folder
	Dirs  []string `json:"dirs,omitempty"`
}

// Failed is the error of an answer.
type Failed struct {
	Errno syscall.Errno
	Text  string
}

func (f *Failed) Error() string { return f.Text }

// Err is why the order was not done, nil if it was.
func (a *Answer) Err() error {
	if a.Error == "" {
		return nil
	}
	return &Failed{syscall.Errno(a.Errno), a.Error}
}

// MaxLine bounds an order and an answer: a folder may have many files.
const MaxLine = 16 << 20

// ErrBroken is that what arrived is not what was sent.
var ErrBroken = errors.New("the file has not arrived whole")

// Line is a message as it is sent.
func Line(m any) ([]byte, error) {
	b, err := wire.Marshal(m)
	return append(b, '\n'), err
}

// ReadLine reads a message.
func ReadLine(r *bufio.Reader, m any) error {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case err == nil:
			return wire.Unmarshal(bytes.TrimSuffix(text, []byte("\n")), m)
		case err == io.EOF && len(text) > 0:
			return io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return err
		case len(text) > MaxLine:
			return fmt.Errorf("a message has more than %d bytes", MaxLine)
		}
	}
}

// Chunks encodes what a file holds.
type Chunks struct {
	sum  uint32
	size int64
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Head is what goes before the next data.
func (c *Chunks) Head(data []byte) []byte {
	c.sum = crc32.Update(c.sum, castagnoli(), data)
	c.size += int64(len(data))
	return binary.BigEndian.AppendUint32(nil, uint32(len(data)))
}

// End is what goes after the last.
func (c *Chunks) End() []byte {
	b := make([]byte, 4, 16)
	b = binary.BigEndian.AppendUint32(b, c.sum)
	return binary.BigEndian.AppendUint64(b, uint64(c.size))
}

// MaxChunk bounds the data of a chunk.
const MaxChunk = 64 << 20

// ReadChunks writes what a file holds to w, and checks that it is all there. A failure of w is returned
// as it is; anything else is ErrBroken.
func ReadChunks(r *bufio.Reader, w io.Writer) (size int64, err error) {
	var sum uint32
	buf := make([]byte, 64<<10)
	for {
		n, err := readUint32(r)
		if err != nil {
			return size, err
		}
		if n == 0 {
			break
		}
		if n > MaxChunk {
			return size, fmt.Errorf("%w: a chunk of %d bytes", ErrBroken, n)
		}
		for left := int(n); left > 0; {
			part := buf[:min(left, len(buf))]
			if _, err := io.ReadFull(r, part); err != nil {
				return size, fmt.Errorf("%w: %w", ErrBroken, err)
			}
			sum = crc32.Update(sum, castagnoli(), part)
			if _, err := w.Write(part); err != nil {
				return size, err
			}
			left -= len(part)
			size += int64(len(part))
		}
	}
	told, err := readUint32(r)
	if err != nil {
		return size, err
	}
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return size, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if told != sum || binary.BigEndian.Uint64(length[:]) != uint64(size) {
		return size, ErrBroken
	}
	return size, nil
}

func readUint32(r io.Reader) (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return binary.BigEndian.Uint32(b[:]), nil
}
