package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
)

// Which clients have which layers of images is known to the server that leads, from what they asked. Each is sent
// to the one that asked before it, and so all stand in a row: every link carries a layer once, at its full
// speed, and nobody waits for himself.

const (
	layersMost = 10_000         // that are known
	layersOld  = 12 * time.Hour // one that nobody asked for is forgotten
	layersRow  = 10_000         // clients in a row
	layerKey   = 64             // letters of a layer's name
)

// layerRows are the rows, by layer.
type layerRows struct {
	mu sync.Mutex
	by map[string]*layerRow
}

// layerRow is the addresses of the clients that have a layer or fetch it, in the order in which they asked.
type layerRow struct {
	asked time.Time
	addrs []string
}

// layerRoutes registers what nodes ask about layers.
func layerRoutes(s *Server, m *api.Mux) {
	rows := &layerRows{by: map[string]*layerRow{}}
	handle(s, m, api.FindLayer, func(_ context.Context, _ api.Caller, q api.LayerQuery) (api.LayerPlace, error) {
		if q.Key == "" || len(q.Key) > layerKey || q.Addr == "" {
			return api.LayerPlace{}, cluster.Errorf(cluster.Invalid, "", "%q at %q is no layer", q.Key, q.Addr)
		}
		return api.LayerPlace{Addr: rows.find(&q, time.Now())}, nil
	})
}

// find puts a client into a layer's row, and returns who stands before it.
func (r *layerRows) find(q *api.LayerQuery, now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.by[q.Key]
	if row == nil {
		r.makeRoom(now)
		row = &layerRow{}
		r.by[q.Key] = row
	}
	row.asked = now
	row.addrs = slices.DeleteFunc(row.addrs, func(a string) bool { return slices.Contains(q.Failed, a) })
	at := slices.Index(row.addrs, q.Addr)
	if at < 0 {
		at = len(row.addrs)
		row.addrs = append(row.addrs, q.Addr)
	}
	if at == 0 {
		return ""
	}
	before := row.addrs[at-1]
	if n := len(row.addrs); n > layersRow {
		row.addrs = slices.Delete(row.addrs, 0, n-layersRow)
	}
	return before
}

// makeRoom forgets what nobody has asked for lately, and if that is not enough, anything.
func (r *layerRows) makeRoom(now time.Time) {
	for key, row := range r.by {
		if len(r.by) < layersMost {
			return
		}
		if now.Sub(row.asked) > layersOld {
			delete(r.by, key)
		}
	}
	for key := range r.by {
		if len(r.by) < layersMost {
			return
		}
		delete(r.by, key)
	}
}
