package cli

import (
	"bufio"
	"fmt"
	"strings"
	"unicode/utf8"

	"dev.muster/api"
	"dev.muster/slurm/front"
	"dev.muster/wire"
)

// sqlOptions is what the line of muster sql asks for.
type sqlOptions struct {
	Tables, CSV, JSON, NoHeader bool
	Words                       []string // the question, one word of the shell's
}

// runSQL asks history in SQL and prints the answer (muster sql QUESTION). It returns the exit code.
func runSQL(sys *front.Sys, o sqlOptions) int {
	if (len(o.Words) != 1) != o.Tables || o.CSV && o.JSON {
		fmt.Fprintln(sys.Stderr,
			"usage: muster sql [--csv | --json] [--noheader] 'SELECT ...', options first, or muster sql --tables")
		return 1
	}
	resp, err := front.Call(sys, api.AskHistory, api.SQLRequest{Query: strings.Join(o.Words, " "), Tables: o.Tables})
	if err != nil {
		return sys.Fail("%s", err.Error())
	}
	out := bufio.NewWriterSize(sys.Stdout, 1<<16)
	defer out.Flush()
	switch {
	case o.JSON:
		err = sqlJSON(out, &resp)
	case o.CSV:
		sqlText(out, &resp, o.NoHeader, csvCell, ",")
	default:
		widths := sqlWidths(&resp, o.NoHeader)
		sqlText(out, &resp, o.NoHeader, func(i int, cell string) string {
			if i == len(widths)-1 {
				return cell
			}
			return cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		}, "  ")
	}
	if err != nil {
		return sys.Fail("%s", err.Error())
	}
	if resp.More {
		fmt.Fprintf(sys.Stderr,
			"%s: there are more rows than these %d: narrow the question, or use LIMIT and OFFSET\n",
			sys.Prog, len(resp.Rows))
	}
	return 0
}

// sqlCell is a cell as text; null is nothing.
func sqlCell(cell wire.RawMessage) string {
	var text string
	switch {
	case string(cell) == "null":
		return ""
	case len(cell) > 0 && cell[0] == '"' && wire.Unmarshal(cell, &text) == nil:
		return text
	}
	return string(cell)
}

// sqlText prints a line for the columns and one for each row.
func sqlText(out *bufio.Writer, resp *api.SQLResponse, noHeader bool, write func(i int, cell string) string,
	between string) {
	line := func(n int, cell func(i int) string) {
		for i := range n {
			if i > 0 {
				out.WriteString(between)
			}
			out.WriteString(write(i, cell(i)))
		}
		out.WriteString("\n")
	}
	if !noHeader {
		line(len(resp.Columns), func(i int) string { return resp.Columns[i] })
	}
	for _, row := range resp.Rows {
		line(len(row), func(i int) string { return sqlCell(row[i]) })
	}
}

func sqlWidths(resp *api.SQLResponse, noHeader bool) []int {
	widths := make([]int, len(resp.Columns))
	for i, c := range resp.Columns {
		if !noHeader {
			widths[i] = utf8.RuneCountInString(c)
		}
		for _, row := range resp.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(sqlCell(row[i])))
		}
	}
	return widths
}

// csvCell is a cell as RFC 4180 writes it.
func csvCell(_ int, cell string) string {
	if strings.ContainsAny(cell, ",\"\r\n") {
		return `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
	}
	return cell
}

// sqlJSON prints a list of objects, cells in the order of the columns.
func sqlJSON(out *bufio.Writer, resp *api.SQLResponse) error {
	out.WriteString("[")
	for i, row := range resp.Rows {
		out.WriteString(front.Choose(i == 0, "\n", ",\n") + " {")
		for k, cell := range row {
			name, err := wire.Marshal(resp.Columns[k])
			if err != nil {
				return err
			}
			out.WriteString(front.Choose(k == 0, "", ", ") + string(name) + ": " + string(cell))
		}
		out.WriteString("}")
	}
	out.WriteString("\n]\n")
	return nil
}
