package submit

import (
	"fmt"
	"testing"
)

func TestLateDirective(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"none":            {"#!/bin/sh\n#SBATCH -N 1\nhostname\n", "0 0"},
		"late":            {"#!/bin/sh\n#SBATCH -N 1\n\nhostname\n#SBATCH -n 2\n", "5 4"},
		"a comment":       {"#!/bin/sh\nhostname\n# SBATCH -n 2\n##SBATCH -n 2\n", "0 0"},
		"here-document":   {"#!/bin/sh\ncat >j <<EOF\n#!/bin/sh\n#SBATCH -n 2\nEOF\nsbatch j\n", "0 0"},
		"behind it":       {"#!/bin/sh\ncat >j <<'EOF'\n#SBATCH -n 2\nEOF\n#SBATCH -n 3\n", "5 2"},
		"indented":        {"#!/bin/sh\nhostname\n  #SBATCH -n 2\n", "0 0"},
		"without end":     {"#!/bin/sh\ncat <<EOF\n#SBATCH -n 2", "0 0"},
		"nothing":         {"", "0 0"},
		"a word, no doc.": {"#!/bin/sh\ncat <<<EOF\n#SBATCH -n 2", "3 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(LateDirective(c.script)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
