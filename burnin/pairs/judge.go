package pairs

import (
	"cmp"
	"maps"
	"slices"
)

// Limits of what is slow.
const (
	// Floor is the share of the median below which a bandwidth may be slow.
	Floor = 0.7
	// deviations is how many standard deviations below the median it must be, too.
	deviations = 4
	// lowest is the share of the median below which a bandwidth is slow, however much all of them vary.
	lowest = 0.5
	// madSigma makes a standard deviation of a median absolute deviation.
	madSigma = 1.4826
	// FewestNodes can be compared with each other. With fewer, only a minimum that is given makes one slow.
	FewestNodes = 4
)

// Sample is the bandwidth from one node to another by a rail. Nodes and rails are indexes.
type Sample struct {
	From, To, Rail int
	Gbits          float64
	Err            string // why there was no transfer; Gbits is 0
}

// Test is the samples of one test, and what they are compared with.
type Test struct {
	Nodes, Rails int
	Min          float64 // Gb/s that are expected at least; 0: only the other samples count
	// Away are the nodes that do not take part, or no longer.
	Away    map[int]bool
	Samples []Sample
	// Confirmed are samples of the rounds of Confirm. They count for no median.
	Confirmed []Sample
}

// Any stands for all nodes in a Way.
const Any = -1

// Way is the transfers from a node to another one by a rail. With Any, it is what a node sends to all others, or
// receives from them.
type Way struct{ From, To, Rail int }

// Has reports whether a sample is one of the way.
func (w Way) Has(s Sample) bool {
	from := w.From == Any || w.From == s.From
	to := w.To == Any || w.To == s.To
	return from && to && w.Rail == s.Rail
}

// node returns the node of a way from or to Any.
func (w Way) node() (node int, ok bool) {
	return max(w.From, w.To), min(w.From, w.To) == Any
}

// Part is what is slow: a node with a rail, or the path from one node to another.
type Part struct {
	From, To int // the same if it is a node
	Rail     int
	// Sends and Receives say in which direction a node is slow.
	Sends, Receives bool
}

// IsNode reports whether the part is a node with a rail.
func (p Part) IsNode() bool { return p.From == p.To }

// Base returns the typical bandwidth of a rail, in Gb/s: the median of the nodes' medians, which a node that slows all
// of its partners does not move. It also returns the bandwidth below which a sample is slow. This is 0 if too few nodes
// are compared and no minimum is given.
func (t *Test) Base(rail int) (typical, limit float64) {
	all := Select(t.Samples, func(s Sample) bool { return s.Rail == rail })
	own := make(map[int][]float64)
	for _, s := range all {
		own[s.From] = append(own[s.From], s.Gbits)
		own[s.To] = append(own[s.To], s.Gbits)
	}
	var medians []float64
	for _, list := range own {
		medians = append(medians, Median(list))
	}
	typical = Median(medians)
	if t.Compared() < FewestNodes {
		return typical, t.Min
	}
	// Below the typical one, slow parts would add to the noise.
	above := Select(all, func(s Sample) bool { return s.Gbits >= typical })
	var noise []float64
	for _, s := range above {
		noise = append(noise, s.Gbits-typical)
	}
	limit = min(Floor*typical, typical-deviations*madSigma*Median(noise))
	return typical, max(limit, lowest*typical, t.Min)
}

// Compared returns how many nodes take part.
func (t *Test) Compared() int { return t.Nodes - len(t.Away) }

// Select lists the samples for which a condition holds.
func Select(samples []Sample, holds func(Sample) bool) []Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool { return !holds(s) })
}

// Median returns the middle of some values, and 0 of none. It changes their order.
func Median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	mid := len(all) / 2
	if len(all)%2 == 1 {
		return all[mid]
	}
	return (all[mid-1] + all[mid]) / 2
}

// slow returns a function that reports whether a sample is slow.
func (t *Test) slow() func(Sample) bool {
	limits := make([]float64, t.Rails)
	for r := range limits {
		_, limits[r] = t.Base(r)
	}
	return func(s Sample) bool {
		return s.Err != "" || s.Gbits < limits[s.Rail]
	}
}

// Suspects lists the ways that explain all slow samples: first those of nodes of which most samples are slow, the worst
// first, without the samples that a way before explains; then those of the samples that are left.
func (t *Test) Suspects() (out []Way) {
	slow := t.slow()
	left := slices.Clone(t.Samples)
	for w, ok := worst(left, slow); ok; w, ok = worst(left, slow) {
		out = append(out, w)
		left = slices.DeleteFunc(left, w.Has)
	}
	for _, s := range Select(left, slow) {
		out = append(out, Way{
			From: s.From,
			To:   s.To,
			Rail: s.Rail,
		})
	}
	return out
}

// tally is how many samples of a way there are, and how many of them are slow.
type tally struct {
	way       Way
	slow, all int
}

// suspect reports whether most samples are slow, and more than one.
func (c *tally) suspect() bool { return c.slow > 1 && 2*c.slow > c.all }

// worse orders tallies: by the share of slow samples, by their number, and by the way.
func worse(a, b *tally) int {
	return cmp.Or(
		cmp.Compare(b.slow*a.all, a.slow*b.all),
		cmp.Compare(b.slow, a.slow),
		cmp.Compare(a.way.Rail, b.way.Rail),
		cmp.Compare(a.way.From, b.way.From),
		cmp.Compare(a.way.To, b.way.To),
	)
}

// worst finds the suspect way of a node with the largest share of slow samples.
func worst(samples []Sample, slow func(Sample) bool) (found Way, ok bool) {
	counts := map[Way]*tally{}
	for _, s := range samples {
		for _, w := range [2]Way{{s.From, Any, s.Rail}, {Any, s.To, s.Rail}} {
			if counts[w] == nil {
				counts[w] = &tally{way: w}
			}
			counts[w].all++
			if slow(s) {
				counts[w].slow++
			}
		}
	}
	all := slices.Collect(maps.Values(counts))
	all = slices.DeleteFunc(all, func(c *tally) bool {
		return !c.suspect()
	})
	if len(all) == 0 {
		return Way{}, false
	}
	return slices.MinFunc(all, worse).way, true
}

// merge makes one part of both directions of a node's rail.
func merge(ways []Way) (out []Part) {
	for _, w := range ways {
		node, isNode := w.node()
		p := Part{From: w.From, To: w.To, Rail: w.Rail}
		if isNode {
			p.From, p.To = node, node
		}
		i := slices.IndexFunc(out, func(o Part) bool {
			return o.From == p.From && o.To == p.To && o.Rail == p.Rail
		})
		if i < 0 {
			i = len(out)
			out = append(out, p)
		}
		out[i].Sends = out[i].Sends || w.To == Any
		out[i].Receives = out[i].Receives || w.From == Any
	}
	return out
}
