package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Limits of the wire.
const (
	MaxBody    = 64 << 20 // of a request; a script of 4 MiB and its environment fit
	UserBody   = 16 << 20 // of a user's request without such texts
	MaxReply   = 1 << 30  // of a reply: a list of a million jobs
	maxHeaders = 64
	idleConns  = 4
	tooLong    = 431 // a server's word for a question that is longer than it reads
	// streamSilence is how long a stream may say nothing before it counts as broken off: three beats.
	streamSilence = 45 * time.Second
)

// Conn is what the client needs of a connection; a net.Conn is one. Package net is not used here:
// its initialisation alone would double the start-up time of a front-end.
type Conn interface {
	io.ReadWriteCloser
	SetDeadline(time.Time) error
}

// Client calls one daemon over connections that Dial makes. It speaks the HTTP/1.1 that both
// ends need and nothing more. It may be used from many goroutines.
type Client struct {
	Dial func(context.Context) (Conn, error)
	// Aged is told how old an answer is that is old; nil: nobody is.
	Aged func(time.Duration)

	mu     sync.Mutex
	idle   []*clientConn
	closed int // how often Close was called
}

type clientConn struct {
	Conn
	raw    Conn // as it was made
	r      *bufio.Reader
	lively *lively // of a connection whose other side beats
	era    int     // how often the client had been closed when it was made
}

func newClientConn(raw Conn) *clientConn {
	c := &clientConn{Conn: raw, raw: raw}
	if b, ok := raw.(Beating); ok && b.Beats() {
		c.lively = &lively{Conn: raw}
		c.Conn = c.lively
	}
	c.r = bufio.NewReaderSize(c.Conn, 1<<14)
	return c
}

// ErrUnreachable wraps every failure to reach the daemon at all.
var ErrUnreachable = errors.New("cannot reach the muster daemon")

// ErrNotSent says that a failed request never left: it may be made again elsewhere.
var ErrNotSent = errors.New("not sent")

// ErrElsewhere says that the leader should be asked instead.
var ErrElsewhere = errors.New("it has not come to this server yet: the leader knows")

// Call makes one request and decodes the answer. An error answer comes back as *Error.
func Call[Q, R any](ctx context.Context, c *Client, e Endpoint[Q, R], q Q) (R, error) {
	var r R
	body, err := wire.Marshal(q)
	if err != nil {
		return r, fmt.Errorf("encode request for %s: %w", e.Path, err)
	}
	reply, err := c.Forward(ctx, Request{Method: e.Method, Path: e.Path, Body: body})
	if err != nil {
		return r, err
	}
	if reply.Age > 0 && c.Aged != nil {
		c.Aged(reply.Age)
	}
	err = answer(e.Method, e.Path, reply.Status, reply.Body, &r)
	return r, err
}

// answer reads the value or the error that came back.
func answer(method, path string, status int, reply []byte, to any) error {
	if status != 200 {
		return errorOf(method, path, status, reply)
	}
	if err := wire.Unmarshal(reply, to); err != nil {
		return fmt.Errorf("decode answer of %s: %w", path, err)
	}
	return nil
}

// errorOf is the error that an answer tells.
func errorOf(method, path string, status int, reply []byte) error {
	var e Error
	if wire.Unmarshal(reply, &e) != nil || e.Message == "" {
		if status == tooLong {
			return cluster.Errorf(cluster.Invalid, "", "the question is too long: name fewer things at once")
		}
		return cluster.Errorf(cluster.Internal, "", "%s %s: status %d", method, path, status)
	}
	return &e
}

// OldClient is an error that says so if a call of steps is one that the client asked does not know yet.
func OldClient(err error) error {
	var e *Error
	if !errors.As(err, &e) || e.Code != cluster.NotFound || !strings.HasPrefix(e.Message, noSuchCall) {
		return err
	}
	return cluster.Errorf(cluster.Invalid, "",
		"a client of the step's nodes is of an older muster, which cannot do this (containers, process managers "+
			"of MPI, sbcast, sattach, --resv-ports): upgrade it, or choose other nodes (-w, -x)")
}

// noSuchCall begins what a daemon says of a call that it does not know.
const noSuchCall = "no such call"

// Headers of calls between daemons.
const (
	VouchHeader = "Muster-Vouch" // an assertion about the user who calls (package agent/trust)
	AfterHeader = "Muster-After" // the index of the log that the caller has seen: the answer is to be no older
	AgeHeader   = "Muster-Age"   // of an answer that is old, in milliseconds
)

// Request is a call as it stands.
type Request struct {
	Method, Path string
	Vouch        string // an assertion, if one is given
	After        uint64 // 0: what there is
	Body         []byte
}

// headers are those that a call has besides.
func (r *Request) headers() string {
	out := vouchLine(r.Vouch)
	if r.After > 0 {
		out += AfterHeader + ": " + strconv.FormatUint(r.After, 10) + "\r\n"
	}
	return out
}

