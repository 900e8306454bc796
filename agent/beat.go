package agent

import (
	"net/http"
	"sync"
	"time"

	"dev.muster/api"
)

// beater sends interim answers to a member until something of the answer itself is touched.
type beater struct {
	http.ResponseWriter
	conn  *memberConn
	mu    sync.Mutex
	over  bool
	timer *time.Timer
}

// beatFor has a member that understands it see that its call is worked on.
func beatFor(from *caller, w http.ResponseWriter) (out http.ResponseWriter, end func()) {
	if from.beats == nil {
		return w, func() {}
	}
	b := &beater{ResponseWriter: w, conn: from.beats}
	b.mu.Lock() // the first beat may be due at once
	b.timer = time.AfterFunc(api.BeatEvery, b.beat)
	b.mu.Unlock()
	return b, b.end
}

func (b *beater) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	b.conn.heed.Do(b.conn.mustAnswer)
	b.ResponseWriter.WriteHeader(http.StatusProcessing)
	b.timer.Reset(api.BeatEvery)
}

func (b *beater) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.timer.Stop()
}

// Header is called by whoever begins to answer.
func (b *beater) Header() http.Header {
	b.end()
	return b.ResponseWriter.Header()
}

func (b *beater) WriteHeader(status int) {
	b.end()
	b.ResponseWriter.WriteHeader(status)
}

func (b *beater) Write(text []byte) (int, error) {
	b.end()
	return b.ResponseWriter.Write(text)
}

// Unwrap lets http.ResponseController take over the connection.
func (b *beater) Unwrap() http.ResponseWriter {
	b.end()
	return b.ResponseWriter
}
