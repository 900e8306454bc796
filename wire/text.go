package wire

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// special are the bytes below 64 that do not stand for themselves in a string: controls, the
// quote, and what HTML would take for its own.
const special uint64 = 1<<32 - 1 | 1<<'"' | 1<<'<' | 1<<'>' | 1<<'&'

func plain(c byte) bool {
	return c < 64 && special>>c&1 == 0 || c >= 64 && c < utf8.RuneSelf && c != '\\'
}

// appendString writes s as a JSON string; invalid UTF-8 becomes U+FFFD.
func appendString[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain(c) {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = appendEscaped(append(b, s[from:i]...), c)
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
			b = append(append(b, s[from:i]...), '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			from = i + n
		}
		i += n
	}
	return append(append(b, s[from:]...), '"')
}

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// text reads a string. The result is part of the input or of a buffer that the next call uses
// again.
func (d *decoder) text() ([]byte, error) {
	if d.peek() != '"' {
		return nil, d.want("a string")
	}
	from, high := d.at+1, false
	for i := from; i < len(d.in); i++ {
		switch c := d.in[i]; {
		case c == '"':
			if s := d.in[from:i]; !high || utf8.Valid(s) {
				d.at = i + 1
				return s, nil
			}
			return d.unquote(from)
		case c == '\\':
			return d.unquote(from)
		case c < ' ':
			d.at = i
			return nil, d.fail("a control character in a string")
		case c >= utf8.RuneSelf:
			high = true
		}
	}
	d.at = len(d.in)
	return nil, d.want("the end of the string")
}

// unquote reads the string that begins at from, with escapes or with invalid UTF-8.
func (d *decoder) unquote(from int) ([]byte, error) {
	b := d.buf[:0]
	for d.at = from; d.at < len(d.in); {
		switch c := d.in[d.at]; {
		case c == '"':
			d.at++
			d.buf = b
			return b, nil
		case c == '\\':
			r, err := d.escape()
			if err != nil {
				return nil, err
			}
			b = utf8.AppendRune(b, r)
		case c < ' ':
			return nil, d.fail("a control character in a string")
		case c < utf8.RuneSelf:
			b = append(b, c)
			d.at++
		default:
			r, n := utf8.DecodeRune(d.in[d.at:])
			b = utf8.AppendRune(b, r)
			d.at += n
		}
	}
	return nil, d.want("the end of the string")
}

// escape reads what begins with a backslash. Halves of a surrogate pair alone are U+FFFD.
func (d *decoder) escape() (rune, error) {
	d.at++
	c := d.peek()
	d.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		if r := d.hex4(d.at); r >= 0 {
			d.at += 4
			if !utf16.IsSurrogate(r) {
				return r, nil
			}
			if d.peek() == '\\' && d.at+1 < len(d.in) && d.in[d.at+1] == 'u' {
				if pair := utf16.DecodeRune(r, d.hex4(d.at+2)); pair != utf8.RuneError {
					d.at += 6
					return pair, nil
				}
			}
			return utf8.RuneError, nil
		}
	}
	d.at--
	return 0, d.fail("an unknown escape in a string")
}

// hex4 reads four hexadecimal digits, or returns -1.
func (d *decoder) hex4(at int) (r rune) {
	if at+4 > len(d.in) {
		return -1
	}
	for _, c := range d.in[at : at+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// describe names what stands at the decoder's place, for errors.
func (d *decoder) describe() string {
	if d.at >= len(d.in) {
		return "the end"
	}
	switch c := d.in[d.at]; {
	case c == '"':
		return "a string"
	case c == '{':
		return "an object"
	case c == '[':
		return "a list"
	case c == 't', c == 'f':
		return "a boolean"
	case c == 'n':
		return "null"
	case c == '-', '0' <= c && c <= '9':
		return "a number"
	default:
		return strconv.QuoteRune(rune(c))
	}
}
