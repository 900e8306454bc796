package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// Wish is one way in which a constraint on features can be met: every node has what All asks, and for
// each entry of Counts so many nodes have that.
type Wish struct {
	All    func(features []string) bool
	Counts []FeatureCount
}

// FeatureCount asks for a number of nodes with some features.
type FeatureCount struct {
	Nodes int
	Has   func(features []string) bool
}

const (
	// maxWishes bounds the ways in which one constraint can be met.
	maxWishes = 64
	// maxConstraint bounds the text of a constraint.
	maxConstraint = 16 << 10
	// maxFeatureDepth bounds parentheses and brackets within each other, so that no text exhausts the stack.
	maxFeatureDepth = 10_000
)

// feature is a parsed part of a constraint.
type feature struct {
	op    byte // 'f' a name, '&', '|', '[' the part in brackets
	name  string
	count int // name*count or (…)*count; 0: none
	parts []*feature
}

// ParseConstraint reads --constraint: names joined by & (also a comma) and |, parentheses, counts
// (a*2), and brackets, in which | means that all nodes meet the same alternative. The wishes are in
// order of preference; an empty text is met by every node. The names are all that it speaks of.
func ParseConstraint(text string) (wishes []Wish, names []string, err error) {
	if text == "" {
		return []Wish{{All: func([]string) bool { return true }}}, nil, nil
	}
	p := &featureParser{rest: text}
	f := p.any()
	if p.bad || p.rest != "" {
		return nil, nil, Errorf(Invalid, ErrFeature,
			"constraint %q is not understood at %q: join names by & and |, a count is written name*2, alternatives for all nodes [a|b]",
			clipped(text), clipped(p.rest))
	}
	if wishes = f.wishes(); len(wishes) > maxWishes {
		return nil, nil, Errorf(Invalid, ErrFeature, "constraint %q has %d alternatives, more than %d",
			clipped(text), len(wishes), maxWishes)
	}
	return wishes, p.names, nil
}

// clipped shortens a text for a message.
func clipped(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

type featureParser struct {
	rest  string
	names []string
	depth int
	bad   bool
}

func (p *featureParser) next(chars string) bool {
	if p.rest == "" || !strings.Contains(chars, p.rest[:1]) {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// any reads alternatives.
func (p *featureParser) any() *feature { return p.joined('|', "|", p.all) }

// all reads what is joined by & or a comma.
func (p *featureParser) all() *feature { return p.joined('&', "&,", p.one) }

func (p *featureParser) joined(op byte, signs string, part func() *feature) *feature {
	f := part()
	if p.rest == "" || !strings.Contains(signs, p.rest[:1]) {
		return f
	}
	f = &feature{op: op, parts: []*feature{f}}
	for !p.bad && p.next(signs) {
		f.parts = append(f.parts, part())
	}
	return f
}

// one reads a name, or what is in parentheses or brackets, and a count behind it.
func (p *featureParser) one() *feature {
	var f *feature
	p.depth++
	defer func() { p.depth-- }()
	switch {
	case p.depth > maxFeatureDepth:
		p.bad = true
		return &feature{op: 'f'}
	case p.next("("):
		f = p.any()
		p.bad = p.bad || !p.next(")")
		f = &feature{op: '&', parts: []*feature{f}}
	case p.next("["):
		f = &feature{op: '[', parts: []*feature{p.any()}}
		p.bad = p.bad || !p.next("]")
	default:
		n := index(p.rest, func(r rune) bool { return strings.ContainsRune("&|,*()[]", r) })
		f = &feature{op: 'f', name: p.rest[:n]}
		p.rest = p.rest[n:]
		p.names = append(p.names, f.name)
		p.bad = p.bad || n == 0
	}
	if p.next("*") {
		n := index(p.rest, func(r rune) bool { return r < '0' || r > '9' })
		f.count, _ = strconv.Atoi(p.rest[:n])
		p.rest = p.rest[n:]
		p.bad = p.bad || f.count < 1 || f.count > maxCount
	}
	return f
}

// index is where the first rune that is wanted stands, or the end.
func index(text string, wanted func(r rune) bool) int {
	if n := strings.IndexFunc(text, wanted); n >= 0 {
		return n
	}
	return len(text)
}

// has reports whether one node meets the part, counts aside.
func (f *feature) has(features []string) bool {
	switch f.op {
	case 'f':
		return slices.Contains(features, f.name)
	case '|':
		return slices.ContainsFunc(f.parts, func(p *feature) bool { return p.has(features) })
	}
	return !slices.ContainsFunc(f.parts, func(p *feature) bool { return !p.has(features) })
}

// whole reports whether the part speaks of single nodes only.
func (f *feature) whole() bool {
	return f.count == 0 && f.op != '[' && !slices.ContainsFunc(f.parts, func(p *feature) bool { return !p.whole() })
}

// wishes lists the ways to meet the part, in the order in which they are written.
func (f *feature) wishes() []Wish {
	anyNode := func([]string) bool { return true }
	switch {
	case f.whole():
		return []Wish{{All: f.has}}
	case f.count > 0:
		return []Wish{{All: anyNode, Counts: []FeatureCount{{f.count, f.has}}}}
	case f.op == '|':
		var out []Wish
		for _, p := range f.parts {
			if out = append(out, p.wishes()...); len(out) > maxWishes {
				return out
			}
		}
		return out
	case f.op == '[':
		in := f.parts[0]
		if in.op == '|' && in.whole() { // all nodes alike
			var out []Wish
			for _, p := range in.parts {
				if out = append(out, p.wishes()...); len(out) > maxWishes {
					return out
				}
			}
			return out
		}
		return in.wishes()
	}
	out := []Wish{{All: anyNode}}
	for _, p := range f.parts {
		if out = both(out, p.wishes()); len(out) > maxWishes {
			return out
		}
	}
	return out
}

// both lists the ways to meet one of each, until these are too many.
func both(left, right []Wish) (out []Wish) {
	for _, a := range left {
		for _, b := range right {
			if len(out) > maxWishes {
				return out
			}
			out = append(out, Wish{
				All:    func(have []string) bool { return a.All(have) && b.All(have) },
				Counts: slices.Concat(a.Counts, b.Counts),
			})
		}
	}
	return out
}
