package lua

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestPatterns matches patterns of the reference manual and of its corners.
func TestPatterns(t *testing.T) {
	for _, c := range []struct{ text, pattern, want string }{
		{"hello world", "o w", "4-7"}, {"hello", "l+", "2-4"}, {"hello", "xyz", "none"}, {"", "", "0-0"},
		{"hello", "^h", "0-1"}, {"hello", "^e", "none"}, {"hello", "o$", "4-5"}, {"a$b", "a$b", "0-3"},
		{"key = value", "(%w+)%s*=%s*(%w+)", "0-11 key value"}, {"abc", "()b()", "1-2 @2 @3"},
		{"THE (quick) fox", "%((%a+)%)", "4-11 quick"}, {"f(a(b)c)d", "%b()", "1-8"}, {"f(a", "%b()", "none"},
		{"THE (quick) fox", "%f[%a]%a+%f[%A]", "0-3"}, {"x", "%f[%z]", "1-1"},
		{`say "hi" now`, `(["'])(.-)%1`, `4-8 " hi`}, {"aaa", "a-", "0-0"}, {"aaab", "a-b", "0-4"},
		{"aXb", "%u", "1-2"}, {"a.b", "%.", "1-2"}, {"a-b]c", "[]%-]+", "1-2"}, {"a-z", "[a%-z]+", "0-3"},
		{"x^y", "[%^]", "1-2"}, {"xay", "[^x]", "1-2"}, {"09afAFg", "%x+", "0-6"}, {"a\x00b", "%z", "1-2"},
		{"q_1", "[%w_]+", "0-3"}, {"\t x", "%S", "2-3"}, {"\x7f", "%c", "0-1"}, {"!a", "%p", "0-1"},
		{"colour color", "colou?r$", "7-12"}, {"((x))", "((%()(%())", "0-2 (( ( ("},
		{"a", "%", "malformed pattern (ends with '%')"}, {"a", "[a", "malformed pattern (missing ']')"},
		{"a", "[%", "malformed pattern (missing ']')"}, {"a", "[]", "malformed pattern (missing ']')"},
		{"a", "%b", "unbalanced pattern"}, {"a", "%bx", "unbalanced pattern"},
		{"a", "%f", "missing '[' after '%f' in pattern"}, {"a", ")", "invalid pattern capture"},
		{"a", "(a", "unfinished capture"}, {"a", "%1", "invalid capture index"}, {"a", "(%1)", "invalid capture index"},
		{"a", "%0", "invalid capture index"}, {"a", strings.Repeat("()", 33), "too many captures"},
		{strings.Repeat("a", 300), strings.Repeat("a?", 300), "pattern too complex"},
		{strings.Repeat("a", 1e5), "^.*$", "0-100000"},
	} {
		t.Run(c.pattern, func(t *testing.T) {
			if got := found(c.text, c.pattern, func() error { return nil }); got != c.want {
				t.Errorf("in %.20q: %s, want %s", c.text, got, c.want)
			}
		})
	}
}

// found returns what a search has found, in one line.
func found(text, pattern string, proceed func() error) string {
	m := newSearch(text, pattern, proceed)
	start, end, ok, err := m.find(0)
	if err != nil {
		return err.Error()
	}
	if !ok {
		return "none"
	}
	out := fmt.Sprintf("%d-%d", start, end)
	if !m.captured() {
		return out
	}
	list, err := m.values(start, end)
	if err != nil {
		return err.Error()
	}
	for _, c := range list {
		if out += " " + c.Text; c.Position > 0 {
			out += fmt.Sprint("@", c.Position)
		}
	}
	return out
}

// FuzzPattern tries whatever there is: a search ends soon after its budget is spent.
func FuzzPattern(f *testing.F) {
	f.Add("# #SBATCH gres # #SBATCH gres ", "#SBATCH.-gres.-gpu")
	f.Add("((a))", "%b()%f[%w](.-)%1$")
	f.Add("aaaaaaaaaaaaaaaa", "a*a*a*a-[^%a-z]?")
	errSpent := errors.New("spent")
	f.Fuzz(func(t *testing.T, text, pattern string) {
		asked := 0
		m := newSearch(text, pattern, func() error {
			if asked++; asked > 8 {
				return errSpent
			}
			return nil
		})
		start, end, ok, err := m.find(0)
		if asked > 9 {
			t.Errorf("it went on after it was told to end: %d", asked)
		}
		if err == nil && ok {
			_, err = m.values(start, end)
		}
		if err == nil && ok && (start < 0 || end < start || end > len(text)) {
			t.Errorf("%d-%d of %d", start, end, len(text))
		}
	})
}
