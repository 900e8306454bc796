// Package hostlist turns Slurm's host lists, such as "gpu[001-004,7],login", into
// names and back. It only handles text: a host file is the caller's business.
package hostlist

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxNames bounds what one host list may expand to, so that a typing error such as
	// a[1-999999999] is refused and does not eat the memory.
	MaxNames = 1 << 20
	// maxDigits keeps every number of a name within an int64.
	maxDigits = 18
	// maxBytes bounds the text of an expanded list.
	maxBytes = 64 << 20
)

// ErrTooMany says that a list names more hosts than MaxNames (or too long ones).
var ErrTooMany error = tooMany{}

type tooMany struct{}

func (tooMany) Error() string { return "host list names too many hosts" }

// span is one part of a bracket: the numbers lo..hi, zero padded to width.
type span struct {
	lo, hi uint64
	width  int
}

func (s span) count() uint64 { return s.hi - s.lo + 1 }

// Expand returns the names of a host list in the order written. Several brackets in
// one name make the product, the last running fastest. Duplicates stay.
func Expand(list string) ([]string, error) {
	var names []string
	bytes := 0
	for len(list) > 0 {
		word, rest, err := cutWord(list)
		if err != nil {
			return nil, err
		}
		list = rest
		if word == "" {
			continue
		}
		if names, err = expandWord(names, word, &bytes); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// cutWord splits list at the first comma or blank outside brackets.
func cutWord(list string) (word, rest string, err error) {
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '[':
			length, problem := bracket(list[i:])
			if problem != "" {
				return "", "", fmt.Errorf("host list %q: %s", clip(list), problem)
			}
			i += length
		case c == ']':
			return "", "", fmt.Errorf("host list %q: unbalanced ]", clip(list))
		case separates(c):
			return list[:i], list[i+1:], nil
		case c < ' ' || c == 0x7f:
			return "", "", fmt.Errorf("host list %q: control character", clip(list))
		}
	}
	return list, "", nil
}

// separates reports whether a character stands between words.
func separates(c byte) bool { return strings.IndexByte(", \t\n\r", c) >= 0 }

// bracket is where the bracket ends with which a text begins.
func bracket(text string) (end int, problem string) {
	end = 1 + strings.IndexAny(text[1:], "[]")
	if end == 0 {
		return 0, "missing ]"
	}
	if text[end] == '[' {
		return 0, "bracket within a bracket"
	}
	return end, ""
}

