package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dev.muster/cluster"
)

// Entry is a record of accounts, users, associations or QOS of a source, as muster keeps it, and the row that it is
// made of.
type Entry struct {
	place
	cluster.Change
}

// Label names the record as an administrator would.
func (e *Entry) Label() string {
	switch c := &e.Change; {
	case c.Account != nil:
		return "account " + c.Account.Name
	case c.User != nil:
		return "user " + c.User.Name
	case c.QOS != nil:
		return "QOS " + c.QOS.Name
	}
	return assocLabel(e.Assoc)
}

func assocLabel(a *cluster.Association) string {
	text := "association of account " + a.Account
	if a.User != "" {
		text += ", user " + a.User
	}
	if a.Partition != "" {
		text += ", partition " + a.Partition
	}
	return text
}

// entries makes the records of the chosen cluster: QOS first, then accounts, users, and associations from the root
// down. The rows, or parts of rows, that muster cannot keep are returned with the reasons.
func (s *Source) entries() ([]*Entry, []Refused) {
	b := &builder{
		Source:   s,
		live:     map[string]string{},
		refused:  slices.Clone(s.accounting.refused),
		accounts: map[string]bool{},
		users:    map[string]*cluster.User{},
		allowed:  map[string][]string{},
	}
	for _, q := range s.accounting.qos {
		b.live[q.id] = q.Name
	}
	for _, q := range s.accounting.qos {
		b.addQOS(q)
	}
	b.addAccounts()
	b.addUsers()
	b.addAssocs()
	return b.out, b.refused
}

// builder makes records of rows.
type builder struct {
	*Source
	live     map[string]string // names of QOS that are not deleted, by number
	out      []*Entry
	refused  []Refused
	accounts map[string]bool
	users    map[string]*cluster.User
	allowed  map[string][]string // QOS that an account's association allows
}

func (b *builder) add(p place, c cluster.Change) *Entry {
	e := &Entry{p, c}
	b.out = append(b.out, e)
	return e
}

func (b *builder) refuse(p place, name, format string, args ...any) {
	b.refused = append(b.refused, Refused{
		Table: p.table,
		Row:   p.row,
		Name:  name,
		Why:   fmt.Sprintf(format, args...),
	})
}

// tresKinds are the kinds of resources that have names of their own.
var tresKinds = []string{"gres", "license", "bb", "fs", "ic"}

// withTRES adds limits on resources to the limits of a record.
func (b *builder) withTRES(l cluster.Limits, list []limitTexts, p place, label string) cluster.Limits {
	for _, t := range list {
		for item := range strings.SplitSeq(strings.Trim(t.text, ","), ",") {
			id, count, _ := strings.Cut(item, "=")
			name := b.tres[id]
			kind, _, named := strings.Cut(name, "/")
			n, err := limitOfTRES(count)
			switch {
			case t.name == "MaxTRESRunMins":
				b.refuse(p, label, "muster has no limit MaxTRESRunMins of associations (%s)", item)
			case name == "" || err != nil:
				b.refuse(p, label, "limit %s: %.64q is not a number of a known resource", t.name, item)
			case named && !slices.Contains(tresKinds, kind):
				b.refuse(p, label, "limit %s: muster does not count %s", t.name, name)
			default:
				l = l.With(cluster.Limit{Name: t.name, TRES: name, Max: n})
			}
		}
	}
	return l
}

// limitOfTRES reads the number of a limit on a resource, -1 for none.
func limitOfTRES(text string) (int64, error) {
	switch text {
	case "-1", "18446744073709551615", "18446744073709551614":
		return -1, nil
	}
	return parseCount(text)
}

func (b *builder) addQOS(row *qosRow) {
	q := row.QOS
	label := "QOS " + q.Name
	q.Limits = b.withTRES(q.Limits, row.tres, row.place, label)
	q.Preempt = namesOf(row.preempt, b.live)
	left := row.flags & knownFlags
	for _, f := range qosFlags {
		if left>>f.bit&1 != 0 {
			q.Flags = append(q.Flags, f.name)
			left &^= 1 << f.bit
		}
	}
	if left != 0 {
		b.refuse(row.place, label, "muster does not know flags %#x of QOS", left)
	}
	mode, ok := modeText(row.mode)
	if !ok {
		b.refuse(row.place, label, "muster does not know preempt_mode %#x", row.mode)
	}
	q.PreemptMode = mode
	b.add(row.place, cluster.Change{QOS: &q})
}

// elsewhere returns the accounts and users that only other clusters of the database have.
func (s *Source) elsewhere() (accounts, users map[string]bool) {
	accounts = map[string]bool{}
	users = map[string]bool{}
	for _, o := range append(slices.Collect(maps.Values(s.owns)), s.own) { // the own one last
		for _, a := range o.assocs {
			accounts[a.Account] = o != s.own
			users[a.User] = o != s.own
		}
	}
	return accounts, users
}

// usersAreCoords is the flag of accounts and associations of which all users are coordinators.
const usersAreCoords = 1 << 16

