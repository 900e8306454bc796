package look

import (
	"fmt"
	"io"
	"strings"

	"dev.muster/cluster"
)

// Columns are lines of cells, printed under each other. (text/tabwriter would have packages initialized before a
// front-end starts that it does not need.)
type Columns struct{ lines [][]string }

// Line adds a line.
func (c *Columns) Line(cells ...string) {
	for i, text := range cells {
		cells[i] = cluster.PlainLine(text)
	}
	c.lines = append(c.lines, cells)
}

// Print writes the lines.
func (c *Columns) Print(out io.Writer) {
	var width []int
	for _, cells := range c.lines {
		for i, text := range cells {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], len(text))
		}
	}
	for _, cells := range c.lines {
		var b strings.Builder
		for i, text := range cells {
			fmt.Fprintf(&b, "%-*s  ", width[i], text)
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
}
