package step

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
)

// ParseMultiProg reads a --multi-prog file: lines of "ranks program arguments", with %t the rank
// and %o its offset in the line's ranks. Its errors are of several lines.
func ParseMultiProg(s *cluster.StepSpec, tasks int) (map[int][]string, error) {
	if !s.MultiProgFile || len(s.Argv) == 0 {
		return nil, nil
	}
	p := programs{tasks: tasks, of: map[int][]string{}, left: maxPrograms}
	i := -1
	for line := range strings.SplitSeq(s.MultiProg, "\n") {
		i++
		words := splitWords(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if why := p.line(words); why != nil {
			return nil, cluster.Errorf(cluster.Invalid, cluster.ErrMultiProg,
				"%sLine %d of configuration file %s invalid", *why, i+1, s.Argv[0])
		}
	}
	for rank := range tasks {
		if p.of[rank] == nil {
			return nil, cluster.Errorf(cluster.Invalid, cluster.ErrMultiProg,
				"Configuration file %s invalid, no record for task id %d", s.Argv[0], rank)
		}
	}
	return p.of, nil
}

// maxPrograms bounds what the arguments of all tasks of a step take in memory: a line may be for any number of tasks.
const (
	maxPrograms = 64 << 20
	perWord     = 16 // besides its bytes
)

// programs are what tasks run, by rank.
type programs struct {
	tasks int
	of    map[int][]string
	left  int // bytes that there is room for
}

// line takes a line's words; not nil: what is wrong with them, in whole lines.
func (p *programs) line(words []string) (why *string) {
	ranks, why := p.ranks(words)
	if why != nil {
		return why
	}
	size := 0
	for _, w := range words[1:] {
		size += len(w) + perWord
	}
	offset := 0
	for rank := range ranks.All() {
		if p.of[rank] != nil {
			return wrong("Duplicate record for task %d\n", rank)
		}
		if p.left -= size; p.left < 0 {
			return wrong("The arguments of all tasks take more than %d MiB\n", maxPrograms>>20)
		}
		p.of[rank] = filled(words[1:], rank, offset)
		offset++
	}
	return nil
}

// filled are a line's words for one of its tasks.
func filled(words []string, rank, offset int) []string {
	fill := strings.NewReplacer("%t", strconv.Itoa(rank), "%o", strconv.Itoa(offset))
	argv := make([]string, len(words))
	for k := range argv {
		argv[k] = fill.Replace(words[k])
	}
	return argv
}

// ranks are those that a line names; *: all that no line has named yet.
func (p *programs) ranks(words []string) (cluster.IDSet, *string) {
	if words[0] == "*" && len(p.of) == p.tasks {
		return cluster.IDSet{}, nil
	}
	if words[0] == "*" {
		named := cluster.NewIDSet(slices.Collect(maps.Keys(p.of))...)
		return cluster.RangeIDSet(0, p.tasks-1).Minus(named), nil
	}
	set, err := cluster.ParseIDSet(words[0])
	switch {
	case err != nil:
		return set, wrong("Invalid task range specification\n")
	case len(words) < 2:
		return set, wrong("")
	case set.Max() >= p.tasks:
		return set, wrong("Invalid task id, %d >= ntasks\n", set.Max())
	}
	return set, nil
}

func wrong(format string, args ...any) *string {
	text := fmt.Sprintf(format, args...)
	return &text
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
