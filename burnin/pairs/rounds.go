// Package pairs finds slow nodes, links and rails of a network from bandwidths between pairs of nodes. It plans which
// pairs to measure: a number of rounds that grows with the logarithm of the nodes, in each of which every node has one
// partner. It has no clock and measures nothing.
package pairs

import "math/bits"

// Pair is the indexes of two nodes.
type Pair [2]int

// fewestRounds has each node meet three partners at least, so that one slow partner does not make a node suspect.
const fewestRounds = 3

// Rounds lists pairs of n nodes for each round: max(3, log2 n) rounds, and no more than n nodes can have. No two rounds
// have a pair in common, and no two pairs of a round have a node in common. If n is odd, one node pauses in each round,
// each time another one.
func Rounds(n int) (rounds [][]Pair) {
	if n < 2 {
		return nil
	}
	even := n + n%2
	most := even - 1
	count := min(most, max(fewestRounds, bits.Len(uint(n-1))))
	for k := range count {
		rounds = append(rounds, matching(n, turn(k, count, most)))
	}
	return rounds
}

// turn spreads count turns over the range from 0 to most-1, so that partners of neighbors are far apart, too.
func turn(k, count, most int) int { return k * most / count }

// matching pairs all nodes of one turn of a round-robin tournament: i and j with i+j = turn modulo the odd number of
// nodes. The node that is left over takes the last one if their number is even.
func matching(n, turn int) (out []Pair) {
	odd := n + n%2 - 1
	for i := range odd {
		j := (turn - i + odd) % odd
		if i == j {
			j = odd
		}
		if i < j && j < n {
			out = append(out, Pair{i, j})
		}
	}
	return out
}
