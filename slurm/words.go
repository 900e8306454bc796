package slurm

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"dev.muster/cluster"
)

// prefixed is a text with something before it, or nothing where there is none.
func prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func uintText(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// maxMgrLine bounds a line of a file.
const maxMgrLine = 1 << 20

// mgrSplit parts a line at blanks that are not in quotes; the quotes go.
func mgrSplit(line string) (words []string, ok bool) {
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range line {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && unicode.IsSpace(r):
			if open || word.Len() > 0 {
				words = append(words, word.String())
			}
			open = false
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	if open || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// choose is one of two words.
func choose(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// setting is one key=value of a command line; sign is the + or - of key+=value, bare that it is a key alone.
type setting struct {
	key, value, text string
	sign             byte
	bare             bool
}

// words reads key=value words, and keys alone; keys are lower case afterwards.
func words(args []string) (list []setting) {
	for _, a := range args {
		k, v, valued := strings.Cut(a, "=")
		s := setting{text: a, value: v, bare: !valued}
		if n := len(k); n > 0 && (k[n-1] == '+' || k[n-1] == '-') {
			s.sign, k = k[n-1], k[:n-1]
		}
		s.key = strings.ToLower(k)
		list = append(list, s)
	}
	return list
}

// paired joins a key and the value behind it, where there is no = between them.
func paired(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		if i+1 < len(args) && !strings.Contains(args[i]+args[i+1], "=") {
			out = append(out, args[i]+"="+args[i+1])
			i++
			continue
		}
		out = append(out, args[i])
	}
	return out
}

// settings reads key=value words. bad is the first word without =.
func settings(args []string) (list []setting, bad string) {
	list = words(args)
	if i := slices.IndexFunc(list, func(s setting) bool { return s.bare }); i >= 0 {
		return list[:i], list[i].text
	}
	return list, ""
}

// isKey reports whether key is one of the names, or enough of the beginning of one.
func isKey(key string, least int, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return key == n || len(key) >= least && strings.HasPrefix(n, key)
	})
}

// nodeNames drops duplicates and keeps the order.
func nodeNames(names []string) []cluster.NodeName {
	seen := make(map[string]bool, len(names))
	list := make([]cluster.NodeName, 0, len(names))
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			list = append(list, cluster.NodeName(n))
		}
	}
	return list
}

// splitList cuts a comma list, without empty words.
func splitList(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == ',' })
}
