package gpu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"dev.muster/cluster"
	"dev.muster/wire"
)

// Pace and bounds of the watch.
const (
	answerTime = 5 * time.Second // for the helper to answer; then it is killed
	maxSilence = 3               // failures in a row after which the GPUs are unknown
	retryMin   = time.Second     // after a failure; doubled up to retryMax
	retryMax   = time.Minute
	idleEvery  = 5 * time.Minute // between looks at a machine without GPUs
	notesEvery = time.Minute     // between reports of what matters to no job
	endTime    = time.Second     // for a killed helper to be gone; one in a driver's call may stay
	burstTime  = time.Minute     // within which the same event told again is no news
	maxEvents  = 1024            // different ones
	maxLine    = 4 << 20         // bytes of an answer
)

// Found is what is known of the machine's GPUs: what jobs may use, and what is wrong.
type Found struct {
	GPUs   []cluster.GPU
	Driver string
	Faults []cluster.Fault
}

// Watcher keeps looking at the GPUs through a helper process, so that no driver's call can hold up the daemon.
// First and Run are to be called one after the other.
type Watcher struct {
	command  []string // of the helper
	every    time.Duration
	patience time.Duration // for an answer
	slog     *slog.Logger

	h      *helper
	plain  bool          // the helper with NVML does not run on this machine
	gone   chan struct{} // closed when the helper that was killed last is gone
	before *Scan
	events []event
	fails  int   // in a row
	err    error // the last of them
	last   Found

	latest atomic.Pointer[Scan]

	requests chan request // of others while Run is under way
}

// event is one that was told, and when last.
type event struct {
	Event
	at time.Time
}

// helper is a running helper process.
type helper struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan answer // closed when it ends
	gone    chan struct{}
	hello   bool
}

// NewWatcher prepares to watch through a helper, a look every so often and at once when the driver tells something.
func NewWatcher(command []string, every time.Duration, log *slog.Logger) *Watcher {
	return &Watcher{command: command, every: every, patience: answerTime, slog: log, requests: make(chan request)}
}

// First is the first look. It takes no longer than one answer may.
func (w *Watcher) First(ctx context.Context) Found {
	w.look(ctx)
	return w.last
}

// Latest is the last look that gave an answer, nil before there was one. It is not to be changed; anybody may ask.
func (w *Watcher) Latest() *Scan { return w.latest.Load() }

// Look is one look for people: all that is known, and what is wrong.
func (w *Watcher) Look(ctx context.Context) (*Scan, []cluster.Fault, error) {
	defer w.kill()
	if w.look(ctx); w.before == nil {
		return nil, nil, w.err
	}
	return w.before, w.last.Faults, nil
}

// Run looks on until ctx ends and tells what has changed.
func (w *Watcher) Run(ctx context.Context, tell func(Found)) {
	defer w.kill()
	told, at := w.last, time.Now()
	timer := time.NewTimer(w.pause())
	defer timer.Stop()
	for {
		var answers chan answer
		if w.h != nil {
			answers = w.h.answers
		}
		select {
		case <-ctx.Done():
			return
		case a, ok := <-answers:
			if ok && !w.note(a) {
				continue
			}
			if !ok {
				w.kill() // it ended by itself; the look starts another
			}
		case q := <-w.requests:
			r, news := w.forward(ctx, q.line)
			if q.reply <- r; !news && r.err == nil {
				continue
			}
		case <-timer.C:
		}
		w.look(ctx)
		timer.Reset(w.pause())
		if ctx.Err() == nil && (matters(told, w.last) || changed(told, w.last) && time.Since(at) >= notesEvery) {
			told, at = w.last, time.Now()
			tell(told)
		}
	}
}

// pause is how long to wait for the next look.
func (w *Watcher) pause() time.Duration {
	switch {
	case w.fails > 0:
		return min(retryMin<<min(max(w.fails-maxSilence, 0), 10), retryMax)
	case w.before != nil && len(w.before.Readings) == 0 && w.before.Trouble == "":
		return idleEvery
	}
	return w.every
}

// note takes what the helper says by itself; it reports whether that is news.
func (w *Watcher) note(a answer) bool {
	if a.Event == nil {
		return false
	}
	now := time.Now()
	i := slices.IndexFunc(w.events, func(e event) bool { return e.UUID == a.Event.UUID && e.XID == a.Event.XID })
	if i < 0 && len(w.events) < maxEvents {
		i, w.events = len(w.events), append(w.events, event{Event: Event{UUID: a.Event.UUID, XID: a.Event.XID}})
	}
	if i < 0 {
		return false
	}
	e := &w.events[i]
	burst := e.Times > 0 && now.Sub(e.at) < burstTime
	if e.at = now; !burst {
		e.Times++
		w.slog.Warn("the GPU driver tells of an error", "gpu", e.UUID, "xid", e.XID, "times", e.Times)
	}
	return !burst
}

