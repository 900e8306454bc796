package main

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTidyNamedTests: the tests exist that pages name as proof.
func TestTidyNamedTests(t *testing.T) {
	known := map[string]bool{}
	goFiles(t, func(path string, f *ast.File, _ *token.FileSet) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				known[fn.Name.Name] = true
			}
		}
	})
	for _, page := range []string{"docs/security.md", "docs/ecosystem.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllStringSubmatch(string(text), -1)
		if len(names) < 10 {
			t.Errorf("%s names %d tests", page, len(names))
		}
		for _, name := range names {
			if !known[name[1]] {
				t.Errorf("%s names %s, which no file has", page, name[1])
			}
		}
	}
}
