package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	maxWidth     = 120
	maxOperators = 4
	tabWidth     = 4
)

// figures are what is counted in one package.
type figures struct {
	lines         int
	designed      bool // it has a DESIGN.md
	functions     int
	functionLines int
	branches      int
	wide          int
	threes        int            // assignments of three and more values
	conditions    int            // of more than maxOperators operators
	ways          map[string]int // function -> cyclomatic complexity
	fields        map[string]int // type -> fields
	methods       map[string]int // type -> methods
}

func newFigures() *figures {
	return &figures{ways: map[string]int{}, fields: map[string]int{}, methods: map[string]int{}}
}

// density is the number of branches in 100 lines of function, to one digit.
func (f *figures) density() float64 {
	if f.functionLines == 0 {
		return 0
	}
	return math.Round(1000*float64(f.branches)/float64(f.functionLines)) / 10
}

// measure counts in all packages under a folder, by their paths in it.
func measure(root string) (map[string]*figures, error) {
	packages := map[string]*figures{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && skipped(d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if packages[dir] == nil {
			packages[dir] = newFigures()
			_, err := os.Stat(filepath.Join(filepath.Dir(path), "DESIGN.md"))
			packages[dir].designed = err == nil
		}
		return packages[dir].addFile(path)
	})
	return packages, err
}

func skipped(folder string) bool {
	return strings.HasPrefix(folder, ".") || folder == "testdata" || folder == "tools" || folder == "e2e"
}

func (f *figures) addFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, 0)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		f.lines++
		if width(line) > maxWidth {
			f.wide++
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.addFunction(set, d)
		case *ast.GenDecl:
			f.addTypes(d)
		}
	}
	return nil
}

func width(line []byte) int {
	line = bytes.TrimRight(line, "\n")
	return utf8.RuneCount(line) + (tabWidth-1)*bytes.Count(line, []byte("\t"))
}

func (f *figures) addFunction(set *token.FileSet, d *ast.FuncDecl) {
	name := d.Name.Name
	if owner := receiver(d); owner != "" {
		f.methods[owner]++
		name = owner + "." + name
	}
	if d.Body == nil {
		return
	}
	branches := f.addBody(d.Body)
	f.functions++
	f.functionLines += set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
	f.branches += branches
	f.ways[name] = branches + 1
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch x := t.(type) {
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// addBody counts the branches of a function: each if, loop and case, and each && and ||.
func (f *figures) addBody(body *ast.BlockStmt) int {
	branches := 0
	inner := map[ast.Expr]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			branches++
		case *ast.CaseClause:
			if n.List != nil {
				branches++
			}
		case *ast.CommClause:
			if n.Comm != nil {
				branches++
			}
		case *ast.AssignStmt:
			if len(n.Lhs) >= 3 && len(n.Rhs) == len(n.Lhs) {
				f.threes++
			}
		case *ast.BinaryExpr:
			if !logical(n) {
				break
			}
			branches++
			if !inner[n] && operators(n, inner) > maxOperators {
				f.conditions++
			}
		}
		return true
	})
	return branches
}

func logical(n ast.Expr) bool {
	b, ok := n.(*ast.BinaryExpr)
	return ok && (b.Op == token.LAND || b.Op == token.LOR)
}

// operators counts the && and || of one condition, and marks the parts of it.
func operators(n ast.Expr, inner map[ast.Expr]bool) int {
	count := 0
	ast.Inspect(n, func(m ast.Node) bool {
		if _, function := m.(*ast.FuncLit); function {
			return false
		}
		if e, ok := m.(ast.Expr); ok && logical(e) {
			count++
			inner[e] = true
		}
		return true
	})
	return count
}

func (f *figures) addTypes(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		fields, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range fields.Fields.List {
			f.fields[t.Name.Name] += max(1, len(field.Names))
		}
	}
}
