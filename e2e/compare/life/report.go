package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// slack is how far apart, in seconds, the same event may be on the two sides; together is within what time a signal
// that comes twice is one.
const slack, together = 1.5, 0.4

// report prints the cells that differ and whether all of them are known.
func report(cells []cell, results [][2]life, known []*reason, show, all bool) bool {
	same, differ, explained := 0, 0, []string{}
	for i, c := range cells {
		a, b := results[i][0], results[i][1]
		d := differences(a, b, shapes[c.shape].batch)
		if show {
			fmt.Printf("=== %s\n%s", c.name(), strings.Join(differences(a, life{}, false), "\n")+"\n")
		}
		if len(d) == 0 {
			same++
			continue
		}
		text := fmt.Sprintf("=== %s\n%s\n", c.name(), strings.Join(d, "\n"))
		if r := whyKnown(c, known); r != nil {
			explained = append(explained, fmt.Sprintf("known: %s\n%s", r.why, text))
			continue
		}
		differ++
		fmt.Print(text)
	}
	if len(explained) > 0 {
		fmt.Printf("\n--- known differences (e2e/compare/life/known.txt)\n%s", strings.Join(explained, ""))
	}
	fmt.Printf("\n%d cells, %d same, %d differ, %d of them known\n", len(cells), same,
		differ+len(explained), len(explained))
	stale := 0
	for _, r := range known {
		if all && r.used == 0 && !r.chance {
			fmt.Println("known.txt: no cell differs any more for:", r.match)
			stale++
		}
	}
	return differ == 0 && stale == 0
}

// differences are lines about what differs, "-" Slurm, "+" muster; none if the two lives are the same.
func differences(a, b life, racing bool) (out []string) {
	add := func(what, left, right string) {
		if left != right {
			out = append(out, prefixed("- "+what+": ", left)...)
			out = append(out, prefixed("+ "+what+": ", right)...)
		}
	}
	add("trouble", a.trouble, b.trouble)
	for _, k := range keys(a.texts, b.texts) {
		left, right := a.texts[k], b.texts[k]
		if strings.HasPrefix(k, "err") && racing {
			left, right = withoutRacing(left), withoutRacing(right)
		}
		add(k, left, right)
	}
	for _, k := range keys(a.events, b.events) {
		if !alike(a.events[k], b.events[k]) {
			add(k, eventText(a.events[k]), eventText(b.events[k]))
		}
	}
	return out
}

// racingLines are what the srun of a script tells about an end that is its own, too: how many of them it still
// writes is left to chance, on both sides.
var racingLines = regexp.MustCompile(`\*\*\* STEP |srun: (Job step aborted|Force Terminated|error: node: TASKS: (Killed|Terminated))`)

func withoutRacing(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), racingLines.MatchString)
	return strings.Join(lines, "\n")
}

func prefixed(with, text string) (out []string) {
	for _, l := range strings.Split(text, "\n") {
		out = append(out, with+l)
	}
	return out
}

func keys[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func eventText(list []event) string {
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprintf("%s+%.1f", e.what, e.at))
	}
	return strings.Join(out, " ")
}

// alike: the same events at about the same times.
func alike(a, b []event) bool {
	if a, b = settled(a), settled(b); len(a) != len(b) {
		return false
	}
	for i := range a {
		if d := a[i].at - b[i].at; a[i].what != b[i].what || d > slack || d < -slack {
			return false
		}
	}
	return true
}

// settled sorts events by name: a signal that comes again before it was heard is one. A process
// may or may not have written down the signals that it heard just before it was gone.
func settled(list []event) []event {
	out := slices.Clone(list)
	if n := len(out); n > 0 && out[n-1].what == "gone" {
		gone := out[n-1].at
		out = slices.DeleteFunc(out,
			func(e event) bool { return e.what == strings.ToUpper(e.what) && gone-e.at < together })
	}
	slices.SortStableFunc(out, func(a, b event) int { return strings.Compare(a.what, b.what) })
	return slices.CompactFunc(out, func(a, b event) bool { return a.what == b.what && b.at-a.at < together })
}

// reason explains the known differences of the cells whose names match: parts with "*" for any.
type reason struct {
	match, why string
	chance     bool
	used       int
}

// readKnown reads lines of the form: shape/program/end :: reason.
func readKnown(path string) (out []*reason, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for row := range strings.Lines(string(text)) {
		row = strings.TrimSpace(row)
		if row == "" || row[0] == '#' {
			continue
		}
		match, why, ok := strings.Cut(row, " :: ")
		if !ok {
			return nil, fmt.Errorf("%s: no reason in: %s", path, row)
		}
		why, chance := strings.CutPrefix(why, "chance: ")
		out = append(out, &reason{match: match, why: why, chance: chance})
	}
	return out, nil
}

func whyKnown(c cell, known []*reason) *reason {
	for _, r := range known {
		if r.matches(c) {
			r.used++
			return r
		}
	}
	return nil
}

func (r *reason) matches(c cell) bool {
	parts := strings.Split(r.match, "/")
	for i, have := range []string{c.shape, c.program, c.end} {
		if i >= len(parts) || parts[i] != "*" && !slices.Contains(strings.Split(parts[i], ","), have) {
			return false
		}
	}
	return true
}
