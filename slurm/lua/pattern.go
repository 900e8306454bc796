package lua

import (
	"errors"
	"strings"
)

const (
	maxCaptures = 32
	maxDepth    = 200  // of calls of match within each other, as in C Lua
	askEvery    = 4096 // steps
)

// Errors of patterns that cannot be read, in Lua's words.
var (
	errComplex    = errors.New("pattern too complex")
	errPercent    = errors.New("malformed pattern (ends with '%')")
	errBracket    = errors.New("malformed pattern (missing ']')")
	errUnbalanced = errors.New("unbalanced pattern")
	errFrontier   = errors.New("missing '[' after '%f' in pattern")
	errCaptures   = errors.New("too many captures")
	errClose      = errors.New("invalid pattern capture")
	errIndex      = errors.New("invalid capture index")
	errUnfinished = errors.New("unfinished capture")
)

// Lengths of captures that have no text.
const (
	unfinished = -1
	position   = -2
)

type captureSpan struct{ start, length int }

// captureValue is what a pair of parentheses has captured: a text, or a position, which begins at 1 (0: it is a text).
type captureValue struct {
	Text     string
	Position int
}

// search looks for one pattern of Lua 5.1 (reference manual, 5.4.1) in one text, within a budget: gopher-lua's own
// functions occupy the process for as long as a text and a pattern make them.
type search struct {
	text, pattern string
	// proceed is called every few thousand steps; its error ends the search.
	proceed func() error

	steps, depth int
	level        int // captures so far
	captures     [maxCaptures]captureSpan
	classes      map[int]*class // by the place in the pattern
	err          error
}

// newSearch returns a search that calls proceed every few thousand steps, and ends with its error.
func newSearch(text, pattern string, proceed func() error) *search {
	return &search{text: text, pattern: pattern, proceed: proceed, classes: map[int]*class{}}
}

// at matches the pattern at one place of the text, and returns where the match ends.
func (m *search) at(start int) (end int, ok bool, err error) {
	m.level, m.depth = 0, 0
	end = m.match(start, 0)
	return end, end >= 0, m.err
}

// find finds the first match at or after a place. A pattern that begins with ^ matches at that place alone.
func (m *search) find(from int) (start, end int, ok bool, err error) {
	anchored := m.anchor()
	for start = from; start <= len(m.text); start++ {
		if end, ok, err = m.at(start); ok || err != nil || anchored {
			return start, end, ok, err
		}
	}
	return 0, 0, false, nil
}

// anchor removes a leading ^ from the pattern, and reports whether it had one.
func (m *search) anchor() bool {
	rest, anchored := strings.CutPrefix(m.pattern, "^")
	m.pattern = rest
	clear(m.classes)
	return anchored
}

// values returns the captures of a match from start to end; the whole match where the pattern captures nothing.
func (m *search) values(start, end int) ([]captureValue, error) {
	if m.level == 0 {
		return []captureValue{{Text: m.text[start:end]}}, nil
	}
	list := make([]captureValue, m.level)
	for i := range list {
		switch c := m.captures[i]; c.length {
		case unfinished:
			return nil, errUnfinished
		case position:
			list[i].Position = c.start + 1
		default:
			list[i].Text = m.text[c.start : c.start+c.length]
		}
	}
	return list, nil
}

// captured reports whether the pattern of the last match has captures.
func (m *search) captured() bool { return m.level > 0 }

// part returns a part of the text.
func (m *search) part(start, end int) string { return m.text[start:end] }

// fail ends the search.
func (m *search) fail(err error) int {
	if m.err == nil {
		m.err = err
	}
	return -1
}

// step counts n steps and reports whether the search may go on.
func (m *search) step(n int) bool {
	if m.steps += n; m.steps >= askEvery && m.err == nil {
		m.steps = 0
		if err := m.proceed(); err != nil {
			m.fail(err)
		}
	}
	return m.err == nil
}

// match matches the pattern from p on at the place s of the text. It returns where the match ends, below 0 for none.
func (m *search) match(s, p int) int {
	if m.depth == maxDepth {
		return m.fail(errComplex)
	}
	m.depth++
	end := m.walk(s, p)
	m.depth--
	return end
}

// walk matches one class after the other, and leaves captures and repetitions to match.
func (m *search) walk(s, p int) int {
	for m.step(1) {
		if p == len(m.pattern) {
			return s
		}
		switch c := m.pattern[p]; {
		case c == '(':
			return m.open(s, p+1)
		case c == ')':
			return m.close(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.text) {
				return s
			}
			return -1
		case c == '%' && p+1 < len(m.pattern) && strings.IndexByte("bf0123456789", m.pattern[p+1]) >= 0:
			if s, p = m.special(s, p+1); s < 0 {
				return -1
			}
			continue
		}
		next, rest, done := m.repeated(s, p)
		if done {
			return next
		}
		s, p = next, rest
	}
	return -1
}

