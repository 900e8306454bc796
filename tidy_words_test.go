package main

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// retiredWords reads the end of docs/words.md: room → old word → what says it now. A word that is retired for one
// thing alone, with that in brackets, may name another.
func retiredWords(t *testing.T) map[string]map[string]string {
	t.Helper()
	page, err := os.ReadFile("docs/words.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(page), "## Retired words")
	if !found {
		t.Fatal("docs/words.md has no retired words")
	}
	retired := map[string]map[string]string{}
	var rooms []string
	for line := range strings.Lines(list) {
		if title, heading := strings.CutPrefix(line, "### In "); heading {
			rooms = strings.Fields(strings.NewReplacer(",", " ", " and ", " ").Replace(title))
			for _, room := range rooms {
				retired[room] = map[string]string{}
			}
			continue
		}
		olds, now, row := strings.Cut(strings.TrimPrefix(line, "- "), " → ")
		if !row || strings.Contains(olds, "(") {
			continue
		}
		for old := range strings.SplitSeq(olds, ", ") {
			for _, room := range rooms {
				retired[room][strings.ReplaceAll(strings.ToLower(old), " ", "")] = strings.TrimSpace(now)
			}
		}
	}
	return retired
}

// TestTidyWords refuses files and types of the rooms that docs/words.md covers by words that it retires.
func TestTidyWords(t *testing.T) {
	rooms := retiredWords(t)
	for _, room := range []string{"sched", "cluster", "agent", "consensus"} {
		if len(rooms[room]) < 10 {
			t.Fatalf("only %d words are retired in %s: was the page read?", len(rooms[room]), room)
		}
	}
	goFiles(t, func(path string, f *ast.File, set *token.FileSet) {
		room, below, _ := strings.Cut(filepath.ToSlash(path), "/")
		retired := rooms[room]
		if strings.HasPrefix(below, "replay/") {
			return
		}
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".go"), "_test")
		if now := retired[name]; now != "" {
			t.Errorf("%s: docs/words.md retires %q: %s", path, name, now)
		}
		for _, d := range f.Decls {
			types, ok := d.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}
			for _, spec := range types.Specs {
				id := spec.(*ast.TypeSpec).Name
				if now := retired[strings.ToLower(id.Name)]; now != "" {
					t.Errorf("%s: docs/words.md retires %q: %s", set.Position(id.Pos()), id.Name, now)
				}
			}
		}
	})
}
