// Package x11 is a display on a node whose X server is elsewhere: a port of this machine, the file by which programs
// prove to the X server that they may use it, and connections that wait to be carried there. Whoever has not the file
// is refused here already (setup.go); the rest of what is sent is not looked into.
package x11

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"dev.muster/agent/step"
)

// Numbers of displays on nodes, as Slurm gives them: those below are for the machine's own and for ssh.
const (
	lowest  = 20
	highest = 99
	base    = 6000 // port of display 0
)

// Bounds of what waits.
const (
	maxWaiting = 64               // connections that nobody has taken yet
	maxReading = 64               // connections that have not shown their cookie
	takeTime   = 20 * time.Second // for one to be taken
	maxCookie  = 256              // bytes
)

// Owner is whose display it is.
type Owner struct {
	UID, GID uint32
	Groups   []uint32
	Home     string // with a file in it where the site wants that
}

// Display is one that programs of a job can use.
type Display struct {
	Number int
	file   string // what XAUTHORITY names
	cookie []byte
	lns    []net.Listener
	forget func()

	mu      sync.Mutex
	reading []net.Conn // that have not shown their cookie, the oldest first
	next    uint64
	waiting map[uint64]net.Conn
	tell    chan uint64
	closed  chan struct{}
	once    sync.Once
}

// Options say what display is made.
type Options struct {
	Number int    // that it has, if that is free; 0: any
	Cookie string // hexadecimal
	Host   string // how programs here call the machine
	Owner  Owner
	File   string // to be made; with InHome the one in the owner's home gets an entry instead
	InHome bool
}

// Open makes a display.
func Open(o Options) (*Display, error) {
	cookie, err := hex.DecodeString(o.Cookie)
	if err != nil || len(cookie) == 0 || len(cookie) > maxCookie {
		return nil, errors.New("the cookie of the X server is none: want hexadecimal digits, as xauth list shows them")
	}
	lns, number, err := listen(o.Number)
	if err != nil {
		return nil, err
	}
	d := &Display{
		Number: number, file: o.File, cookie: cookie, lns: lns,
		waiting: map[uint64]net.Conn{},
		tell:    make(chan uint64, maxWaiting), closed: make(chan struct{}),
	}
	if o.InHome {
		d.file, d.forget, err = addHome(o, number)
	} else {
		d.forget, err = writeFile(o, number, cookie)
	}
	if err != nil {
		closeAll(lns)
		return nil, err
	}
	for _, ln := range lns {
		go d.accept(ln) // ends with the listener
	}
	return d, nil
}

// listen takes a free number, that which is wanted if it can be had.
func listen(wanted int) ([]net.Listener, int, error) {
	first := rand.IntN(highest - lowest + 1)
	for i := -1; i <= highest-lowest; i++ {
		n := lowest + (first+i)%(highest-lowest+1)
		if i < 0 {
			n = wanted
		}
		if n < lowest || n > highest {
			continue
		}
		if lns, err := listenAt(base + n); err == nil {
			return lns, n, nil
		}
	}
	return nil, 0, fmt.Errorf("no display from :%d to :%d is free on this node: "+
		"ports %d to %d of 127.0.0.1 or ::1 are taken", lowest, highest, base+lowest, base+highest)
}

// listenAt takes a port of all addresses that programs find for localhost. They try ::1 first: who had that one would
// be shown their cookie.
func listenAt(port int) ([]net.Listener, error) {
	first, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	second, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(port)))
	switch {
	case err == nil:
		return []net.Listener{first, second}, nil
	case errors.Is(err, syscall.EADDRINUSE):
		first.Close()
		return nil, err
	}
	return []net.Listener{first}, nil // this machine has no IPv6
}

func closeAll(lns []net.Listener) {
	for _, ln := range lns {
		ln.Close()
	}
}

// Environ are the variables by which programs find it.
func (d *Display) Environ() []string {
	if d == nil {
		return nil
	}
	return []string{"DISPLAY=localhost:" + strconv.Itoa(d.Number) + ".0", "XAUTHORITY=" + d.file}
}

// Path is the file that XAUTHORITY names, "" for none.
func (d *Display) Path() string {
	if d == nil {
		return ""
	}
	return d.file
}

func (d *Display) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		d.greet(conn)
		go d.receive(conn) // ends within setupTime
	}
}

// greet makes room for a connection that is to show its cookie. Programs do so at once, so those that have had the most
// time are closed: connections of other users' hold up nobody's.
func (d *Display) greet(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.reading) >= maxReading {
		d.reading[0].Close()
		d.reading = d.reading[1:]
	}
	d.reading = append(d.reading, conn)
}

// greeted ends what greet began.
func (d *Display) greeted(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reading = slices.DeleteFunc(d.reading, func(c net.Conn) bool { return c == conn })
}

// receive keeps a connection that begins with the cookie.
func (d *Display) receive(conn net.Conn) {
	admitted, err := admit(conn, d.cookie)
	d.greeted(conn)
	if err != nil {
		conn.Close()
		return
	}
	n, ok := d.put(admitted)
	if !ok {
		conn.Close()
		return
	}
	time.AfterFunc(takeTime, func() { // it was taken by then, or nobody wants it
		if late := d.Take(n); late != nil {
			late.Close()
		}
	})
}

