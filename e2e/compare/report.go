package main

import (
	"fmt"
	"slices"
	"strings"
)

// inOrderOf sorts the lines of a text like those of another, if they are the same lines.
func inOrderOf(want, text string) string {
	a, b := strings.Split(want, "\n"), strings.Split(text, "\n")
	slices.Sort(a)
	slices.Sort(b)
	if slices.Equal(a, b) {
		return want
	}
	return text
}

// lines is everything a command did, line by line.
func (o outcome) lines() (out []string) {
	add := func(tag, text string) {
		if text == "" {
			return
		}
		for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			out = append(out, tag+l)
		}
	}
	add("", o.stdout)
	add("err: ", o.stderr)
	return append(out, "rc: "+o.code)
}

// unified is the difference of two lists of lines, with one line of context; nil if they are equal.
func unified(a, b []string) (out []string) {
	n, m := len(a), len(b)
	common := make([][]int, n+1)
	for i := range common {
		common[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var all []string
	changed := false
	for i, j := 0, 0; i < n || j < m; {
		switch {
		case i < n && j < m && a[i] == b[j]:
			all = append(all, "  "+a[i])
			i, j = i+1, j+1
		case i < n && (j == m || common[i+1][j] >= common[i][j+1]):
			all, changed, i = append(all, "- "+a[i]), true, i+1
		default:
			all, changed, j = append(all, "+ "+b[j]), true, j+1
		}
	}
	if !changed {
		return nil
	}
	for i, l := range all {
		if l[0] != ' ' || i > 0 && all[i-1][0] != ' ' || i+1 < len(all) && all[i+1][0] != ' ' {
			out = append(out, l)
		}
	}
	return out
}

// report prints the differences and whether all of them are known.
func report(cmds []command, results [][]outcome, reasons []*reason, show, all bool) bool {
	same, differ, explained := 0, 0, []string{}
	for i, c := range cmds {
		if c.anyOrder {
			results[1][i].stderr = inOrderOf(results[0][i].stderr, results[1][i].stderr)
		}
		a, b := results[0][i].lines(), results[1][i].lines()
		if show {
			fmt.Printf("=== %d [%s] %s\n%s\n", c.number, c.section, c.text, strings.Join(a, "\n"))
		}
		d := unified(a, b)
		if len(d) == 0 {
			same++
			continue
		}
		text := fmt.Sprintf("=== %d [%s] %s\n%s\n", c.number, c.section, c.text, strings.Join(d, "\n"))
		if r := whyKnown(c, reasons); r != nil {
			explained = append(explained, fmt.Sprintf("known: %s\n%s", r.why, text))
			continue
		}
		differ++
		fmt.Print(text)
	}
	if len(explained) > 0 {
		fmt.Printf("\n--- known differences (e2e/compare/known.txt)\n%s", strings.Join(explained, ""))
	}
	fmt.Printf("\n%d commands, %d same, %d differ, %d of them known\n", len(cmds), same,
		differ+len(explained), len(explained))
	wrong := staleReasons(cmds, reasons, all)
	for _, w := range wrong {
		fmt.Println(w)
	}
	return differ == 0 && len(wrong) == 0
}

// outcome is what one command did, before and after the replacement.
type outcome struct {
	stdout, stderr string
	code           string
}
