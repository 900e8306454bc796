package supervisor

import (
	"bufio"
	"net"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/step"
	"dev.muster/api/stream"
	"golang.org/x/sys/unix"
)

// attachment is one client connection.
type attachment struct {
	conn    net.Conn
	sent    uint64 // last output number sent
	inAcked uint64 // last InputAck sent
	gone    bool
	// replaced: a newer attachment came. The writer says so and closes the connection.
	replaced bool
}

// serve speaks the stream protocol until the client goes or another takes its place.
func (o *output) serve(conn net.Conn) {
	conn.SetReadDeadline(time.Now().Add(firstMessage))
	r := bufio.NewReaderSize(conn, 4<<10)
	hello, err := stream.ReadFrame(r)
	conn.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
	case hello.Kind == stream.Watch:
		o.others.Serve(conn, r, hello.Seq, o.typed)
	case hello.Kind == stream.Hello:
		o.serveClient(conn, r, hello.Seq)
	}
}

// serveClient serves the step's client, which has the frames up to last.
func (o *output) serveClient(conn net.Conn, r *bufio.Reader, last uint64) {
	a := o.attach(conn, last)
	if a == nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { o.write(a) })
	for {
		f, err := stream.ReadFrame(r)
		if err != nil || !o.receive(a, f) {
			break
		}
	}
	conn.Close()
	o.mu.Lock()
	a.gone = true
	if o.att == a {
		o.att = nil
	}
	o.moved.Broadcast()
	o.mu.Unlock()
	wg.Wait()
}

// disconnect makes the stream one whose pipes died with an earlier supervisor.
func (o *output) disconnect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.adopted, o.dead = true, true
	for r := range o.sinks {
		o.dropSink(r)
	}
}

// maxSeq bounds what a client may say that it has: numbers go on from there where those of before are not known.
const maxSeq = 1 << 62

// attach puts a new client in the place of an older one and welcomes it.
func (o *output) attach(conn net.Conn, last uint64) *attachment {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.paused || last > maxSeq {
		return nil
	}
	if o.adopted { // the numbers given before are not known here
		for i := range o.frames {
			o.frames[i].Seq += last
		}
		o.seq += last
	}
	if last > o.seq {
		return nil
	}
	o.adopted = false
	if old := o.att; old != nil {
		old.gone, old.replaced = true, true
		old.conn.SetWriteDeadline(time.Now().Add(time.Second))
	}
	o.ack(last)
	first := o.seq + 1
	if len(o.frames) > 0 {
		first = o.frames[0].Seq
	}
	a := &attachment{conn: conn, sent: first - 1, inAcked: 0}
	if err := stream.WriteFrame(conn, stream.WelcomeFrame(o.taken, first)); err != nil {
		return nil
	}
	if o.room > stream.InputWindow {
		if err := stream.WriteFrame(conn, stream.Frame{Kind: stream.Room, Seq: uint64(o.room)}); err != nil {
			return nil
		}
	}
	o.att = a
	o.moved.Broadcast()
	return a
}

// write sends frames as they come.
func (o *output) write(a *attachment) {
	var buf []byte
	for {
		o.mu.Lock()
		for !a.gone && a.sent >= o.seq && a.inAcked >= o.written {
			o.moved.Wait()
		}
		if a.gone {
			replaced := a.replaced
			o.mu.Unlock()
			if replaced {
				stream.WriteFrame(a.conn, stream.Frame{Kind: stream.Replaced})
				a.conn.Close()
			}
			return
		}
		buf = buf[:0]
		if a.inAcked < o.written {
			a.inAcked = o.written
			buf = stream.AppendFrame(buf, stream.Frame{Kind: stream.InputAck, Seq: o.written})
		}
		i := 0
		if len(o.frames) > 0 && a.sent >= o.frames[0].Seq {
			i = int(a.sent - o.frames[0].Seq + 1)
		}
		for ; i < len(o.frames) && len(buf) < batchSize; i++ {
			buf = stream.AppendFrame(buf, o.frames[i])
			a.sent = o.frames[i].Seq
		}
		if len(o.frames) == 0 {
			a.sent = o.seq // acknowledged before it was sent
		}
		o.mu.Unlock()
		if _, err := a.conn.Write(buf); err != nil {
			a.conn.Close() // ends the reader
			return
		}
	}
}

// receive takes one frame from the client; false ends the connection.
func (o *output) receive(a *attachment, f stream.Frame) bool {
	switch f.Kind {
	case stream.Ack:
		o.mu.Lock()
		defer o.mu.Unlock()
		if f.Seq > a.sent {
			return false
		}
		o.ack(f.Seq)
		return true
	case stream.Stdin, stream.StdinEOF:
		return o.input(a, f)
	case stream.Winsize:
		rows, cols, err := f.Winsize()
		if err == nil {
			o.resize(rows, cols)
		}
		return err == nil
	case stream.Signal:
		n, err := f.Signal()
		if err != nil || n < 1 || n > 64 {
			return false
		}
		o.signal(f.Task, syscall.Signal(n))
		return true
	}
	return false
}

func (o *output) resize(rows, cols uint16) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pty == nil {
		return
	}
	if rc, err := o.pty.SyscallConn(); err == nil {
		rc.Control(func(fd uintptr) {
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
		})
	}
}

// signalTask signals one task's own process, or all of them.
func (r *run) signalTask(rank int32, sig syscall.Signal) {
	if rank == stream.AllTasks {
		r.sup.signal(r.id, sig, step.Leaders)
		return
	}
	r.sup.mu.Lock()
	defer r.sup.mu.Unlock()
	if t := r.task(rank); t != nil && t.live {
		if t.pidfd >= 0 {
			unix.PidfdSendSignal(t.pidfd, sig, nil, 0)
		} else {
			unix.Kill(t.st.PID, sig)
		}
	}
}
