package mcp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Bounds of logs.
const (
	someLines = 40 // unless more are asked for
	mostLines = 500
	tailBytes = 256 << 10
	grepBytes = 4 << 20
	maxGrep   = 512
)

// errEnough stops what would go on without end.
var errEnough = errors.New("enough was read")

// lastLines keeps the last lines of what is written, of those that match.
type lastLines struct {
	match *regexp.Regexp // nil: all do
	most  int64          // bytes that are read
	read  int64
	lines []string // a ring
	next  int
	seen  int
	part  []byte // of a line that is not over
}

func newLastLines(grep string, lines int) (*lastLines, error) {
	lines = min(cmp.Or(max(lines, 0), someLines), mostLines)
	k := &lastLines{most: tailBytes, lines: make([]string, lines)}
	if grep == "" {
		return k, nil
	}
	if len(grep) > maxGrep {
		return nil, fmt.Errorf("grep: the expression has %d bytes; use at most %d", len(grep), maxGrep)
	}
	re, err := regexp.Compile(grep)
	if err != nil {
		return nil, fmt.Errorf("grep: %w", err)
	}
	k.match, k.most = re, grepBytes
	return k, nil
}

// full reports whether nothing more is read.
func (k *lastLines) full() bool { return k.read >= k.most }

// Write takes output; its error ends a front-end that would write without end.
func (k *lastLines) Write(b []byte) (int, error) {
	n := len(b)
	k.read += int64(n)
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if room := maxLine + 1 - len(k.part); room > 0 {
			k.part = append(k.part, line[:min(len(line), room)]...)
		}
		if !whole {
			break
		}
		k.end()
		b = rest
	}
	if k.full() {
		return n, errEnough
	}
	return n, nil
}

// end ends a line.
func (k *lastLines) end() {
	line := k.part
	k.part = nil
	if k.match != nil && !k.match.Match(line) {
		return
	}
	text := string(line)
	if len(text) > maxLine {
		text = cutAt(text, maxLine) + "…"
	}
	k.lines[k.next] = text
	k.next = (k.next + 1) % len(k.lines)
	k.seen++
}

// text returns the lines that were kept, as many of the last ones as an answer has room for.
func (k *lastLines) text() string {
	if len(k.part) > 0 {
		k.end()
	}
	n, size := min(k.seen, len(k.lines)), 0
	var kept []string
	for i := 1; i <= n; i++ {
		line := k.lines[(k.next-i+len(k.lines))%len(k.lines)]
		if size += len(line) + 1; size > maxAnswer-maxCell {
			break
		}
		kept = append(kept, line)
	}
	var b strings.Builder
	what := "lines"
	if k.match != nil {
		what = "matching lines"
	}
	fmt.Fprintf(&b, "[last %d of %d %s read]\n", len(kept), k.seen, what)
	for i := len(kept) - 1; i >= 0; i-- {
		b.WriteString(kept[i] + "\n")
	}
	return b.String()
}
