package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrTruncated says that a dump ends before its end.
var ErrTruncated = errors.New("the dump ends before its end: make it again, and check that the disk was not full")

// bufferSize is how much of the text is in memory, besides one row.
const bufferSize = 256 << 10

// lexer reads the characters of a dump.
type lexer struct {
	in   io.Reader
	buf  []byte
	at   int   // of the next byte in buf
	gone int64 // bytes that were in buf before
	err  error // of in
}

func newLexer(in io.Reader, offset int64) *lexer {
	return &lexer{in: in, buf: make([]byte, 0, bufferSize), gone: offset}
}

// offset returns the place of the next byte in the whole text.
func (l *lexer) offset() int64 { return l.gone + int64(l.at) }

// fill reads more of the text once the buffer is used up, and reports whether there is any.
func (l *lexer) fill() bool {
	if l.at < len(l.buf) {
		return true
	}
	l.gone += int64(len(l.buf))
	l.buf = l.buf[:0]
	l.at = 0
	for l.err == nil && len(l.buf) == 0 {
		var n int
		n, l.err = l.in.Read(l.buf[:cap(l.buf)])
		l.buf = l.buf[:n]
	}
	return len(l.buf) > 0
}

// stop is what the functions of a lexer panic with once the text cannot be read on; Reader.Next returns its error.
type stop struct{ err error }

// stopAt ends reading: something else is expected at the next byte.
func (l *lexer) stopAt(format string, args ...any) {
	panic(stop{fmt.Errorf("byte %d of the dump: "+format, append([]any{l.offset()}, args...)...)})
}

// stopEarly ends reading where more text is expected.
func (l *lexer) stopEarly() {
	err := fmt.Errorf("read the dump: %w", l.err)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrTruncated
	}
	panic(stop{err})
}

// peek returns the next byte, 0 at the end.
func (l *lexer) peek() byte {
	if !l.fill() {
		return 0
	}
	return l.buf[l.at]
}

// next takes the next byte.
func (l *lexer) next() byte {
	if !l.fill() {
		l.stopEarly()
	}
	l.at++
	return l.buf[l.at-1]
}

// wordBytes are what may stand in a keyword, a number or a name without quotes, besides letters beyond ASCII.
var wordBytes = [256]bool{
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true,
	'7': true, '8': true, '9': true,
	'a': true, 'b': true, 'c': true, 'd': true, 'e': true, 'f': true, 'g': true,
	'h': true, 'i': true, 'j': true, 'k': true, 'l': true, 'm': true,
	'n': true, 'o': true, 'p': true, 'q': true, 'r': true, 's': true, 't': true,
	'u': true, 'v': true, 'w': true, 'x': true, 'y': true, 'z': true,
	'A': true, 'B': true, 'C': true, 'D': true, 'E': true, 'F': true, 'G': true,
	'H': true, 'I': true, 'J': true, 'K': true, 'L': true, 'M': true,
	'N': true, 'O': true, 'P': true, 'Q': true, 'R': true, 'S': true, 'T': true,
	'U': true, 'V': true, 'W': true, 'X': true, 'Y': true, 'Z': true,
	'_': true, '.': true, '-': true, '+': true, '$': true, '@': true,
}

func isWordByte(c byte) bool { return wordBytes[c] || c >= 0x80 }

var spaceBytes = [256]bool{' ': true, '\n': true, '\t': true, '\r': true}

func isSpace(c byte) bool { return spaceBytes[c] }

// space passes over blanks and comments.
func (l *lexer) space() {
	for l.fill() {
		switch c := l.buf[l.at]; {
		case isSpace(c):
			l.at++
		case c == '#':
			l.line(nil)
		case c == '/':
			l.comment(nil)
		default:
			return
		}
	}
}

// line passes over the rest of a line; the first bytes of it are appended to dst.
func (l *lexer) line(dst []byte) []byte {
	for l.fill() {
		rest := l.buf[l.at:]
		n := bytes.IndexByte(rest, '\n')
		over := n >= 0
		if !over {
			n = len(rest)
		}
		dst = append(dst, rest[:min(n, maxWord-len(dst))]...)
		l.at += n
		if over {
			l.at++
			break
		}
	}
	return dst
}

// comment passes over a comment; the first bytes of it are appended to dst.
func (l *lexer) comment(dst []byte) []byte {
	l.at++
	if l.peek() != '*' {
		l.stopAt("a comment is expected here")
	}
	l.at++
	for star := false; ; {
		c := l.next()
		if star && c == '/' {
			return dst
		}
		star = c == '*'
		if len(dst) < maxWord {
			dst = append(dst, c)
		}
	}
}

// maxWord bounds a keyword, a number, a name of a table or of a column.
const maxWord = 256

// word reads a keyword, a number or a name behind blanks; quoted says that it stands in `quotes`.
func (l *lexer) word(dst []byte) (word []byte, quoted bool) {
	l.space()
	begin := len(dst)
	if l.peek() == '`' {
		l.at++
		return l.quoted(dst, '`', maxWord), true
	}
	dst = l.bare(dst, maxWord)
	if len(dst) == begin {
		l.stopAt("%q is not expected here", l.next())
	}
	return dst, false
}

// bare reads a word without quotes: at most so many bytes and one, what is more is left out.
func (l *lexer) bare(dst []byte, most int) []byte {
	end := len(dst) + most + 1
	for l.fill() {
		rest := l.buf[l.at:]
		n := 0
		for n < len(rest) && isWordByte(rest[n]) {
			n++
		}
		dst = append(dst, rest[:min(n, end-len(dst))]...)
		l.at += n
		if n < len(rest) {
			break
		}
	}
	return dst
}

// quoted reads up to a closing quote, the opening one is taken: at most so many bytes and one, what is more is left
// out.
func (l *lexer) quoted(dst []byte, quote byte, most int) []byte {
	end := len(dst) + most + 1
	for {
		if !l.fill() {
			l.stopEarly()
		}
		rest := l.buf[l.at:]
		n := 0
		for n < len(rest) && rest[n] != quote && rest[n] != '\\' {
			n++
		}
		dst = append(dst, rest[:min(n, end-len(dst))]...)
		l.at += n
		if n == len(rest) {
			continue
		}
		c := l.next()
		switch {
		case c == quote && l.peek() != quote:
			return dst
		case c == quote:
			l.at++
		case quote != '`':
			c = l.escaped()
		}
		if len(dst) < end {
			dst = append(dst, c)
		}
	}
}

// The letters that stand for others behind a backslash, and these; all others stand for themselves.
const (
	escapes = "0ntrbZ"
	meant   = "\x00\n\t\r\b\x1a"
)

// escaped reads the byte behind a backslash.
func (l *lexer) escaped() byte {
	c := l.next()
	if i := strings.IndexByte(escapes, c); i >= 0 {
		return meant[i]
	}
	return c
}

// statement passes over the rest of a statement.
func (l *lexer) statement() {
	for {
		switch c := l.peek(); c {
		case '\'', '"', '`':
			l.at++
			l.quoted(nil, c, 0)
		case '/':
			l.comment(nil)
		default:
			if l.next() == ';' {
				return
			}
		}
	}
}

// want takes a byte behind blanks.
func (l *lexer) want(c byte) {
	l.space()
	got := l.next()
	if got != c {
		l.stopAt("%q is found where %q is expected", got, c)
	}
}
