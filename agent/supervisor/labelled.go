package supervisor

import (
	"bytes"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// longestLine bounds what is kept of a line that does not end, in bytes; beyond it a line is cut in two.
	longestLine = 1 << 20
	// lineBytes bounds that for all lines of a step, as far as shortestLine allows.
	lineBytes    = 2 << 20
	shortestLine = 4 << 10
)

// longestOf is how long a line of one of so many labelled files may be, in bytes.
func longestOf(files int) int { return max(shortestLine, min(longestLine, lineBytes/max(files, 1))) }

// labelledFile is an output file into which the supervisor writes a task's whole lines, each with a label before
// it: what srun -l promises, where the file lies at the node.
type labelledFile struct {
	f       *os.File // O_APPEND; tasks of the same file have it open each for itself
	label   string
	longest int // bytes of a line
	// plain says that a write may hold its thread: the file is neither a pipe nor a terminal.
	plain bool

	mu    sync.Mutex
	begun []byte // of the output: lines that are yet to be written, the last of which has not ended
	late  []byte // what is left of the line that is being written, with its label
}

// newLabelledFile returns one of the labelled files of a step, which has as many as files says. The user decides how
// long a write to a pipe or a terminal blocks, so these are written without blocking, and hold no thread.
func newLabelledFile(fd int, name, label string, files int) *labelledFile {
	w := &labelledFile{label: label, longest: longestOf(files), plain: true}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		w.plain = unix.SetNonblock(fd, true) != nil
	}
	w.f = os.NewFile(uintptr(fd), name)
	return w
}

// gate bounds the threads that writes to one user's files may hold: the runtime ends a process of 10,000 threads. A nil
// one bounds nothing.
type gate chan struct{}

// maxWriting is how many writes of one user hold a thread at a time.
const maxWriting = 64

// gates has a gate for each user.
type gates struct {
	mu sync.Mutex
	of map[uint32]gate
}

// ofUser returns the gate of a user.
func (g *gates) ofUser(uid uint32) gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[uint32]gate{}
	}
	if g.of[uid] == nil {
		g.of[uid] = make(gate, maxWriting)
	}
	return g.of[uid]
}

// errHalted is why a line was not written.
var errHalted = errors.New("the output is no longer read")

// write writes the complete lines of the task's output. It ends early when halt is closed and the file's deadline has
// passed; what is left is kept.
func (w *labelledFile) write(data []byte, in gate, halt <-chan struct{}) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = append(w.begun, data...)
	defer func() { w.begun = bytes.Clone(w.begun) }() // without what was before it
	for {
		if err := w.put(in, halt); err != nil {
			return err
		}
		i := bytes.IndexByte(w.begun, '\n')
		switch {
		case i >= 0:
			i++
		case len(w.begun) < w.longest:
			return nil
		default:
			i = w.longest
		}
		w.take(w.begun[:i])
		w.begun = w.begun[i:]
	}
}

// take has a line be the next to be written; mu is held.
func (w *labelledFile) take(line []byte) {
	w.late = append(append(w.late[:0], w.label...), line...)
	if !bytes.HasSuffix(line, []byte{'\n'}) {
		w.late = append(w.late, '\n')
	}
}

// put writes the line that was taken; what the file system refuses is lost, as it is for a task that looks at no error.
// mu is held, but while the file is written.
func (w *labelledFile) put(in gate, halt <-chan struct{}) error {
	if len(w.late) == 0 {
		return nil
	}
	late := w.late
	w.mu.Unlock()
	n, err := w.pass(late, in, halt)
	w.mu.Lock()
	if errors.Is(err, errHalted) || errors.Is(err, os.ErrDeadlineExceeded) {
		w.late = late[n:]
		return err
	}
	w.late = late[:0]
	return nil
}

// pass writes to the file, in its turn if that may hold this thread.
func (w *labelledFile) pass(text []byte, in gate, halt <-chan struct{}) (int, error) {
	if w.plain && in != nil {
		select {
		case in <- struct{}{}:
			defer func() { <-in }()
		case <-halt:
			return 0, errHalted
		}
	}
	return w.f.Write(text)
}

// end writes the line that was begun, and closes the file.
func (w *labelledFile) end(in gate, halt <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.put(in, halt)
	if err == nil && len(w.begun) > 0 {
		w.take(w.begun)
		w.begun = nil
		_ = w.put(in, halt)
	}
	w.f.Close()
}

// state is what is to be written yet: of the output, and of the line that is being written.
func (w *labelledFile) state() (begun, late []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun, w.late
}
