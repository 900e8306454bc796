package main

import "math/rand/v2"

// tries is from how many orders the search begins; more find no better ones here.
const tries = 60

// order is the best order of the files that is found, the lowest first: one in which few arrows run up. To find the
// least of all is hard (the minimum feedback arc set), so files are moved one by one to where they do best, until none
// does better elsewhere, from several orders at random, the same at each run.
func (g *graph) order() []string {
	s := newSearch(g)
	random := rand.New(rand.NewPCG(1, 2))
	var best []int
	least := -1
	for range tries {
		order := random.Perm(len(g.files))
		for s.improve(order) {
		}
		if n := s.up(order); least < 0 || n < least {
			best, least = order, n
		}
	}
	names := make([]string, len(best))
	for i, f := range best {
		names[i] = g.files[f]
	}
	return names
}

// search knows by numbers of files which name which.
type search struct{ to [][]bool }

func newSearch(g *graph) *search {
	at := map[string]int{}
	s := &search{}
	for i, f := range g.files {
		at[f] = i
		s.to = append(s.to, make([]bool, len(g.files)))
	}
	for a := range g.named {
		s.to[at[a.from]][at[a.to]] = true
	}
	return s
}

// up counts the arrows that run up.
func (s *search) up(order []int) (n int) {
	for i, from := range order {
		for _, to := range order[i+1:] {
			n += one(s.to[from][to])
		}
	}
	return n
}

// improve moves each file to where fewest arrows run up, and reports whether any was moved.
func (s *search) improve(order []int) (moved bool) {
	for i := range order {
		to := s.place(order, i)
		if to == i {
			continue
		}
		shift(order, i, to)
		moved = true
	}
	return moved
}

// place is where a file does best.
func (s *search) place(order []int, i int) (to int) {
	file, to, least := order[i], i, 0
	for step := -1; step <= 1; step += 2 {
		change := 0
		for j := i + step; j >= 0 && j < len(order); j += step {
			other := order[j]
			// Below the other one its own arrow to that runs up, and the other's does not.
			change += step * (one(s.to[other][file]) - one(s.to[file][other]))
			if change < least {
				to, least = j, change
			}
		}
	}
	return to
}

// shift takes the file at one place out and puts it in at another.
func shift(order []int, from, to int) {
	file := order[from]
	if from < to {
		copy(order[from:to], order[from+1:to+1])
	} else {
		copy(order[to+1:from+1], order[to:from])
	}
	order[to] = file
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
