package slurm

import (
	"cmp"
	"slices"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
)

// find looks up an association.
func (b *mgrBooks) find(account, user, partition string) *cluster.Association {
	for _, a := range b.Assocs {
		if a.Account == account && a.User == user && a.Partition == partition {
			return a
		}
	}
	return nil
}

func (b *mgrBooks) user(name string) *cluster.User {
	i := slices.IndexFunc(b.Users, func(u *cluster.User) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return b.Users[i]
}

func (b *mgrBooks) account(name string) *cluster.Account {
	i := slices.IndexFunc(b.Accounts, func(a *cluster.Account) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return b.Accounts[i]
}

// above is the account that an account is below, "" if it is not there.
func (b *mgrBooks) above(account string) string {
	a := b.find(account, "", "")
	if a == nil {
		return ""
	}
	if p := b.assoc(a.Parent); p != nil {
		return p.Account
	}
	return ""
}

// mgrBooks are the books with what sacctmgr looks up in them.
type mgrBooks struct{ api.BooksResponse }

func (b *mgrBooks) assoc(id cluster.AssocID) *cluster.Association {
	i, ok := slices.BinarySearchFunc(b.Assocs, id, func(a *cluster.Association, id cluster.AssocID) int { return cmp.Compare(a.ID, id) })
	if !ok {
		return nil
	}
	return b.Assocs[i]
}

// has reports whether a user has an association with an account.
func (b *mgrBooks) has(account, user string) bool {
	return slices.ContainsFunc(b.Assocs, func(a *cluster.Association) bool { return a.Account == account && a.User == user })
}

// allowed are the QOS that count for an association: its own, or the next ones above.
func (b *mgrBooks) allowed(a *cluster.Association) []string {
	for ; a != nil; a = b.assoc(a.Parent) {
		if len(a.QOS) > 0 {
			return a.QOS
		}
	}
	return nil
}

// effective are an association's limits: its own, and those of the accounts above that hold for each job or
// user below.
func (b *mgrBooks) effective(a *cluster.Association) cluster.Limits {
	out := a.Limits
	for p := b.assoc(a.Parent); p != nil; p = b.assoc(p.Parent) {
		for _, l := range p.Limits {
			if _, set := out.Get(l.Name, l.TRES); !set && !strings.HasPrefix(l.Name, "Grp") {
				out = out.With(l)
			}
		}
	}
	return out
}

func (b *mgrBooks) defaultQOS(a *cluster.Association) string {
	for ; a != nil; a = b.assoc(a.Parent) {
		if a.DefaultQOS != "" {
			return a.DefaultQOS
		}
	}
	return ""
}

// priority is the association's, or the next one's above that has any.
func (b *mgrBooks) priority(a *cluster.Association) int {
	for ; a != nil; a = b.assoc(a.Parent) {
		if a.Priority != 0 {
			return a.Priority
		}
	}
	return 0
}
