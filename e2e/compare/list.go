package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// command is one line of the list. A line that begins with "~ " tells several things on standard
// error at the same time: their order does not count.
type command struct {
	number   int
	section  string
	text     string
	anyOrder bool
}

// readCommands reads the list: one shell line each, # starts a comment, ## a section.
func readCommands(path string) (cmds []command, err error) {
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	section := ""
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = name
		}
		if line != "" && !strings.HasPrefix(line, "#") {
			text, anyOrder := strings.CutPrefix(line, "~ ")
			cmds = append(cmds, command{len(cmds) + 1, section, text, anyOrder})
		}
	}
	return cmds, nil
}

// maxMatches is how many commands one reason may explain unless it says "many".
const maxMatches = 3

// reason explains the known differences of the commands that have this text.
type reason struct {
	match, why string
	chance     bool // it may differ or not: Slurm itself leaves it to chance
	many       bool // it explains more than maxMatches commands
	used       int  // commands that it explained
}

// readKnown reads lines of the form: text of a command, or an unmistakable part of it :: reason.
// A reason that begins with "chance: " may match no difference, one with "many: " any number.
func readKnown(path string) (out []*reason, err error) {
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		match, why, ok := strings.Cut(line, " :: ")
		if match = strings.TrimSpace(match); !ok || match == "" {
			return nil, fmt.Errorf("%s:%d: %q is not of the form TEXT :: REASON", path, i+1, line)
		}
		r := &reason{match: match}
		r.why, r.chance = strings.CutPrefix(strings.TrimSpace(why), "chance: ")
		r.why, r.many = strings.CutPrefix(r.why, "many: ")
		out = append(out, r)
	}
	return out, nil
}

// whyKnown finds the reason for a command's difference, or nil.
func whyKnown(c command, list []*reason) *reason {
	for _, r := range list {
		if strings.Contains(c.text, r.match) {
			r.used++
			return r
		}
	}
	return nil
}

// staleReasons tells what is wrong with the list itself, once the commands have been run: reasons
// that explain nothing any more, and reasons so broad that they could hide a new difference.
func staleReasons(cmds []command, list []*reason, all bool) (out []string) {
	for _, r := range list {
		ran := slices.ContainsFunc(cmds, func(c command) bool { return strings.Contains(c.text, r.match) })
		switch {
		case r.used > maxMatches && !r.many:
			out = append(out,
				fmt.Sprintf("known.txt: %q explains %d commands, more than %d: name them, or begin its reason with \"many: \"",
					r.match, r.used, maxMatches))
		case !ran && all:
			out = append(out, fmt.Sprintf("known.txt: %q is part of no command: take the line out", r.match))
		case ran && r.used == 0 && !r.chance:
			out = append(out, fmt.Sprintf("known.txt: %q explains no difference any more: take the line out", r.match))
		}
	}
	return out
}

func readLines(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t\r")
	}
	return lines, nil
}
