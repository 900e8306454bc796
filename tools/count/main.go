// Command count measures how densely the code is written, package by package, and holds the figures to
// the limits of limits.txt: branches in 100 lines of function, branches of one function, lines wider
// than a screen, long conditions, large types and large packages.
//
// It reads the syntax tree alone, so that figures of other projects compare. Tests are not counted.
//
//	go run ./count ROOT          what is over its limit, exit code 1 if anything is
//	go run ./count -write ROOT   lower the limits to what is measured; they never rise
//	go run ./count -table ROOT   the figures of all packages
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	write := flag.Bool("write", false, "lower the limits to what is measured")
	table := flag.Bool("table", false, "print the figures of all packages")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: count [-write|-table] ROOT")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *write, *table); err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

func run(root string, write, table bool) error {
	packages, err := measure(root)
	if err != nil {
		return err
	}
	if table {
		printTable(packages)
		return nil
	}
	file := filepath.Join(root, "tools", "count", "limits.txt")
	limits, err := readLimits(file)
	if err != nil {
		return err
	}
	found := exceptions(packages)
	if write {
		return writeLimits(file, lowered(limits, found))
	}
	return judge(limits, found)
}

func printTable(packages map[string]*figures) {
	fmt.Printf("%-22s %7s %8s %9s %6s %6s %10s\n", "package", "lines", "branches", "functions", "wide", "threes", "conditions")
	total := newFigures()
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		f := packages[name]
		printRow(name, f)
		total.lines += f.lines
		total.functionLines += f.functionLines
		total.branches += f.branches
		total.functions += f.functions
		total.wide += f.wide
		total.threes += f.threes
		total.conditions += f.conditions
	}
	printRow("all", total)
}

func printRow(name string, f *figures) {
	fmt.Printf("%-22s %7d %8.1f %9d %6d %6d %10d\n", name, f.lines, f.density(), f.functions, f.wide, f.threes, f.conditions)
}

// judge names what is over its limit, and limits that are no longer needed.
func judge(limits, found map[exception]float64) error {
	over := 0
	for _, e := range sorted(found) {
		limit, listed := limits[e]
		if !listed {
			limit = general[e.kind]
		}
		if found[e] > limit {
			over++
			fmt.Printf("%s: %s, more than %s\n", e.name, e.say(found[e]), number(limit))
		}
	}
	for _, e := range sorted(limits) {
		if _, needed := found[e]; !needed {
			over++
			fmt.Printf("%s: the limit %q is no longer needed: make limits\n", e.name, e.kind)
		}
	}
	if over > 0 {
		return fmt.Errorf("%d figures are not as tools/count/limits.txt has them", over)
	}
	return nil
}

func sorted(m map[exception]float64) []exception {
	return slices.SortedFunc(maps.Keys(m), func(a, b exception) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}
