package front

import (
	"bufio"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// Column is a field of the programs of accounting: name, header and width; negative: to the left.
type Column[T any] struct {
	Name, Head string
	Width      int
	Of         func(*T) string
}

// Table is a table as sacctmgr and sshare print it.
type Table[T any] struct {
	Cols     []Column[T]
	NoHeader bool
	Parse    int // 1: a | behind each field, 2: between them
}

// find looks up a column by its name, or the beginning of it.
func findColumn[T any](all []Column[T], word string) *Column[T] {
	for exact := range 2 {
		for i := range all {
			for _, name := range strings.Fields(all[i].Name) {
				if strings.EqualFold(name, word) || exact == 1 && len(word) > 2 && len(name) >= len(word) && strings.EqualFold(name[:len(word)], word) {
					return &all[i]
				}
			}
		}
	}
	return nil
}

// Pick reads a format: names, each with an optional %width. Of equal words the last counts.
func (r *Table[T]) Pick(all []Column[T], spec string) (bad string) {
	words := strings.Split(spec, ",")
	for i, word := range words {
		if slices.ContainsFunc(words[i+1:], func(w string) bool { return strings.EqualFold(w, word) }) {
			continue
		}
		name, width, sized := strings.Cut(strings.TrimSpace(word), "%")
		if name == "" {
			continue
		}
		c := findColumn(all, name)
		if c == nil {
			return name
		}
		col := *c
		if n, sign := 0, 1; sized {
			if strings.HasPrefix(width, "-") {
				width, sign = width[1:], -1
			}
			for _, d := range width {
				if d < '0' || d > '9' || n > maxColumnWidth {
					return word
				}
				n = n*10 + int(d-'0')
			}
			if n > 0 {
				col.Width = n * sign
			}
		}
		r.Cols = append(r.Cols, col)
	}
	return ""
}

// maxColumnWidth bounds a column.
const maxColumnWidth = 1 << 12

// Print writes the header and a line for each row.
func (r *Table[T]) Print(w *bufio.Writer, rows []T) {
	if !r.NoHeader {
		r.line(w, func(c *Column[T]) string {
			if width := max(c.Width, -c.Width); r.Parse == 0 && len(c.Head) > width {
				return c.Head[:width]
			}
			return c.Head
		})
		if r.Parse == 0 {
			for _, c := range r.Cols {
				w.WriteString(strings.Repeat("-", max(c.Width, -c.Width)) + " ")
			}
			w.WriteString("\n")
		}
	}
	for i := range rows {
		r.line(w, func(c *Column[T]) string { return c.Of(&rows[i]) })
	}
}

func (r *Table[T]) line(w *bufio.Writer, of func(*Column[T]) string) {
	for i := range r.Cols {
		c := &r.Cols[i]
		text := cluster.PlainLine(of(c))
		if r.Parse > 0 {
			w.WriteString(text)
			if r.Parse == 1 || i+1 < len(r.Cols) {
				w.WriteByte('|')
			}
			continue
		}
		width := max(c.Width, -c.Width)
		if len(text) > width {
			text = text[:width-1] + "+"
		}
		blank := strings.Repeat(" ", width-len(text))
		if c.Width < 0 {
			w.WriteString(text + blank + " ")
		} else {
			w.WriteString(blank + text + " ")
		}
	}
	w.WriteString("\n")
}
