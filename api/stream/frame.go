// Package stream is the language spoken on a step's stream connection: numbered frames of
// output from the supervisor, acknowledged by the client, and numbered frames of input the
// other way. It imports nothing of the rest and initializes nothing, so that srun may use it.
// The protocol is told in agent/step/DESIGN.md.
package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Kind says what a frame is.
type Kind uint8

// The kinds of frame. The first group is numbered and goes to the client.
const (
	Stdout Kind = 1 // Data: output of Task
	Stderr Kind = 2 // Data: output of Task
	EOF    Kind = 3 // Data: one byte, the descriptor (1 or 2) of Task that ended
	Exit   Kind = 4 // Data: an encoded TaskExit
	Done   Kind = 5 // every stream has ended, every process is gone; the last frame

	Welcome  Kind = 16 // to the client, first: Seq is the last input taken, Data the first output number on hand (8 bytes)
	InputAck Kind = 17 // to the client: input up to Seq has been written
	Replaced Kind = 18 // to the client, last: a newer attachment has taken the place of this one

	Room Kind = 19 // to the client: Seq bytes of input may be sent beyond what was written; older clients skip it

	Hello    Kind = 32 // from the client, first: Seq is the last output number it has
	Ack      Kind = 33 // from the client: output up to Seq may be dropped
	Stdin    Kind = 34 // from the client, numbered: Data for Task or AllTasks
	StdinEOF Kind = 35 // from the client, numbered: no more input for Task or AllTasks
	Winsize  Kind = 36 // from the client: Data is rows and columns, two bytes each
	Signal   Kind = 37 // from the client: Data is the signal number, four bytes
	Watch    Kind = 39 // from a watcher, first, in place of Hello; its input has no numbers
	Bye      Kind = 38 // from the client, last: it has seen Done. A connection that ends without it was cut, or its client has died
)

// AllTasks as a frame's Task means every task of the step on this node.
const AllTasks = -1

// OfNode as a Stderr frame's Task means a line of the node's own. With AllTasks there such a line says that the
// step is being ended.
const OfNode = -2

// StepServer as a frame's Task means the step's server on this node: Stdout and Stdin are what it and
// srun tell each other, Stderr is a line of its own for the step's user.
const StepServer = -3

// Limits of the protocol.
const (
	MaxData     = 64 << 10  // bytes of Data in one frame
	InputWindow = 256 << 10 // bytes of input a client may have sent beyond what was written, where no Room was told
	ServerRoom  = 4 << 20   // the Room of a step that has a server: what it is told is large, and all wait for it
)

const headLen = 1 + 8 + 4

// Errors of this package.
var (
	ErrFrame    = errors.New("malformed stream frame")
	ErrClosed   = errors.New("stream closed")
	ErrReplaced = errors.New("another client has attached")
	ErrRefused  = errors.New("stream refused")
)

// Frame is one message. Seq numbers output frames from 1 and, separately, input frames.
type Frame struct {
	Kind Kind
	Seq  uint64
	Task int32 // global rank
	Data []byte
}

// Numbered reports whether the frame is part of the output sequence.
func (f Frame) Numbered() bool { return f.Kind >= Stdout && f.Kind <= Done }

// Typed reports whether the frame is input for tasks.
func (f Frame) Typed() bool { return f.Kind == Stdin || f.Kind == StdinEOF }

// AppendFrame appends the encoding of f to b.
func AppendFrame(b []byte, f Frame) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(headLen+len(f.Data)))
	b = append(b, byte(f.Kind))
	b = binary.BigEndian.AppendUint64(b, f.Seq)
	b = binary.BigEndian.AppendUint32(b, uint32(f.Task))
	return append(b, f.Data...)
}

// WriteFrame writes f in one Write.
func WriteFrame(w io.Writer, f Frame) error {
	if len(f.Data) > MaxData {
		return fmt.Errorf("%w: %d bytes of data", ErrFrame, len(f.Data))
	}
	_, err := w.Write(AppendFrame(make([]byte, 0, 4+headLen+len(f.Data)), f))
	return err
}

