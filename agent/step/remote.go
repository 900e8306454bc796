package step

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/cgroup"
	"dev.muster/cluster"
	"dev.muster/wire"
	"golang.org/x/sys/unix"
)

// Limits of Remote.
const (
	maxStartBatch = 4 << 20          // bytes of specs in one message, but for a single larger one
	startWait     = 10 * time.Second // for a new supervisor to listen
	maxRedial     = 2 * time.Second  // between attempts to have a supervisor
)

// ReadyEnv names the variable with the descriptor on which a new supervisor says it listens.
const ReadyEnv = "MUSTER_READY_FD"

// Remote runs steps through the supervisor process of a directory.
type Remote struct {
	dir     string
	exe     []string
	changes chan Status
	closed  chan struct{}
	wg      sync.WaitGroup

	mu      sync.Mutex
	conn    net.Conn
	up      chan struct{} // closed while conn is set
	lost    chan struct{} // closed when conn breaks
	waiting map[uint32]chan answer
	n       uint32
	wmu     sync.Mutex

	qmu   sync.Mutex
	queue []ID // changed steps not yet delivered
	last  map[ID]Status
	more  chan struct{}
}

type answer struct {
	Reply
	lost bool
}

var _ Runner = (*Remote)(nil)

// Open connects to the supervisor of dir, or starts one by executing exe (program and
// arguments), which must end up in Main for the same dir.
func Open(dir string, exe []string) (*Remote, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &Remote{dir: dir, exe: exe, changes: make(chan Status, 64), closed: make(chan struct{}),
		up: make(chan struct{}), waiting: map[uint32]chan answer{}, last: map[ID]Status{}, more: make(chan struct{}, 1)}
	conn, err := r.connect()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.conn, r.lost = conn, make(chan struct{})
	close(r.up)
	r.mu.Unlock()
	r.wg.Go(func() { r.run(conn) })
	r.wg.Go(r.deliver)
	return r, nil
}

