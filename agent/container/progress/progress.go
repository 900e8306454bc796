// Package progress is how the process that fetches an image tells how far it is: two numbers in a file in memory, which
// its step looks at when it wants to.
package progress

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// size is that of the two numbers.
const size = 16

// Meter counts what has come of an image. A nil one counts nothing.
type Meter struct {
	fd          int
	done, total atomic.Int64
}

// On is a meter that writes to a descriptor.
func On(fd int) *Meter { return &Meter{fd: fd} }

// Of says how much there is to come.
func (m *Meter) Of(total int64) {
	if m != nil {
		m.total.Store(total)
		m.tell()
	}
}

// Add says that more has come.
func (m *Meter) Add(n int) {
	if m != nil {
		m.done.Add(int64(n))
		m.tell()
	}
}

func (m *Meter) tell() {
	var b [size]byte
	binary.LittleEndian.PutUint64(b[:], uint64(m.done.Load()))
	binary.LittleEndian.PutUint64(b[size/2:], uint64(m.total.Load()))
	_, _ = unix.Pwrite(m.fd, b[:], 0) // nobody misses it
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
	s := State{at(0), at(size / 2)}
	s.Done = min(s.Done, s.Total)
	return s
}

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
