package look

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestFitLine: lines are broken between words, and what goes on stands under their text.
func TestFitLine(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"short", 40, "short"},
		{"one two three four", 10, "one two \n  three \n  four"},
		{"  Resources   it wants eight nodes with", 30, "  Resources   it wants eight \n               nodes with"},
		{strings.Repeat("x", 50), 40, strings.Repeat("x", 50)},
	} {
		if got := fitLine(c.line, c.width); got != c.want {
			t.Errorf("%q in %d:\n%s\nwant\n%s", c.line, c.width, got, c.want)
		}
	}
	var out bytes.Buffer
	w := &fitWriter{to: &out, width: 12}
	fmt.Fprint(w, "one two ")
	fmt.Fprint(w, "three four\nfive")
	if w.flush(); out.String() != "one two \n  three four\nfive" {
		t.Errorf("%q", out.String())
	}
}
