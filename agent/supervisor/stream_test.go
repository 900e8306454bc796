package supervisor

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
	"dev.muster/cluster"
)

// cutConn breaks after so many bytes have been read or written.
type cutConn struct {
	net.Conn
	mu   sync.Mutex
	left int
}

func (c *cutConn) take(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(n, c.left)
	if c.left -= n; c.left == 0 {
		c.Conn.Close()
	}
	return n
}

func (c *cutConn) Read(b []byte) (int, error) {
	if len(b) > 4096 {
		b = b[:4096]
	}
	n, err := c.Conn.Read(b)
	if k := c.take(n); k < n {
		return k, io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *cutConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	n := min(len(b), c.left)
	c.mu.Unlock()
	k, err := c.Conn.Write(b[:n])
	c.take(k)
	if err == nil && k < len(b) {
		err = io.ErrClosedPipe
	}
	return k, err
}

func (g *rig) stream(id step.ID) *stream.Stream {
	s := stream.New(func() (io.ReadWriteCloser, error) { return g.r.Attach(id) }, 0)
	g.t.Cleanup(func() { s.Close() })
	return s
}

func (g *rig) streamSpec(tasks int, script string) step.Spec {
	sp := g.spec(script)
	sp.ID.Step = 0
	k := sp.Tasks[0]
	k.Stdin, k.Stdout, k.Stderr = step.IO{Kind: step.Stream}, step.IO{Kind: step.Stream}, step.IO{Kind: step.Stream}
	sp.Tasks = nil
	for i := range tasks {
		k.Rank = i + 10
		sp.Tasks = append(sp.Tasks, k)
	}
	return sp
}

// heard is what a client made of a stream.
type heard struct {
	out, err map[int32]string
	eofs     map[string]bool
	exits    map[int32]stream.TaskExit
	n        uint64
}

func listen(t *testing.T, s *stream.Stream, each func(stream.Frame), first ...func()) heard {
	t.Helper()
	h := heard{
		out: map[int32]string{}, err: map[int32]string{}, eofs: map[string]bool{},
		exits: map[int32]stream.TaskExit{},
	}
	for _, f := range first {
		f()
	}
	out, errs := map[int32]*bytes.Buffer{}, map[int32]*bytes.Buffer{}
	add := func(m map[int32]*bytes.Buffer, f stream.Frame) {
		if m[f.Task] == nil {
			m[f.Task] = &bytes.Buffer{}
		}
		m[f.Task].Write(f.Data)
	}
	for {
		f, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.n++; f.Seq != h.n {
			t.Fatalf("frame %d came as number %d", f.Seq, h.n)
		}
		switch f.Kind {
		case stream.Stdout:
			add(out, f)
		case stream.Stderr:
			add(errs, f)
		case stream.EOF:
			h.eofs[fmt.Sprint(f.Task, ":", f.FD())] = true
		case stream.Exit:
			if h.exits[f.Task], err = f.TaskExit(); err != nil {
				t.Fatal(err)
			}
		}
		if each != nil {
			each(f)
		}
	}
	for k, b := range out {
		h.out[k] = b.String()
	}
	for k, b := range errs {
		h.err[k] = b.String()
	}
	return h
}

func TestStream(t *testing.T) {
	g := newRig(t)
	sp := g.streamSpec(2, "read x; echo got $x; echo bad >&2; cat; exit 3")
	g.start(sp)
	s := g.stream(sp.ID)
	s.Input(stream.AllTasks, []byte("both\n"))
	s.Input(11, []byte("only eleven"))
	s.InputEOF(stream.AllTasks)
	h := listen(t, s, nil)
	if h.out[10] != "got both\n" || h.out[11] != "got both\nonly eleven" || h.err[10] != "bad\n" || h.err[11] != "bad\n" {
		t.Errorf("%+v", h)
	}
	if len(h.eofs) != 4 || h.exits[10].Code != 3 || h.exits[11].Code != 3 {
		t.Errorf("%+v", h)
	}
	g.await(sp.ID, isEnded)
	if _, err := g.r.Attach(step.ID{Job: 99}); err != step.ErrUnknown {
		t.Errorf("attach to an unknown step: %v", err)
	}
}

func TestStreamStartFailure(t *testing.T) {
	g := newRig(t)
	sp := g.streamSpec(1, "")
	sp.Tasks[0].Argv = []string{g.own + "/nosuch"}
	g.start(sp)
	h := listen(t, g.stream(sp.ID), nil)
	if e := h.exits[10]; e.Errno != int(syscall.ENOENT) || !strings.Contains(e.Error, "/nosuch") {
		t.Errorf("%+v", h)
	}
}

// TestStreamCuts sends input and takes output over connections that break at random places.
func TestStreamCuts(t *testing.T) {
	g := newRig(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	sp := g.streamSpec(2, "cat")
	g.start(sp)
	var mu sync.Mutex
	dials := 0
	s := stream.New(func() (io.ReadWriteCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		dials++
		c, err := g.r.Attach(sp.ID)
		if err != nil {
			return nil, err
		}
		return &cutConn{Conn: c, left: 64 + rnd.IntN(512<<10)}, nil
	}, 0)
	defer s.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1+int(rest[0])*300)
			if err := s.Input(stream.AllTasks, rest[:n]); err != nil {
				t.Errorf("input: %v", err)
				return
			}
			rest = rest[n:]
		}
		s.InputEOF(stream.AllTasks)
	})
	h := listen(t, s, nil)
	wg.Wait()
	for _, rank := range []int32{10, 11} {
		if h.out[rank] != string(data) {
			t.Errorf("task %d: %d bytes differ from the %d sent", rank, len(h.out[rank]), len(data))
		}
	}
	if dials < 5 {
		t.Errorf("only %d connections", dials)
	}
}

