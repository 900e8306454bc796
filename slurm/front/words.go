package front

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"dev.muster/cluster"
)

// Prefixed is a text with something before it, or nothing where there is none.
func Prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// BoolInt is 1 for yes.
func BoolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// UintText writes a number.
func UintText(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// MaxLine bounds a line of a file.
const MaxLine = 1 << 20

// SplitQuoted parts a line at blanks that are not in quotes; the quotes go.
func SplitQuoted(line string) (words []string, ok bool) {
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

// Choose is one of two words.
func Choose(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// Setting is one key=value of a command line; Sign is the + or - of key+=value, Bare that it is a key alone.
type Setting struct {
	Key, Value, Text string
	Sign             byte
	Bare             bool
}

// Words reads key=value words, and keys alone; keys are lower case afterwards.
func Words(args []string) (list []Setting) {
	for _, a := range args {
		k, v, valued := strings.Cut(a, "=")
		s := Setting{Text: a, Value: v, Bare: !valued}
		if n := len(k); n > 0 && (k[n-1] == '+' || k[n-1] == '-') {
			s.Sign, k = k[n-1], k[:n-1]
		}
		s.Key = strings.ToLower(k)
		list = append(list, s)
	}
	return list
}

// Paired joins a key and the value behind it, where there is no = between them.
func Paired(args []string) (out []string) {
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

// Settings reads key=value words. bad is the first word without =.
func Settings(args []string) (list []Setting, bad string) {
	list = Words(args)
	if i := slices.IndexFunc(list, func(s Setting) bool { return s.Bare }); i >= 0 {
		return list[:i], list[i].Text
	}
	return list, ""
}

// IsKey reports whether key is one of the names, or enough of the beginning of one.
func IsKey(key string, least int, names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return key == n || len(key) >= least && strings.HasPrefix(n, key)
	})
}

// NodeNames drops duplicates and keeps the order.
func NodeNames(names []string) []cluster.NodeName {
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

// SplitList cuts a comma list, without empty words.
func SplitList(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == ',' })
}

// FilterList is SplitList of a filter: a list of commas alone is one of a name that nothing has, and so lets nothing
// through, where no list lets all through.
func FilterList(s string) []string {
	if s != "" && strings.Trim(s, ",") == "" {
		return []string{","}
	}
	return SplitList(s)
}

// made counts what Unique has made.
var made atomic.Uint32

// Unique is a word that no other process of this host makes, nor this one again: a server makes many at once.
func Unique() string {
	return fmt.Sprintf("%d.%d.%d", os.Getpid(), time.Now().UnixNano(), made.Add(1))
}
