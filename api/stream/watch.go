package stream

import (
	"bufio"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxWatchTries bounds the connections of a watcher in a row that break at once.
const maxWatchTries = 5

// Watcher is the end of one who looks on beside a step's client. Output may be missed while its connection
// is broken; input is not repeated. One goroutine calls Next; input may be sent from others.
type Watcher struct {
	dial  func() (io.ReadWriteCloser, error)
	r     *bufio.Reader // Next's own
	last  uint64
	tries int

	mu    sync.Mutex
	moved sync.Cond
	conn  io.ReadWriteCloser
	over  bool
}

// NewWatcher returns a Watcher that dials on first use.
func NewWatcher(dial func() (io.ReadWriteCloser, error)) *Watcher {
	w := &Watcher{dial: dial}
	w.moved.L = &w.mu
	return w
}

// Next returns the next frame: a welcome, then output. After the Done frame, or with an error, there is no more.
func (w *Watcher) Next() (Frame, error) {
	for {
		f, err := w.read()
		if err != nil || f.Kind == Done {
			w.end()
			return f, err
		}
		if f.Seq == 0 || f.Seq > w.last { // a line for watchers alone has no number
			w.last = max(w.last, f.Seq)
			return f, nil
		}
	}
}

// read takes a frame, over a new connection if that is broken.
func (w *Watcher) read() (f Frame, err error) {
	for {
		if w.r == nil {
			err = w.connect()
		}
		if err != nil {
			return f, err
		}
		if f, err = ReadFrame(w.r); err == nil {
			w.tries = 0
			return f, nil
		}
		w.conn.Close()
		w.r = nil
	}
}

func (w *Watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.moved.Broadcast()
	if w.conn != nil {
		w.conn.Close()
	}
}

func (w *Watcher) connect() error {
	if w.tries++; w.tries > maxWatchTries {
		return fmt.Errorf("%w: the step's node is of an older muster", ErrRefused)
	}
	time.Sleep(time.Duration(w.tries-1) * 100 * time.Millisecond)
	conn, err := w.dial()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn, w.r = conn, bufio.NewReaderSize(conn, 4<<10)
	w.moved.Broadcast()
	_ = WriteFrame(conn, Frame{Kind: Watch, Seq: w.last}) // a failure shows when it is read
	return nil
}

// Input sends data, of at most MaxData, to the standard input of one task or AllTasks; none is its end. It
// waits for the first connection.
func (w *Watcher) Input(task int32, data []byte) error {
	w.mu.Lock()
	for w.conn == nil && !w.over {
		w.moved.Wait()
	}
	conn, over := w.conn, w.over
	w.mu.Unlock()
	if over {
		return ErrClosed
	}
	f := Frame{Kind: Stdin, Task: task, Data: data}
	if len(data) == 0 {
		f.Kind = StdinEOF
	}
	return WriteFrame(conn, f)
}
