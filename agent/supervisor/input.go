package supervisor

import (
	"errors"
	"os"

	"dev.muster/api/stream"
)

// eot is what a terminal takes for the end of input.
const eot = 4

// input takes a numbered frame once and queues it for its tasks. A client that sends more
// than its window is cut off.
func (o *output) input(a *attachment, f stream.Frame) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		o.taken = max(o.taken, f.Seq)
		o.written = o.taken
		o.moved.Broadcast()
		return true
	}
	if a.gone || f.Seq > o.taken+1 {
		return false
	}
	if f.Seq <= o.taken {
		return true
	}
	if o.flyingN+len(f.Data) > o.room+stream.MaxData || len(o.flying) > stream.InputWindow {
		return false
	}
	o.taken = f.Seq
	fl := flying{seq: f.Seq, size: len(f.Data)}
	for rank, k := range o.sinks {
		if k.gone || !meant(f, rank) {
			continue
		}
		fl.left++
		k.queue = append(k.queue, piece{seq: f.Seq, data: f.Data, eof: f.Kind == stream.StdinEOF})
	}
	o.flying = append(o.flying, fl)
	o.flyingN += fl.size
	o.landed(0)
	o.moved.Broadcast()
	return true
}

// meant reports whether input is for a task; the step's server hears only what is for it alone.
func meant(f stream.Frame, rank int32) bool {
	return f.Task == rank || f.Task == stream.AllTasks && rank >= 0
}

// maxTyped bounds the pieces of input that wait for a task before a watcher is not read.
const maxTyped = 64

// typed passes on what a watcher types, once there is room for it.
func (o *output) typed(f stream.Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rank, k := range o.sinks {
		if rank < 0 || !meant(f, rank) {
			continue
		}
		for !k.gone && !o.paused && len(k.queue) >= maxTyped {
			o.moved.Wait()
		}
		if !k.gone {
			k.queue = append(k.queue, piece{data: f.Data, eof: f.Kind == stream.StdinEOF})
		}
	}
	o.moved.Broadcast()
}

// landed counts one task's share of an input frame as passed on; mu is held.
func (o *output) landed(seq uint64) {
	if len(o.flying) > 0 && seq >= o.flying[0].seq {
		o.flying[seq-o.flying[0].seq].left--
	}
	n := 0
	for n < len(o.flying) && o.flying[n].left == 0 {
		o.written = o.flying[n].seq
		o.flyingN -= o.flying[n].size
		n++
	}
	if n > 0 {
		o.flying = o.flying[n:]
		o.moved.Broadcast()
	}
}

// addSink gives a task's input its descriptor; f is nil for a task without.
func (o *output) addSink(rank int32, f *os.File, tty bool) {
	if f == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.sinks[rank]
	if tty {
		o.pty = f
	}
	if k == nil || k.gone || o.closed {
		if !tty {
			f.Close()
		}
		return
	}
	k.f, k.tty = f, tty
	o.wg.Go(func() { o.feed(k) })
}

// feed writes a task's input until its end.
func (o *output) feed(k *sink) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for !k.gone && !o.paused && len(k.queue) == 0 {
			o.moved.Wait()
		}
		if k.gone || o.paused {
			return
		}
		p := k.queue[0]
		data := p.data
		if p.eof && k.tty {
			data = []byte{eot}
		}
		o.mu.Unlock()
		n, err := k.f.Write(data)
		o.mu.Lock()
		if k.gone {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) { // paused: keep the rest
			if k.queue[0].data = data[n:]; k.tty && p.eof {
				k.queue[0].data = nil
			}
			continue
		}
		k.queue = k.queue[1:]
		o.landed(p.seq)
		if err != nil || p.eof && !k.tty {
			o.dropSink(k.rank)
			return
		}
	}
}
