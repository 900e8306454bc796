package cluster

import (
	"slices"
	"strings"
)

// Coordinates reports whether a user is a coordinator of an account, or of one above it.
func (t *tables) Coordinates(user, account string) bool {
	place, ok := t.AssocOf(account, "", "")
	if !ok || user == "" {
		return false
	}
	for above := range t.Line(place.ID) {
		if a, ok := t.accounts.Get(above.Account); ok && slices.Contains(a.Coordinators, user) {
			return true
		}
	}
	return false
}

func (t *tables) coordinatesAny(user string) bool {
	for a := range t.Accounts() {
		if user != "" && slices.Contains(a.Coordinators, user) {
			return true
		}
	}
	return false
}

// mayCoordinate refuses a change that a coordinator may not make. One may make and change accounts below one's own,
// users and limits in them, and other coordinators; not QOS, administrators, users' default accounts elsewhere, or
// where an account hangs.
func (t *tx) mayCoordinate(c *Change) error {
	me := t.by.User
	refuse := func(what string) error {
		return Errorf(Denied, ErrAccess, "user %s coordinates no account that %s belongs to", me, what)
	}
	switch {
	case c.QOS != nil:
		return Errorf(Denied, ErrAccess, "only operators may change QOS")
	case c.Assoc != nil:
		a := c.Assoc
		if t.Coordinates(me, a.Account) {
			old, had := t.AssocOf(a.Account, "", "")
			if a.User == "" && !c.Delete && (!had || a.Parent != old.Parent) {
				return refuse("the place of account " + a.Account)
			}
			return nil
		}
		above, ok := t.assocs.Get(a.Parent)
		if _, there := t.byOwner.Get(ownerOf(a.Account, "", "")); a.User == "" && !there && ok && t.Coordinates(me, above.Account) {
			return nil
		}
		return refuse("account " + a.Account)
	case c.Account != nil:
		if _, there := t.accounts.Get(c.Account.Name); there && !t.Coordinates(me, c.Account.Name) {
			return refuse("account " + c.Account.Name)
		}
	case c.User != nil:
		old, there := t.users.Get(c.User.Name)
		switch {
		case there && c.Delete && old.AdminLevel != "", c.User.AdminLevel != "" && (!there || old.AdminLevel != c.User.AdminLevel):
			return Errorf(Denied, ErrAccess, "only operators may make or delete administrators")
		case c.Delete:
			for a := range t.Assocs() {
				if a.User == c.User.Name && !t.Coordinates(me, a.Account) {
					return refuse("user " + a.User + " of account " + a.Account)
				}
			}
		case there && old.DefaultAccount != c.User.DefaultAccount && !(t.Coordinates(me, old.DefaultAccount) && t.Coordinates(me, c.User.DefaultAccount)):
			return refuse("the default account of user " + c.User.Name)
		}
	}
	return nil
}

// sameLevel refuses a change of who is an operator or administrator.
func (t *tables) sameLevel(c *Change) error {
	if c.User == nil {
		return nil
	}
	level := func(u *User) string { return strings.TrimSuffix(u.AdminLevel, "None") }
	before, after := "", level(c.User)
	if old, there := t.users.Get(c.User.Name); there {
		before = level(old)
	}
	if c.Delete {
		after = ""
	}
	if before != after {
		return Errorf(Denied, ErrAccess, "only administrators may make or delete operators and administrators")
	}
	return nil
}
