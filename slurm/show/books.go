package show

import (
	"cmp"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// Find looks up an association.
func (b *Books) Find(account, user, partition string) *cluster.Association {
	for _, a := range b.Assocs {
		if a.Account == account && a.User == user && a.Partition == partition {
			return a
		}
	}
	return nil
}

// User is the record of a user, nil if there is none.
func (b *Books) User(name string) *cluster.User {
	i := slices.IndexFunc(b.Users, func(u *cluster.User) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return b.Users[i]
}

// Account is the record of an account, nil if there is none.
func (b *Books) Account(name string) *cluster.Account {
	i := slices.IndexFunc(b.Accounts, func(a *cluster.Account) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return b.Accounts[i]
}

// Above is the account that an account is below, "" if it is not there.
func (b *Books) Above(account string) string {
	a := b.Find(account, "", "")
	if a == nil {
		return ""
	}
	if p := b.Assoc(a.Parent); p != nil {
		return p.Account
	}
	return ""
}

// Books are the books with what sacctmgr looks up in them.
type Books struct{ api.BooksResponse }

// Assoc is the association of a number, nil if there is none.
func (b *Books) Assoc(id cluster.AssocID) *cluster.Association {
	i, ok := slices.BinarySearchFunc(b.Assocs, id,
		func(a *cluster.Association, id cluster.AssocID) int { return cmp.Compare(a.ID, id) })
	if !ok {
		return nil
	}
	return b.Assocs[i]
}

// Has reports whether a user has an association with an account.
func (b *Books) Has(account, user string) bool {
	return slices.ContainsFunc(b.Assocs,
		func(a *cluster.Association) bool { return a.Account == account && a.User == user })
}

// Allowed are the QOS that count for an association: its own, or the next ones above.
func (b *Books) Allowed(a *cluster.Association) []string {
	for ; a != nil; a = b.Assoc(a.Parent) {
		if len(a.QOS) > 0 {
			return a.QOS
		}
	}
	return nil
}

// Effective are an association's limits: its own, and those of the accounts above that hold for each job or
// user below.
func (b *Books) Effective(a *cluster.Association) cluster.Limits {
	out := a.Limits
	for p := b.Assoc(a.Parent); p != nil; p = b.Assoc(p.Parent) {
		for _, l := range p.Limits {
			if _, set := out.Get(l.Name, l.TRES); !set && !strings.HasPrefix(l.Name, "Grp") {
				out = out.With(l)
			}
		}
	}
	return out
}

// DefaultQOS is the association's, or that of the next one above that has one.
func (b *Books) DefaultQOS(a *cluster.Association) string {
	for ; a != nil; a = b.Assoc(a.Parent) {
		if a.DefaultQOS != "" {
			return a.DefaultQOS
		}
	}
	return ""
}

// PriorityOf is the association's, or the next one's above that has any.
func (b *Books) PriorityOf(a *cluster.Association) int {
	for ; a != nil; a = b.Assoc(a.Parent) {
		if a.Priority != 0 {
			return a.Priority
		}
	}
	return 0
}

// TreeRow is an association at its depth in the tree.
type TreeRow struct {
	*cluster.Association
	Depth int
}

// TreeOf orders associations as a tree: below each account its users, then the accounts below it, by name.
func TreeOf(all []*cluster.Association) (rows []TreeRow) {
	kids := map[cluster.AssocID][]*cluster.Association{}
	for _, a := range all {
		kids[a.Parent] = append(kids[a.Parent], a)
	}
	var walk func(cluster.AssocID, int)
	walk = func(id cluster.AssocID, depth int) {
		list := kids[id]
		slices.SortFunc(list, func(a, b *cluster.Association) int {
			if c := front.BoolInt(a.User == "") - front.BoolInt(b.User == ""); c != 0 {
				return c
			}
			return cmp.Or(strings.Compare(a.Account, b.Account), strings.Compare(a.User, b.User),
				strings.Compare(a.Partition, b.Partition))
		})
		for _, a := range list {
			rows = append(rows, TreeRow{a, depth})
			walk(a.ID, depth+1)
		}
	}
	walk(0, 0)
	return rows
}
