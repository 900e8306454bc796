package cluster

import (
	"math"
	"slices"
	"strings"
)

// Usage that another system counted, or that an operator sets.

// Bounds of such usage.
const (
	maxSetUsage = 1e18 // seconds of all that is billed
	maxSetTRES  = 256  // resources
)

// over returns the usage with what it does not name as it was.
func (s Spent) over(old Spent) (Spent, error) {
	possible := func(n float64) bool { return n >= 0 && n <= maxSetUsage && !math.IsNaN(n) }
	out := Spent{
		Raw:  s.Raw,
		Wall: s.Wall,
		TRES: slices.Clone(s.TRES),
	}
	slices.SortFunc(out.TRES, func(a, b Amount) int { return strings.Compare(a.TRES, b.TRES) })
	ok := possible(s.Raw) && possible(s.Wall) && len(s.TRES) <= maxSetTRES
	for i, a := range out.TRES {
		again := i > 0 && out.TRES[i-1].TRES == a.TRES
		ok = ok && possible(a.N) && named("a resource", a.TRES) == nil && !again
	}
	if !ok {
		return old, Errorf(Invalid, "", "usage: %v is not possible", s)
	}
	if s.TRES == nil {
		out.Wall = old.Wall
		out.TRES = old.TRES
	}
	return out, nil
}

// setUsage gives an association the usage that a change names, and those above it as much more or less.
func (c *Change) setUsage(t *tx, a *Association) error {
	if c.Usage == nil {
		return nil
	}
	now, err := c.Usage.over(a.Spent)
	if err != nil {
		return err
	}
	if below := usageBelow(t.tables, a); now.Raw < math.Floor(below) {
		return Errorf(Conflict, "", "usage of account %s: the associations below it have used %.0f: "+
			"it cannot have less than that", a.Account, below)
	}
	t.spend(a.Parent, a.Spent.negative())
	t.spend(a.Parent, now)
	a.Spent = now
	return nil
}

// usageBelow returns what the associations directly below one have used.
func usageBelow(t *tables, a *Association) (sum float64) {
	if a.User != "" {
		return 0
	}
	for below := range t.Assocs() {
		if below.Parent == a.ID {
			sum += below.Spent.Raw
		}
	}
	return sum
}
