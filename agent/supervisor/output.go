package supervisor

import (
	"cmp"
	"os"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/agent/step/watch"
	"dev.muster/api/stream"
	"golang.org/x/sys/unix"
)

// MaxUnacked bounds the output of one step on this node that its client has not acknowledged, but for one read. Beyond
// it the pipes are not read and the tasks wait.
const MaxUnacked = 1 << 20

// frameCost is about what a frame takes in memory besides its data: a task may write a byte at a time.
const frameCost = 128

// cost is what a frame counts.
func cost(f *stream.Frame) int { return len(f.Data) + frameCost }

const (
	readSize  = stream.MaxData // one read of a pipe
	batchSize = 2 * readSize   // one write to a client, about
)

var readBufs = sync.Pool{New: func() any { b := make([]byte, readSize); return &b }}

// output is a step's stream: its numbered frames not yet acknowledged, its input on the way,
// and the newest attachment. mu may be taken with supervisor.mu held, never the other way.
type output struct {
	signal func(rank int32, sig syscall.Signal) // what the client asks for

	mu      sync.Mutex
	moved   sync.Cond
	frames  []stream.Frame // unacknowledged, by number
	seq     uint64         // last number given
	bytes   int            // that frames take
	reading int            // that reads under way may add
	sources map[*source]bool
	over    bool // the step has ended
	done    bool
	closed  bool
	paused  bool // being replaced: pumps stop
	adopted bool // numbers may be moved to what the client has
	dead    bool // the pipes are lost: input goes nowhere
	room    int  // bytes of input that may be on the way
	att     *attachment
	others  watch.Watchers // who look on

	gate gate          // for writes to files of the step's user
	halt chan struct{} // closed when nothing is to be read or written any more

	sinks   map[int32]*sink
	taken   uint64 // last input number taken
	written uint64 // last input number passed on by all
	flying  []flying
	flyingN int
	pty     *os.File

	wg    sync.WaitGroup // pumps and feeds
	files sync.WaitGroup // pumps whose lines go into files
}

// source is one descriptor that is read into frames.
type source struct {
	rank int32
	fd   int // 1 or 2
	f    *os.File
	tty  bool
	// labelled is where the lines go; nil: into frames.
	labelled *labelledFile
}

// flying is one input frame and how many tasks have it still before them.
type flying struct {
	seq  uint64
	size int
	left int
}

// sink is the input of one task.
type sink struct {
	rank  int32
	f     *os.File
	tty   bool
	queue []piece
	gone  bool // takes no more
}

type piece struct {
	seq  uint64
	data []byte
	eof  bool
}

func newOutput(r *run) *output {
	o := &output{signal: r.signalTask, room: stream.InputWindow, halt: make(chan struct{})}
	if r.sup != nil && r.sup.apart != nil {
		o.gate = r.sup.apart.gates.ofUser(r.spec.UID)
	}
	o.moved.L = &o.mu
	if r.spec.Server != nil {
		o.room = stream.ServerRoom
		o.sinks = map[int32]*sink{stream.StepServer: {rank: stream.StepServer}}
	}
	for i := range r.spec.Tasks {
		if r.spec.Tasks[i].Stdin.Kind == step.Stream || r.spec.PTY != nil && i == r.lowest() {
			if o.sinks == nil {
				o.sinks = map[int32]*sink{}
			}
			k := int32(r.spec.Tasks[i].Rank)
			o.sinks[k] = &sink{rank: k}
		}
	}
	return o
}

// put appends a frame; mu is held.
func (o *output) put(kind stream.Kind, rank int32, data []byte) {
	o.seq++
	f := stream.Frame{Kind: kind, Seq: o.seq, Task: rank, Data: data}
	o.frames = append(o.frames, f)
	o.bytes += cost(&f)
	o.others.Tell(f)
	o.moved.Broadcast()
}

// addSource begins to read a descriptor of a task.
func (o *output) addSource(s *source) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		s.f.Close()
		return
	}
	if o.sources == nil {
		o.sources = map[*source]bool{}
	}
	o.startPump(s)
}

// startPump reads a descriptor in the background.
func (o *output) startPump(s *source) {
	o.sources[s] = true
	if s.labelled != nil {
		o.files.Add(1)
	}
	o.wg.Go(func() { o.pump(s) })
}

// pump reads a descriptor to its end, no faster than the client takes it.
func (o *output) pump(s *source) {
	kind := stream.Stdout
	if s.fd == 2 {
		kind = stream.Stderr
	}
	rc, err := s.f.SyscallConn()
	for err == nil {
		o.mu.Lock()
		for !o.closed && !o.paused && o.isFull() && s.labelled == nil {
			o.moved.Wait()
		}
		stop := o.closed || o.paused
		o.mu.Unlock()
		if stop {
			break
		}
		if s.labelled == nil {
			var n int
			n, err = o.readFrame(kind, s.rank, rc)
			if n == 0 && err == nil {
				break
			}
			continue
		}
		var data []byte
		data, err = readSome(rc)
		if len(data) == 0 && err == nil {
			break
		}
		if len(data) > 0 {
			_ = s.labelled.write(data, o.gate, o.halt) // it fails if it is paused, or closed
		}
	}
	o.end(s)
}

