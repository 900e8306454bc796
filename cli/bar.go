package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// barAfter is how long work may take without a word.
const barAfter = 500 * time.Millisecond

// A bar tells on a terminal, on one line that goes away, how far long work is: of how much, or if that is not known,
// how much.
type bar struct {
	name  string
	all   int64
	done  int64
	began time.Time
	told  time.Time
	out   *os.File // nil: no terminal
}

func newBar(name string) *bar {
	b := &bar{name: name, began: time.Now(), out: os.Stderr}
	if _, err := unix.IoctlGetWinsize(int(b.out.Fd()), unix.TIOCGWINSZ); err != nil {
		b.out = nil
	}
	return b
}

// Write counts what is copied.
func (b *bar) Write(p []byte) (int, error) {
	b.move(b.done+int64(len(p)), b.all)
	return len(p), nil
}

// move says how far it is.
func (b *bar) move(done, all int64) {
	b.done, b.all = done, all
	now := time.Now()
	if b.out == nil || now.Sub(b.began) < barAfter || now.Sub(b.told) < 100*time.Millisecond {
		return
	}
	b.told = now
	fmt.Fprint(b.out, "\r"+b.line()+"\033[K")
}

func (b *bar) line() string {
	const width = 40
	amount := fmt.Sprintf("%.1f MB", float64(b.done)/1e6)
	if b.all <= 0 {
		return fmt.Sprintf("%s: %s", b.name, amount)
	}
	part := int(min(b.done, b.all) * width / b.all)
	return fmt.Sprintf("%s %s%s %3d%%, %s", b.name, strings.Repeat("█", part), strings.Repeat("·", width-part),
		b.done*100/b.all, amount)
}

// end takes the line away.
func (b *bar) end() {
	if b.out != nil && !b.told.IsZero() {
		fmt.Fprint(b.out, "\r\033[K")
	}
}
