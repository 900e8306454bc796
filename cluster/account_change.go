package cluster

import (
	"slices"
)

// ChangeAccounts changes accounts, users, associations and QOS, all or nothing.
type ChangeAccounts struct {
	Changes []Change `json:"changes"`
}

func (*ChangeAccounts) kind() string { return "account" }

// maxChanges bounds one command.
const maxChanges = 1 << 16

func (c *ChangeAccounts) apply(t *tx) (any, error) {
	switch {
	case len(c.Changes) == 0 || len(c.Changes) > maxChanges:
		return nil, Errorf(Invalid, ErrNoChange, "%d changes at once: between 1 and %d can be made",
			len(c.Changes), maxChanges)
	}
	free := t.keepsBooks(t.by)
	if !free && !t.coordinatesAny(t.by.User) && !c.ownDefaults(t) {
		return nil, Errorf(Denied, ErrAccess, "only operators and coordinators may change accounts")
	}
	t.openBooks()
	for i := range c.Changes {
		change, err := t.under(c.Changes[i])
		switch {
		case err == nil && !free && !change.ownDefault(t):
			err = t.mayCoordinate(&change)
		case err == nil && !t.by.Operator() && !t.isAdmin(t.by.User):
			err = t.sameLevel(&change)
		}
		if err != nil {
			return nil, err
		}
		x, err := change.transaction(t)
		if err == nil {
			t.gone = nil
			err = change.apply(t)
		}
		if err != nil {
			return nil, err
		}
		x.Gone = t.gone
		t.events = append(t.events, Event{Change: x})
	}
	t.changes.add(StateChange{Book: true})
	t.freshScale()
	t.settleShares()
	return nil, nil
}

// ownDefaults reports whether users change nothing but their own defaults.
func (c *ChangeAccounts) ownDefaults(t *tx) bool {
	return !slices.ContainsFunc(c.Changes, func(one Change) bool { return !one.ownDefault(t) })
}

// ownDefault reports whether a user chooses another default among the accounts and keys that the user has.
func (c *Change) ownDefault(t *tx) bool {
	if c.User == nil || c.Delete {
		return false
	}
	name := c.User.Name
	if t.by.User == "" || name != t.by.User {
		return false
	}
	old, there := t.users.Get(name)
	if !there || !old.sameBut(c.User) {
		return false
	}
	if _, in := t.AssocOf(c.User.DefaultAccount, name, ""); !in {
		return false
	}
	key := c.User.DefaultWCKey
	return key == old.DefaultWCKey || c.User.HasWCKey(key)
}

// sameBut reports whether two records of a user differ in the defaults alone.
func (u *User) sameBut(o *User) bool {
	key := func(a, b WCKey) bool { return a.Name == b.Name }
	return u.AdminLevel == o.AdminLevel && slices.EqualFunc(u.WCKeys, o.WCKeys, key)
}

// under finds the parent of an association that names it.
func (t *tx) under(c Change) (Change, error) {
	if c.Assoc == nil || c.Under == "" {
		return c, nil
	}
	above, ok := t.AssocOf(c.Under, "", "")
	if !ok {
		return c, Errorf(NotFound, ErrAccount, "there is no account %q", c.Under)
	}
	a := *c.Assoc
	a.Parent = above.ID
	c.Assoc = &a
	return c, nil
}

// isAdmin reports whether the books name a user as an administrator.
func (t *tables) isAdmin(name string) bool {
	u, ok := t.users.Get(name)
	return ok && name != "" && u.AdminLevel == "Administrator"
}

// keepsBooks reports whether the identity may change the books and history, all but the levels of users.
func (t *tables) keepsBooks(id Identity) bool {
	return id.Operator() || id.Deputy || t.isAdmin(id.User)
}

// openBooks makes what is always there: account and user root and the QOS normal.
func (t *tx) openBooks() {
	if t.Accounting() {
		return
	}
	account, user, qos, assocs := FirstBooks()
	putValue(t, t.accounts, account.Name, account)
	putValue(t, t.users, user.Name, user)
	putValue(t, t.qos, qos.Name, qos)
	for _, a := range assocs {
		t.nextAssoc()
		t.putAssoc(a)
	}
}

