package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"dev.muster/slurm"
)

// opening is a sentence that begins with who, what or that of, as Opening.yml of the style has it.
var opening = regexp.MustCompile(`(?:^|[.!] )(?:Who|What|That of)\b[^?]*$`)

// phrases are those that the style of tools/vale replaces, with their replacements.
func phrases(t *testing.T) map[*regexp.Regexp]string {
	t.Helper()
	files, _ := filepath.Glob("../tools/vale/styles/muster/*.yml")
	out := map[*regexp.Regexp]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, swaps, _ := strings.Cut(string(text), "\nswap:\n")
		for line := range strings.Lines(swaps) {
			old, now, ok := strings.Cut(strings.TrimSpace(line), ": ")
			if !ok {
				t.Fatalf("%s: %q is no phrase", f, line)
			}
			out[regexp.MustCompile(`(?i)\b(?:`+old+`)\b`)] = now
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %d phrases in %q", len(out), files)
	}
	return out
}

// TestHelpWords holds help texts and manuals to the style that Vale checks in pages and comments.
func TestHelpWords(t *testing.T) {
	style, read := phrases(t), 0
	check := func(where, text string) {
		read++
		for old, now := range style {
			if found := old.FindString(text); found != "" {
				t.Errorf("%s: use %q instead of %q: %s", where, now, found, text)
			}
		}
		if opening.MatchString(text) {
			t.Errorf("%s: do not begin a sentence with who, what or that of: %s", where, text)
		}
	}
	var visit func(where string, c *cli.Command)
	visit = func(where string, c *cli.Command) {
		where += " " + c.Name
		check(where, c.Usage)
		check(where, c.Description)
		for _, f := range c.Flags {
			check(where+" --"+f.Names()[0], f.(cli.DocGenerationFlag).GetUsage())
		}
		for _, sub := range c.Subcommands {
			visit(where, sub)
		}
	}
	for _, c := range app(nil).Commands {
		visit("muster", c)
	}
	for _, p := range slurm.Pages() {
		check(p.Name, p.Summary)
		for _, o := range p.Options {
			check(p.Name+" --"+o.Long, o.Help)
		}
		for _, s := range p.Sections {
			check(p.Name+", "+s.Title, s.Text)
			for _, row := range s.Rows {
				check(p.Name+", "+s.Title+", "+row.Word, row.Means)
			}
		}
	}
	if read < 1000 {
		t.Errorf("only %d texts were read", read)
	}
}
