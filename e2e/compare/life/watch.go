package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// watch reads a cell's log as it grows and looks when its processes are gone.
type watch struct {
	path string
	mu   sync.Mutex
	seen []line
	gone map[int]time.Time // by process; the zero time: it lives
	quit chan struct{}
	done chan struct{}
}

// line is one of the log: an event of a process.
type line struct {
	at   time.Time
	role string
	pid  int
	what string
}

// lookEvery is how exact the end of a process is known.
const lookEvery = 100 * time.Millisecond

func watchLog(path string) *watch {
	w := &watch{path: path, gone: map[int]time.Time{}, quit: make(chan struct{}), done: make(chan struct{})}
	go w.follow()
	return w
}

func (w *watch) stop() {
	close(w.quit)
	<-w.done
}

func (w *watch) follow() {
	defer close(w.done)
	for {
		w.look()
		select {
		case <-w.quit:
			return
		case <-time.After(lookEvery):
		}
	}
}

func (w *watch) look() {
	text, _ := os.ReadFile(w.path)
	lines := parseLog(string(text))
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = lines
	for _, l := range lines {
		if at, known := w.gone[l.pid]; (!known || at.IsZero()) && !alive(l.pid) {
			w.gone[l.pid] = now
		} else if !known {
			w.gone[l.pid] = time.Time{}
		}
	}
}

// longGap is a time between events that is not compared where limits bring them.
const longGap = 20 * time.Second

func parseLog(text string) (out []line) {
	for row := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(row), " ", 4)
		if len(f) < 4 {
			continue
		}
		at, _ := strconv.ParseFloat(f[0], 64)
		pid, _ := strconv.Atoi(f[2])
		out = append(out, line{time.UnixMilli(int64(at * 1000)), f[1], pid, f[3]})
	}
	return out
}

// alive: a process that only waits to be reaped is not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// wait polls until something holds; false if it does not in time.
func (w *watch) wait(long time.Duration, ok func() bool) bool {
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(lookEvery) {
		if ok() {
			return true
		}
	}
	return ok()
}

// count is how many tasks have written an event.
func (w *watch) count(what string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.seen {
		if l.what == what && strings.HasPrefix(l.role, "task") {
			n++
		}
	}
	return n
}

// lives: some process is left.
func (w *watch) lives() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.gone {
		if at.IsZero() {
			return true
		}
	}
	return false
}

// roles are the events by role; seconds count from the time given, or from the first event of all.
func (w *watch) roles(from time.Time, first bool) map[string][]event {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := slices.DeleteFunc(slices.Clone(w.seen), func(l line) bool { return l.what == "ready" })
	for _, l := range w.seen {
		if l.what == "ready" && !w.gone[l.pid].IsZero() {
			lines = append(lines, line{w.gone[l.pid], l.role, l.pid, "gone"})
		} else if l.what == "ready" {
			lines = append(lines, line{time.Now(), l.role, l.pid, "left alive"})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	out := map[string][]event{}
	for i, l := range lines {
		if first && (i == 0 || l.at.Sub(lines[i-1].at) > longGap) {
			from = l.at // limits are as coarse as minutes
		}
		out[l.role] = append(out[l.role], event{l.what, l.at.Sub(from).Seconds()})
	}
	return out
}

// event is one thing that happened to a process, in seconds since the end was asked for.
type event struct {
	what string
	at   float64
}
