package front

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Messages of -v have levels, as Slurm counts them: 1 is -v, 2 is -vv (debug), and so on.
const (
	Info   = 0 // what -Q keeps to itself
	Told   = 1 // what is done
	Debug  = 2 // with what, and how it came to that
	Debug2 = 3 // the calls of servers
)

// levelWords stand before what is told at a level, as in Slurm.
var levelWords = [...]string{Debug: "debug:  ", Debug2: "debug2: "}

// Tells reports whether as many -v were given.
func (s *Sys) Tells(level int) bool { return s.Verbose >= level }

// Tell says a line if as many -v were given.
func (s *Sys) Tell(level int, format string, args ...any) {
	if s.Tells(level) {
		s.Say(levelWords[level]+format, args...)
	}
}

// Asked is one line of what a command was asked for.
type Asked struct {
	Name, Value string
	Close       bool // without a blank before the value, as some of Slurm's are
}

// Null is a word as Slurm's commands tell of one that was not given.
func Null(word string) string { return cmp.Or(word, "(null)") }

// AskedBool and AskedCount are such lines of a flag and of a number.
func AskedBool(name string, on bool) Asked { return Asked{Name: name, Value: strconv.FormatBool(on)} }

// AskedCount is such a line of a number.
func AskedCount(name string, n int) Asked { return Asked{Name: name, Value: strconv.Itoa(n)} }

// TellAsked prints what a query is asked for, where the answer goes, in the layout of squeue and its like:
// blocks with lines around them, and what follows the last.
func TellAsked(out io.Writer, after string, blocks ...[]Asked) {
	line := strings.Repeat("-", 29) + "\n"
	_, _ = io.WriteString(out, line)
	for _, list := range blocks {
		for _, a := range list {
			fmt.Fprintf(out, "%s =%s%s\n", a.Name, Choose(a.Close, "", " "), a.Value)
		}
		_, _ = io.WriteString(out, line)
	}
	_, _ = io.WriteString(out, after)
}
