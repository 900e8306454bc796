package farm

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
)

// maxLine bounds a line of the list of tasks, in bytes.
const maxLine = 64 << 10

// task is one line of the list.
type task struct {
	number  int // of the line, from 1
	command string
	attempt int // from 1
}

// mark tells commands apart in a journal.
func (t *task) mark() uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, t.command)
	return h.Sum64()
}

// tasks reads a list of tasks line by line; empty lines and those that begin with # are none.
type tasks struct {
	in       *bufio.Reader
	template string
	number   int
}

func readTasks(r io.Reader, template string) *tasks {
	return &tasks{in: bufio.NewReaderSize(r, maxLine), template: template}
}

// next returns the next task; io.EOF after the last one.
func (l *tasks) next() (*task, error) {
	for {
		text, err := l.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, fmt.Errorf("line %d of the tasks is longer than %d bytes: put the command into a script",
				l.number+1, maxLine)
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			return nil, err
		}
		l.number++
		line := strings.TrimSpace(string(text))
		if line == "" || line[0] == '#' {
			continue
		}
		command := line
		if l.template != "" {
			command = fill(l.template, line, l.number)
		}
		return &task{number: l.number, command: command, attempt: 1}, nil
	}
}

// fill puts a line into a template: {} is the line, {1} its first field, {#} its number. Values are quoted for the
// shell. A template without any of these has the line appended.
func fill(template, line string, number int) string {
	fields := strings.Fields(line)
	var b strings.Builder
	filled := false
	for rest := template; ; {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(before)
		if !found {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		value, known := valueOf(name, line, fields, number)
		if !closed || !known {
			b.WriteByte('{')
			rest = after
			continue
		}
		filled = true
		b.WriteString(value)
		rest = behind
	}
	if !filled {
		return template + " " + quote(line)
	}
	return b.String()
}

// valueOf is what stands for a name in braces.
func valueOf(name, line string, fields []string, number int) (value string, known bool) {
	switch name {
	case "":
		return quote(line), true
	case "#":
		return strconv.Itoa(number), true
	}
	k, err := strconv.Atoi(name)
	if err != nil || k < 1 {
		return "", false
	}
	if k > len(fields) {
		return "''", true
	}
	return quote(fields[k-1]), true
}

// quote makes a text one word of the shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, plainText) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// plainText is what means nothing to a shell.
const plainText = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,@%^"

// words splits a command that needs no shell, such as "python3 train.py 7"; false if it needs one.
func words(command string) ([]string, bool) {
	list := strings.Fields(command)
	for k, w := range list {
		plain := plainText
		if k > 0 {
			plain += "=" // in the first word, it is a variable's
		}
		if strings.Trim(w, plain) != "" {
			return nil, false
		}
	}
	return list, len(list) > 0
}
