package layers

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Which clients have which layers of images is known to the server that leads, from what they asked. Each is sent
// to the one that asked before it, and so all stand in a row: every link carries a layer once, at its full
// speed, and nobody waits for himself.

const (
	mostRows  = 10_000         // that are known
	oldRow    = 12 * time.Hour // one that nobody asked for is forgotten
	rowLength = 10_000         // clients in a row
)

// Rows are the rows of clients, by the key of a layer.
type Rows struct {
	mu sync.Mutex
	by map[string]*row
}

// NewRows makes rows in which nobody stands.
func NewRows() *Rows { return &Rows{by: map[string]*row{}} }

// row is the clients that have a layer or fetch it, in the order in which they asked.
type row struct {
	asked time.Time
	line  []Client
}

// Client is one in a row. A member of the cluster stands there once, wherever it says that it is found; without a name
// it is known by its address.
type Client struct{ Member, Addr string }

// Find puts a client into a layer's row, without those that it has found to fail, and returns who stands before it: ""
// for nobody.
func (r *Rows) Find(key string, c Client, failed []string, now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	here := r.by[key]
	if here == nil {
		r.makeRoom(now)
		here = &row{}
		r.by[key] = here
	}
	here.asked = now
	here.line = slices.DeleteFunc(here.line, func(o Client) bool { return slices.Contains(failed, o.Addr) })
	c.Member = cmp.Or(c.Member, c.Addr)
	at := slices.IndexFunc(here.line, func(o Client) bool { return o.Member == c.Member })
	if at < 0 {
		at = len(here.line)
		here.line = append(here.line, c)
	}
	here.line[at].Addr = c.Addr
	if at == 0 {
		return ""
	}
	before := here.line[at-1].Addr
	if n := len(here.line); n > rowLength {
		here.line = slices.Delete(here.line, 0, n-rowLength)
	}
	return before
}

// makeRoom forgets what nobody has asked for lately, and if that is not enough, anything.
func (r *Rows) makeRoom(now time.Time) {
	for key, line := range r.by {
		if len(r.by) < mostRows {
			return
		}
		if now.Sub(line.asked) > oldRow {
			delete(r.by, key)
		}
	}
	for key := range r.by {
		if len(r.by) < mostRows {
			return
		}
		delete(r.by, key)
	}
}