// expandWord appends the names of one word, which has balanced brackets.
func expandWord(names []string, word string, bytes *int) ([]string, error) {
	open := strings.IndexByte(word, '[')
	if open < 0 {
		return appendName(names, word, bytes)
	}
	heads := []string{""}
	written := 0
	for word != "" {
		open = strings.IndexByte(word, '[')
		if open < 0 {
			open = len(word)
		}
		if written += len(heads) * (len(heads[0]) + open); written > maxBytes {
			return nil, ErrTooMany
		}
		for i := range heads {
			heads[i] += word[:open]
		}
		if word = word[open:]; word == "" {
			break
		}
		end := strings.IndexByte(word, ']')
		spans, err := parseSpans(word[1:end])
		if err != nil {
			return nil, err
		}
		if heads, err = product(heads, spans, MaxNames-len(names)); err != nil {
			return nil, err
		}
		word = word[end+1:]
	}
	var err error
	for _, h := range heads {
		if names, err = appendName(names, h, bytes); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func appendName(names []string, name string, bytes *int) ([]string, error) {
	if *bytes += len(name); len(names) >= MaxNames || *bytes > maxBytes {
		return nil, ErrTooMany
	}
	return append(names, name), nil
}

// product appends every number of spans to every head.
func product(heads []string, spans []span, room int) ([]string, error) {
	var n uint64
	for _, s := range spans {
		if n += s.count(); n > uint64(room) {
			return nil, ErrTooMany
		}
	}
	if n*uint64(len(heads)) > uint64(room) || int(n)*len(heads)*(len(heads[0])+maxDigits) > maxBytes {
		return nil, ErrTooMany
	}
	out := make([]string, 0, int(n)*len(heads))
	for _, h := range heads {
		for _, s := range spans {
			for v := s.lo; v <= s.hi; v++ {
				out = append(out, h+pad(v, s.width))
			}
		}
	}
	return out, nil
}

// parseSpans reads the inside of a bracket: "001-004,7".
func parseSpans(text string) ([]span, error) {
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		if !ranged {
			hi = lo
		}
		s := span{width: len(lo)}
		var err1, err2 error
		s.lo, err1 = number(lo)
		s.hi, err2 = number(hi)
		if err := errors.Join(err1, err2); err != nil || s.hi < s.lo {
			return nil, fmt.Errorf("host list: invalid range %q in [%s]", clip(part), clip(text))
		}
		if len(spans) >= MaxNames {
			return nil, ErrTooMany
		}
		spans = append(spans, s)
	}
	return spans, nil
}

var errNumber error = notANumber{}

type notANumber struct{}

func (notANumber) Error() string { return "not a number" }

func number(s string) (uint64, error) {
	if s == "" || len(s) > maxDigits {
		return 0, errNumber
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, errNumber
		}
	}
	return strconv.ParseUint(s, 10, 64)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func pad(v uint64, width int) string {
	s := strconv.FormatUint(v, 10)
	if len(s) >= width {
		return s
	}
	return strings.Repeat("0", width-len(s)) + s
}

// clip keeps error texts short.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}

// host is a name cut before its trailing number; digits is empty without one.
type host struct{ prefix, digits string }

func cut(name string) host {
	i := len(name)
	first := max(0, len(name)-maxDigits)
	for i > first && isDigit(name[i-1]) {
		i--
	}
	return host{name[:i], name[i:]}
}

// Compress folds names into a host list, keeping their order and duplicates. Only the
// last number of a name is folded, and only next to names with the same beginning.
func Compress(names []string) string {
	var b strings.Builder
	for i := 0; i < len(names); {
		h := cut(names[i])
		alike := h.alike(names[i:])
		if i > 0 {
			b.WriteByte(',')
		}
		if alike == 1 {
			b.WriteString(names[i])
		} else {
			b.WriteString(h.prefix)
			b.WriteByte('[')
			writeSpans(&b, names[i:i+alike], len(h.prefix))
			b.WriteByte(']')
		}
		i += alike
	}
	return b.String()
}

// alike counts the names, of which h is the first, that differ from it in their number alone.
func (h host) alike(names []string) int {
	if h.digits == "" {
		return 1
	}
	for i, name := range names[1:] {
		if n := cut(name); n.prefix != h.prefix || n.digits == "" {
			return i + 1
		}
	}
	return len(names)
}

// CompressNames is Compress of names of a type of their own.
func CompressNames[S ~string](names []S) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return Compress(list)
}

// writeSpans writes the numbers of names, which share their first skip bytes.
func writeSpans(b *strings.Builder, names []string, skip int) {
	for i := 0; i < len(names); {
		first := names[i][skip:]
		v, _ := number(first)
		j := i + 1
		for j < len(names) && names[j][skip:] == pad(v+uint64(j-i), len(first)) {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(first)
		if j > i+1 {
			b.WriteByte('-')
			b.WriteString(names[j-1][skip:])
		}
		i = j
	}
}

// CompressSorted is Compress of the names in Slurm's order: by beginning, then by the
// width of a zero padded number, then by number. Duplicates stay. names is not changed.
func CompressSorted(names []string) string {
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, Less)
	return Compress(sorted)
}

// Less orders two names as CompressSorted does, for slices.SortFunc.
func Less(a, b string) int {
	x, y := cut(a), cut(b)
	if c := strings.Compare(x.prefix, y.prefix); c != 0 {
		return c
	}
	wider := len(x.digits) - len(y.digits)
	if x.digits == "" || y.digits == "" {
		return wider
	}
	// A padded number sorts with its width, an unpadded one with its value.
	if wider != 0 && (padded(x.digits) || padded(y.digits)) {
		return wider
	}
	v, _ := number(x.digits)
	w, _ := number(y.digits)
	return cmp.Or(cmp.Compare(v, w), wider)
}

func padded(digits string) bool { return len(digits) > 1 && digits[0] == '0' }
