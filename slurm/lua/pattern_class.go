package lua

import "strings"

// class is a set of bytes, and where it ends in the pattern.
type class struct {
	has [256]bool
	end int
}

// holds reports whether there is a byte of the class at s.
func (c *class) holds(text string, s int) bool { return s < len(text) && c.has[text[s]] }

// class reads the class that begins at p, once; nil: it cannot be read.
func (m *search) class(p int) *class {
	if c := m.classes[p]; c != nil {
		return c
	}
	c := &class{end: p + 1}
	switch m.pattern[p] {
	case '.':
		c.addRange(0, 255)
	case '[':
		c = m.set(p + 1)
	default:
		c.end = m.member(c, p)
	}
	if m.err != nil {
		return nil
	}
	m.classes[p] = c
	return c
}

// set reads a set, which goes on at p behind its bracket. A ] that comes first is one of the set.
func (m *search) set(p int) *class {
	c := &class{}
	rest, not := strings.CutPrefix(m.pattern[p:], "^")
	p = len(m.pattern) - len(rest)
	for first := p; p < len(m.pattern) && m.err == nil; {
		if m.pattern[p] == ']' && p > first {
			c.end = p + 1
			c.invert(not)
			return c
		}
		p = m.member(c, p)
	}
	m.fail(errBracket)
	return c
}

// member adds what stands at p: a byte, a class like %a, or within a set a range. It returns where the next one begins.
func (m *search) member(c *class, p int) (next int) {
	text := m.pattern[p:]
	switch {
	case text == "%" && c.end == 0:
		m.fail(errBracket)
	case text == "%":
		m.fail(errPercent)
	case text[0] == '%':
		c.add(text[1])
		return p + 2
	case c.end == 0 && len(text) > 3 && text[1] == '-' && text[2] != ']':
		c.addRange(text[0], text[2])
		return p + 3
	}
	c.has[text[0]] = true
	return p + 1
}

// add adds the class of a letter, or a byte that is none.
func (c *class) add(letter byte) {
	named, ok := classes[letter]
	c.has[letter] = c.has[letter] || !ok
	for i := range c.has {
		c.has[i] = c.has[i] || named[i]
	}
}

func (c *class) addRange(from, to byte) {
	for i := int(from); i <= int(to); i++ {
		c.has[i] = true
	}
}

func (c *class) invert(not bool) {
	for i := range c.has {
		c.has[i] = c.has[i] != not
	}
}

// classes are the classes of bytes by their letters, as in the locale C. A capital letter is the complement.
var classes = map[byte][256]bool{}

func init() {
	const digits, lower, upper = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	const control = "\x00\x01\x02\x03\x04\x05\x06\a\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a" +
		"\x1b\x1c\x1d\x1e\x1f\x7f"
	for letter, bytes := range map[byte]string{
		'a': lower + upper, 'c': control, 'd': digits, 'l': lower, 'p': "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
		's': " \t\n\v\f\r", 'u': upper, 'w': lower + upper + digits, 'x': digits + "abcdefABCDEF", 'z': "\x00",
	} {
		var has class
		for i := range len(bytes) {
			has.has[bytes[i]] = true
		}
		classes[letter] = has.has
		has.invert(true)
		classes[letter-'a'+'A'] = has.has
	}
}