// Reply is the answer as it stands.
type Reply struct {
	Status int
	Body   []byte
	Age    time.Duration // of what it tells; 0: nothing to speak of
}

// Forward makes one request as it stands, with an assertion if one is given, and returns the answer
// whatever its status. ErrNotSent says that nobody can have got the request. It is not sent again by
// itself once it may have been read, as it may be done by then, and an assertion is good for one use;
// but a caller who only reads and needs none may.
func (c *Client) Forward(ctx context.Context, q Request) (Reply, error) {
	for {
		conn, fresh, err := c.conn(ctx)
		if err != nil {
			return Reply{}, notReached(err)
		}
		conn.watch(ctx)
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		reply, keep, err := conn.roundTrip(&q)
		if !stop() {
			keep = false
		}
		if err != nil {
			conn.Close()
			if ctx.Err() != nil {
				return Reply{}, ctx.Err()
			}
			harmless := errors.Is(err, errNotTaken) || errors.Is(err, errNoAnswer) && q.Method == "GET" && q.Vouch == ""
			if !fresh && harmless {
				continue // an idle connection had been closed by the other side
			}
			return Reply{}, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		c.release(conn, keep)
		return reply, nil
	}
}

// notReached is why a connection could not be made. That a token is not taken is an answer.
func notReached(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Kind == cluster.ErrToken {
		return e
	}
	return fmt.Errorf("%w: %w: %w", ErrUnreachable, ErrNotSent, err)
}

func (c *Client) conn(ctx context.Context) (conn *clientConn, fresh bool, err error) {
	for conn = c.takeIdle(); conn != nil; conn = c.takeIdle() {
		if d, ok := conn.raw.(Dying); !ok || !d.Dead() {
			return conn, false, nil
		}
		conn.Close()
	}
	c.mu.Lock()
	era := c.closed
	c.mu.Unlock()
	raw, err := c.Dial(ctx)
	if err != nil {
		return nil, false, err
	}
	conn = newClientConn(raw)
	conn.era = era
	return conn, true, nil
}

// Dying is a connection that knows whether the other side has closed it while it was idle.
type Dying interface{ Dead() bool }

// takeIdle is a connection that was used before; nil: there is none.
func (c *Client) takeIdle() *clientConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idle)
	if n == 0 {
		return nil
	}
	conn := c.idle[n-1]
	c.idle = c.idle[:n-1]
	return conn
}

func (c *Client) release(conn *clientConn, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !keep || conn.era != c.closed || len(c.idle) >= idleConns {
		conn.Close()
		return
	}
	c.idle = append(c.idle, conn)
}

// Close closes the idle connections, and those in use once their calls are over.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.idle {
		conn.Close()
	}
	c.idle = nil
	c.closed++
}

var (
	errNoAnswer = errors.New("connection closed without an answer")
	errNotTaken = errors.New("connection closed before the request was taken")
)

func (c *clientConn) send(method, path, extra string, body []byte) error {
	if method == "GET" && len(body) > 0 {
		path, body = path+"?q="+escape(body), nil
	}
	head := method + " " + path + " HTTP/1.1\r\nHost: muster\r\nContent-Type: application/json\r\n" + extra +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	_, err := c.Write(append([]byte(head), body...))
	return err
}

func (c *clientConn) roundTrip(q *Request) (reply Reply, keep bool, err error) {
	if err := c.send(q.Method, q.Path, q.headers(), q.Body); err != nil {
		// The other side may have answered and closed before reading all (too large a body).
		reply, _, rerr := c.receive()
		if rerr == nil {
			return reply, false, nil
		}
		if errors.Is(err, errSilent) {
			return Reply{}, false, err
		}
		return Reply{}, false, errNotTaken
	}
	return c.receive()
}

func (c *clientConn) receive() (reply Reply, keep bool, err error) {
	h, err := c.head()
	if err != nil {
		return Reply{}, false, err
	}
	reply = Reply{Status: h.status, Body: make([]byte, h.length), Age: h.age}
	if _, err := io.ReadFull(c.r, reply.Body); err != nil {
		return Reply{}, false, fmt.Errorf("read answer: %w", err)
	}
	return reply, !h.close, nil
}

// interim is the status by which the other side says that it still works on a call.
const interim = 102

// head is what comes before the body of an answer.
type head struct {
	status, length int
	close          bool // the connection is not to be used again
	age            time.Duration
}

// head reads the status line and the headers of an answer.
func (c *clientConn) head() (h head, err error) {
	for h.status = interim; h.status == interim && err == nil; {
		h, err = c.headers()
	}
	return h, err
}

