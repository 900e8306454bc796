package cluster

import "testing"

// TestPlainLine: no text begins another line or controls a terminal; all other texts stay as they are.
func TestPlainLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"train-7b | a=b":                  "train-7b | a=b",
		"schön 名 €\u00a0":                 "schön 名 €\u00a0",
		"a\n99 root\r\tb\v\f\x00":         "a?99 root??b???",
		"\x1b[31mred\x7f":                 "?[31mred?",
		"\u0085next\u009b1m\u2028x\u2029": "?next?1m?x?",
	} {
		if got := PlainLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	const odd = "bad\xffutf8"
	if got := PlainLine(odd); got != odd {
		t.Errorf("%q became %q", odd, got)
	}
}
