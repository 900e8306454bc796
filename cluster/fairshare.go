package cluster

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// Standing is where an association stands among its siblings and, for a user's, in the whole tree.
type Standing struct {
	NormShares float64 // its shares of those of the level
	NormUsage  float64 // its usage of the whole cluster's
	Usage      float64 // its usage of the level's (Fair Tree), or its effective usage (classic)
	LevelFS    float64 // NormShares/Usage; infinite without usage
	FairShare  float64 // of users only
}

// shareBranch is an association at work in the tree.
type shareBranch struct {
	*Association
	stand    *Standing
	children []*shareBranch
}

// FairShares ranks all associations: by Fair Tree, or as before it (classic, with the dampening factor).
func FairShares(all iter.Seq[*Association], classic bool, damp int) map[AssocID]*Standing {
	out := map[AssocID]*Standing{}
	at := map[AssocID]*shareBranch{}
	var list []*shareBranch
	for a := range all {
		b := &shareBranch{Association: a, stand: &Standing{}}
		at[a.ID] = b
		out[a.ID] = b.stand
		list = append(list, b)
	}
	var root *shareBranch
	users := 0
	for _, b := range list {
		if p := at[b.Parent]; p != nil {
			p.children = append(p.children, b)
		} else if b.User == "" {
			root = b
		}
		if b.User != "" {
			users++
		}
	}
	if root == nil {
		return out
	}
	for _, b := range list {
		b.stand.NormUsage = ratio(b.Spent.Raw, root.Spent.Raw)
	}
	root.stand.Usage = ratio(root.Spent.Raw, root.Spent.Raw)
	if classic {
		root.stand.NormShares, root.stand.Usage = 1, 1 // also while there is no usage
		root.stand.FairShare = half(1 / float64(max(damp, 1)))
		root.classic(true, max(damp, 1))
		return out
	}
	w := &ranker{rank: users, next: users, users: users}
	w.visit(root.fairTree(), false)
	return out
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// level are those who share what an account has: its users and accounts, and in place of an account with the
// parent's shares those below it. stand says where each of them stands among the level's shares, and each account
// so passed over.
func (b *shareBranch) level(stand func(c *shareBranch, shares int)) (in []*shareBranch) {
	var passed []*shareBranch
	var add func(*shareBranch)
	sum := 0
	add = func(p *shareBranch) {
		for _, c := range p.children {
			if c.User == "" && c.Shares == ShareParent {
				passed = append(passed, c)
				add(c)
				continue
			}
			sum += max(c.Shares, 0)
			in = append(in, c)
		}
	}
	add(b)
	for _, c := range slices.Concat(in, passed) {
		stand(c, sum)
	}
	return in
}

// fairTree is the level of Fair Tree: shares and usage count among siblings. An association with the parent's
// shares shows those of the parent.
func (b *shareBranch) fairTree() []*shareBranch {
	return b.level(func(c *shareBranch, shares int) {
		s := c.stand
		s.NormShares = ratio(float64(c.Shares), float64(shares))
		s.Usage = ratio(c.Spent.Raw, b.Spent.Raw)
		switch {
		case c.Shares == ShareParent:
			s.NormShares = b.stand.NormShares
			s.LevelFS = math.Inf(1)
		case c.Shares == 0:
		case s.Usage == 0:
			s.LevelFS = math.Inf(1)
		default:
			s.LevelFS = s.NormShares / s.Usage
		}
	})
}

// ranker numbers the users from the most deserving down.
type ranker struct{ rank, next, users int }

func (w *ranker) visit(level []*shareBranch, tied bool) {
	slices.SortStableFunc(level, func(x, y *shareBranch) int {
		return cmp.Or(cmp.Compare(y.stand.LevelFS, x.stand.LevelFS),
			cmp.Compare(b2i(x.User == ""), b2i(y.User == "")), cmp.Compare(x.ID, y.ID))
	})
	for i := 0; i < len(level); i++ {
		c := level[i]
		if i > 0 {
			tied = c.stand.LevelFS == level[i-1].stand.LevelFS
		}
		if c.User != "" {
			if !tied {
				w.rank = w.next
			}
			c.stand.FairShare = float64(w.rank) / float64(w.users)
			w.next--
			continue
		}
		merged := c.fairTree()
		for i+1 < len(level) && level[i+1].stand.LevelFS == c.stand.LevelFS {
			i++
			merged = append(merged, level[i].fairTree()...)
		}
		w.visit(merged, tied)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// classic is the fair share as it was before Fair Tree: a parent's effective usage counts for its children
// by their shares, and in full for those who have the parent's, or where nobody has any.
func (b *shareBranch) classic(top bool, damp int) {
	for _, c := range b.level(func(c *shareBranch, shares int) {
		part := ratio(float64(c.Shares), float64(shares))
		felt := part
		switch {
		case c.Shares == ShareParent:
			part = 1
			felt = 1
		case shares == 0:
			felt = 1
		}
		s := c.stand
		s.NormShares = float64(b.stand.NormShares * part)
		s.Usage = s.NormUsage
		if !top {
			s.Usage += float64((b.stand.Usage - s.NormUsage) * felt)
		}
		if s.NormShares > 0 {
			s.FairShare = half(s.Usage / s.NormShares / float64(damp))
		}
	}) {
		c.classic(false, damp)
	}
}

// half is 2 to the -x, the same on every machine: the whole halvings, and then a root for each bit.
func half(x float64) float64 {
	whole := math.Floor(x)
	if whole > 1074 {
		return 0
	}
	f := math.Ldexp(1, -int(whole))
	frac := x - whole
	root := 0.5
	for range 53 {
		root = math.Sqrt(root)
		frac = frac * 2
		if frac >= 1 {
			f = float64(f * root)
			frac = frac - 1
		}
	}
	return f
}

// settleShares computes the fair-share factors again.
func (t *tx) settleShares() {
	p := &t.config.Priority
	if !t.Accounting() {
		return
	}
	for id, s := range FairShares(t.Assocs(), p.NoFairTree, p.Dampening) {
		if a, _ := t.assocs.Get(id); a.FairShare != s.FairShare {
			n := *a
			n.FairShare = s.FairShare
			putValue(t, t.assocs, id, &n)
		}
	}
}

// Standings is FairShares of the books as they are.
func (t *tables) Standings() map[AssocID]*Standing {
	return FairShares(t.Assocs(), t.config.Priority.NoFairTree, t.config.Priority.Dampening)
}
