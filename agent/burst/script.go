package burst

import (
	"fmt"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// maxFilled bounds directives whose symbols were replaced, in bytes: %d may stand for thousands of bytes.
const maxFilled = 1 << 20

// scriptFor is the script that a function is given. Those that stage files get a script of the directives alone, in
// which symbols are replaced; the others the job's own, as Slurm has it.
func scriptFor(c *cluster.BurstConfig, call cluster.BurstCall, script []byte, j *cluster.Job) ([]byte, error) {
	if c == nil { // not any more, so nothing is called
		return script, nil
	}
	switch call {
	case cluster.CallSetup, cluster.CallDataIn, cluster.CallPostRun, cluster.CallDataOut:
		text, err := fillSymbols(directives(string(script), c.Directive), j)
		if err != nil {
			return nil, fmt.Errorf("the lines that begin with #%s: %w", c.Directive, err)
		}
		return []byte("#!/bin/sh\n" + text + "\n"), nil
	}
	return script, nil
}

// fillSymbols replaces %j and others by what they stand for; what stands for nothing is left out, and two backslashes
// end it, as in Slurm. An error is that the text would be longer than maxFilled.
func fillSymbols(text string, j *cluster.Job) (string, error) {
	text, rest, ended := strings.Cut(text, `\\`)
	if ended {
		rest = `\\` + rest
	}
	var b strings.Builder
	for text != "" {
		before, after, _ := strings.Cut(text, "%")
		b.WriteString(before)
		if text = after; after == "" || after[0] == '\n' {
			continue
		}
		b.WriteString(symbol(after[0], j))
		text = after[1:]
		if b.Len() > maxFilled {
			break
		}
	}
	if b.Len()+len(rest) > maxFilled {
		return "", fmt.Errorf("they have more than %d bytes once %%d, %%x and the like are replaced: shorten them",
			maxFilled)
	}
	return b.String() + rest, nil
}

// noArrayTask is what a job's task is called that belongs to no array.
const noArrayTask = 4294967294

// symbol is what a letter behind % stands for.
func symbol(letter byte, j *cluster.Job) string {
	array, task := j.ArrayID, noArrayTask
	if j.Task >= 0 && j.ArrayID != 0 {
		task = j.Task
	}
	switch letter {
	case '%':
		return "%"
	case 'A':
		return fmt.Sprint(array)
	case 'a':
		return strconv.Itoa(task)
	case 'b':
		return strconv.Itoa(task % 10)
	case 'd':
		return j.Spec.WorkDir
	case 'j':
		return fmt.Sprint(j.ID)
	case 'u':
		return j.Spec.User
	case 'x':
		return j.Spec.Name
	}
	return ""
}

// withBurst puts the lines of a burst buffer into a script that lacks them.
func withBurst(script, lines string) []byte {
	if script == "" {
		return []byte(lines + "\n")
	}
	if strings.Contains("\n"+script, "\n"+strings.TrimSpace(lines)) {
		return []byte(script)
	}
	first, rest, _ := strings.Cut(script, "\n")
	return []byte(first + "\n" + strings.TrimRight(lines, "\n") + "\n" + rest)
}

// directives are the lines of a script that ask for a burst buffer, up to its first command.
func directives(script, word string) string {
	var lines []string
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\r\n")
		switch rest, ok := strings.CutPrefix(line, "#"+word); {
		case ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t'):
			lines = append(lines, line)
		case line != "" && line[0] != '#':
			return strings.Join(lines, "\n")
		}
	}
	return strings.Join(lines, "\n")
}
