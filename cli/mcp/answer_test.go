package mcp

import (
	"fmt"
	"strings"
	"testing"
)

// TestClean: nothing of a user's text hides something, begins a row, or makes an answer long.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[31mb":         "a?[31mb",
		"a\u202eb\u200bc":    "a?b?c",
		"one\r\ntwo\tthree":  "one?\ntwo\tthree",
		"\xff\u2028":         "\ufffd?",
		"\U000e0041nd more":  "?nd more",
		"größe, 大きさ, размер": "größe, 大きさ, размер",
	} {
		if got := clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
	if got := clean(strings.Repeat("ä", maxAnswer)); len(got) > maxAnswer+100 || !strings.Contains(got, "narrow") {
		t.Errorf("%d bytes", len(got))
	}
	if got := cell("x\ty\nz"); got != "x?y?z" {
		t.Errorf("cell: %q", got)
	}
}

// TestPages reads a list page by page.
func TestPages(t *testing.T) {
	cursor, seen := "", 0
	for range 10 {
		tab := &table{}
		if err := tab.page(cursor, 3, 8, func(i int) { seen += i }); err != nil {
			t.Fatal(err)
		}
		_, next, more := strings.Cut(tab.String(), "next: ")
		if !more {
			break
		}
		cursor, _, _ = strings.Cut(next, " ")
	}
	if seen != 28 {
		t.Errorf("sum %d of the rows", seen)
	}
	for _, bad := range []string{"-1", "9", "x", "99999999999999999999"} {
		if err := new(table).page(bad, 3, 8, func(int) {}); err == nil {
			t.Errorf("cursor %s was accepted", bad)
		}
	}
}

// TestIDs reads IDs as agents write them.
func TestIDs(t *testing.T) {
	for _, good := range []any{"17", 17.0, " 17_3 ", "17+1", "17_[1-3]"} {
		if _, _, err := target(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []any{"", "0", 0.0, 1.5, -1.0, 1e20, "x", "--json", nil, true, []any{"1"}, "17;rm -rf /", "1\n2"} {
		if word, _, err := target(bad); err == nil {
			t.Errorf("%v was read as %q", bad, word)
		}
	}
}

// TestConfirm: a value belongs to its script and options alone.
func TestConfirm(t *testing.T) {
	in := &submitIn{Script: "#!/bin/sh\n", Options: []string{"--time=1"}}
	value := newConfirm(in)
	if !confirms(value, in) {
		t.Error("the value is refused")
	}
	for _, other := range []*submitIn{
		{Script: "#!/bin/sh\n\n", Options: in.Options},
		{Script: in.Script},
		{Script: in.Script, Options: []string{"--time=1", ""}},
		{Script: in.Script + "8:--time=1"},
	} {
		if confirms(value, other) {
			t.Errorf("the value is good for %+v", other)
		}
	}
	if confirms("", in) || confirms(".", in) || value == newConfirm(in) {
		t.Error("a value can be made without a plan, or is good for two")
	}
}

// TestOptions refuses options that are no options of this submission.
func TestOptions(t *testing.T) {
	for _, bad := range []string{"-p", "--", "x.sh", ":", "--wrap=x", "--wra=x", "--name=" + strings.Repeat("x", maxOption)} {
		if err := checkSubmit(&submitIn{Options: []string{bad}}); err == nil {
			t.Errorf("%.20s is accepted", bad)
		}
	}
	if err := checkSubmit(&submitIn{Options: []string{"--time=1", "--exclusive", "--wckey=x"}}); err != nil {
		t.Error(err)
	}
}

// TestLastLines keeps the end of an output, whatever its lines are.
func TestLastLines(t *testing.T) {
	k, err := newLastLines("", 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		fmt.Fprintf(k, "li")
		fmt.Fprintf(k, "ne %d\nlast", i)
	}
	if got := k.text(); got != "[last 2 of 6 lines read]\nlastline 4\nlast\n" {
		t.Errorf("%q", got)
	}
	k, _ = newLastLines("", 500)
	for range 20 {
		_, _ = k.Write([]byte(strings.Repeat("x", 64<<10)))
	}
	if got := k.text(); len(got) > maxLine+100 || !k.full() {
		t.Errorf("a line without end: %d bytes, full %v", len(got), k.full())
	}
	for _, bad := range []string{"(", strings.Repeat("a", maxGrep+1)} {
		if _, err := newLastLines(bad, 1); err == nil {
			t.Errorf("expression %.10s", bad)
		}
	}
}
