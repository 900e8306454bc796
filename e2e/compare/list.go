package main

import (
	"os"
	"strconv"
	"strings"
)

// command is one line of the list.
type command struct {
	number  int
	section string
	text    string
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
			cmds = append(cmds, command{len(cmds) + 1, section, line})
		}
	}
	return cmds, nil
}

// reason explains known differences: of the commands with this text or number.
type reason struct {
	match, why string
}

// readKnown reads lines of the form: text of the command, or a part of it, or its number :: reason.
func readKnown(path string) (out []reason, err error) {
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if match, why, ok := strings.Cut(line, " :: "); ok && !strings.HasPrefix(line, "#") {
			out = append(out, reason{strings.TrimSpace(match), strings.TrimSpace(why)})
		}
	}
	return out, nil
}

// whyKnown is the reason for a command's difference, or "".
func whyKnown(c command, list []reason) string {
	for _, r := range list {
		if n, err := strconv.Atoi(r.match); err == nil && n == c.number || err != nil && strings.Contains(c.text, r.match) {
			return r.why
		}
	}
	return ""
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
