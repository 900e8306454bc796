package pairs

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// timesConfirmed is how often a suspect is measured again: a node with two partners, a path twice.
const timesConfirmed = 2

// Confirm plans rounds that measure suspects again: nodes with partners that are not suspect and that they have not
// met, if there are such, and paths as they are. A pair is to be measured in both directions. With very many suspects,
// the last ones are left out.
func (t *Test) Confirm(suspects []Way) [][]Pair {
	c := confirming{
		nodes: t.Nodes,
		bad:   map[int]bool{},
		met:   map[Pair]int{},
	}
	maps.Copy(c.bad, t.Away)
	for range bits.Len(uint(t.Nodes)) + timesConfirmed {
		c.busy = append(c.busy, map[int]bool{})
	}
	c.rounds = make([][]Pair, len(c.busy))
	for _, w := range suspects {
		if node, ok := w.node(); ok {
			c.bad[node] = true
		}
	}
	for _, s := range t.Samples {
		c.met[ordered(s.From, s.To)]++
	}
	done := map[Pair]bool{}
	for _, p := range merge(suspects) {
		pair := ordered(p.From, p.To)
		if done[pair] {
			continue // another rail, or the other direction
		}
		done[pair] = true
		for range timesConfirmed {
			c.add(p)
		}
	}
	return slices.DeleteFunc(c.rounds, func(r []Pair) bool { return len(r) == 0 })
}

// confirming is rounds that are being planned.
type confirming struct {
	nodes  int
	bad    map[int]bool
	met    map[Pair]int
	busy   []map[int]bool // by round
	rounds [][]Pair
}

// add puts a suspect into the first round in which it can be measured.
func (c *confirming) add(p Part) {
	for r, busy := range c.busy {
		if busy[p.From] || busy[p.To] {
			continue
		}
		to := p.To
		if p.IsNode() {
			to = c.partner(p.From, busy)
		}
		if to == Any {
			continue // all good nodes are busy
		}
		pair := ordered(p.From, to)
		busy[p.From] = true
		busy[to] = true
		c.met[pair]++
		c.rounds[r] = append(c.rounds[r], pair)
		return
	}
}

// partner finds a good node that is free, the one that the suspect has met least; Any: none is free.
func (c *confirming) partner(node int, busy map[int]bool) int {
	var free []int
	for i := range c.nodes {
		taken := i == node || busy[i] || c.bad[i]
		if !taken {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return Any
	}
	return slices.MinFunc(free, func(a, b int) int {
		return cmp.Compare(c.met[ordered(node, a)], c.met[ordered(node, b)])
	})
}

func ordered(a, b int) Pair { return Pair{min(a, b), max(a, b)} }

// Verdict is what a test found.
type Verdict struct {
	Slow []Part // confirmed
	// Once were slow, but not when they were measured again.
	Once []Part
	// Unsure were suspect, and could not be measured again.
	Unsure []Part
	Rails  []int // the rails that are slower than the others as a whole
}

// Judge sorts suspects by what measuring them again has shown, and compares the rails if they are alike.
func (t *Test) Judge(suspects []Way, alike bool) (v Verdict) {
	var slow, once, unsure []Way
	isSlow := t.slow()
	for _, w := range suspects {
		again := Select(t.Confirmed, w.Has)
		switch bad := Select(again, isSlow); len(again) {
		case 0:
			unsure = append(unsure, w)
		case len(bad):
			slow = append(slow, w)
		default:
			once = append(once, w)
		}
	}
	v = Verdict{
		Slow:   merge(slow),
		Once:   merge(once),
		Unsure: merge(unsure),
	}
	if alike {
		v.Rails = t.slowRails()
	}
	return v
}

// slowRails lists the rails whose median is below Floor of that of the middle rail, or of the faster one of two.
func (t *Test) slowRails() (out []int) {
	medians := make([]float64, t.Rails)
	for r := range medians {
		medians[r], _ = t.Base(r)
	}
	typical := slices.Sorted(slices.Values(medians))[t.Rails/2]
	for r, m := range medians {
		if m < Floor*typical {
			out = append(out, r)
		}
	}
	return out
}
