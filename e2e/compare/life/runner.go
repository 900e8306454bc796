package main

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// side is one implementation: an environment in which the commands are found.
type side struct {
	dir string
	env []string
}

// runner runs cells, as many at once as there are slots; those that need a node of their own take it in turn.
type runner struct {
	sides   []*side
	probe   string
	results [][2]life
	nodes   chan string
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "life:", err)
		os.Exit(2)
	}
}

func (r *runner) run(cells []cell, slots int) {
	r.nodes = make(chan string, 4)
	for _, n := range []string{"005", "006", "007", "008"} {
		r.nodes <- "gpu-node-" + n
	}
	slot := make(chan struct{}, slots)
	var wait sync.WaitGroup
	for i, c := range longestFirst(cells) {
		slot <- struct{}{}
		wait.Go(func() {
			defer func() { <-slot }()
			node := ""
			if ends[c.end].own {
				node = <-r.nodes
				defer func() { r.nodes <- node }()
			}
			at := slices.Index(cells, c)
			var both sync.WaitGroup
			for k, s := range r.sides {
				both.Go(func() {
					if r.results[at][k] = r.live(s, c, at, node); r.results[at][k].trouble != "" {
						r.results[at][k] = r.live(s, c, at, node)
					}
				})
			}
			both.Wait()
			fmt.Fprintf(os.Stderr, "\r%d of %d   ", i+1, len(cells))
		})
	}
	wait.Wait()
	fmt.Fprintln(os.Stderr)
}

// longestFirst puts the cells that wait for minutes before the others.
func longestFirst(cells []cell) []cell {
	out := slices.Clone(cells)
	long := func(c cell) int {
		switch {
		case ends[c.end].first:
			return 0
		case ends[c.end].own:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b cell) int { return long(a) - long(b) })
	return out
}
