package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// TestParseConstraint tells for each constraint which of the nodes a, b, ab and c each way admits.
func TestParseConstraint(t *testing.T) {
	nodes := [][]string{{"a"}, {"b"}, {"a", "b"}, {"c"}}
	which := func(has func([]string) bool) string {
		var out []string
		for _, n := range nodes {
			if has(n) {
				out = append(out, strings.Join(n, ""))
			}
		}
		return strings.Join(out, ",")
	}
	for text, want := range map[string]string{
		"":              "a,b,ab,c",
		"a":             "a,ab",
		"a&b":           "ab",
		"a,b":           "ab",
		"a|b":           "a,b,ab",
		"(a|b)&b":       "b,ab",
		"c|a&b":         "ab,c",
		"[a|b]":         "a,ab; b,ab",
		"c&[a|b]":       "; ",
		"[a*2&b*4]":     "a,b,ab,c 2 of a,ab 4 of b,ab",
		"a*3":           "a,b,ab,c 3 of a,ab",
		"(a&b)*2":       "a,b,ab,c 2 of ab",
		"[(a&b)|c]":     "ab; c",
		"[(a|b)*1&c*2]": "a,b,ab,c 1 of a,b,ab 2 of c",
	} {
		wishes, _, err := ParseConstraint(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, w := range wishes {
			one := which(w.All)
			for _, c := range w.Counts {
				one += fmt.Sprintf(" %d of %s", c.Nodes, which(c.Has))
			}
			got = append(got, one)
		}
		if got := strings.Join(got, "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"&", "a&", "|a", "(a", "a)", "[a", "a]", "a*", "a*0", "a*x", "a b*", "()", "a&&b",
		strings.Repeat("[a|b]&", 12) + "[a|b]",
	} {
		if text == "a b*" {
			continue // a blank is part of a name
		}
		if _, _, err := ParseConstraint(text); err == nil || err.(*Error).Kind != ErrFeature {
			t.Errorf("%s: %v", text, err)
		}
	}
}
