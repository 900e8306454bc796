package look

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"dev.muster/slurm/front"
)

// fitted has a command's lines fit the terminal that they are written to. Lines for other files stay
// as they are. done writes what is left of the last line.
func fitted(sys *front.Sys) (on *front.Sys, done func()) {
	f, ok := sys.Stdout.(*os.File)
	if !ok || !front.IsTerminal(f) {
		return sys, func() {}
	}
	size, err := front.TerminalSize(f)
	if err != nil || size.Cols < fitLeast {
		return sys, func() {}
	}
	w := &fitWriter{to: front.PlainText(f), width: int(size.Cols)}
	one := *sys
	one.Stdout = w
	return &one, w.flush
}

// Fit has a command's lines fit the terminal.
func Fit(run func(*front.Sys, []string) int) func(*front.Sys, []string) int {
	return func(sys *front.Sys, argv []string) int {
		on, done := fitted(sys)
		defer done()
		return run(on, argv)
	}
}

const (
	fitLeast  = 40 // narrower ones are left to the terminal
	fitIndent = 29 // where the texts of muster why begin
)

// fitWriter breaks lines between words. The rest of a line is indented like its text.
type fitWriter struct {
	to    io.Writer
	width int
	rest  []byte // of a line that has not ended
}

// Write implements io.Writer.
func (w *fitWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		line := string(w.rest[:i])
		w.rest = w.rest[i+1:]
		if _, err := io.WriteString(w.to, fitLine(line, w.width)+"\n"); err != nil {
			return 0, err
		}
	}
}

func (w *fitWriter) flush() {
	if len(w.rest) > 0 {
		_, _ = io.WriteString(w.to, fitLine(string(w.rest), w.width))
		w.rest = nil
	}
}

// fitLine breaks one line.
func fitLine(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	indent := hanging(line, width)
	var out strings.Builder
	at := 0
	for i, word := range strings.SplitAfter(line, " ") {
		n := utf8.RuneCountInString(strings.TrimRight(word, " "))
		if i > 0 && n > 0 && at+n > width && at > indent {
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		}
		out.WriteString(word)
		at += utf8.RuneCountInString(word)
	}
	return out.String()
}

// hanging is where the text of a line begins: behind a label and the blanks after it, or behind the blanks before it.
func hanging(line string, width int) int {
	text := strings.TrimLeft(line, " ")
	begin := len(line) - len(text)
	if i := strings.Index(text, "  "); i >= 0 && begin+i < fitIndent {
		begin += len(text) - len(strings.TrimLeft(text[i:], " "))
	}
	return min(begin+2, width/2)
}
