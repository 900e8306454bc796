package front

import (
	"fmt"
	"testing"
)

// TestPaired: scontrol update job N takes a key and its value as two words.
func TestPaired(t *testing.T) {
	for text, c := range map[string]struct {
		words []string
		want  string
	}{
		"two words":       {[]string{"timelimit", "5"}, "[timelimit=5]"},
		"both ways":       {[]string{"nice", "5", "timelimit=7"}, "[nice=5 timelimit=7]"},
		"a key at an end": {[]string{"timelimit=7", "nice"}, "[timelimit=7 nice]"},
	} {
		if got := fmt.Sprint(Paired(c.words)); got != c.want {
			t.Errorf("%s: %s, want %s", text, got, c.want)
		}
	}
}
