package mcp

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// Bounds of answers.
const (
	maxAnswer = 16 << 10 // bytes
	maxLine   = 600      // bytes of a line of output
	maxCell   = 200
	maxRows   = 200
	someRows  = 25 // unless more are asked for
	maxIDs    = 100
)

// clean bounds an answer and takes out control characters, with which texts of users could hide something.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	if len(text) <= maxAnswer {
		return text
	}
	more := len(text) - maxAnswer
	return cutAt(text, maxAnswer) + fmt.Sprintf("\n[%d bytes more are not shown: narrow the question]", more)
}

// cutAt returns at most n bytes of a text, whole characters.
func cutAt(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// cell makes a text of a user one cell: it begins no row or column.
func cell(text string) string {
	text = strings.ReplaceAll(cluster.PlainLine(text), "\t", "?")
	if text == "" {
		return "-"
	}
	if len(text) > maxCell {
		return cutAt(text, maxCell) + "…"
	}
	return text
}

// table builds rows of cells, separated by tabs.
type table struct{ strings.Builder }

func (t *table) row(cells ...string) {
	for i, text := range cells {
		if i > 0 {
			t.WriteByte('\t')
		}
		t.WriteString(cell(text))
	}
	t.WriteByte('\n')
}

// rowsOf returns how many rows a page has.
func rowsOf(asked int) int { return min(cmp.Or(max(asked, 0), someRows), maxRows) }

// offset reads a cursor that is a position in a list.
func offset(cursor string, n int) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	at, err := strconv.Atoi(cursor)
	if err != nil || at < 0 || at > n {
		return 0, fmt.Errorf("cursor %q: use the value after \"next:\" of the previous page", cutAt(cursor, 40))
	}
	return at, nil
}

// page writes the rows of a page of n, and the cursor of the next one.
func (t *table) page(cursor string, limit, n int, row func(i int)) error {
	at, err := offset(cursor, n)
	if err != nil {
		return err
	}
	end := min(at+rowsOf(limit), n)
	for i := at; i < end; i++ {
		row(i)
	}
	if end < n {
		fmt.Fprintf(t, "next: %d (%d of %d shown)\n", end, end-at, n)
	}
	return nil
}

// idText reads an ID that came as a text or a number.
func idText(v any) (string, error) {
	switch x := v.(type) {
	case string:
		return strings.TrimSpace(x), nil
	case float64:
		if x == float64(uint32(x)) {
			return strconv.FormatUint(uint64(uint32(x)), 10), nil
		}
	}
	return "", notID(v)
}

func notID(v any) error {
	return fmt.Errorf("%q is not a job ID; use a value such as \"17\", \"17_3\" or \"17+1\"", cutAt(fmt.Sprint(v), 40))
}

// target reads the ID of a job.
func target(v any) (string, front.Target, error) {
	word, err := idText(v)
	if err != nil {
		return "", front.Target{}, err
	}
	t, ok := front.ParseTarget(word)
	if !ok || len(word) > 100 {
		return "", t, notID(word)
	}
	return word, t, nil
}

// targets reads IDs of jobs.
func targets(list []any) (words []string, refs []cluster.Ref, err error) {
	if len(list) > maxIDs {
		return nil, nil, fmt.Errorf("%d IDs: name at most %d at once", len(list), maxIDs)
	}
	for _, v := range list {
		word, t, err := target(v)
		if err != nil {
			return nil, nil, err
		}
		words, refs = append(words, word), append(refs, t.Ref)
	}
	return words, refs, nil
}
