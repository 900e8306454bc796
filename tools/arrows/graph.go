package main

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// arrow leads from a file to one that declares what it names.
type arrow struct{ from, to string }

// graph is the files of a package and the arrows between them.
type graph struct {
	files  []string // sorted
	named  map[arrow]map[string]bool
	arrows int
}

func graphOf(p *packages.Package) *graph {
	g := &graph{named: map[arrow]map[string]bool{}}
	for _, f := range p.Syntax {
		from := filepath.Base(p.Fset.Position(f.Pos()).Filename)
		g.files = append(g.files, from)
		for n := range ast.Preorder(f) {
			id, ok := n.(*ast.Ident)
			if !ok {
				continue
			}
			o := p.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != p.Types || !declared(o, p.Types) {
				continue
			}
			to := filepath.Base(p.Fset.Position(o.Pos()).Filename)
			g.add(arrow{from, to}, o.Name())
		}
	}
	slices.Sort(g.files)
	g.arrows = len(g.named)
	return g
}

// declared reports whether an object is one of the package itself: neither a field nor within a function.
func declared(o types.Object, p *types.Package) bool {
	if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil {
		return true
	}
	return o.Parent() == p.Scope()
}

func (g *graph) add(a arrow, name string) {
	if a.from == a.to {
		return
	}
	if g.named[a] == nil {
		g.named[a] = map[string]bool{}
	}
	g.named[a][name] = true
}

// names are those for which an arrow stands, sorted.
func (g *graph) names(a arrow) []string { return slices.Sorted(maps.Keys(g.named[a])) }

// back are the arrows that run up in an order of the files, the lowest first.
func (g *graph) back(order []string) (list []arrow) {
	at := map[string]int{}
	for i, f := range order {
		at[f] = i
	}
	for a := range g.named {
		if at[a.from] < at[a.to] {
			list = append(list, a)
		}
	}
	slices.SortFunc(list, func(a, b arrow) int {
		return cmp.Or(cmp.Compare(at[a.from], at[b.from]), cmp.Compare(at[a.to], at[b.to]))
	})
	return list
}
