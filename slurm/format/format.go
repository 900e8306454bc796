// Package format is the column machinery of the commands that list: one row type serves the
// letters of -o and the names of -O, and everything here only turns values into text.
package format

import (
	"bufio"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// LongWidth is how wide a field of -O is without a number.
const LongWidth = 20

// Column is a row: one thing that can be shown of a T. Tables of them are composite literals with
// functions that capture nothing, which the compiler lays out, so that they cost nothing at start-up.
type Column[T any] struct {
	Code byte   // the letter of -o; 0: none
	Long string // the name of -O, any case; several separated by blanks
	Head string
	// Whole says that a right-justified value is never cut, as Slurm's are that print
	// durations and node lists.
	Whole bool
	// Star says that the * at the end of a value stays where that is cut.
	Star bool
	Of   func(*T) string
}

// field is one place in a line.
type field[T any] struct {
	col   *Column[T]
	width int // 0: as wide as it is
	right bool
	text  string // what stands behind it; without a column, all there is
}

// Format is a parsed format string.
type Format[T any] struct {
	prefix string
	fields []field[T]
}

// Codes lists the letters of the columns that the format shows.
func (f *Format[T]) Codes() (codes []byte) {
	for _, x := range f.fields {
		if x.col != nil {
			codes = append(codes, x.col.Code)
		}
	}
	return codes
}

// Columns lists the columns that the format shows, in order.
func (f *Format[T]) Columns() (cols []*Column[T]) {
	for _, x := range f.fields {
		if x.col != nil {
			cols = append(cols, x.col)
		}
	}
	return cols
}

// Find returns the column of a letter, or nil.
func Find[T any](cols []Column[T], code byte) *Column[T] {
	for i := range cols {
		if cols[i].Code == code && code != 0 {
			return &cols[i]
		}
	}
	return nil
}

// FindLong returns the column of a name of -O, or nil.
func FindLong[T any](cols []Column[T], name string) *Column[T] {
	if name == "" {
		return nil
	}
	for i := range cols {
		for long := range strings.SplitSeq(cols[i].Long, " ") {
			if strings.EqualFold(long, name) {
				return &cols[i]
			}
		}
	}
	return nil
}

// Parse reads a format string of -o: text, and fields %[[.]WIDTH]LETTER with text behind them. all
// is the format that %all stands for. bad lists the letters that are no columns, "" where there is none; they are
// shown as they were written.
func Parse[T any](cols []Column[T], spec, all string) (f Format[T], bad []string) {
	f.prefix, spec, _ = strings.Cut(spec, "%")
	for token := range strings.SplitSeq(spec, "%") {
		if token == "" {
			continue
		}
		if all != "" && strings.HasPrefix(token, "all") {
			sub, _ := Parse(cols, all, "")
			f.fields = append(f.fields, sub.fields...)
			continue
		}
		x, rest := sized[T](token)
		letter := rest[:min(1, len(rest))]
		if letter != "" {
			x.col = Find(cols, letter[0])
		}
		if x.col == nil {
			bad = append(bad, letter)
			x = field[T]{text: "%" + token}
		} else {
			x.text = rest[1:]
		}
		f.fields = append(f.fields, x)
	}
	return f, bad
}

// maxWidth bounds a width; Slurm's own bound is what a short holds.
const maxWidth = 1 << 15

const digits = "0123456789"

// sized reads [.]WIDTH.
func sized[T any](s string) (x field[T], rest string) {
	s, x.right = strings.CutPrefix(s, ".")
	rest = strings.TrimLeft(s, digits)
	n, _ := strconv.Atoi(s[:len(s)-len(rest)]) // the largest, where it is too large
	x.width = min(n, maxWidth)
	return x, rest
}

// blankFor puts a blank for the number at the beginning, if there is one; s stood behind a -.
func blankFor(s string) string {
	if rest := strings.TrimLeft(s, digits); rest != s {
		return " " + rest
	}
	return "-" + s
}

// cut cuts a text, of which a * at its end stays.
func cut(s string, width int) string {
	if width > 0 && len(s) > width && strings.HasSuffix(s, "*") {
		return s[:width-1] + "*"
	}
	return s
}

// ParseLong reads a format string of -O: names, each with :[.][WIDTH][TEXT] or 20 wide. bad lists
// the names that are no columns; of them only the text behind the width is shown, as in Slurm.
func ParseLong[T any](cols []Column[T], spec string) (f Format[T], bad []string) {
	for word := range strings.SplitSeq(spec, ",") {
		name, size, given := strings.Cut(word, ":")
		x := field[T]{width: LongWidth}
		if given {
			x, x.text = sized[T](size)
			if less, ok := strings.CutPrefix(x.text, "-"); ok { // below 0: as wide as it is, and a blank, as in Slurm
				x.text = blankFor(less)
			}
		}
		if x.col = FindLong(cols, name); x.col == nil && name != "" {
			bad = append(bad, name)
		}
		f.fields = append(f.fields, x)
	}
	return f, bad
}

// DropUnknown takes out the places that are no columns, with the text behind them: sprio's way.
func (f *Format[T]) DropUnknown() {
	f.fields = slices.DeleteFunc(f.fields, func(x field[T]) bool { return x.col == nil })
}

// Header appends the line of headers, without a line feed.
func (f *Format[T]) Header(b []byte) []byte {
	b = append(b, f.prefix...)
	for i := range f.fields {
		x := &f.fields[i]
		if x.col != nil {
			b = pad(b, x.col.Head, x.width, x.right, false)
		}
		b = append(b, x.text...)
	}
	return b
}

// Table writes a line per row, below the headers if they are wanted. Flush of out reports write errors.
func (f *Format[T]) Table(out *bufio.Writer, header bool, rows []T) {
	var line []byte
	if header {
		line = append(f.Header(line), '\n')
	}
	for i := range rows {
		line = append(f.Row(line, &rows[i]), '\n')
		if len(line) > 1<<15 {
			_, _ = out.Write(line)
			line = line[:0]
		}
	}
	_, _ = out.Write(line)
}

// Row appends the line of one value, without a line feed.
func (f *Format[T]) Row(b []byte, v *T) []byte {
	b = append(b, f.prefix...)
	for i := range f.fields {
		x := &f.fields[i]
		if x.col != nil {
			text := cluster.PlainLine(x.col.Of(v))
			if x.col.Star {
				text = cut(text, x.width)
			}
			b = pad(b, text, x.width, x.right, x.right && x.col.Whole)
		}
		b = append(b, x.text...)
	}
	return b
}

const blanks = "                                                                "

// pad appends s in a field: filled with blanks, and cut without a mark unless whole.
func pad(b []byte, s string, width int, right, whole bool) []byte {
	if width == 0 {
		return append(b, s...)
	}
	if len(s) > width && !whole {
		s = s[:width]
	}
	if !right {
		b = append(b, s...)
	}
	for n := width - len(s); n > 0; n -= len(blanks) {
		b = append(b, blanks[:min(n, len(blanks))]...)
	}
	if right {
		b = append(b, s...)
	}
	return b
}

// LongNames are the names of -O, in the order of the alphabet.
func LongNames[T any](cols []Column[T]) (names []string) {
	for i := range cols {
		names = append(names, strings.Fields(cols[i].Long)...)
	}
	slices.Sort(names)
	return names
}

// Letters are those of -o as they are written there, %a, in the order of the alphabet.
func Letters[T any](cols []Column[T]) (names []string) {
	for i := range cols {
		if cols[i].Code != 0 {
			names = append(names, "%"+string(cols[i].Code))
		}
	}
	slices.Sort(names)
	return names
}

// Place is how a manual tells of a column: its letter, if it has one, and its names.
type Place struct {
	Code  byte
	Names []string
	Head  string
}

// Places are the columns of a table as a manual tells of them.
func Places[T any](cols []Column[T]) (out []Place) {
	for i := range cols {
		out = append(out, Place{cols[i].Code, strings.Fields(cols[i].Long), cols[i].Head})
	}
	return out
}
