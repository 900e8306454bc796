// Package progress is how the process that fetches an image tells how far it is: two numbers in a file in memory, which
// its step looks at when it wants to, and in the file by which others wait for the same image.
package progress

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// size is that of the two numbers.
const size = 16

// Meter counts what has come of an image. A nil one counts nothing.
type Meter struct {
	fd          int    // -1: none
	also        *Meter // hears the same
	done, total atomic.Int64
}

// On is a meter that writes to a descriptor.
func On(fd int) *Meter { return &Meter{fd: fd} }

// New is a meter that is read where it is.
func New() *Meter { return On(-1) }

// And is a meter that writes to a descriptor, too.
func (m *Meter) And(fd int) *Meter { return &Meter{fd: fd, also: m} }

// Of says how much there is to come.
func (m *Meter) Of(total int64) {
	if m != nil {
		m.total.Store(total)
		m.tell()
		m.also.Of(total)
	}
}

// Add says that more has come.
func (m *Meter) Add(n int) {
	if m != nil {
		m.done.Add(int64(n))
		m.tell()
		m.also.Add(n)
	}
}

// Set says how far another fetch is, which does the work.
func (m *Meter) Set(s State) {
	if m != nil {
		m.done.Store(s.Done)
		m.total.Store(s.Total)
		m.tell()
		m.also.Set(s)
	}
}

// State is how far it is.
func (m *Meter) State() State { return stateOf(m.done.Load(), m.total.Load()) }

func (m *Meter) tell() {
	if m.fd < 0 {
		return
	}
	var b [size]byte
	binary.LittleEndian.PutUint64(b[:], uint64(m.done.Load()))
	binary.LittleEndian.PutUint64(b[size/2:], uint64(m.total.Load()))
	_, _ = unix.Pwrite(m.fd, b[:], 0) // nobody misses it
}

// followEvery is how often it is looked at how far another process is.
const followEvery = 200 * time.Millisecond

// Follow tells what the meter of another process writes to a descriptor, until stop is called.
func (m *Meter) Follow(fd int) (stop func()) {
	if m == nil {
		return func() {}
	}
	return every(followEvery, func() { m.Set(Read(fd)) })
}

// every does something again and again, and once more when it is stopped.
func every(pause time.Duration, do func()) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(pause)
		defer t.Stop()
		for {
			select {
			case <-end:
				do()
				return
			case <-t.C:
				do()
			}
		}
	}()
	return func() { close(end); <-ended }
}

// State is how far a fetch is, in bytes.
type State struct{ Done, Total int64 }

// Read is what a meter has last told; nothing, if it has told nothing yet.
func Read(fd int) State {
	var b [size]byte
	if n, err := unix.Pread(fd, b[:], 0); err != nil || n != size {
		return State{}
	}
	at := func(i int) int64 { return max(0, int64(binary.LittleEndian.Uint64(b[i:]))) }
	return stateOf(at(0), at(size/2))
}

// stateOf is a state that is never past its end: what is fetched a second time counts once.
func stateOf(done, total int64) State { return State{Done: min(done, total), Total: total} }

// Text is the state in words: 120 MiB of 1.2 GiB.
func (s State) Text() string { return bytes(s.Done) + " of " + bytes(s.Total) }

// bytes is a number of bytes in the unit that suits it.
func bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f := float64(n)
	for ; f >= 1024 && len(units) > 1; units = units[1:] {
		f /= 1024
	}
	return fmt.Sprintf("%.3g %s", f, units[0])
}

// barWidth is how wide a bar is, in letters.
const barWidth = 30

// Bar draws the state over what was drawn before on the same line of a terminal.
func (s State) Bar() string {
	part := float64(s.Done) / float64(max(s.Total, 1))
	full := int(part * barWidth)
	return fmt.Sprintf("\r[%s%s] %3.0f%% %s\x1b[K", strings.Repeat("#", full), strings.Repeat(".", barWidth-full),
		part*100, s.Text())
}

// How a user hears of a fetch that takes long: by a line now and then, or by a bar that is drawn again.
const (
	First     = 2 * time.Second
	LineEvery = 10 * time.Second
	BarEvery  = 500 * time.Millisecond
)

// Show tells a user how far a fetch is: by a bar on a terminal, else by lines. stop ends the bar's line.
func (m *Meter) Show(w io.Writer, terminal bool, name string) (stop func()) {
	d := display{meter: m, w: w, name: name, terminal: terminal, began: time.Now(), next: First}
	halt := every(BarEvery, d.tick)
	return func() {
		halt()
		if d.drawn {
			d.draw()
			fmt.Fprintln(w)
		}
	}
}

// display is what one user sees of a meter.
type display struct {
	meter    *Meter
	w        io.Writer
	name     string
	terminal bool
	began    time.Time
	next     time.Duration
	drawn    bool
}

func (d *display) tick() {
	at, s := time.Since(d.began), d.meter.State()
	if at < d.next || s.Total == 0 {
		return
	}
	if d.terminal {
		d.next = at + BarEvery/2
		d.draw()
		return
	}
	d.next = at + LineEvery
	fmt.Fprintf(d.w, "%s: %s\n", d.name, s.Text())
}

func (d *display) draw() {
	d.drawn = true
	fmt.Fprint(d.w, d.meter.State().Bar())
}
