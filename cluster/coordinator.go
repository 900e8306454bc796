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
	switch {
	case c.QOS != nil:
		return Errorf(Denied, ErrAccess, "only operators may change QOS")
	case c.Usage != nil:
		return Errorf(Denied, ErrAccess, "only operators may set usage to more than zero")
	case c.Assoc != nil:
		return mayCoordinateAssoc(t, c.Assoc, c.Delete)
	case c.Account != nil:
		_, there := t.accounts.Get(c.Account.Name)
		if there && !t.Coordinates(t.by.User, c.Account.Name) {
			return coordinatesNone(t, "account "+c.Account.Name)
		}
	case c.User != nil:
		return mayCoordinateUser(t, c.User, c.Delete)
	}
	return nil
}

func coordinatesNone(t *tx, what string) error {
	return Errorf(Denied, ErrAccess, "user %s coordinates no account that %s belongs to", t.by.User, what)
}

func mayCoordinateAssoc(t *tx, a *Association, drop bool) error {
	own, there := t.AssocOf(a.Account, "", "")
	if t.Coordinates(t.by.User, a.Account) {
		stays := there && a.Parent == own.Parent
		if a.User == "" && !drop && !stays {
			return coordinatesNone(t, "the place of account "+a.Account)
		}
		return nil
	}
	above, ok := t.assocs.Get(a.Parent)
	if a.User == "" && !there && ok && t.Coordinates(t.by.User, above.Account) {
		return nil
	}
	return coordinatesNone(t, "account "+a.Account)
}

func mayCoordinateUser(t *tx, u *User, drop bool) error {
	old, there := t.users.Get(u.Name)
	before := ""
	moves := false
	if there {
		before = old.AdminLevel
		moves = old.DefaultAccount != u.DefaultAccount
	}
	if drop && before != "" || u.AdminLevel != "" && u.AdminLevel != before {
		return Errorf(Denied, ErrAccess, "only operators may make or delete administrators")
	}
	if drop {
		return coordinatesAll(t, u.Name)
	}
	if !moves {
		return nil
	}
	if !t.Coordinates(t.by.User, old.DefaultAccount) || !t.Coordinates(t.by.User, u.DefaultAccount) {
		return coordinatesNone(t, "the default account of user "+u.Name)
	}
	return nil
}

// coordinatesAll refuses who does not coordinate all accounts of a user.
func coordinatesAll(t *tx, user string) error {
	for a := range t.Assocs() {
		if a.User == user && !t.Coordinates(t.by.User, a.Account) {
			return coordinatesNone(t, "user "+a.User+" of account "+a.Account)
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
	before := ""
	after := level(c.User)
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
