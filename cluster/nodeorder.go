package cluster

import (
	"cmp"
	"strings"
)

// Nodes are listed, chosen and numbered in jobs by their names, however they came: n2 before n10, a-2-9 before
// a-10-1. Node.Order is the order in which they became known, in which snapshots have them. Slurm sorts host lists
// by another rule, see hostlist.Less.

// CompareNodes compares two names as Slurm orders its nodes: numbers in them by value, those that begin with a zero
// as the digits after a point (as in strverscmp(3)).
func CompareNodes(a, b NodeName) int {
	x := string(a)
	y := string(b)
	for x != "" && y != "" {
		m := digits(x)
		n := digits(y)
		if m == 0 || n == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x = x[1:]
			y = y[1:]
			continue
		}
		if x[0] != '0' && y[0] != '0' && m != n {
			return cmp.Compare(m, n)
		}
		if c := strings.Compare(x[:m], y[:n]); c != 0 {
			return c
		}
		x = x[m:]
		y = y[n:]
	}
	return cmp.Compare(len(x), len(y))
}

// digits is how many a text begins with.
func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
