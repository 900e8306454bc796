package slurm

import (
	"bufio"
	"slices"
	"strings"
)

// reportColumn is a field of the programs of accounting: name, header and width; negative: to the left.
type reportColumn[T any] struct {
	name, head string
	width      int
	of         func(*T) string
}

// report is a table as sacctmgr and sshare print it.
type report[T any] struct {
	cols     []reportColumn[T]
	noHeader bool
	parse    int // 1: a | behind each field, 2: between them
}

// find looks up a column by its name, or the beginning of it.
func findReport[T any](all []reportColumn[T], word string) *reportColumn[T] {
	for exact := range 2 {
		for i := range all {
			for _, name := range strings.Fields(all[i].name) {
				if strings.EqualFold(name, word) || exact == 1 && len(word) > 2 && len(name) >= len(word) && strings.EqualFold(name[:len(word)], word) {
					return &all[i]
				}
			}
		}
	}
	return nil
}

// pick reads a format: names, each with an optional %width. Of equal words the last counts.
func (r *report[T]) pick(all []reportColumn[T], spec string) (bad string) {
	words := strings.Split(spec, ",")
	for i, word := range words {
		if slices.ContainsFunc(words[i+1:], func(w string) bool { return strings.EqualFold(w, word) }) {
			continue
		}
		name, width, sized := strings.Cut(strings.TrimSpace(word), "%")
		if name == "" {
			continue
		}
		c := findReport(all, name)
		if c == nil {
			return name
		}
		col := *c
		if n, sign := 0, 1; sized {
			if strings.HasPrefix(width, "-") {
				width, sign = width[1:], -1
			}
			for _, d := range width {
				if d < '0' || d > '9' || n > maxReportWidth {
					return word
				}
				n = n*10 + int(d-'0')
			}
			if n > 0 {
				col.width = n * sign
			}
		}
		r.cols = append(r.cols, col)
	}
	return ""
}

// maxReportWidth bounds a column.
const maxReportWidth = 1 << 12

// print writes the header and a line for each row.
func (r *report[T]) print(w *bufio.Writer, rows []T) {
	if !r.noHeader {
		r.line(w, func(c *reportColumn[T]) string {
			if width := max(c.width, -c.width); r.parse == 0 && len(c.head) > width {
				return c.head[:width]
			}
			return c.head
		})
		if r.parse == 0 {
			for _, c := range r.cols {
				w.WriteString(strings.Repeat("-", max(c.width, -c.width)) + " ")
			}
			w.WriteString("\n")
		}
	}
	for i := range rows {
		r.line(w, func(c *reportColumn[T]) string { return c.of(&rows[i]) })
	}
}

func (r *report[T]) line(w *bufio.Writer, of func(*reportColumn[T]) string) {
	for i := range r.cols {
		c := &r.cols[i]
		text := of(c)
		if r.parse > 0 {
			w.WriteString(text)
			if r.parse == 1 || i+1 < len(r.cols) {
				w.WriteByte('|')
			}
			continue
		}
		width := max(c.width, -c.width)
		if len(text) > width {
			text = text[:width-1] + "+"
		}
		blank := strings.Repeat(" ", width-len(text))
		if c.width < 0 {
			w.WriteString(text + blank + " ")
		} else {
			w.WriteString(blank + text + " ")
		}
	}
	w.WriteString("\n")
}