// headers reads one status line, and the headers below it.
func (c *clientConn) headers() (head, error) {
	var h head
	line, err := c.r.ReadString('\n')
	if errors.Is(err, errSilent) {
		return h, err
	}
	if err != nil {
		return h, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	proto, rest, _ := strings.Cut(line, " ")
	if !strings.HasPrefix(proto, "HTTP/1.") || len(rest) < 3 {
		return h, fmt.Errorf("not an HTTP answer: %q", line)
	}
	if h.status, err = strconv.Atoi(rest[:3]); err != nil {
		return h, fmt.Errorf("not an HTTP answer: %q", line)
	}
	for range maxHeaders {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return h, fmt.Errorf("read headers: %w", err)
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			return h, nil
		}
		if err := h.take(line); err != nil {
			return h, err
		}
	}
	return h, errors.New("too many headers")
}

// take reads one header.
func (h *head) take(line string) (err error) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch {
	case strings.EqualFold(name, "content-length"):
		if h.length, err = strconv.Atoi(value); err != nil || h.length < 0 || h.length > MaxReply {
			return fmt.Errorf("bad content length %q", value)
		}
	case strings.EqualFold(name, "connection"):
		h.close = strings.EqualFold(value, "close")
	case strings.EqualFold(name, AgeHeader):
		ms, _ := strconv.ParseInt(value, 10, 64) // else it is not known
		h.age = time.Duration(ms) * time.Millisecond
	}
	return nil
}

// escape makes a JSON text safe in a query.
func escape(b []byte) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(b)*3/2)
	for _, ch := range b {
		switch {
		case 'a' <= ch && ch <= 'z', 'A' <= ch && ch <= 'Z', '0' <= ch && ch <= '9', strings.IndexByte("-_.~:,", ch) >= 0:
			out = append(out, ch)
		default:
			out = append(out, '%', hex[ch>>4], hex[ch&15])
		}
	}
	return string(out)
}

// Follow reads a stream of responses, calling f with each, until f returns an error, which it returns, ctx ends or the
// stream breaks off: an error that wraps ErrUnreachable.
func Follow[Q, R any](ctx context.Context, c *Client, e Endpoint[Q, R], q Q, f func(*R) error) error {
	body, err := wire.Marshal(q)
	if err != nil {
		return fmt.Errorf("encode request for %s: %w", e.Path, err)
	}
	conn, err := c.OpenStream(ctx, e.Path, "", body)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	lines := bufio.NewReader(conn)
	for {
		_ = conn.SetDeadline(time.Now().Add(streamSilence))
		line, err := lines.ReadBytes('\n')
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("%w: the stream of %s broke off: %w", ErrUnreachable, e.Path, err)
		}
		var r R
		if err := wire.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("decode a line of %s: %w", e.Path, err)
		}
		if err := f(&r); err != nil {
			return err
		}
	}
}

// OpenStream asks for a stream, with an assertion if one is given: what is read of the connection are its lines, to the
// end of the connection.
func (c *Client) OpenStream(ctx context.Context, path, vouch string, body []byte) (Conn, error) {
	return c.open(ctx, "GET", path, vouchLine(vouch), body, 200)
}

// Tunnel sends the request and, once the other side agrees to upgrade, returns the bare connection.
func Tunnel[Q any](ctx context.Context, c *Client, path, protocol string, q Q) (Conn, error) {
	body, err := wire.Marshal(q)
	if err != nil {
		return nil, err
	}
	return c.ForwardTunnel(ctx, path, protocol, "", body)
}

// ForwardTunnel opens a tunnel for a request as it stands, with an assertion if one is given.
func (c *Client) ForwardTunnel(ctx context.Context, path, protocol, vouch string, body []byte) (Conn, error) {
	return c.open(ctx, "POST", path, "Connection: Upgrade\r\nUpgrade: "+protocol+"\r\n"+vouchLine(vouch), body, 101)
}

// vouchLine is the header that carries an assertion, if there is one.
func vouchLine(vouch string) string {
	if vouch == "" {
		return ""
	}
	return VouchHeader + ": " + vouch + "\r\n"
}

// open sends a request over a connection of its own, which it returns once the answer begins with the status that is
// wanted. Any other answer is an error.
func (c *Client) open(ctx context.Context, method, path, extra string, body []byte, want int) (Conn, error) {
	raw, err := c.Dial(ctx)
	if err != nil {
		return nil, notReached(err)
	}
	conn := newClientConn(raw)
	conn.watch(ctx)
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.send(method, path, extra, body); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	h, err := conn.head()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if stop() {
		conn.unwatch()
	}
	if h.status != want {
		defer conn.Close()
		text := make([]byte, h.length)
		_, _ = io.ReadFull(conn.r, text)
		return nil, errorOf(method, path, h.status, text)
	}
	return conn, nil
}

// Read reads through the buffer that may hold the first bytes behind the headers.
func (c *clientConn) Read(b []byte) (int, error) { return c.r.Read(b) }
