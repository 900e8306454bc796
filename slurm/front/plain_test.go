package front

import (
	"bytes"
	"strings"
	"testing"
)

// TestPlainText: what names have in them controls no terminal; other texts are as they were.
func TestPlainText(t *testing.T) {
	for text, want := range map[string]string{
		"JOBID NAME\n1\tschön 名\n": "JOBID NAME\n1\tschön 名\n",
		"\x1b]0;root\x07 a\rb\x7f": "?]0;root? a?b?",
		"\u009b31mred é \u00a0":    "\xc2?31mred é \u00a0",
	} {
		for _, size := range []int{1, len(text)} {
			var out bytes.Buffer
			p := &plainText{w: &out}
			for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
				part := rest[:min(size, len(rest))]
				if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
					t.Errorf("%q: %d, %v", part, n, err)
				}
			}
			if out.String() != want {
				t.Errorf("%q is shown as %q, want %q", text, out.String(), want)
			}
		}
	}
	b := []byte("a\x1bb")
	if _, err := (&plainText{w: &bytes.Buffer{}}).Write(b); err != nil || string(b) != "a\x1bb" {
		t.Errorf("the writer's own text is %q now, %v", b, err)
	}
	var file strings.Builder
	if PlainText(&file) != &file {
		t.Error("a file is written otherwise")
	}
}
