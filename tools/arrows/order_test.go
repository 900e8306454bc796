package main

import (
	"slices"
	"strings"
	"testing"
)

// graphFrom makes a graph of words FROM>TO.
func graphFrom(words string) *graph {
	g := &graph{named: map[arrow]map[string]bool{}}
	for _, w := range strings.Fields(words) {
		from, to, _ := strings.Cut(w, ">")
		g.files = append(g.files, from, to)
		g.add(arrow{from, to}, "x")
	}
	slices.Sort(g.files)
	g.files = slices.Compact(g.files)
	g.arrows = len(g.named)
	return g
}

// TestOrder: where an order without an arrow up exists it is found, and of a ring one arrow alone runs up.
func TestOrder(t *testing.T) {
	for words, up := range map[string]int{
		"c>b b>a c>a":                         0,
		"a>b b>c c>d d>e e>f f>g":             0,
		"a>b b>c c>a":                         1,
		"a>b b>a":                             1,
		"a>b b>c c>a d>a d>b d>c e>d e>a":     1,
		"a>b b>a c>d d>c e>f f>e a>c c>e":     3,
		"a>c b>c a>d b>d c>e d>e c>f d>f e>a": 1,
	} {
		t.Run(words, func(t *testing.T) {
			g := graphFrom(words)
			order := g.order()
			if got := g.back(order); len(got) != up {
				t.Errorf("order %v: %d run up, want %d: %v", order, len(got), up, got)
			}
		})
	}
}

// TestBack: what runs up is told from the ground.
func TestBack(t *testing.T) {
	g := graphFrom("a>b b>c c>a")
	got := g.back([]string{"a", "b", "c"})
	if want := []arrow{{"a", "b"}, {"b", "c"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
