package cluster

import (
	"strings"
	"unicode"
)

// PlainLine replaces the control characters of a user's text by question marks. In a list, a name with a line feed
// would be the row of another job, and one with an escape would control the reader's terminal.
func PlainLine(text string) string {
	if !hasControl(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if endsLine(r) {
			return '?'
		}
		return r
	}, text)
}

// endsLine reports whether a character is a control character, or ends a line for programs that split texts.
func endsLine(r rune) bool {
	const lineSeparator, paragraphSeparator = '\u2028', '\u2029'
	return unicode.IsControl(r) || r == lineSeparator || r == paragraphSeparator
}

// hasControl reports whether a text may have characters that PlainLine replaces: those begin with these bytes.
func hasControl(text string) bool {
	const del, twoBytes, threeBytes = 0x7f, 0xc2, 0xe2
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c == del, c == twoBytes, c == threeBytes:
			return true
		}
	}
	return false
}
