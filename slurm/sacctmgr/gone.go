package sacctmgr

import (
	"cmp"
	"slices"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// addGoneTo puts the records into the books that were deleted and are not there again, as history has them.
func (m *manager) addGone() int {
	resp, err := front.Call(m.sys, api.ListChanges, api.ChangesQuery{Time: cluster.Span{To: m.sys.Now().Unix() + 2}})
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.wrong(" Problem with query: " + text)
	}
	b := m.books
	for _, x := range slices.Backward(resp.Changes) { // of several of one name the newest
		for _, c := range x.Gone {
			addGoneTo(b, &c)
		}
	}
	slices.SortFunc(b.Accounts, func(x, y *cluster.Account) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortFunc(b.Users, func(x, y *cluster.User) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortFunc(b.QOS, func(x, y *cluster.QOS) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(b.Assocs, func(x, y *cluster.Association) int { return cmp.Compare(x.ID, y.ID) })
	for i, a := range b.Assocs { // of which the account was made again
		if b.Assoc(a.Parent) == nil && a.Parent != 0 {
			n := *a
			n.Parent = cmp.Or(b.Find(a.Account, "", ""), b.Assocs[0]).ID
			b.Assocs[i] = &n
		}
	}
	return 0
}

func addGoneTo(b *show.Books, c *cluster.Change) {
	switch {
	case c.Account != nil && !slices.ContainsFunc(b.Accounts,
		func(a *cluster.Account) bool { return a.Name == c.Account.Name }):
		b.Accounts = append(b.Accounts, c.Account)
	case c.User != nil && b.User(c.User.Name) == nil:
		b.Users = append(b.Users, c.User)
	case c.QOS != nil && !slices.ContainsFunc(b.QOS, func(q *cluster.QOS) bool { return q.Name == c.QOS.Name }):
		b.QOS = append(b.QOS, c.QOS)
	case c.Assoc != nil && b.Find(c.Assoc.Account, c.Assoc.User, c.Assoc.Partition) == nil:
		b.Assocs = append(b.Assocs, c.Assoc)
	}
}