// put keeps a connection until it is taken, and tells of it.
func (d *Display) put(conn net.Conn) (uint64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.closed:
		return 0, false
	default:
	}
	if len(d.waiting) >= maxWaiting || len(d.tell) == cap(d.tell) {
		return 0, false
	}
	d.next++
	d.waiting[d.next] = conn
	d.tell <- d.next // there is room: this is the only sender, and holds mu
	return d.next, true
}

// Take returns a connection that waits, nil if it does not.
func (d *Display) Take(n uint64) net.Conn {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	conn := d.waiting[n]
	delete(d.waiting, n)
	return conn
}

// Serve tells who holds the tunnel of the display and of the connections to it, until that one, ctx or the display
// ends. It closes the display.
func (d *Display) Serve(ctx context.Context, tunnel io.ReadWriteCloser) error {
	defer d.Close()
	gone := make(chan struct{})
	go func() { // ends with the tunnel, which the caller closes
		defer close(gone)
		_, _ = io.Copy(io.Discard, tunnel)
	}()
	if _, err := fmt.Fprintf(tunnel, "%d\n", d.Number); err != nil {
		return err
	}
	for {
		select {
		case n := <-d.tell:
			if _, err := fmt.Fprintf(tunnel, "%d\n", n); err != nil {
				return err
			}
		case <-gone:
			return nil
		case <-d.closed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the display, and what waits for it. Connections that were taken are not its own.
func (d *Display) Close() {
	if d == nil {
		return
	}
	d.once.Do(func() {
		d.mu.Lock()
		close(d.closed)
		waiting := d.waiting
		d.waiting = map[uint64]net.Conn{}
		d.mu.Unlock()
		closeAll(d.lns)
		for _, conn := range waiting {
			conn.Close()
		}
		d.forget()
	})
}

// writeFile makes the file, its owner's alone, in a folder where nobody else can put anything.
func writeFile(o Options, number int, cookie []byte) (forget func(), err error) {
	_ = os.Remove(o.File) // of a life before
	f, err := os.OpenFile(o.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the file for XAUTHORITY: %w", err)
	}
	remove := func() { _ = os.Remove(o.File) }
	_, err = f.Write(entries(o.Host, number, cookie))
	if err == nil && os.Geteuid() == 0 {
		err = f.Chown(int(o.Owner.UID), int(o.Owner.GID))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return nil, fmt.Errorf("write the file for XAUTHORITY: %w", err)
	}
	return remove, nil
}

// Bounds of the program xauth, which runs outside of the job and its limits. It waits for a lock, keeps all of the file
// in memory, and both are the user's.
const (
	xauthTime   = 15 * time.Second
	xauthMemory = 256 << 10 // KiB
	xauthSays   = 1 << 10   // bytes of its output that are told of
)

// limited becomes a program that may take so many KiB of memory.
const limited = `ulimit -v "$0" && exec "$@"`

// beginning keeps the first bytes of what a program says.
type beginning struct{ text []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), xauthSays-len(b.text))]...)
	return len(p), nil
}

// addHome adds an entry to the file in the owner's home, which other programs write, too: the program xauth keeps them
// apart. It runs as the owner.
func addHome(o Options, number int) (file string, forget func(), err error) {
	if o.Owner.Home == "" {
		return "", nil, errors.New("X11Parameters=home_xauthority: this node knows no home of the job's user")
	}
	file = filepath.Join(o.Owner.Home, ".Xauthority")
	at := o.Host + "/unix:" + strconv.Itoa(number)
	if err := xauth(o.Owner, file, "add "+at+" "+cookieKind+" "+o.Cookie); err != nil {
		return "", nil, err
	}
	return file, func() { go func() { _ = xauth(o.Owner, file, "remove "+at) }() }, nil // it has a limit
}

// turns has one xauth of a user run at a time: a user whose lock it waits for could have any number of them wait,
// outside of the job and its limits. By user ID, a channel with room for one.
var turns sync.Map

// turn waits until no xauth of a user runs; over ends that of the caller.
func turn(uid uint32) (over func()) {
	one, _ := turns.LoadOrStore(uid, make(chan struct{}, 1))
	busy := one.(chan struct{})
	busy <- struct{}{}
	return func() { <-busy }
}

// xauth has the program do something, which it reads from its input: a cookie is not for others to see.
func xauth(u Owner, file, what string) error {
	defer turn(u.UID)()
	program, err := exec.LookPath("xauth")
	if err != nil {
		return errors.New("X11Parameters=home_xauthority needs the program xauth on this node: install package xauth")
	}
	cmd := exec.Command("/bin/sh", "-c", limited, strconv.Itoa(xauthMemory), program, "-q", "-f", file, "source", "-")
	cmd.Env = []string{"HOME=" + u.Home, "PATH=/usr/bin:/bin"}
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(what+"\n")
	var said beginning
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second
	if os.Geteuid() == 0 {
		cred := &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		step.Alone(cmd.SysProcAttr)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start xauth: %w", err)
	}
	step.Plain(cmd.Process.Pid)
	late := time.AfterFunc(xauthTime, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("xauth -f %s: %w: %s", file, err, strings.TrimSpace(string(said.text)))
	}
	return nil
}
