package agent

import (
	"context"
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
	// bodyStep is how much of a body is read, and counted, at a time: memory grows with what arrives, not with what
	// is claimed.
	bodyStep = 64 << 10
)

// bodies counts the bytes of calls under way, by user.
type bodies struct {
	mu   sync.Mutex
	held map[uint32]int
}

// take counts n bytes more for a user; false: these are too many.
func (b *bodies) take(uid uint32, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if uid != 0 && b.held[uid]+n > bodiesOfUser {
		return false
	}
	if b.held == nil {
		b.held = map[uint32]int{}
	}
	b.held[uid] += n
	return true
}

// release takes bytes of a user off the count.
func (b *bodies) release(uid uint32, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[uid] -= n; b.held[uid] <= 0 {
		delete(b.held, uid)
	}
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
	share := &userShare{bodies: &h.bodies, uid: from.UID, counted: from.Member == ""} // members speak for many users
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
					"the calls of user %d that are under way have more than %d MB: wait until some of them are answered", from.UID, bodiesOfUser>>20)
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

// userShare is what one call has of its user's bytes.
type userShare struct {
	*bodies
	uid     uint32
	counted bool
	held    int
}

func (s *userShare) take(n int) bool {
	if !s.counted {
		return true
	}
	if !s.bodies.take(s.uid, n) {
		return false
	}
	s.held += n
	return true
}

func (s *userShare) release() {
	if s.held > 0 {
		s.bodies.release(s.uid, s.held)
	}
}

// counting has what the request of a call takes in memory be counted with its user's bodies: a few bytes may name a set
// of millions of tasks, or a component of a job, and a body many of them. Calls that members make for themselves have a
// bound each.
func (c *call) counting() (ctx context.Context, done func()) {
	share := &userShare{bodies: &c.bodies, uid: c.who.UID, counted: true}
	take := share.take
	if c.who.UID == 0 && c.from.Member != "" {
		held := 0
		take = func(n int) bool {
			held += n
			return held <= api.MaxValues
		}
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