// look asks the helper and draws the conclusions.
func (w *Watcher) look(ctx context.Context) {
	scan, err := w.ask(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.kill()
		w.fails, w.err = w.fails+1, err
		w.slog.Warn("the GPUs could not be looked at", "err", err, "failures", w.fails)
		if w.fails >= maxSilence {
			w.last.Faults = append(slices.DeleteFunc(slices.Clone(w.last.Faults),
				func(f cluster.Fault) bool { return f.Passing }), cluster.Fault{
				Part: "gpu", Cause: "unknown",
				Text:   fmt.Sprintf("GPUs unknown: %v, %d times in a row", err, maxSilence),
				Action: cluster.FaultDrain, Passing: true})
		}
		return
	}
	w.fails = 0
	if scan.Cause == CauseNoDriver && scan.Bus == 0 && (w.before == nil || len(w.before.Readings) == 0) {
		scan.Trouble = "" // there is a library and nothing that it could be for
	}
	carry(w.before, scan)
	var events []Event
	for _, e := range w.events {
		events = append(events, e.Event)
	}
	faults := Judge(w.before, scan, events)
	w.last = Found{GPUs: scan.Devices(), Driver: scan.Driver, Faults: faults}
	w.before = scan
	w.latest.Store(scan)
	if scan.Trouble != "" || len(scan.Readings) == 0 {
		w.kill() // a new process loads the library again; where there are no GPUs none needs to wait
	}
}

// ask gets one look from the helper, which it starts if there is none.
func (w *Watcher) ask(ctx context.Context) (*Scan, error) {
	deadline := time.NewTimer(w.patience)
	defer deadline.Stop()
	for {
		if err := w.start(); err != nil {
			return nil, err
		}
		if _, err := w.h.in.Write([]byte("\n")); err != nil && !errors.Is(err, os.ErrClosed) {
			w.slog.Debug("asking the GPU helper failed", "err", err) // it has ended: its answers say so
		}
		scan, again, err := w.answer(ctx, deadline.C)
		if !again {
			return scan, err
		}
	}
}

// answer waits for the answer; again if the helper with NVML does not run here and the plain one is to be asked.
func (w *Watcher) answer(ctx context.Context, late <-chan time.Time) (scan *Scan, again bool, err error) {
	for {
		select {
		case a, ok := <-w.h.answers:
			switch {
			case !ok && !w.h.hello && !w.plain:
				w.slog.Warn("the GPU helper does not run on this machine; the GPUs are looked at without NVML")
				w.plain = true
				w.kill()
				return nil, true, nil
			case !ok:
				return nil, false, errors.New("the GPU helper ended")
			case a.Scan != nil:
				return a.Scan, false, nil
			case a.Hello:
				w.h.hello = true
			default:
				w.note(a)
			}
		case <-late:
			return nil, false, fmt.Errorf("no answer of the GPU helper within %v", w.patience)
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// start starts the helper if none runs.
func (w *Watcher) start() error {
	if w.h != nil {
		return nil
	}
	if w.gone != nil {
		select {
		case <-w.gone:
		default: // each more would hang as well
			return errors.New("the GPU helper hangs in the driver and cannot be killed")
		}
	}
	argv := w.command
	if w.plain {
		argv = append(slices.Clone(argv), plainFlag)
	}
	h := &helper{cmd: exec.Command(argv[0], argv[1:]...), answers: make(chan answer), gone: make(chan struct{})}
	h.cmd.Stderr = os.Stderr
	in, err1 := h.cmd.StdinPipe()
	out, err2 := h.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("start the GPU helper: %w", err)
	}
	if err := h.cmd.Start(); err != nil {
		return fmt.Errorf("start the GPU helper: %w", err)
	}
	h.in, w.h, w.gone = in, h, h.gone
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			var a answer
			if err := wire.Unmarshal(lines.Bytes(), &a); err != nil {
				break
			}
			h.answers <- a
		}
		close(h.answers)
		_ = h.cmd.Wait()
		close(h.gone)
	}()
	return nil
}

// kill ends the helper. One that does not go is left to the kernel.
func (w *Watcher) kill() {
	if w.h == nil {
		return
	}
	h := w.h
	w.h = nil
	_ = h.in.Close()
	_ = h.cmd.Process.Kill()
	late := time.NewTimer(endTime)
	defer late.Stop()
	for {
		select {
		case _, ok := <-h.answers:
			if ok {
				continue
			}
			h.answers = nil
		case <-h.gone:
			return
		case <-late.C:
			if h.answers == nil {
				return
			}
			go func(answers chan answer) { // lets the reader end when the process does
				for range answers {
				}
			}(h.answers)
			return
		}
	}
}

// changed reports whether something else is known now.
func changed(a, b Found) bool {
	return a.Driver != b.Driver || !reflect.DeepEqual(a.GPUs, b.GPUs) || !sameFaults(a.Faults, b.Faults)
}

// matters reports whether jobs are concerned: other devices, or other faults that keep them away.
func matters(a, b Found) bool {
	grave := func(list []cluster.Fault) []cluster.Fault {
		return slices.DeleteFunc(slices.Clone(list),
			func(f cluster.Fault) bool { return f.Action == cluster.FaultNote && f.Part != "gpu" })
	}
	return !reflect.DeepEqual(a.GPUs, b.GPUs) || !sameFaults(grave(a.Faults), grave(b.Faults))
}

// sameFaults compares what faults are, not their words, which may count something.
func sameFaults(a, b []cluster.Fault) bool {
	return slices.EqualFunc(a, b,
		func(x, y cluster.Fault) bool { return x.Part == y.Part && x.Cause == y.Cause && x.Action == y.Action })
}
