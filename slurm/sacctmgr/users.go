package sacctmgr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// userPlan is what sacctmgr add user is asked for, and what it comes to.
type userPlan struct {
	m                         *manager
	model                     cluster.Association
	user                      cluster.User
	accounts, parts, keys     []string
	given                     []string // settings of the association
	fresh, places, keysPlaces []string // what will be made, as it is told
	changes                   []cluster.Change
}

// addUsers makes users, associations of users with accounts, and wckeys.
func (m *manager) addUsers(args []string) int {
	names, list := mgrWords(args, "name", "names", "user", "users")
	p := &userPlan{m: m, model: cluster.Association{Shares: 1}, parts: []string{""}}
	if code := nameless(m, "user", names); code != 0 {
		return code
	}
	if code := p.read(list); code != 0 {
		return code
	}
	if d := p.user.DefaultAccount; d != "" && !slices.Contains(p.accounts, d) {
		p.accounts = append(p.accounts, d)
	}
	if p.accounts == nil && p.keys == nil {
		return m.wrong(" Need name of account to add user to.")
	}
	if code := p.checkAccounts(names); code != 0 {
		return code
	}
	for _, name := range names {
		p.record(name)
	}
	for _, acct := range p.accounts {
		for _, name := range names {
			p.place(acct, name)
		}
	}
	if len(p.changes) == 0 {
		return m.nothing(" Nothing new added.")
	}
	p.tell()
	return m.commit(p.changes, "adding users")
}

// checkAccounts refuses accounts that are not there. Slurm ends with other words where a user or an account is.
func (p *userPlan) checkAccounts(names []string) int {
	there := func(acct string) bool { return p.m.books.Find(acct, "", "") != nil }
	i := slices.IndexFunc(p.accounts, func(acct string) bool { return !there(acct) })
	if i < 0 {
		return 0
	}
	p.m.wrong(" This account '"+p.accounts[i]+"' doesn't exist.", "        Contact your admin to add this account.")
	known := func(name string) bool { return p.m.books.User(name) != nil }
	if slices.ContainsFunc(p.accounts, there) || slices.ContainsFunc(names, known) {
		return p.m.nothing(" Nothing new added.")
	}
	return p.m.wrong(" No associations or wckeys created.")
}

// read reads what is set.
func (p *userPlan) read(list []front.Setting) int {
	for _, s := range list {
		switch {
		case front.IsKey(s.Key, 2, "accounts"):
			p.accounts = mgrNameList(s.Value)
		case front.IsKey(s.Key, 8, "defaultaccount"):
			p.user.DefaultAccount = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 8, "defaultwckey"):
			p.user.DefaultWCKey = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 1, "wckeys"):
			p.keys = mgrNameList(s.Value)
		case front.IsKey(s.Key, 2, "adminlevel"):
			p.user.AdminLevel = adminLevel(s.Value)
		case front.IsKey(s.Key, 3, "partitions"):
			p.parts = front.SplitList(s.Value)
		default:
			label, code := p.m.setAssoc(&p.model, []string{cluster.NormalQOS}, s)
			if code != 0 {
				return code
			}
			p.given = append(p.given, label)
		}
	}
	if k := p.user.DefaultWCKey; k != "" && !slices.Contains(p.keys, k) {
		p.keys = append(p.keys, k)
	}
	return 0
}

// record makes a user, or gives one who is there new wckeys.
func (p *userPlan) record(name string) {
	user, old := cluster.User{Name: name, AdminLevel: p.user.AdminLevel}, p.m.books.User(name)
	if old != nil {
		user = *old
	} else if p.fresh = append(p.fresh, name); p.accounts != nil {
		user.DefaultAccount = cmp.Or(p.user.DefaultAccount, p.accounts[0])
	}
	lost := old != nil && old.DefaultAccount == "" && p.accounts != nil // the default one was deleted
	if lost {
		user.DefaultAccount = p.accounts[0]
	}
	added := addWCKeys(&user, p.keys, p.user.DefaultWCKey)
	for _, k := range added {
		p.keysPlaces = append(p.keysPlaces,
			fmt.Sprintf("  U = %-9.9s W = %-10.10s C = %-10.10s", name, k, p.m.books.Cluster))
	}
	if old == nil || lost || added != nil {
		p.changes = append(p.changes, cluster.Change{User: &user})
	}
}

// place makes the associations of a user with an account that are not there yet.
func (p *userPlan) place(acct, name string) {
	for _, part := range p.parts {
		if p.m.books.Find(acct, name, part) != nil {
			continue
		}
		as := p.model
		as.Account, as.User, as.Partition = acct, name, part
		p.changes = append(p.changes, cluster.Change{Assoc: &as})
		place := fmt.Sprintf("  U = %-9.9s A = %-10.10s C = %-10.10s", name, acct, p.m.books.Cluster)
		if part != "" {
			place += fmt.Sprintf(" P = %-10.10s", part)
		}
		p.places = append(p.places, place)
	}
}

// tell says what will be made.
func (p *userPlan) tell() {
	m := p.m
	if p.fresh != nil {
		m.tell(" Adding User(s)\n  %s", strings.Join(p.fresh, "\n  "))
		if p.user.DefaultAccount != "" || p.user.DefaultWCKey != "" || p.user.AdminLevel != "" {
			m.tell(" Settings =")
		}
		for _, s := range [][2]string{
			{"Default Account", p.user.DefaultAccount}, {"Default WCKey  ", p.user.DefaultWCKey},
			{"Admin Level    ", p.user.AdminLevel},
		} {
			if s[1] != "" {
				m.tell("  %s = %s", s[0], s[1])
			}
		}
	}
	if p.places != nil {
		m.tell(" Associations =\n%s", strings.Join(p.places, "\n"))
	}
	if p.keysPlaces != nil {
		m.tell(" WCKeys =\n%s", strings.Join(p.keysPlaces, "\n"))
	}
	if p.accounts != nil {
		m.tell("%s", strings.Join(append([]string{" Non Default Settings"}, assocTold(&p.model, p.given, "")...), "\n"))
	}
}
