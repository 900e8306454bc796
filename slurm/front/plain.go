package front

import "io"

// plainText writes what is seen on a terminal without the bytes by which texts control it: names and comments are
// others', who could have an administrator's terminal show what is not so, or type.
type plainText struct {
	w     io.Writer
	began bool // the last byte began a character of two bytes, which may be a control
}

// PlainText returns a writer that replaces control characters by question marks if a terminal shows what is written,
// and w if none does.
func PlainText(w io.Writer) io.Writer {
	if !OnTerminal(w) {
		return w
	}
	return &plainText{w: w}
}

// Write reports all of b as written: what was replaced has the same length.
func (p *plainText) Write(b []byte) (int, error) {
	out := b
	for i, c := range b {
		control := isControl(c) || p.began && c >= 0x80 && c < 0xa0
		p.began = c == 0xc2
		if !control {
			continue
		}
		if &out[0] == &b[0] {
			out = append([]byte(nil), b...)
		}
		out[i] = '?'
	}
	return p.w.Write(out)
}

// isControl reports whether a byte is a control character that has no place in a line of text.
func isControl(c byte) bool {
	switch c {
	case '\n', '\t':
		return false
	case 0x7f:
		return true
	}
	return c < ' '
}
