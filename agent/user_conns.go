package agent

import (
	"net"
	"sync"
	"syscall"
)

// Bounds of the connections of one user to the local socket. Each takes a descriptor and some memory for as long as its
// user likes.
const (
	connsOfUser   = 16 << 10
	connsFraction = 4 // of the descriptors that this process may have, a user's connections have at most one in so many
)

// userConns is the local socket's listener: it closes what one user has too many of, so that others are let in.
type userConns struct {
	net.Listener
	most int

	mu   sync.Mutex
	open map[uint32]int // by user
}

// boundConns bounds the connections of each user but root.
func boundConns(ln net.Listener) *userConns {
	most := connsOfUser
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		most = int(min(uint64(most), limit.Cur/connsFraction))
	}
	return &userConns{Listener: ln, most: most, open: map[uint32]int{}}
}

// Accept waits for a connection of a user who has not too many.
func (l *userConns) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		u, ok := conn.(*net.UnixConn)
		if !ok {
			return conn, nil
		}
		who, err := peer(u)
		if err != nil || who.UID == 0 {
			return conn, nil // serve says what is wrong
		}
		if !l.take(who.UID) {
			conn.Close()
			continue
		}
		return &userConn{UnixConn: u, leave: sync.OnceFunc(func() { l.give(who.UID) })}, nil
	}
}

func (l *userConns) take(uid uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid] >= l.most {
		return false
	}
	l.open[uid]++
	return true
}

func (l *userConns) give(uid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid]--; l.open[uid] == 0 {
		delete(l.open, uid)
	}
}

// userConn is a connection that is counted until it is closed.
type userConn struct {
	*net.UnixConn
	leave func()
}

func (c *userConn) Close() error {
	defer c.leave()
	return c.UnixConn.Close()
}
