package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// Bounds of the bodies of calls, against callers who fill the memory of a daemon with them.
const (
	// bodyTime is how long the body of a call may take to arrive.
	bodyTime = time.Minute
	// bodiesOfUser bounds the bytes of all calls of one user that are under way. Root has no bound.
	bodiesOfUser = 128 << 20
	// bodiesOfMember bounds those of one member that is no server, whose key may be in wrong hands. It carries the calls
	// of its users, and a node tells of itself.
	bodiesOfMember = 1 << 30
	// bodyStep is how much of a body is read, and counted, at a time: memory grows with what arrives, not with what
	// is claimed.
	bodyStep = 64 << 10
)

// holder is whose calls are counted: a user's of this machine, or a member's.
type holder struct {
	uid    uint32
	member string
}

// most is how many bytes a holder has; 0: as many as there are.
func (h holder) most() int {
	switch {
	case h.member != "":
		return bodiesOfMember
	case h.uid != 0:
		return bodiesOfUser
	}
	return 0
}

// bodies counts the bytes of calls under way, by who made them.
type bodies struct {
	mu   sync.Mutex
	held map[holder]int
}

// take counts n bytes more; false: these are too many.
func (b *bodies) take(of holder, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := of.most(); most > 0 && b.held[of]+n > most {
		return false
	}
	if b.held == nil {
		b.held = map[holder]int{}
	}
	b.held[of] += n
	return true
}

// release takes bytes off the count.
func (b *bodies) release(of holder, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[of] -= n; b.held[of] <= 0 {
		delete(b.held, of)
	}
}

// share is what one call of a caller has. Servers have no bound: they decide, and carry what others send.
func (b *bodies) share(from *caller) *userShare {
	s := &userShare{bodies: b, of: holder{member: from.Member}, counted: from.Role != cluster.RoleServer}
	if from.Member == "" {
		s.of.uid = from.UID
	}
	return s
}

// readBody reads the body of a call, of at most so many bytes. done says that it is needed no more.
func (h *handler) readBody(w http.ResponseWriter, r *http.Request, from caller, most int64) (body []byte, done func(), err error) {
	if r.ContentLength == 0 {
		return nil, func() {}, nil
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a connection of tests may have none
	defer func() {
		if err == nil {
			_ = control.SetReadDeadline(time.Time{})
			return
		}
		_ = control.SetReadDeadline(time.Now()) // else net/http waits for the rest
		w.Header().Set("Connection", "close")
	}()
	share := h.bodies.share(&from)
	in := http.MaxBytesReader(w, r.Body, most)
	grow := bodyStep
	if r.ContentLength > 0 {
		grow = int(min(r.ContentLength+1, bodyStep)) // with room to see the end
	}
	for {
		if len(body) == cap(body) {
			if !share.take(grow) {
				share.release()
				return nil, nil, cluster.Errorf(cluster.Unavailable, cluster.ErrTooBig,
					"the calls of %s that are under way have more than %d MB: wait until some of them are answered",
					share.of, share.of.most()>>20)
			}
			body = append(make([]byte, 0, len(body)+grow), body...)
			grow = cap(body)
		}
		n, rerr := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case rerr == io.EOF:
			return body, share.release, nil
		case rerr != nil:
			share.release()
			return nil, nil, cluster.Errorf(cluster.Invalid, cluster.ErrTooBig,
				"request body: %v (at most %d bytes, within %v)", rerr, most, bodyTime)
		}
	}
}

// String names it for a message.
func (h holder) String() string {
	if h.member != "" {
		return "member " + h.member
	}
	return fmt.Sprintf("user %d", h.uid)
}

// userShare is what one call has of its caller's bytes.
type userShare struct {
	*bodies
	of      holder
	counted bool
	held    int
}

func (s *userShare) take(n int) bool {
	if !s.counted {
		return true
	}
	if !s.bodies.take(s.of, n) {
		return false
	}
	s.held += n
	return true
}

func (s *userShare) release() {
	if s.held > 0 {
		s.bodies.release(s.of, s.held)
	}
}

// counting has what the request of a call takes in memory be counted with its user's bodies: a few bytes may name a set
// of millions of tasks, or a component of a job, and a body many of them. A call that a member makes
// for itself has a bound of its own, and counts with the member's bodies.
func (c *call) counting() (ctx context.Context, done func()) {
	if c.who.UID != 0 || c.from.Member == "" {
		share := &userShare{bodies: &c.bodies, of: holder{uid: c.who.UID}, counted: true}
		return api.Counting(c.r.Context(), share.take), share.release
	}
	share, held := c.bodies.share(&c.from), 0
	take := func(n int) bool {
		held += n
		return held <= api.MaxValues && share.take(n)
	}
	return api.Counting(c.r.Context(), take), share.release
}

// mostOf is how large the body of a call may be.
func mostOf(r api.Route, method string) int64 {
	switch {
	case method == http.MethodGet: // our own clients ask in the path
		return maxHeader
	case r.Access == api.Joiner:
		return joinBody
	case r.MaxBody > 0:
		return r.MaxBody
	case r.Access == api.User:
		return api.UserBody
	}
	return api.MaxBody
}