// TestBackpressure: without a client, a task writes its pipe and MaxUnacked full and waits;
// nothing is lost.
func TestBackpressure(t *testing.T) {
	g := newRig(t)
	in := g.fifo("in")
	const size = 4 << 20
	sp := g.streamSpec(1, fmt.Sprintf("echo >%s; head -c %d /dev/zero | tr '\\0' x; echo >&2 end", in, size))
	g.start(sp)
	g.readFifo(in)
	c, err := g.r.Attach(sp.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A client that acknowledges nothing is sent the limit and no more than a read above it.
	stream.WriteFrame(c, stream.Frame{Kind: stream.Hello})
	got, last := 0, uint64(0)
	for got < MaxUnacked/2 {
		f, err := stream.ReadFrame(c)
		if err != nil {
			t.Fatal(err)
		}
		got += len(f.Data)
		last = max(last, f.Seq)
	}
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	for {
		f, err := stream.ReadFrame(c)
		if err != nil {
			break
		}
		got += len(f.Data)
		last = max(last, f.Seq)
	}
	if got > MaxUnacked+2*readSize {
		t.Errorf("%d bytes unacknowledged, limit %d", got, MaxUnacked)
	}
	// Another client starts over and has it all; the old connection is closed by that.
	h := listen(t, g.stream(sp.ID), nil)
	if len(h.out[10]) != size || strings.Trim(h.out[10], "x") != "" || h.err[10] != "end\n" {
		t.Errorf("%d bytes, %q", len(h.out[10]), h.err[10])
	}
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if f, err := stream.ReadFrame(c); err != nil || f.Kind != stream.Replaced {
		t.Errorf("the older attachment hears %+v, %v", f, err)
	}
	if _, err := stream.ReadFrame(c); err == nil || os.IsTimeout(err) {
		t.Errorf("the older attachment lives: %v", err)
	}
	if last == 0 {
		t.Error("no frame came")
	}
}

func TestStreamSignal(t *testing.T) {
	g := newRig(t)
	sp := g.streamSpec(2, "trap 'exit 4' USR1; echo up; while :; do sleep 0.01; done")
	g.start(sp)
	s := g.stream(sp.ID)
	h := listen(t, s, func(f stream.Frame) {
		if f.Kind != stream.Stdout {
			return
		}
		if f.Task == 10 {
			s.Signal(10, int(syscall.SIGUSR1))
		} else {
			s.Signal(11, int(syscall.SIGTERM))
		}
	})
	if h.exits[10].Code != 4 || h.exits[11].Signal != 15 {
		t.Errorf("%+v", h.exits)
	}
}

func TestTerminal(t *testing.T) {
	g := newRig(t)
	sp := g.streamSpec(2,
		"test -t 0 && stty size && tty | grep -c pts; read x; test -t 0 && stty size; echo $x; read y; echo end")
	sp.PTY = &cluster.Winsize{Rows: 33, Cols: 101}
	if os.Geteuid() == 0 {
		sp.UID, sp.GID = 65534, 65534
		sp.Tasks[0].Argv = append([]string(nil), sp.Tasks[0].Argv...)
		sp.Tasks[0].Argv[2] = "test \"$(stat -Lc %u /proc/self/fd/0)\" = 65534 || exit 9; " + sp.Tasks[0].Argv[2]
	}
	sp.Tasks[1].Argv = []string{"/bin/sh", "-c", "read x; echo $x"}
	g.start(sp)
	s := g.stream(sp.ID)
	s.Input(11, []byte("plain\n"))
	sent := false
	all := ""
	h := listen(t, s, func(f stream.Frame) {
		if f.Kind == stream.Stdout && f.Task == 10 {
			all += string(f.Data)
		}
		if !sent && strings.Contains(all, "1\r\n") && strings.Contains(all, "33 101\r\n1\r\n") {
			sent = true
			s.Resize(50, 200)
			s.Input(10, []byte("typed\n"))
			s.InputEOF(10)
		}
	})
	if want := "33 101\r\n1\r\ntyped\r\n50 200\r\ntyped\r\nend\r\n"; h.out[10] != want {
		t.Errorf("terminal: %q", h.out[10])
	}
	if h.out[11] != "plain\n" || h.exits[10].Code != 0 {
		t.Errorf("%+v", h)
	}
}

// TestStreamsBesideEnd: a task may end while its streams are being handed to the step's output. Only the race detector
// sees a fault here, in most of the rounds.
func TestStreamsBesideEnd(t *testing.T) {
	for range 100 {
		s := &supervisor{}
		r := newRun(s, step.Spec{Tasks: []step.Task{{Rank: 3}}})
		handed := make(chan struct{})
		go func() {
			defer close(handed)
			s.streams(r.tasks[0], &stdio{})
		}()
		s.mu.Lock()
		r.tasks[0].st = step.TaskStatus{Rank: 3, Ended: time.Now()}
		s.mu.Unlock()
		<-handed
	}
}

// TestLastNumber: a client that says it has numbers near the largest is turned away, also where a supervisor before has
// given the numbers. Beyond the largest they would begin again, and what is sent be sought before the first frame.
func TestLastNumber(t *testing.T) {
	for _, last := range []uint64{1<<64 - 2, maxSeq + 1} {
		o := newOutput(&run{})
		o.disconnect()
		o.put(stream.Stderr, stream.OfNode, []byte("a line"))
		near, far := net.Pipe()
		go func() { // ends with the pipe
			_, _ = io.Copy(io.Discard, near)
		}()
		if o.attach(far, last) != nil {
			t.Errorf("a client that has frame %d is taken", last)
		}
		near.Close()
		far.Close()
	}
}

// TestSmallFrames: a task that writes a byte at a time, of which its client takes none, and lines of the node's own take
// no more memory than large pieces do.
func TestSmallFrames(t *testing.T) {
	o := newOutput(&run{spec: step.Spec{Tasks: make([]step.Task, 1)}})
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	o.addSource(&source{fd: 1, f: read})
	taken := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.frames)
	}
	const most = MaxUnacked / frameCost
	for n := 0; n <= 2*most; n++ {
		if _, err := write.Write([]byte{'x'}); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(100 * time.Millisecond); taken() == n && time.Now().Before(end); {
			runtime.Gosched() // so that each byte is read by itself
		}
		if taken() == n {
			break
		}
	}
	if n := taken(); n > most+1 {
		t.Errorf("%d frames wait for the client, want %d at most", n, most)
	}
	for range 10 * MaxUnacked / maxSay {
		o.say(bytes.Repeat([]byte{'y'}, maxSay), false)
	}
	o.mu.Lock()
	n := o.bytes
	o.mu.Unlock()
	if n > 2*MaxUnacked+maxSay+frameCost {
		t.Errorf("%d bytes wait for the client", n)
	}
	o.mu.Lock()
	o.ack(o.seq)
	if o.bytes != 0 {
		t.Errorf("%d bytes of none", o.bytes)
	}
	o.mu.Unlock()
	o.close()
}
