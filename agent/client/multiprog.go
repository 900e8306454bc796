package client

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// parseMultiProg reads a --multi-prog file: lines of "ranks program arguments", with %t the rank
// and %o its offset in the line's ranks. Its errors are of several lines.
func parseMultiProg(s *cluster.StepSpec, tasks int) (map[int][]string, error) {
	if !s.MultiProgFile || len(s.Argv) == 0 {
		return nil, nil
	}
	file, text := s.Argv[0], s.MultiProg
	badLine := func(n int, why string) error {
		return cluster.Errorf(cluster.Invalid, cluster.ErrMultiProg, "%sLine %d of configuration file %s invalid", why, n, file)
	}
	out := map[int][]string{}
	for i, line := range strings.Split(text, "\n") {
		words := splitWords(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		ranks := cluster.RangeIDSet(0, tasks-1).Minus(cluster.NewIDSet(slices.Collect(maps.Keys(out))...)) // *: all others
		if words[0] != "*" {
			set, err := cluster.ParseIDSet(words[0])
			switch {
			case err != nil:
				return nil, badLine(i+1, "Invalid task range specification\n")
			case len(words) < 2:
				return nil, badLine(i+1, "")
			case set.Max() >= tasks:
				return nil, badLine(i+1, fmt.Sprintf("Invalid task id, %d >= ntasks\n", set.Max()))
			}
			ranks = set
		}
		offset := 0
		for r := range ranks.All() {
			if _, twice := out[r]; twice {
				return nil, badLine(i+1, fmt.Sprintf("Duplicate record for task %d\n", r))
			}
			argv := slices.Clone(words[1:])
			for k := range argv {
				argv[k] = strings.NewReplacer("%t", strconv.Itoa(r), "%o", strconv.Itoa(offset)).Replace(argv[k])
			}
			out[r] = argv
			offset++
		}
	}
	for r := range tasks {
		if out[r] == nil {
			return nil, cluster.Errorf(cluster.Invalid, cluster.ErrMultiProg, "Configuration file %s invalid, no record for task id %d", file, r)
		}
	}
	return out, nil
}

// splitWords splits at blanks, honouring quotes and backslashes.
func splitWords(line string) (out []string) {
	var b strings.Builder
	quote, in := rune(0), false
	esc := false
	for _, r := range line {
		switch {
		case esc:
			b.WriteRune(r)
			esc = false
		case r == '\\' && quote != '\'':
			esc, in = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, in = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if in {
				out = append(out, b.String())
				b.Reset()
				in = false
			}
		default:
			b.WriteRune(r)
			in = true
		}
	}
	if in {
		out = append(out, b.String())
	}
	return out
}
