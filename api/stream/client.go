package stream

import (
	"bufio"
	"fmt"
	"io"
	"sync"
	"time"
)

// ackEvery bounds how many bytes of output go unacknowledged while more is at hand.
const ackEvery = 32 << 10

// maxTries bounds the connections in a row that break before the welcome.
const maxTries = 50

// Stream is the client's end of a step's stream. It redials when the connection breaks and
// continues where it was: no frame is lost or seen twice, no input is lost or taken twice.
// One goroutine calls Next; input may be sent from others. Input is delivered, and waits for
// its window, only while some goroutine is in Next.
type Stream struct {
	dial func() (io.ReadWriteCloser, error)
	r    *bufio.Reader // Next's own

	last    uint64 // last number returned by Next
	acked   uint64
	unacked int
	tries   int // connections in a row that broke before the welcome

	mu     sync.Mutex
	moved  sync.Cond // room in the window, or closed
	conn   io.ReadWriteCloser
	seq    uint64  // last input number given
	input  []Frame // input not yet known to be written
	inputN int     // bytes in input
	room   int     // bytes that may be in input
	wmu    sync.Mutex
	win    *Frame // the newest size, told again after a redial
	err    error
}

// New returns a Stream that dials on first use. dial returns a connection already led to the
// step (step.Runner.Attach, or a tunnel to it); its error ends the stream. last is the number
// of the last frame the caller already has, 0 for the start.
func New(dial func() (io.ReadWriteCloser, error), last uint64) *Stream {
	s := &Stream{dial: dial, last: last, acked: last, room: InputWindow}
	s.moved.L = &s.mu
	return s
}

// Next returns the next numbered frame, acknowledging the earlier ones. After the Done frame
// it returns io.EOF. Any other error is final.
func (s *Stream) Next() (Frame, error) {
	for {
		s.mu.Lock()
		err := s.err
		s.mu.Unlock()
		if err != nil {
			return Frame{}, err
		}
		if s.r == nil {
			if err := s.connect(); err != nil {
				return Frame{}, s.fail(err)
			}
			continue
		}
		if s.acked < s.last && (s.unacked >= ackEvery || s.r.Buffered() == 0) {
			s.ack()
		}
		f, err := ReadFrame(s.r)
		switch {
		case err != nil:
			s.r = nil
		case f.Kind == InputAck:
			s.written(f.Seq)
		case f.Kind == Room:
			s.widen(f.Seq)
		case f.Kind == Replaced:
			return Frame{}, s.fail(ErrReplaced)
		case f.Numbered() && f.Seq <= s.last: // seen
		case f.Numbered() && f.Seq != s.last+1:
			return Frame{}, s.fail(fmt.Errorf("%w: number %d after %d", ErrFrame, f.Seq, s.last))
		case f.Numbered():
			s.last = f.Seq
			s.unacked += len(f.Data)
			if f.Kind == Done {
				s.ack()
				s.send(Frame{Kind: Bye})
				s.fail(io.EOF)
			}
			return f, nil
		}
	}
}

func (s *Stream) ack() {
	s.acked, s.unacked = s.last, 0
	s.send(Frame{Kind: Ack, Seq: s.last})
}

// connect dials, greets, and sends again what input the other side has not taken.
func (s *Stream) connect() error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.err != nil {
		conn.Close()
		s.mu.Unlock()
		return s.err
	}
	if s.conn != nil {
		s.conn.Close()
	}
	s.conn = nil // nobody else writes until the greeting is through
	s.mu.Unlock()
	r := bufio.NewReaderSize(conn, 4<<10)
	err = WriteFrame(conn, Frame{Kind: Hello, Seq: s.last})
	var w Frame
	if err == nil {
		w, err = ReadFrame(r)
	}
	if err != nil {
		conn.Close()
		if s.tries++; s.tries > maxTries {
			return fmt.Errorf("%w: %v", ErrRefused, err) // an io.EOF here is not the step's end
		}
		time.Sleep(time.Duration(s.tries) * time.Millisecond)
		return nil // dial again; a lasting fault is usually dial's to tell
	}
	s.tries = 0
	if first, err := w.First(); err != nil || first > s.last+1 {
		conn.Close()
		return fmt.Errorf("%w: continue from %d, but %d is the first on hand", ErrFrame, s.last, first)
	}
	s.wmu.Lock()
	defer s.wmu.Unlock()
	s.mu.Lock()
	s.conn, s.r = conn, r
	var again []byte
	for _, f := range s.input {
		if f.Seq > w.Seq {
			again = AppendFrame(again, f)
		}
	}
	if s.win != nil {
		again = AppendFrame(again, *s.win)
	}
	closed := s.err != nil
	s.mu.Unlock()
	if closed {
		conn.Close()
	}
	if len(again) > 0 {
		conn.Write(again)
	}
	return nil
}

func (s *Stream) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	if s.conn != nil {
		s.conn.Close()
	}
	s.moved.Broadcast()
	return s.err
}

// written forgets input the supervisor has passed on.
func (s *Stream) written(seq uint64) {
	s.mu.Lock()
	for len(s.input) > 0 && s.input[0].Seq <= seq {
		s.inputN -= len(s.input[0].Data)
		s.input = s.input[1:]
	}
	s.moved.Broadcast()
	s.mu.Unlock()
}

// widen goes by what the other side has room for.
func (s *Stream) widen(room uint64) {
	s.mu.Lock()
	s.room = max(InputWindow, int(min(room, ServerRoom)))
	s.moved.Broadcast()
	s.mu.Unlock()
}

// send writes f if there is a connection; a failure shows in Next.
func (s *Stream) send(f Frame) {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil && WriteFrame(conn, f) != nil {
		conn.Close()
	}
}

func (s *Stream) sendInput(f Frame) error {
	s.wmu.Lock() // numbers leave in their order
	defer s.wmu.Unlock()
	s.mu.Lock()
	if s.err != nil {
		defer s.mu.Unlock()
		return s.err
	}
	s.seq++
	f.Seq = s.seq
	s.input = append(s.input, f)
	s.inputN += len(f.Data)
	conn := s.conn
	s.mu.Unlock()
	if conn != nil && WriteFrame(conn, f) != nil {
		conn.Close()
	}
	return nil
}

// Input sends data to the standard input of one task or AllTasks, waiting for room in the
// window. It keeps no reference to data.
func (s *Stream) Input(task int32, data []byte) error {
	for len(data) > 0 {
		n := min(len(data), MaxData)
		s.mu.Lock()
		for s.err == nil && s.inputN+n > s.room {
			s.moved.Wait()
		}
		err := s.err
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if err := s.sendInput(Frame{Kind: Stdin, Task: task, Data: append([]byte(nil), data[:n]...)}); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// InputEOF ends the standard input of one task or AllTasks.
func (s *Stream) InputEOF(task int32) error { return s.sendInput(Frame{Kind: StdinEOF, Task: task}) }

// Resize tells the size of the client's terminal.
func (s *Stream) Resize(rows, cols uint16) {
	f := WinsizeFrame(rows, cols)
	s.mu.Lock()
	s.win = &f
	s.mu.Unlock()
	s.send(f)
}

// Signal sends a signal to one task or AllTasks. It is not repeated after a broken connection.
func (s *Stream) Signal(task int32, sig int) { s.send(SignalFrame(task, sig)) }

// Close ends the stream; Next and waiting Inputs return ErrClosed.
func (s *Stream) Close() error { s.fail(ErrClosed); return nil }
