package opt

import (
	"slices"
	"strings"
)

const helpColumn = 30 // where the explanations of --help start

// Label is how the option is written in --help: "-p, --partition=name".
func (p *Parser[T]) Label(o *Option[T]) string {
	s := "      "
	if c := p.shortOf(o); c != 0 {
		s = "  -" + string(c) + ", "
	}
	return s + "--" + o.Long + o.meta()
}

func (o *Option[T]) meta() string {
	m := o.Meta
	if m == "" {
		m = "value"
	}
	switch o.Arg {
	case Required:
		return "=" + m
	case Optional:
		return "[=" + m + "]"
	}
	return ""
}

// Help is the text of --help. synopsis is the line after "Usage: ".
func (p *Parser[T]) Help(synopsis string) []string {
	lines := []string{"Usage: " + synopsis, ""}
	for g := Run; g <= Other; g++ {
		var rows []*Option[T]
		p.each(func(o *Option[T]) bool {
			if o.Group == g && o.listed() {
				rows = append(rows, o)
			}
			return true
		})
		if len(rows) == 0 {
			continue
		}
		slices.SortStableFunc(rows, func(a, b *Option[T]) int { return strings.Compare(a.Long, b.Long) })
		lines = append(lines, groupTitles[g]+":")
		for _, o := range rows {
			label := p.Label(o)
			if o.Ignored != "" {
				lines = append(lines, entry(label, "accepted, no effect: "+o.Ignored)...)
				continue
			}
			lines = append(lines, entry(label, o.Help)...)
		}
		lines = append(lines, "")
	}
	return lines
}

// entry puts label and text in two columns; a long label pushes its text to the right.
func entry(label, text string) []string {
	if len(label) >= helpColumn {
		label += " "
	} else {
		label += strings.Repeat(" ", helpColumn-len(label))
	}
	return wrapText(label, text, helpColumn)
}

// wrapText breaks text at blanks, so that lines stay within the width of a terminal.
func wrapText(head, text string, indent int) []string {
	const width = 80
	var lines []string
	line := head
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > width && strings.TrimSpace(line) != "" && len(line) > indent {
			lines = append(lines, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", indent)
		}
		line += word + " "
	}
	return append(lines, strings.TrimRight(line, " "))
}

// Usage is the text of --usage: every option in brackets.
func (p *Parser[T]) Usage(operands string) []string {
	head := "Usage: " + p.Prog.Name() + " "
	text := ""
	p.each(func(o *Option[T]) bool {
		if o.listed() && o.Ignored == "" {
			text += "[--" + o.Long + o.meta() + "] "
		}
		return true
	})
	return wrapText(head, text+operands, len(head))
}

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
