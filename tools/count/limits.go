package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// An exception is a figure that is over the general limit: of a package, a function or a type.
type exception struct{ kind, name string }

// general are the limits of what is not listed. Well-kept projects of this size have 19 to 23 branches in
// 100 lines of function by another counter, by which this code had 35.4 when this one says 28.5: 28 there is
// 22.5 here.
var general = map[string]float64{
	"branches":   22.5, // in 100 lines of function
	"cyclomatic": 20,   // of one function
	"wide":       0,    // lines of more than 120 columns, a tab being 4
	"conditions": 0,    // of more than 4 operators
	"fields":     30,
	"methods":    40,
	"lines":      6000, // of one package that has no DESIGN.md
}

var sayings = map[string]string{
	"branches":   "%s branches in 100 lines of function",
	"cyclomatic": "%s ways through one function",
	"wide":       "%s lines wider than 120 columns",
	"conditions": "%s conditions of more than 4 operators",
	"fields":     "%s fields in one type",
	"methods":    "%s methods on one type",
	"lines":      "%s lines in one package",
}

func (e exception) say(figure float64) string { return fmt.Sprintf(sayings[e.kind], number(figure)) }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// exceptions are all figures over the general limits.
func exceptions(packages map[string]*figures) map[exception]float64 {
	over := map[exception]float64{}
	note := func(kind, name string, figure float64) {
		if figure > general[kind] {
			over[exception{kind, name}] = figure
		}
	}
	for name, f := range packages {
		note("branches", name, f.density())
		note("wide", name, float64(f.wide))
		note("conditions", name, float64(f.conditions))
		if !f.designed {
			note("lines", name, float64(f.lines))
		}
		for function, ways := range f.ways {
			note("cyclomatic", name+"."+function, float64(ways))
		}
		for typ, fields := range f.fields {
			note("fields", name+"."+typ, float64(fields))
		}
		for typ, methods := range f.methods {
			note("methods", name+"."+typ, float64(methods))
		}
	}
	return over
}

// lowered are the limits after a look: none rises, and what is not over any more is not listed.
// A figure that is found for the first time, where there are no limits at all, begins its row.
func lowered(limits, found map[exception]float64) map[exception]float64 {
	first := len(limits) == 0
	low := map[exception]float64{}
	for e, figure := range found {
		limit, listed := limits[e]
		switch {
		case listed:
			low[e] = min(limit, roomy(e.kind, figure))
		case first:
			low[e] = roomy(e.kind, figure)
		}
	}
	return low
}

// roomy leaves whole packages room for a mended line: the next branch in 100 lines, the next 100 lines.
func roomy(kind string, figure float64) float64 {
	switch kind {
	case "branches":
		return math.Ceil(figure)
	case "lines":
		return 100 * math.Ceil(figure/100)
	}
	return figure
}

// readLimits reads rows of kind, name and figure; a file that is not there has none.
func readLimits(file string) (map[exception]float64, error) {
	limits := map[exception]float64{}
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return limits, nil
	}
	if err != nil {
		return nil, err
	}
	rows := bufio.NewScanner(strings.NewReader(string(data)))
	for n := 1; rows.Scan(); n++ {
		row := strings.Fields(rows.Text())
		if len(row) == 0 || row[0] == "#" {
			continue
		}
		if len(row) != 3 || sayings[row[0]] == "" {
			return nil, fmt.Errorf("%s:%d: %q is not a kind, a name and a figure", file, n, rows.Text())
		}
		figure, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		limits[exception{row[0], row[1]}] = figure
	}
	return limits, rows.Err()
}

func writeLimits(file string, limits map[exception]float64) error {
	var b strings.Builder
	b.WriteString("# What is over the general limits of tools/count/limits.go, and by how much. Rows only shrink: make limits.\n")
	for _, e := range sorted(limits) {
		fmt.Fprintf(&b, "%-10s %-44s %s\n", e.kind, e.name, number(limits[e]))
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