// FirstBooks is what the first change of the books finds there.
func FirstBooks() (*Account, *User, *QOS, []*Association) {
	return &Account{Name: RootName, Description: "default root account", Organization: RootName},
		&User{Name: RootName, DefaultAccount: RootName, AdminLevel: "Administrator"},
		&QOS{
			ID:          1,
			Name:        NormalQOS,
			Description: "Normal QOS default",
			UsageFactor: 1,
		},
		[]*Association{
			{
				ID:      1,
				Account: RootName,
				Shares:  1,
				QOS:     []string{NormalQOS},
			},
			{
				ID:      2,
				Parent:  1,
				Account: RootName,
				User:    RootName,
				Shares:  1,
			},
		}
}

func (t *tx) nextAssoc() AssocID {
	keepOld(t, &t.NextAssoc)
	t.NextAssoc++
	return t.NextAssoc
}

func (t *tx) putAssoc(a *Association) {
	id := a.ID
	putValue(t, t.assocs, id, a)
	putValue(t, t.byOwner, ownerOf(a.Account, a.User, a.Partition), &id)
}

func (t *tx) deleteAssoc(a *Association) {
	dropValue(t, t.assocs, a.ID)
	dropValue(t, t.byOwner, ownerOf(a.Account, a.User, a.Partition))
}

func (c *Change) apply(t *tx) error {
	switch {
	case c.Account != nil:
		return c.account(t)
	case c.User != nil:
		return c.user(t)
	case c.Assoc != nil:
		return c.assoc(t)
	case c.QOS != nil:
		return c.changeQOS(t)
	}
	return Errorf(Invalid, ErrNoChange, "a change names no account, user, association or QOS")
}

func (c *Change) account(t *tx) error {
	name := c.Account.Name
	if err := named("an account", name); err != nil || !c.Delete {
		putValue(t, t.accounts, name, c.Account)
		return err
	}
	if name == RootName {
		return Errorf(Denied, ErrAccess, "account root stays")
	}
	if err := t.removeAssocs(func(a *Association) bool { return a.Account == name }); err != nil {
		return err
	}
	if old, had := t.accounts.Get(name); had {
		t.gone = append(t.gone, Change{Account: old})
	}
	dropValue(t, t.accounts, name)
	return nil
}

func (c *Change) user(t *tx) error {
	name := c.User.Name
	if err := named("a user", name); err != nil {
		return err
	}
	if !c.Delete {
		u := *c.User
		err := t.numberWCKeys(&u)
		putValue(t, t.users, name, &u)
		return err
	}
	if err := t.removeAssocs(func(a *Association) bool { return a.User == name }); err != nil {
		return err
	}
	if old, had := t.users.Get(name); had {
		t.gone = append(t.gone, Change{User: old})
	}
	dropValue(t, t.users, name)
	return nil
}

func (c *Change) changeQOS(t *tx) error {
	q := *c.QOS
	if err := named("a QOS", q.Name); err != nil {
		return err
	}
	old, had := t.qos.Get(q.Name)
	if c.Delete {
		if had {
			t.gone = append(t.gone, Change{QOS: old})
		}
		dropValue(t, t.qos, q.Name)
		return nil
	}
	if q.budget() && !slices.Contains(Periods(), q.UsageReset) {
		return Errorf(Invalid, ErrQOS,
			"QOS %s: %q is no period of usage: it is one of %v, or nothing for the cluster's", q.Name,
			q.UsageReset, Periods())
	}
	for _, p := range q.Preempt {
		if _, ok := t.qos.Get(p); !ok && p != q.Name {
			return Errorf(NotFound, ErrQOS, "QOS %s may not preempt %s: there is no such QOS", q.Name, p)
		}
	}
	if had {
		q.ID = old.ID
		q.Spent = old.Spent
	} else {
		q.ID = 1
		q.Spent = Spent{}
		for o := range t.QOSes() {
			q.ID = max(q.ID, o.ID+1)
		}
	}
	if c.Reset {
		q.Spent = Spent{}
	}
	var err error
	if c.Usage != nil {
		q.Spent, err = c.Usage.over(q.Spent)
	}
	putValue(t, t.qos, q.Name, &q)
	return err
}

