// Package watch serves those who look on beside the client of a step (sattach). They get what is said from
// then on, and the latest of what was said before, and may type. They never hold the step up: of what comes
// faster than one reads some is left out, which is said, and one that does not read at all is let go.
package watch

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"dev.muster/api/stream"
)

// Limits.
const (
	maxWatchers  = 64               // of one step
	maxBehind    = 4 << 20          // bytes that a watcher may be behind
	frameCost    = 128              // about what a frame takes besides its data
	recentBytes  = 32 << 10         // of what was said before that a watcher is told
	recentFrames = 128              // and frames
	writeTime    = 10 * time.Second // one write to a watcher
)

// Watchers are those of one step. The zero value is one that has none.
type Watchers struct {
	mu      sync.Mutex
	all     []*watcher
	closed  bool
	recent  []stream.Frame // the latest output; once all has been said, that
	recentN int            // bytes in recent
}

// watcher is one who looks on. Its fields are guarded by Watchers.mu.
type watcher struct {
	conn  net.Conn
	queue []stream.Frame
	bytes int           // that output takes in queue
	lost  int           // bytes of output that were left out
	more  chan struct{} // there is something in queue
}

// Tell puts a frame before all watchers. It does not wait for them.
func (h *Watchers) Tell(f stream.Frame) {
	if f.Task == stream.StepServer {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case printed(f):
		h.remember(f)
	case f.Kind == stream.Done:
		h.recent = []stream.Frame{f}
	}
	for _, w := range h.all {
		w.add(f)
	}
}

// remember keeps a frame for watchers to come; mu is held.
func (h *Watchers) remember(f stream.Frame) {
	h.recent = append(h.recent, f)
	h.recentN += len(f.Data)
	for len(h.recent) > recentFrames || h.recentN > recentBytes {
		h.recentN -= len(h.recent[0].Data)
		h.recent[0].Data = nil
		h.recent = h.recent[1:]
	}
}

// add queues a frame; mu is held. Beyond the bound what waits is left out, but for how tasks ended.
func (w *watcher) add(f stream.Frame) {
	if w.bytes+len(f.Data)+frameCost > maxBehind {
		w.bytes = 0
		w.queue = slices.DeleteFunc(w.queue, func(o stream.Frame) bool {
			if printed(o) {
				w.lost += len(o.Data)
			}
			return printed(o)
		})
	}
	w.queue = append(w.queue, f)
	if printed(f) {
		w.bytes += len(f.Data) + frameCost
	}
	select {
	case w.more <- struct{}{}:
	default: // it knows
	}
}

// printed reports whether a frame is output.
func printed(f stream.Frame) bool { return f.Kind == stream.Stdout || f.Kind == stream.Stderr }

// Serve serves a watcher, whose first frame was read, until its connection ends. Its keys are given to
// typed, which may wait.
func (h *Watchers) Serve(conn net.Conn, r *bufio.Reader, last uint64, typed func(stream.Frame)) {
	w := h.join(conn, last)
	if w == nil {
		return
	}
	gone := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { h.write(w, gone) })
	for {
		f, err := stream.ReadFrame(r)
		if err != nil || !f.Typed() {
			break
		}
		typed(f)
	}
	conn.Close()
	h.mu.Lock()
	h.all = slices.DeleteFunc(h.all, func(o *watcher) bool { return o == w })
	h.mu.Unlock()
	close(gone)
	writer.Wait()
}

// join adds a watcher, and welcomes it; nil: there is no place for it.
func (h *Watchers) join(conn net.Conn, last uint64) *watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.all) >= maxWatchers {
		return nil
	}
	w := &watcher{conn: conn, more: make(chan struct{}, 1)}
	w.add(stream.WelcomeFrame(0, last+1))
	for _, f := range h.recent { // the watcher passes over what it has already
		w.add(f)
	}
	h.all = append(h.all, w)
	return w
}

// take is what is to be sent to a watcher.
func (h *Watchers) take(w *watcher) (text []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.lost > 0 {
		note := fmt.Sprintf("[%d bytes of output left out: it comes faster than it is read]\n", w.lost)
		text = stream.AppendFrame(text, stream.Frame{Kind: stream.Stderr, Task: stream.OfNode, Data: []byte(note)})
	}
	for _, f := range w.queue {
		text = stream.AppendFrame(text, f)
	}
	w.queue, w.bytes, w.lost = nil, 0, 0
	return text
}

// write sends frames as they come, and lets go of a watcher that does not read.
func (h *Watchers) write(w *watcher, gone <-chan struct{}) {
	defer w.conn.Close() // ends the reader
	for {
		select {
		case <-w.more:
		case <-gone:
			return
		}
		_ = w.conn.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := w.conn.Write(h.take(w)); err != nil {
			return
		}
	}
}

// Close lets all watchers go, indefinitely.
func (h *Watchers) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed, h.recent = true, nil
	for _, w := range h.all {
		w.conn.Close()
	}
}
