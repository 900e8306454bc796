package opt

import (
	"slices"
	"strings"
)

// Without returns the words of a command line, as typed, without the options of these long names, which require an
// argument. For a program that runs a command, rest is that command. Call it only for a line that Parse accepts.
func (p *Parser[T]) Without(argv []string, longs ...string) (kept, rest []string) {
	for len(argv) > 0 {
		word := argv[0]
		isOption := len(word) > 1 && word[0] == '-'
		switch {
		case word == "--" && p.Permute:
			return append(kept, argv...), nil
		case word == "--":
			return append(kept, word), argv[1:]
		case !isOption && !p.Permute:
			return kept, argv
		case !isOption:
			kept, argv = append(kept, word), argv[1:]
			continue
		}
		found, left, _ := p.unit(word, argv[1:])
		used := argv[:len(argv)-len(left)]
		argv = left
		if n := len(found); n == 0 || !slices.Contains(longs, p.canonical(found[n-1].Row).Long) {
			kept = append(kept, used...)
		} else if n > 1 { // letters of other options are in front of it
			kept = append(kept, word[:n])
		}
	}
	return kept, nil
}

// unit reads the options of one word, and their argument, which may be the next word.
func (p *Parser[T]) unit(word string, next []string) (found []Found[T], left []string, err error) {
	if name, long := strings.CutPrefix(word, "--"); long {
		f, left, err := p.long(name, next)
		if err != nil {
			return nil, left, err
		}
		return []Found[T]{f}, left, nil
	}
	return p.cluster(nil, word[1:], next)
}
