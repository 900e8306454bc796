package opt

import (
	"slices"
	"strings"
	"testing"
)

// TestWithout: an option goes in each form that getopt accepts, and nothing else does.
func TestWithout(t *testing.T) {
	rows := []Option[int]{
		{Long: "clusters", Short: 'M', Arg: Required, On: All | Squeue},
		{Long: "cluster", Arg: Required, On: All | Squeue, Alias: "clusters"},
		{Long: "all", Short: 'a', On: All | Squeue},
		{Long: "format", Short: 'o', Arg: Required, On: All | Squeue},
		{Long: "jobs", Short: 'j', Arg: Optional, On: All | Squeue},
	}
	for _, c := range []struct {
		what, line, kept, rest string
		permute                bool
	}{
		{"short", "-M x -a", "-a", "", true},
		{"joined", "-Mx -a", "-a", "", true},
		{"in a word of others", "-aM x -o %i", "-a -o %i", "", true},
		{"in a word, joined", "-aMx w", "-a w", "", true},
		{"long", "--clusters x -a", "-a", "", true},
		{"with a sign", "--clusters=x -a", "-a", "", true},
		{"another spelling", "--cluster=x -a", "-a", "", true},
		{"abbreviated", "--clus x -a", "-a", "", true},
		{"twice", "-Mx -a --clusters y", "-a", "", true},
		{"value of another option", "-o -M -a", "-o -M -a", "", true},
		{"value in another option's word", "-oM -jM", "-oM -jM", "", true},
		{"behind a word", "w -M x v", "w v", "", true},
		{"behind two dashes", "-a -- -M x", "-a -- -M x", "", true},
		{"of the command", "-a -M x cmd -M y", "-a", "cmd -M y", false},
		{"of the command behind dashes", "-M x -a -- cmd -M y", "-a --", "cmd -M y", false},
		{"other options alone", "-a --format %i -j", "-a --format %i -j", "", false},
		{"a lone dash", "-M x - -a", "- -a", "", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := &Parser[int]{Prog: Squeue, Permute: c.permute, Rows: [][]Option[int]{rows}}
			kept, rest := p.Without(strings.Fields(c.line), "clusters")
			if !slices.Equal(kept, strings.Fields(c.kept)) || !slices.Equal(rest, strings.Fields(c.rest)) {
				t.Errorf("%q: %q and %q", c.line, kept, rest)
			}
		})
	}
}