// end lets go of a descriptor that was read to its end, or that the next process goes on with.
func (o *output) end(s *source) {
	o.mu.Lock()
	handedOver := o.paused && !o.closed
	o.mu.Unlock()
	if handedOver {
		return
	}
	if s.labelled != nil { // its file may be slow: without the lock
		s.labelled.end(o.gate, o.halt)
		o.files.Done()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sources, s)
	if s.labelled == nil {
		o.put(stream.EOF, s.rank, []byte{byte(s.fd)})
	}
	if s.tty {
		o.dropSink(s.rank)
		o.pty = nil
	}
	s.f.Close()
	o.finish()
}

// fileTime is how long the end of a step waits for what its tasks have written last to be in their files.
const fileTime = 5 * time.Second

// awaitFiles waits until all that the tasks have written is in the files that the supervisor writes for them. Nobody
// else tells that: a step without an srun is over for its users once its state says so.
func (o *output) awaitFiles() {
	done := make(chan struct{})
	go func() { // ends with the last descriptor, which close closes
		o.files.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(fileTime):
	}
}

// isFull reports whether nothing more is to be read into frames; mu is held.
func (o *output) isFull() bool { return o.bytes+o.reading >= MaxUnacked }

// readFrame reads what is there into a frame, once something is and if the step has room then. It returns how many
// bytes were read; -1 if there was no room, and 0 without an error at the end. No lock is taken while the descriptor
// is in use: close waits for its users with mu held.
func (o *output) readFrame(kind stream.Kind, rank int32, rc syscall.RawConn) (int, error) {
	if err := awaitData(rc); err != nil {
		return 0, err
	}
	o.mu.Lock()
	full := o.isFull()
	if !full {
		o.reading += readSize
	}
	o.mu.Unlock()
	if full {
		return -1, nil
	}
	data, err := readSome(rc)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reading -= readSize
	if len(data) > 0 {
		o.put(kind, rank, data)
	} else {
		o.moved.Broadcast() // who waits for the room
	}
	return len(data), err
}

// awaitData waits until a descriptor has something to read, or is at its end.
func awaitData(rc syscall.RawConn) error {
	var perr error
	err := rc.Read(func(fd uintptr) bool {
		set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(set, 0)
		for err == unix.EINTR {
			n, err = unix.Poll(set, 0)
		}
		perr = err
		return n > 0 || err != nil
	})
	return cmp.Or(err, perr)
}

// readSome reads what is there, holding a buffer only once something is. No data and no error is the end; a terminal's
// EIO is an error and means the same.
func readSome(rc syscall.RawConn) (data []byte, err error) {
	var rerr error
	err = rc.Read(func(fd uintptr) bool {
		buf := readBufs.Get().(*[]byte)
		defer readBufs.Put(buf)
		n, e := unix.Read(int(fd), *buf)
		if e == unix.EAGAIN || e == unix.EINTR {
			return false
		}
		if rerr = e; n > 0 {
			data = append([]byte(nil), (*buf)[:n]...)
		}
		return true
	})
	return data, cmp.Or(err, rerr)
}

// noTask ends the input of a task that is gone or was never there.
func (o *output) noTask(rank int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropSink(rank)
}

func (o *output) exit(rank int32, e stream.TaskExit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(stream.Exit, rank, stream.AppendExit(nil, e))
	o.dropSink(rank)
}

// stepEnded says that no process is left.
func (o *output) stepEnded() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	o.finish()
}

// finish appends the last frame when all is over; mu is held.
func (o *output) finish() {
	if o.over && len(o.sources) == 0 && !o.done {
		o.done = true
		o.put(stream.Done, stream.AllTasks, nil)
	}
}

// close ends everything when the step is forgotten.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.stop()
	for s := range o.sources {
		s.f.Close() // wakes its pump
	}
	for r := range o.sinks {
		o.dropSink(r)
	}
	if o.att != nil {
		o.att.conn.Close()
	}
	o.others.Close()
	o.frames = nil
	o.moved.Broadcast()
}

// stop has the writes to labelled files end; mu is held.
func (o *output) stop() {
	select {
	case <-o.halt:
	default:
		close(o.halt)
	}
	for s := range o.sources {
		if s.labelled != nil {
			_ = s.labelled.f.SetWriteDeadline(time.Unix(1, 0)) // a file that has none holds its thread
		}
	}
}

// ack drops frames up to seq; mu is held.
func (o *output) ack(seq uint64) {
	n := 0
	for n < len(o.frames) && o.frames[n].Seq <= seq {
		o.bytes -= cost(&o.frames[n])
		o.frames[n].Data = nil
		n++
	}
	if n > 0 {
		o.frames = o.frames[n:]
		if len(o.frames) == 0 {
			o.frames = nil
		}
		o.moved.Broadcast()
	}
}

// dropSink ends a task's input: what is queued counts as passed on. mu is held.
func (o *output) dropSink(rank int32) {
	k := o.sinks[rank]
	if k == nil || k.gone {
		return
	}
	k.gone = true
	if k.f != nil && !k.tty {
		k.f.Close()
	}
	for _, p := range k.queue {
		o.landed(p.seq)
	}
	k.queue = nil
	o.moved.Broadcast()
}
