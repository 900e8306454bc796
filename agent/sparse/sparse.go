// Package sparse bounds the lines of the log about what anybody on the network may cause: each line costs the disk. It
// knows nothing of what they tell. Start with Lines.
package sparse

import (
	"strings"
	"sync"
	"time"
)

// Bounds of lines.
const (
	Span = time.Minute
	Most = 20 // lines in a span

	maxText  = 64  // bytes of a text that a caller has chosen
	maxError = 256 // of an error
)

// Lines are those about one kind of refusal. The zero value is ready.
type Lines struct {
	mu      sync.Mutex
	since   time.Time
	lines   int
	omitted int
}

// Next reports whether a refusal has one of so many lines of a span, and how many before it had none.
func (l *Lines) Next(now time.Time, most int) (omitted int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= Span {
		l.since, l.lines = now, 0
	}
	if l.lines >= most {
		l.omitted++
		return 0, false
	}
	l.lines++
	omitted, l.omitted = l.omitted, 0
	return omitted, true
}

// Idle reports whether no refusal has had a line for a span.
func (l *Lines) Idle(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.since) >= Span
}

// Say writes a line by one of a logger's functions, unless there were too many recently; the next line tells how many
// had none.
func (l *Lines) Say(write func(text string, args ...any), text string, args ...any) {
	omitted, ok := l.Next(time.Now(), Most)
	if !ok {
		return
	}
	for i, a := range args {
		args[i] = shortened(a)
	}
	if omitted > 0 {
		args = append(args, "others_without_a_line", omitted)
	}
	write(text, args...)
}

// shortened cuts texts and errors, which may repeat what a caller has said.
func shortened(a any) any {
	text, bound := "", maxText
	switch a := a.(type) {
	case string:
		text = a
	case error:
		text, bound = a.Error(), maxError
	}
	if len(text) <= bound {
		return a
	}
	return strings.ToValidUTF8(text[:bound], "") + "..."
}