// repeated matches the class at p, with what says how often. done reports that next is the end of the whole match.
func (m *search) repeated(s, p int) (next, rest int, done bool) {
	c := m.class(p)
	if c == nil {
		return -1, 0, true
	}
	one := c.holds(m.text, s)
	switch m.pattern[c.end:min(c.end+1, len(m.pattern))] {
	case "*":
		return m.most(s, c), 0, true
	case "-":
		return m.least(s, c), 0, true
	case "?":
		if one {
			next = m.match(s+1, c.end+1)
		}
		if one && next >= 0 {
			return next, 0, true
		}
		return s, c.end + 1, false
	case "+":
		if one {
			return m.most(s+1, c), 0, true
		}
	}
	if !one {
		return -1, 0, true
	}
	return s + 1, c.end, false
}

// most matches a class as often as it can, then less often, until the rest of the pattern matches.
func (m *search) most(s int, c *class) int {
	n := 0
	for c.holds(m.text, s+n) && m.step(1) {
		n++
	}
	for ; n >= 0 && m.step(1); n-- {
		if e := m.match(s+n, c.end+1); e >= 0 {
			return e
		}
	}
	return -1
}

// least matches a class as seldom as it can, then more often, until the rest of the pattern matches.
func (m *search) least(s int, c *class) int {
	for m.step(1) {
		if e := m.match(s, c.end+1); e >= 0 {
			return e
		}
		if !c.holds(m.text, s) {
			return -1
		}
		s++
	}
	return -1
}

// open begins a capture; () captures the place.
func (m *search) open(s, p int) int {
	length := unfinished
	if p < len(m.pattern) && m.pattern[p] == ')' {
		p++
		length = position
	}
	if m.level == maxCaptures {
		return m.fail(errCaptures)
	}
	m.captures[m.level] = captureSpan{s, length}
	m.level++
	e := m.match(s, p)
	if e < 0 {
		m.level--
	}
	return e
}

// close ends the last capture that is open.
func (m *search) close(s, p int) int {
	for i := m.level - 1; i >= 0; i-- {
		c := &m.captures[i]
		if c.length != unfinished {
			continue
		}
		c.length = s - c.start
		e := m.match(s, p)
		if e < 0 {
			c.length = unfinished
		}
		return e
	}
	return m.fail(errClose)
}

// special matches %b, %f and %1 to %9, whose letter is at p. It returns where the text and the pattern go on.
func (m *search) special(s, p int) (next, rest int) {
	switch c := m.pattern[p]; c {
	case 'b':
		return m.balanced(s, p+1), p + 3
	case 'f':
		return m.frontier(s, p+1)
	default:
		return m.back(s, int(c)-'1'), p + 1
	}
}

// balanced matches from an opening byte to the closing one that belongs to it.
func (m *search) balanced(s, p int) int {
	if p+1 >= len(m.pattern) {
		return m.fail(errUnbalanced)
	}
	first, last := m.pattern[p], m.pattern[p+1]
	if s >= len(m.text) || m.text[s] != first {
		return -1
	}
	open := 1
	for s++; s < len(m.text) && m.step(1); s++ {
		switch m.text[s] {
		case last:
			if open--; open == 0 {
				return s + 1
			}
		case first:
			open++
		}
	}
	return -1
}

// frontier matches the place where a set begins to hold. Before and after the text there are zeros.
func (m *search) frontier(s, p int) (next, rest int) {
	if !strings.HasPrefix(m.pattern[p:], "[") {
		return m.fail(errFrontier), 0
	}
	c := m.class(p)
	if c == nil {
		return -1, 0
	}
	around := "\x00" + m.text[max(s-1, 0):min(s+1, len(m.text))] + "\x00"
	if s > 0 {
		around = around[1:]
	}
	if c.has[around[0]] || !c.has[around[1]] {
		return -1, 0
	}
	return s, c.end
}

// back matches what an earlier capture has captured.
func (m *search) back(s, i int) int {
	if i < 0 || i >= m.level || m.captures[i].length < 0 {
		return m.fail(errIndex)
	}
	c := m.captures[i]
	if !m.step(1+c.length/16) || !strings.HasPrefix(m.text[s:], m.text[c.start:c.start+c.length]) {
		return -1
	}
	return s + c.length
}