// ReadFrame reads one frame; Data is the caller's own. A length out of bounds is ErrFrame;
// the connection is of no use after that.
func ReadFrame(r io.Reader) (Frame, error) {
	var head [4 + headLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < headLen || n > headLen+MaxData {
		return Frame{}, fmt.Errorf("%w: length %d", ErrFrame, n)
	}
	f := Frame{
		Kind: Kind(head[4]),
		Seq:  binary.BigEndian.Uint64(head[5:]),
		Task: int32(binary.BigEndian.Uint32(head[13:])),
	}
	if n -= headLen; n > 0 {
		f.Data = make([]byte, n)
		if _, err := io.ReadFull(r, f.Data); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return Frame{}, err
		}
	}
	return f, nil
}

// TaskExit is how a task ended, or why it did not start (Error and Errno).
type TaskExit struct {
	Code, Signal int
	Core, Lost   bool
	OOM          bool // processes of the step were killed for want of memory
	Errno        int
	Error        string
}

// AppendExit appends the encoding of e to b.
func AppendExit(b []byte, e TaskExit) []byte {
	var flags byte
	if e.Core {
		flags |= 1
	}
	if e.Lost {
		flags |= 2
	}
	if e.OOM {
		flags |= 4
	}
	b = binary.BigEndian.AppendUint32(b, uint32(e.Code))
	b = binary.BigEndian.AppendUint32(b, uint32(e.Signal))
	b = binary.BigEndian.AppendUint32(b, uint32(e.Errno))
	b = append(b, flags)
	return append(b, e.Error...)
}

// TaskExit decodes the Data of an Exit frame.
func (f Frame) TaskExit() (TaskExit, error) {
	if f.Kind != Exit || len(f.Data) < 13 {
		return TaskExit{}, ErrFrame
	}
	u := func(i int) int { return int(int32(binary.BigEndian.Uint32(f.Data[i:]))) }
	return TaskExit{Code: u(0), Signal: u(4), Errno: u(8),
		Core: f.Data[12]&1 != 0, Lost: f.Data[12]&2 != 0, OOM: f.Data[12]&4 != 0, Error: string(f.Data[13:])}, nil
}

// FD is the descriptor an EOF frame is about.
func (f Frame) FD() int {
	if f.Kind != EOF || len(f.Data) != 1 {
		return -1
	}
	return int(f.Data[0])
}

// WinsizeFrame tells a terminal's new size.
func WinsizeFrame(rows, cols uint16) Frame {
	b := binary.BigEndian.AppendUint16(nil, rows)
	return Frame{Kind: Winsize, Task: AllTasks, Data: binary.BigEndian.AppendUint16(b, cols)}
}

// Winsize decodes the Data of a Winsize frame.
func (f Frame) Winsize() (rows, cols uint16, err error) {
	if f.Kind != Winsize || len(f.Data) != 4 {
		return 0, 0, ErrFrame
	}
	return binary.BigEndian.Uint16(f.Data), binary.BigEndian.Uint16(f.Data[2:]), nil
}

// SignalFrame asks for sig to be sent to the task's own process.
func SignalFrame(task int32, sig int) Frame {
	return Frame{Kind: Signal, Task: task, Data: binary.BigEndian.AppendUint32(nil, uint32(sig))}
}

// Signal decodes the Data of a Signal frame.
func (f Frame) Signal() (int, error) {
	if f.Kind != Signal || len(f.Data) != 4 {
		return 0, ErrFrame
	}
	return int(binary.BigEndian.Uint32(f.Data)), nil
}

// First decodes the Data of a Welcome frame: the number of the first output frame to come.
func (f Frame) First() (uint64, error) {
	if f.Kind != Welcome || len(f.Data) != 8 {
		return 0, ErrFrame
	}
	return binary.BigEndian.Uint64(f.Data), nil
}

// WelcomeFrame answers Hello.
func WelcomeFrame(taken, first uint64) Frame {
	return Frame{Kind: Welcome, Seq: taken, Data: binary.BigEndian.AppendUint64(nil, first)}
}
