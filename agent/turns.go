package agent

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/wire"
)

// Bounds of one user's calls on the local socket, and of some that come from other machines, against users who fill the
// memory of a daemon with answers that they do not read, or take all of its descriptors. Root has none.
const (
	// answersOfUser is how many answers to questions of one user are made and sent at a time; the next wait.
	answersOfUser = 16
	// historiesOfUser is how many questions about history of one user are answered at a time, wherever they come
	// from: an answer is in memory as a whole, and has up to 10,000 jobs and 50,000 steps.
	historiesOfUser = 4
	// answerPart is how much of an answer a caller takes within stallTime.
	answerPart = 256 << 10
	// connsOfUser is how many connections one user has, where the daemon may have connsPart times as many open files.
	connsOfUser = 16 << 10
	connsPart   = 4
)

// turn waits for the place of a user's question. Those that wait for something themselves need none: their answers are
// short.
func (c *call) turn() (leave func(), err error) {
	if c.r.URL.Path == api.ListHistory.Path && c.who.UID != 0 && !c.who.Admin {
		return c.histories.Wait(c.r.Context(), c.who.UID, historiesOfUser)
	}
	waits := c.r.URL.Path == api.WaitJob.Path
	if c.r.Method != http.MethodGet || c.from.Member != "" || c.from.Admin || c.from.UID == 0 || waits {
		return func() {}, nil
	}
	return c.turns.Wait(c.r.Context(), c.from.UID, answersOfUser)
}

// write sends the body of an answer to a caller, who is to keep up.
func (c *call) write(body []byte) {
	if c.from.Member != "" {
		_, _ = c.w.Write(body)
		return
	}
	control := http.NewResponseController(c.w) // what is written within this process has no time
	for len(body) > 0 {
		_ = control.SetWriteDeadline(time.Now().Add(stallTime))
		n, err := c.w.Write(body[:min(len(body), answerPart)])
		if err != nil {
			return
		}
		body = body[n:]
	}
	_ = control.SetWriteDeadline(time.Now().Add(stallTime))
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{})
}

// fairListener is the local socket, on which no user has all of the connections.
type fairListener struct {
	net.Listener
	most int

	mu   sync.Mutex
	have map[uint32]int
}

// fair bounds the connections that one user has to a socket.
func fair(ln net.Listener) *fairListener {
	most := connsOfUser
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		most = int(min(uint64(most), max(files.Cur/connsPart, 1)))
	}
	return &fairListener{Listener: ln, most: most, have: map[uint32]int{}}
}

// Accept is for net/http. A connection too many is told so and closed.
func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who, err := peer(conn)
		if err != nil || who.UID == 0 || who.Admin {
			return conn, nil
		}
		if l.take(who.UID) {
			free := sync.OnceFunc(func() { l.release(who.UID) })
			return &userConn{Conn: conn, from: who, free: free}, nil
		}
		l.refuse(conn, who.UID)
	}
}

func (l *fairListener) take(uid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.have[uid] >= l.most {
		return false
	}
	l.have[uid]++
	return true
}

func (l *fairListener) release(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.have[uid]--; l.have[uid] <= 0 {
		delete(l.have, uid)
	}
}

// refuse tells a caller why it is not heard. The socket's buffer takes that at once.
func (l *fairListener) refuse(conn net.Conn, uid uint32) {
	defer conn.Close()
	text, _ := wire.Marshal(cluster.Errorf(cluster.Unavailable, cluster.ErrTooBig,
		"user %d has %d connections to this daemon: end some of the programs that have them", uid, l.most))
	answer := &http.Response{
		StatusCode: http.StatusServiceUnavailable, ProtoMajor: 1, ProtoMinor: 1, Close: true,
		ContentLength: int64(len(text)), Body: io.NopCloser(bytes.NewReader(text)),
	}
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = answer.Write(conn) // who does not hear it sees that the connection is closed
}

// userConn is a connection of a user, which counts until it is closed.
type userConn struct {
	net.Conn
	from caller
	free func()
}

// Close is for net/http.
func (c *userConn) Close() error {
	c.free()
	return c.Conn.Close()
}