// Close ends the connection. The supervisor and its steps go on.
func (r *Remote) Close() error {
	r.shut()
	r.mu.Lock()
	if r.conn != nil {
		r.conn.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
	return nil
}

func DialSock(dir string) (net.Conn, error) {
	path, done, err := SockPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.Dial("unix", path)
}

// connect dials the supervisor, starting one if there is none, and greets it.
func (r *Remote) connect() (net.Conn, error) {
	var err error
	for range 3 {
		var conn net.Conn
		if conn, err = DialSock(r.dir); err == nil {
			if _, err = conn.Write(AppendMessage(nil, MsgHello)); err == nil {
				return conn, nil
			}
			conn.Close()
		}
		if serr := r.spawn(); serr != nil {
			err = serr
		}
	}
	return nil, fmt.Errorf("connect to supervisor in %s: %w", r.dir, err)
}

// spawn starts a supervisor in a session, and where possible a cgroup, of its own, and waits
// until it listens or has given up (another may serve dir).
func (r *Remote) spawn() error {
	log, err := os.OpenFile(filepath.Join(r.dir, LogName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	pr, pw, err := os.Pipe()
	if err != nil {
		return err
	}
	defer pr.Close()
	cmd := exec.Command(r.exe[0], r.exe[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, r.dir
	cmd.ExtraFiles = []*os.File{pw}
	cmd.Env = append(os.Environ(), ReadyEnv+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c := cgroup.Open(r.dir); c != nil {
		defer c.Release()
		if fd, err := c.OpenHome(); err == nil {
			defer unix.Close(fd)
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, fd
		}
	}
	err = cmd.Start()
	if err != nil && cmd.SysProcAttr.UseCgroupFD {
		c := exec.Command(r.exe[0], r.exe[1:]...)
		c.Stdout, c.Stderr, c.Dir, c.ExtraFiles, c.Env = log, log, r.dir, cmd.ExtraFiles, cmd.Env
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd, err = c, c.Start()
	}
	pw.Close()
	if err != nil {
		return fmt.Errorf("start supervisor: %w", err)
	}
	go cmd.Wait() // its end is the process's; it outlives Remote
	pr.SetReadDeadline(time.Now().Add(startWait))
	if n, err := pr.Read(make([]byte, 1)); n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("supervisor does not answer; see %s", filepath.Join(r.dir, LogName))
	}
	return nil
}

// run reads from the supervisor, and finds it or another again when the connection breaks.
func (r *Remote) run(conn net.Conn) {
	defer close(r.more)
	for conn != nil {
		r.read(conn)
		conn.Close()
		r.mu.Lock()
		r.conn, r.up = nil, make(chan struct{})
		close(r.lost)
		for n, ch := range r.waiting {
			ch <- answer{lost: true}
			delete(r.waiting, n)
		}
		r.mu.Unlock()
		conn = r.again()
	}
}

func (r *Remote) again() net.Conn {
	for wait := time.Millisecond; ; wait = min(2*wait, maxRedial) {
		select {
		case <-r.closed:
			return nil
		default:
		}
		conn, err := r.connect()
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			select {
			case <-r.closed:
				conn.Close()
				return nil
			default:
			}
			r.conn, r.lost = conn, make(chan struct{})
			close(r.up)
			return conn
		}
		slog.Error("no supervisor", "dir", r.dir, "err", err)
		select {
		case <-r.closed:
			return nil
		case <-time.After(wait):
		}
	}
}

func (r *Remote) read(conn net.Conn) {
	for {
		kind, body, err := ReadMessage(conn, 1<<31-1)
		if err != nil {
			return
		}
		switch kind {
		case MsgReply:
			n, body, err := CutNumber(body)
			var a answer
			if err != nil || wire.Unmarshal(body, &a.Reply) != nil {
				return
			}
			r.mu.Lock()
			ch := r.waiting[n]
			delete(r.waiting, n)
			r.mu.Unlock()
			if ch != nil {
				ch <- a
			}
		case MsgPush, MsgFull:
			var list []Status
			if wire.Unmarshal(body, &list) != nil {
				return
			}
			r.push(list)
		}
	}
}

// push queues statuses for Changes; of one step's, the newest counts.
func (r *Remote) push(list []Status) {
	r.qmu.Lock()
	for _, st := range list {
		if _, ok := r.last[st.ID]; !ok {
			r.queue = append(r.queue, st.ID)
		}
		r.last[st.ID] = st
	}
	r.qmu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

func (r *Remote) deliver() {
	defer close(r.changes)
	for range r.more {
		r.qmu.Lock()
		queue := r.queue
		r.queue = nil
		r.qmu.Unlock()
		for _, id := range queue {
			r.qmu.Lock()
			st := r.last[id]
			delete(r.last, id)
			r.qmu.Unlock()
			select {
			case r.changes <- st:
			case <-r.closed:
				return
			}
		}
	}
}

// call makes a request. One that may be repeated is, if the connection breaks meanwhile.
func (r *Remote) call(kind byte, body []byte, repeat bool) (Reply, error) {
	if len(body)+16 > MaxMessage {
		return Reply{}, fmt.Errorf("request of %d bytes: %w", len(body), unix.E2BIG)
	}
	for {
		r.mu.Lock()
		conn, up := r.conn, r.up
		if conn == nil {
			r.mu.Unlock()
			select {
			case <-up:
				continue
			case <-r.closed:
				return Reply{}, ErrClosed
			}
		}
		r.n++
		n := r.n
		ch := make(chan answer, 1)
		r.waiting[n] = ch
		r.mu.Unlock()
		r.wmu.Lock()
		_, err := conn.Write(AppendMessage(nil, kind, Number(n), body))
		r.wmu.Unlock()
		if err != nil {
			conn.Close() // the reader answers
		}
		a := <-ch
		if !a.lost {
			return a.Reply, a.Reply.err()
		}
		select {
		case <-r.closed:
			return Reply{}, ErrClosed
		default:
		}
		if !repeat {
			return Reply{}, fmt.Errorf("supervisor went away: %w", unix.EPIPE)
		}
	}
}

// Start implements Runner.
func (r *Remote) Start(specs ...Spec) error {
	for len(specs) > 0 {
		n, size := 0, 0
		for n < len(specs) && (n == 0 || size < maxStartBatch) {
			size += len(specs[n].Env) + len(specs[n].Script) + 512
			n++
		}
		if n > 1 && size > maxStartBatch {
			n--
		}
		b, err := encodeSpecs(specs[:n])
		if err != nil {
			return err
		}
		if _, err := r.call(MsgStart, b, true); err != nil {
			return err
		}
		specs = specs[n:]
	}
	return nil
}

func (r *Remote) callJSON(kind byte, v any, repeat bool) (Reply, error) {
	b, err := wire.Marshal(v)
	if err != nil {
		return Reply{}, err
	}
	return r.call(kind, b, repeat)
}

// Signal implements Runner. Only SIGKILL is sent again if the supervisor is replaced meanwhile.
func (r *Remote) Signal(id ID, sig syscall.Signal, scope Scope) error {
	_, err := r.callJSON(MsgSignal, SignalRequest{id, int(sig), scope}, sig == syscall.SIGKILL)
	return err
}

// Freeze implements Runner.
func (r *Remote) Freeze(id ID, stop bool) error {
	_, err := r.callJSON(MsgFreeze, FreezeRequest{id, stop}, true)
	return err
}

// SetNote implements Runner. A supervisor of a version before this keeps the old note, and breaks the connection.
func (r *Remote) SetNote(id ID, note []byte) error {
	_, err := r.callJSON(MsgSetNote, NoteRequest{id, note}, false)
	return err
}

// List implements Runner.
func (r *Remote) List() ([]Status, error) {
	rep, err := r.call(MsgList, nil, true)
	return rep.List, err
}

// Changes implements Runner. After every connection it tells of all steps first.
func (r *Remote) Changes() <-chan Status { return r.changes }

// Forget implements Runner.
func (r *Remote) Forget(ids ...ID) error {
	_, err := r.callJSON(MsgForget, ids, true)
	return err
}

// Adopt implements Runner.
func (r *Remote) Adopt(id ID, pid int) error {
	_, err := r.callJSON(MsgAdopt, AdoptRequest{id, pid}, false)
	return err
}

// Release implements Runner. A supervisor of a version before this has nothing to let go of, and breaks the connection.
func (r *Remote) Release(id ID) error {
	_, err := r.callJSON(MsgRelease, id, false)
	return err
}

// SetMemory implements Runner. A supervisor of a version before this leaves the limit, and breaks the connection.
func (r *Remote) SetMemory(id ID, mb cluster.MemMB) error {
	_, err := r.callJSON(MsgMemory, MemoryRequest{id, mb}, false)
	return err
}

// Shutdown kills every step and ends the supervisor, then closes r. It is marked as closed first: the connection
// breaks when the supervisor ends, and that must not start another one.
func (r *Remote) Shutdown() error {
	r.shut()
	_, err := r.call(MsgStop, nil, false)
	r.Close()
	return err
}

// shut marks r as closed.
func (r *Remote) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closed:
	default:
		close(r.closed)
	}
}

// Upgrade makes the supervisor execute the program at exe (empty: its own path) in its place,
// keeping its steps, and waits until r is connected to it.
func (r *Remote) Upgrade(exe string) error {
	r.mu.Lock()
	lost := r.lost
	r.mu.Unlock()
	if _, err := r.callJSON(MsgUpgrade, exe, false); err != nil {
		return err
	}
	select {
	case <-lost:
	case <-r.closed:
		return ErrClosed
	}
	r.mu.Lock()
	up := r.up
	r.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-r.closed:
		return ErrClosed
	}
}

// Attach implements Runner: the connection speaks the protocol of package stream.
func (r *Remote) Attach(id ID) (net.Conn, error) {
	conn, err := DialSock(r.dir)
	if err != nil {
		return nil, err
	}
	b, _ := wire.Marshal(id)
	conn.SetDeadline(time.Now().Add(startWait))
	_, err = conn.Write(AppendMessage(nil, MsgAttach, b))
	var rep Reply
	if err == nil {
		var kind byte
		var body []byte
		if kind, body, err = ReadMessage(conn, MaxFirst); err == nil && kind == MsgReply {
			if _, body, err = CutNumber(body); err == nil {
				err = wire.Unmarshal(body, &rep)
			}
		}
	}
	if err == nil {
		err = rep.err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	return conn, nil
}

// Say implements Runner.
func (r *Remote) Say(id ID, text string, ends bool) error {
	_, err := r.callJSON(MsgSay, SayRequest{id, text, !ends}, false)
	return err
}
