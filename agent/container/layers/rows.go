package layers

import (
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

// row is the addresses of the clients that have a layer or fetch it, in the order in which they asked.
type row struct {
	asked time.Time
	addrs []string
}

// Find puts the client at addr into a layer's row, without those that it has found to fail, and returns who stands
// before it: "" for nobody.
func (r *Rows) Find(key, addr string, failed []string, now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.by[key]
	if line == nil {
		r.makeRoom(now)
		line = &row{}
		r.by[key] = line
	}
	line.asked = now
	line.addrs = slices.DeleteFunc(line.addrs, func(a string) bool { return slices.Contains(failed, a) })
	at := slices.Index(line.addrs, addr)
	if at < 0 {
		at = len(line.addrs)
		line.addrs = append(line.addrs, addr)
	}
	if at == 0 {
		return ""
	}
	before := line.addrs[at-1]
	if n := len(line.addrs); n > rowLength {
		line.addrs = slices.Delete(line.addrs, 0, n-rowLength)
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
