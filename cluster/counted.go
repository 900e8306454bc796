package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Counted resources are the site's own generic resources (gres.conf: Name=lscratch Count=100G): each node has so many
// of them, and a job has some of each of its nodes. Which ones these are is nobody's business.

// IsCounted reports whether the resource is counted, and no GPU or part of one.
func (g *GRES) IsCounted() bool {
	return g.Name != "gpu" && g.Name != "none" && !slices.Contains(PartNames, g.Name)
}

// String writes it as --gres does: lscratch:ssd:10.
func (g *GRES) String() string {
	text := g.Name
	if g.Type != "" {
		text += ":" + g.Type
	}
	return text + ":" + g.CountText()
}

// CountText writes the count as Slurm does, whole multiples of 1024 with a unit: 100, 4G.
func (g *GRES) CountText() string {
	n := g.Count
	unit := 0
	for n != 0 && n%1024 == 0 && unit < len("KMGTP") {
		n /= 1024
		unit++
	}
	return strconv.FormatInt(n, 10) + "KMGTP"[max(unit-1, 0):unit]
}

// Declaration writes what a node has as Gres= of slurm.conf does: lscratch:ssd:no_consume:10.
func (g *GRES) Declaration() string {
	text := g.String()
	if !g.Unconsumed {
		return text
	}
	i := strings.LastIndexByte(text, ':')
	return text[:i] + ":no_consume" + text[i:]
}

// GRESNames lists gpu and the other generic resources that a configuration has.
func (c *Config) GRESNames() []string {
	names := []string{"gpu"}
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, l := range c.GRES {
		add(l.Name)
	}
	for i := range c.Declared {
		for _, g := range c.Declared[i].Inventory.Shared {
			add(g.Name)
		}
	}
	return names
}

// CountedIn lists the counted resources of a list.
func CountedIn(list []GRES) (out []GRES) {
	for i := range list {
		if list[i].IsCounted() && list[i].Count > 0 {
			out = append(out, list[i])
		}
	}
	return out
}

func compareKinds(a, b GRES) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
}

// AddCounted adds resources to a sorted list of sums, times 1 or -1. The list given is not changed.
func AddCounted(list, more []GRES, times int64) []GRES {
	if len(more) == 0 {
		return list
	}
	for _, g := range more {
		g.Count *= times
		list = addSum(list, g, compareKinds, func(g *GRES) *int64 { return &g.Count })
	}
	return list
}

// addSum adds x to the element of a sorted list that is of its kind, and drops an element that comes to zero. It does
// not change the list given, and returns nil for an empty one.
func addSum[T any](list []T, x T, compare func(a, b T) int, count func(*T) *int64) []T {
	k, found := slices.BinarySearchFunc(list, x, compare)
	list = slices.Clone(list)
	switch {
	case !found:
		list = slices.Insert(list, k, x)
	case *count(&list[k])+*count(&x) == 0:
		list = slices.Delete(list, k, k+1)
	default:
		*count(&list[k]) += *count(&x)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// MostCounted is the larger one of two sums, for each kind.
func MostCounted(a, b []GRES) []GRES {
	if len(b) == 0 {
		return a
	}
	out := slices.Clone(a)
	for _, g := range b {
		k, found := slices.BinarySearchFunc(out, g, compareKinds)
		if !found {
			out = slices.Insert(out, k, g)
			continue
		}
		out[k].Count = max(out[k].Count, g.Count)
	}
	return out
}

// CountOf is the count of a kind in a sorted list of sums.
func CountOf(list []GRES, kind GRES) int64 {
	k, found := slices.BinarySearchFunc(list, kind, compareKinds)
	if !found {
		return 0
	}
	return list[k].Count
}

// FindCounted picks what a node gives to requests beside what is given out of it, sorted; false if it has not enough.
// A request without a type takes of all types in turn. A resource that is not consumed is given without being counted.
func (inv *Inventory) FindCounted(wants, used []GRES) (out []GRES, ok bool) {
	for _, want := range wants {
		left := want.Count
		for _, has := range inv.Shared {
			if has.Name != want.Name || want.Type != "" && has.Type != want.Type {
				continue
			}
			if has.Unconsumed {
				left -= has.Count
				continue
			}
			kind := GRES{Name: has.Name, Type: has.Type}
			kind.Count = min(left, has.Count-CountOf(used, kind)-CountOf(out, kind))
			if kind.Count > 0 {
				out = AddCounted(out, []GRES{kind}, 1)
				left -= kind.Count
			}
		}
		if left > 0 {
			return nil, false
		}
	}
	return out, true
}

// RestCounted is all that a node has left of what is counted.
func (inv *Inventory) RestCounted(used []GRES) (out []GRES) {
	for _, has := range CountedIn(inv.Shared) {
		has.Count -= CountOf(used, has)
		if has.Count > 0 && !has.Unconsumed {
			out = AddCounted(out, []GRES{has}, 1)
		}
	}
	return out
}

// countedFor picks what a step gets of what a share has of the site's own resources; false if it has not enough.
func (sh *Share) countedFor(s *StepSpec, inv *Inventory) ([]GRES, bool) {
	wants := CountedIn(s.PerNode)
	if len(wants) == 0 {
		return nil, true
	}
	has := Inventory{Shared: slices.Clone(sh.Counted)}
	if inv != nil {
		has.Shared = append(has.Shared, slices.DeleteFunc(slices.Clone(inv.Shared),
			func(g GRES) bool { return !g.Unconsumed })...)
	}
	return has.FindCounted(wants, nil)
}

func joinCounted(list []GRES) string {
	var words []string
	for i := range list {
		words = append(words, list[i].String())
	}
	return strings.Join(words, ",")
}

// hasCounted reports whether the node has what a share has of it beside what is given out.
func (inv *Inventory) hasCounted(share, used []GRES) bool {
	return !slices.ContainsFunc(share, func(g GRES) bool {
		k := slices.IndexFunc(inv.Shared, func(o GRES) bool { return o.Name == g.Name && o.Type == g.Type })
		return k < 0 || g.Count <= 0 || CountOf(used, g)+g.Count > inv.Shared[k].Count
	})
}

// admitCounted refuses counted resources that no node has, and requests of them other than by node.
func admitCounted(s *Snapshot, spec *JobSpec) error {
	for _, g := range CountedIn(slices.Concat(spec.PerNode, spec.PerJob, spec.PerTask, spec.PerSocket)) {
		if !s.anyHasCounted(g) {
			return Errorf(Invalid, ErrGRES, "no node has resources called %s", g.Name)
		}
	}
	if other := CountedIn(slices.Concat(spec.PerJob, spec.PerTask, spec.PerSocket)); len(other) > 0 {
		return Errorf(Invalid, ErrGRES, "%s is asked for by node: --gres=%s", other[0].Name, &other[0])
	}
	return nil
}

// anyHasCounted reports whether a node has a counted resource.
func (s *Snapshot) anyHasCounted(g GRES) bool {
	for n := range s.Nodes() {
		if slices.ContainsFunc(n.Inventory.Shared, func(o GRES) bool {
			return o.Name == g.Name && (g.Type == "" || o.Type == g.Type)
		}) {
			return true
		}
	}
	return false
}
