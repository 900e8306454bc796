package opt

import (
	"slices"
	"strings"
)

// autocomplete is an option of every program since 24.05; scripts of shells call it.
const autocomplete = "autocomplete"

// complete answers --autocomplete: the long names that begin with value, which may be the next word.
func (p *Parser[T]) complete(value string, given bool, next []string) error {
	if !given && len(next) == 0 {
		return p.usage("option '--" + autocomplete + "' requires an argument")
	}
	if !given {
		value = next[0]
	}
	prefix := strings.TrimLeft(value, "-")
	names := []string{}
	p.each(func(o *Option[T]) bool {
		if strings.HasPrefix(o.Long, prefix) && !o.Hidden {
			names = append(names, "--"+o.Long+map[ArgKind]string{Required: "="}[o.Arg])
		}
		return true
	})
	slices.Sort(names)
	return Answer(slices.Compact(names)...)
}

// Answer ends a program with lines that it was asked for, such as the list of its fields.
func Answer(lines ...string) *UsageError { return &UsageError{Lines: lines, Stdout: true} }

// Listed arranges names as Slurm's lists of fields: so many in a line, each so wide.
func Listed(names []string, perLine, width int) (lines []string) {
	for some := range slices.Chunk(names, perLine) {
		line := ""
		for _, name := range some {
			line += name + strings.Repeat(" ", max(width-len(name), 1))
		}
		lines = append(lines, line)
	}
	return lines
}
