package wire

import (
	"bytes"
	"sync"
)

// maxDepth bounds nesting, so that no text can exhaust the stack.
const maxDepth = 10_000

// Texts of at least internFrom bytes keep the last few short strings, since lists repeat them.
const (
	internFrom  = 1 << 10
	internSlots = 256
	internBytes = 24
)

// seenBefore are tables of short strings: a text may repeat those of another one.
var seenBefore = sync.Pool{New: func() any { return new([internSlots]string) }}

// sharedTexts is how many texts are kept that may come again.
const sharedTexts = 8

// decoder goes once over a text.
type decoder struct {
	in    []byte
	at    int
	depth int
	buf   []byte // of strings with escapes
	seen  *[internSlots]string

	shared []shared // at most sharedTexts, the oldest is replaced
	oldest int
	copies bool                 // of shared texts: the whole text is the caller's
	strict bool                 // a member without a field is an error
	take   func(bytes int) bool // counts what values weigh; nil: nobody does
}

func (d *decoder) fail(what string) error { return &Error{Offset: d.at, Text: what} }

func (d *decoder) want(what string) error { return d.fail("want " + what + ", got " + d.describe()) }

func (d *decoder) space() {
	for d.at < len(d.in) && d.in[d.at] <= ' ' {
		switch d.in[d.at] {
		case ' ', '\n', '\t', '\r':
			d.at++
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end.
func (d *decoder) peek() byte {
	if d.at < len(d.in) {
		return d.in[d.at]
	}
	return 0
}

// end wants nothing more.
func (d *decoder) end() error {
	if d.space(); d.at < len(d.in) {
		return d.want("the end")
	}
	return nil
}

// word takes the literal if it stands there.
func (d *decoder) word(w string) bool {
	if end := d.at + len(w); end <= len(d.in) && string(d.in[d.at:end]) == w {
		d.at = end
		return true
	}
	return false
}

func (d *decoder) null() bool { return d.peek() == 'n' && d.word("null") }

// open enters an object or a list.
func (d *decoder) open(c byte, what string) error {
	if d.peek() != c {
		return d.want(what)
	}
	if d.depth++; d.depth > maxDepth {
		return d.fail("nested too deeply")
	}
	d.at++
	return nil
}

// more steps to member i of what was opened, or behind its end.
func (d *decoder) more(i int, end byte) (bool, error) {
	d.space()
	c := d.peek()
	switch {
	case c == end:
		d.at++
		d.depth--
		return false, nil
	case i == 0:
		return true, nil
	case c == ',':
		d.at++
		d.space()
		return true, nil
	}
	return false, d.want("a comma or the end of the " + map[bool]string{true: "object", false: "list"}[end == '}'])
}

// key reads a member's name and the colon; like text, it may return a buffer.
func (d *decoder) key() ([]byte, error) {
	k, err := d.text()
	if err != nil {
		return nil, err
	}
	d.space()
	if d.peek() != ':' {
		return nil, d.want("a colon")
	}
	d.at++
	d.space()
	return k, nil
}

// number reads a number's text.
func (d *decoder) number() ([]byte, error) {
	from := d.at
	if c := d.peek(); c != '-' && (c < '0' || c > '9') {
		return nil, d.want("a number")
	}
	if d.peek() == '-' {
		d.at++
	}
	if d.peek() == '0' {
		d.at++
	} else if !d.digits() {
		return nil, d.want("a digit")
	}
	if d.peek() == '.' {
		if d.at++; !d.digits() {
			return nil, d.want("a digit")
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		d.at++
		if c := d.peek(); c == '+' || c == '-' {
			d.at++
		}
		if !d.digits() {
			return nil, d.want("a digit")
		}
	}
	return d.in[from:d.at], nil
}

// digits takes at least one digit.
func (d *decoder) digits() bool {
	from := d.at
	for d.at < len(d.in) && '0' <= d.in[d.at] && d.in[d.at] <= '9' {
		d.at++
	}
	return d.at > from
}

// intern makes a string of b, or finds one made before.
func (d *decoder) intern(b []byte) string {
	if d.seen == nil || len(b) > internBytes || len(b) == 0 {
		return string(b)
	}
	h := uint32(len(b))
	for _, c := range b {
		h = h*31 + uint32(c)
	}
	s := &d.seen[h%internSlots]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}

// skip goes over one value and returns its text.
func (d *decoder) skip() ([]byte, error) {
	from := d.at
	var err error
	switch d.peek() {
	case '{':
		err = d.skipAll('{', '}')
	case '[':
		err = d.skipAll('[', ']')
	case '"':
		_, err = d.text()
	case 't', 'f', 'n':
		if !d.word("true") && !d.word("false") && !d.word("null") {
			err = d.want("true, false or null")
		}
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		_, err = d.number()
	default:
		err = d.want("a value")
	}
	return d.in[from:d.at], err
}

func (d *decoder) skipAll(begin, end byte) error {
	if err := d.open(begin, ""); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := d.more(i, end)
		if err == nil && more && end == '}' {
			_, err = d.key()
		}
		if err != nil || !more {
			return err
		}
		if _, err := d.skip(); err != nil {
			return err
		}
	}
}

// rewrite appends the whole text to b: with nl (a line's end and its indent) empty without spaces,
// else a member a line, indented by step. Characters that HTML would interpret are escaped.
func (d *decoder) rewrite(b []byte, nl, step string) ([]byte, error) {
	d.space()
	b, err := d.rewriteValue(b, nl, step)
	if err == nil {
		err = d.end()
	}
	return b, err
}

func (d *decoder) rewriteValue(b []byte, nl, step string) ([]byte, error) {
	begin, end := d.peek(), byte(']')
	switch begin {
	case '{':
		end = '}'
	case '[':
	default:
		return d.rewritePlain(b)
	}
	if err := d.open(begin, ""); err != nil {
		return nil, err
	}
	b = append(b, begin)
	for i := 0; ; i++ {
		more, err := d.more(i, end)
		if err != nil {
			return nil, err
		}
		if !more {
			if i > 0 {
				b = append(b, nl...)
			}
			return append(b, end), nil
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, nl...), step...)
		if end == '}' {
			if b, err = d.rewriteKey(b, nl != ""); err != nil {
				return nil, err
			}
		}
		if b, err = d.rewriteValue(b, nl+step, step); err != nil {
			return nil, err
		}
	}
}

func (d *decoder) rewriteKey(b []byte, wide bool) ([]byte, error) {
	if d.peek() != '"' {
		return nil, d.want("a string")
	}
	b, err := d.rewritePlain(b)
	if err != nil {
		return nil, err
	}
	if d.space(); d.peek() != ':' {
		return nil, d.want("a colon")
	}
	d.at++
	d.space()
	if b = append(b, ':'); wide {
		b = append(b, ' ')
	}
	return b, nil
}

// rewritePlain copies what has no members.
func (d *decoder) rewritePlain(b []byte) ([]byte, error) {
	raw, err := d.skip()
	if err != nil {
		return nil, err
	}
	if !bytes.ContainsAny(raw, "<>&\u2028\u2029") {
		return append(b, raw...), nil
	}
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '<', c == '>', c == '&':
			b = appendEscaped(b, c)
		case c == 0xE2 && i+2 < len(raw) && raw[i+1] == 0x80 && raw[i+2]&^1 == 0xA8:
			b = append(b, `\u202`...)
			b = append(b, hex[raw[i+2]&15])
			i += 2
		default:
			b = append(b, c)
		}
	}
	return b, nil
}
