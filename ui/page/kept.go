package page

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"

	"dev.muster/cluster"
)

// momentAge is how often the state is looked at for those who follow it without a session: all of them see the same
// moment, so that what one of them is shown needs not be made again for each.
const momentAge = 500 * time.Millisecond

// keptAge is how long a view of a moment is kept: some are sent before they are whole, and fetched again.
const keptAge = 2 * time.Second

// Bounds of what is kept of a moment: views, and the bytes of the address of one, which is repeated in its links.
const (
	maxKept        = 256
	maxKeptAddress = 4 << 10
)

// moment is the state as followers see it, and what was made of it.
type moment struct {
	mu   sync.Mutex
	at   time.Time
	snap *cluster.Snapshot
	made map[string]*keptView
	from time.Time // when the first of them was made
}

// keptView is a view that was made; it notes what would be sent.
type keptView struct {
	once sync.Once
	head http.Header
	code int
	body bytes.Buffer
}

// Header, WriteHeader and Write make it an answer.
func (k *keptView) Header() http.Header         { return k.head }
func (k *keptView) WriteHeader(code int)        { k.code = code }
func (k *keptView) Write(b []byte) (int, error) { return k.body.Write(b) }

// now is the moment that followers see.
func (m *moment) now(snapshot func() *cluster.Snapshot) *cluster.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.look(snapshot)
}

// look renews the moment if it is too old. Called with mu held.
func (m *moment) look(snapshot func() *cluster.Snapshot) *cluster.Snapshot {
	if m.snap == nil || time.Since(m.at) > momentAge {
		if snap := snapshot(); m.snap == nil || snap.Index != m.snap.Index || time.Since(m.from) > keptAge {
			m.snap, m.made, m.from = snap, map[string]*keptView{}, time.Now()
		}
		m.at = time.Now()
	}
	return m.snap
}

// view answers with what was made of this moment for the same address, or makes it.
func (m *moment) view(w http.ResponseWriter, r *http.Request, snapshot func() *cluster.Snapshot,
	show func(http.ResponseWriter, *cluster.Snapshot)) {
	key := r.URL.RequestURI()
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		key = "gzip " + key
	}
	m.mu.Lock()
	snap := m.look(snapshot)
	k := m.made[key]
	if k == nil {
		k = &keptView{head: http.Header{}, code: http.StatusOK}
		if len(m.made) < maxKept && len(key) <= maxKeptAddress {
			m.made[key] = k
		}
	}
	m.mu.Unlock()
	k.once.Do(func() { show(k, snap) })
	for name, value := range k.head {
		w.Header()[name] = value
	}
	w.WriteHeader(k.code)
	_, _ = w.Write(k.body.Bytes())
}