// assoc puts an association. Of a new one Parent is its account's, or for an account root's unless given.
func (c *Change) assoc(t *tx) error {
	a := *c.Assoc
	id, had := t.byOwner.Get(ownerOf(a.Account, a.User, a.Partition))
	if c.Delete {
		if !had || a.Account == RootName && a.User == "" {
			return Errorf(NotFound, ErrAccount,
				"there is no association of account %q, user %q that could go", a.Account, a.User)
		}
		return t.removeAssocs(func(o *Association) bool { return o.ID == *id })
	}
	if err := c.checkAssoc(t, &a); err != nil {
		return err
	}
	if had {
		old, _ := t.assocs.Get(*id)
		a.ID = old.ID
		a.Spent = old.Spent
		a.FairShare = old.FairShare
		if a.Parent != old.Parent {
			t.moveAssoc(old, &a)
		}
		if c.Reset {
			t.spend(a.Parent, a.Spent.negative())
			t.forgive(a.ID)
			a.Spent = Spent{}
		}
	} else {
		a.ID = t.nextAssoc()
		a.Spent = Spent{}
		a.FairShare = 0
	}
	if err := c.setUsage(t, &a); err != nil {
		return err
	}
	t.putAssoc(&a)
	return nil
}

// forgive sets the usage of all associations below one to zero.
func (t *tx) forgive(id AssocID) {
	for _, below := range slices.Collect(t.Assocs()) {
		for above := range t.Line(below.Parent) {
			if above.ID == id {
				n := *below
				n.Spent = Spent{}
				putValue(t, t.assocs, n.ID, &n)
				break
			}
		}
	}
}

func (c *Change) checkAssoc(t *tx, a *Association) error {
	if _, ok := t.accounts.Get(a.Account); !ok {
		return Errorf(NotFound, ErrAccount, "there is no account %q", a.Account)
	}
	if err := findParent(t, a); err != nil {
		return err
	}
	root := a.Account == RootName && a.User == ""
	if above, ok := t.assocs.Get(a.Parent); !root && (!ok || above.User != "") {
		return Errorf(NotFound, ErrAccount, "there is no account with association %d", a.Parent)
	}
	for _, q := range append(slices.Clone(a.QOS), a.DefaultQOS) {
		if _, ok := t.qos.Get(q); !ok && q != "" {
			return Errorf(NotFound, ErrQOS, "there is no QOS %q", q)
		}
	}
	if a.Shares < ShareParent {
		return Errorf(Invalid, ErrAccount, "%d is not a number of shares", a.Shares)
	}
	return nil
}

// findParent finds what an association is below: a user's is below the account's, and an account that names none is
// below root.
func findParent(t *tx, a *Association) error {
	if a.User != "" {
		if _, ok := t.users.Get(a.User); !ok {
			return Errorf(NotFound, ErrUser, "there is no user %q", a.User)
		}
		above, ok := t.AssocOf(a.Account, "", "")
		if !ok {
			return Errorf(NotFound, ErrAccount, "account %q has no association", a.Account)
		}
		a.Parent = above.ID
		return nil
	}
	if a.Account == RootName {
		return nil
	}
	if a.Parent == 0 {
		a.Parent = 1
	}
	for above := range t.Line(a.Parent) {
		if above.Account == a.Account {
			return Errorf(Invalid, ErrAccount, "account %s cannot be below itself", a.Account)
		}
	}
	return nil
}

// moveAssoc hangs an account below another one, with what it has spent.
func (t *tx) moveAssoc(old, a *Association) {
	t.spend(old.Parent, old.Spent.negative())
	t.putAssoc(a)
	t.spend(a.Parent, a.Spent)
	t.retally()
}

// removeAssocs takes away associations and what is below them, unless jobs have them.
func (t *tx) removeAssocs(which func(*Association) bool) error {
	var gone []*Association
	for a := range t.Assocs() {
		for above := range t.Line(a.ID) {
			if which(above) {
				gone = append(gone, a)
				break
			}
		}
	}
	has := func(j *Job) bool {
		return j.Assoc != 0 && j.Phase != Ended && slices.ContainsFunc(gone,
			func(a *Association) bool { return a.ID == j.Assoc })
	}
	for j := range t.Jobs() {
		if has(j) {
			return Errorf(Conflict, ErrJobsActive, "job %d of user %s, account %s is not over", j.ID,
				j.Spec.User, j.Spec.Account)
		}
	}
	for _, a := range gone {
		t.gone = append(t.gone, Change{Assoc: a})
		t.spend(a.Parent, t.spentAt(a.ID).negative())
		t.deleteAssoc(a)
	}
	return nil
}

func (t *tables) spentAt(id AssocID) Spent {
	a, _ := t.assocs.Get(id)
	return a.Spent
}