func (b *builder) addAccounts() {
	elsewhere, _ := b.elsewhere()
	for _, row := range b.accounting.accounts {
		if elsewhere[row.Name] {
			continue
		}
		a := row.Account
		a.Coordinators = slices.Clone(b.accounting.coords[a.Name])
		slices.Sort(a.Coordinators)
		b.accounts[a.Name] = true
		b.add(row.place, cluster.Change{Account: &a})
		if row.flags&usersAreCoords != 0 {
			b.refuse(row.place, "account "+a.Name, "muster has no flag UsersAreCoords: name the coordinators")
		}
	}
}

func (b *builder) addUsers() {
	_, elsewhere := b.elsewhere()
	for _, row := range b.accounting.users {
		if elsewhere[row.Name] {
			continue
		}
		u := row.User
		b.users[u.Name] = &u
		b.add(row.place, cluster.Change{User: &u})
	}
	for _, a := range b.own.assocs {
		if u := b.users[a.User]; u != nil && a.isDefault {
			u.DefaultAccount = a.Account
		}
	}
	for _, k := range b.own.keys {
		u := b.users[k.user]
		if u == nil {
			b.refuse(k.place, "wckey "+k.name+" of user "+k.user, "the user is not in the database")
			continue
		}
		u.WCKeys = append(u.WCKeys, cluster.WCKey{Name: k.name})
		if k.isDefault {
			u.DefaultWCKey = k.name
		}
	}
	for _, u := range b.users {
		slices.SortFunc(u.WCKeys, func(a, b cluster.WCKey) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// maxDepth bounds the tree of accounts.
const maxDepth = 60

// addAssocs adds the associations of accounts from root's down, then those of users.
func (b *builder) addAssocs() {
	byID := map[uint32]*assocRow{}
	below := map[string][]*assocRow{}
	for _, row := range b.own.assocs {
		byID[row.id] = row
	}
	var users, level []*assocRow
	seen := map[*assocRow]bool{}
	for _, row := range b.own.assocs {
		if above := byID[row.parent]; above != nil && row.User == "" {
			row.above = above.Account
		}
		switch {
		case row.User != "":
			users = append(users, row)
		case row.Account == cluster.RootName:
			level = append(level, row)
		default:
			below[row.above] = append(below[row.above], row)
		}
	}
	for depth := 0; len(level) > 0 && depth < maxDepth; depth++ {
		var next []*assocRow
		for _, row := range level {
			seen[row] = true
			if b.addAssoc(row) {
				next = append(next, below[row.Account]...)
			}
		}
		level = next
	}
	for _, row := range users {
		b.addAssoc(row)
	}
	for _, row := range b.own.assocs {
		if row.User == "" && !seen[row] {
			b.refuse(row.place, assocLabel(&row.Association), "the account %q that it is below is not in the tree",
				row.above)
		}
	}
}

// addAssoc adds an association and reports whether it could.
func (b *builder) addAssoc(row *assocRow) bool {
	a := row.Association
	label := assocLabel(&a)
	_, placed := b.allowed[a.Account]
	switch {
	case !b.accounts[a.Account]:
		b.refuse(row.place, label, "account %s is deleted, or not in the database", a.Account)
		return false
	case a.User != "" && b.users[a.User] == nil:
		b.refuse(row.place, label, "user %s is deleted, or not in the database", a.User)
		return false
	case a.User != "" && !placed:
		b.refuse(row.place, label, "the account has no association")
		return false
	case a.User == "" && placed:
		b.refuse(row.place, label, "it is there twice")
		return false
	}
	a.Limits = b.withTRES(a.Limits, row.tres, row.place, label)
	a.DefaultQOS = b.live[row.defaultQOS]
	above := b.allowed[row.above]
	if a.User != "" {
		above = b.allowed[a.Account]
	}
	a.QOS = b.listOf(row, above)
	if row.flags&usersAreCoords != 0 {
		b.refuse(row.place, label, "muster has no flag UsersAreCoords: name the coordinators")
	}
	c := cluster.Change{Assoc: &a}
	if a.User == "" {
		b.allowed[a.Account] = above
		if a.QOS != nil {
			b.allowed[a.Account] = a.QOS
		}
		if a.Account != cluster.RootName {
			c.Under = row.above
		}
	}
	b.add(row.place, c)
	return true
}

// listOf returns the QOS of an association itself, nil for those of the one above. A QOS that is added to that or
// removed makes a list.
func (b *builder) listOf(row *assocRow, above []string) []string {
	list := namesOf(row.qos, b.live)
	if strings.Trim(row.delta, ",") == "" {
		return list
	}
	if list == nil {
		list = slices.Clone(above)
	}
	for item := range strings.SplitSeq(row.delta, ",") {
		switch id := strings.TrimLeft(item, "+-"); {
		case b.live[id] == "":
		case item[0] == '-':
			list = slices.DeleteFunc(list, func(name string) bool { return name == b.live[id] })
		default:
			list = append(list, b.live[id])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
