package sacctmgr

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dev.muster/cluster"
	"dev.muster/cluster/hostlist"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
	"dev.muster/slurm/values"
)

// coordinatedBy are the accounts that a user is a coordinator of.
func coordinatedBy(b *show.Books, user string) (names []string) {
	for _, a := range b.Accounts {
		if slices.Contains(a.Coordinators, user) {
			names = append(names, a.Name)
		}
	}
	return names
}

// coordinatorsOf returns the coordinators of an account, and those of the accounts above it.
func coordinatorsOf(b *show.Books, account string) (names []string) {
	for a := b.Find(account, "", ""); a != nil; a = b.Assoc(a.Parent) {
		if above := b.Account(a.Account); above != nil {
			names = append(names, above.Coordinators...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// coordinatedBelow returns the accounts that a user is a coordinator of, and those below them.
func coordinatedBelow(b *show.Books, user string) (names []string) {
	for _, a := range b.Accounts {
		if slices.Contains(coordinatorsOf(b, a.Name), user) {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return names
}

// coordinators makes users coordinators of accounts, or takes that away.
func (m *manager) coordinators(args []string, add bool) int {
	var users, accounts []string
	for _, w := range args {
		key, value, isSet := strings.Cut(w, "=")
		switch key = strings.ToLower(key); {
		case key == "where" || key == "set":
		case !isSet:
			users = append(users, mgrNameList(w)...)
		case front.IsKey(key, 1, "names", "users"):
			users = append(users, mgrNameList(value)...)
		case front.IsKey(key, 1, "accounts", "acct"):
			accounts = append(accounts, mgrNameList(value)...)
		default:
			return m.wrong(" Unknown option: " + w)
		}
	}
	for _, a := range accounts {
		if m.books.Find(a, "", "") == nil {
			return m.wrong(" You specified a non-existent account '" + a + "'.")
		}
	}
	for _, u := range users {
		if m.books.User(u) == nil {
			return m.wrong(" You specified a non-existent user '" + u + "'.")
		}
	}
	switch {
	case add && (len(users) == 0 || len(accounts) == 0):
		return m.wrong(" You need to specify a user list and account list here.")
	case len(users)+len(accounts) == 0:
		return m.wrong(" You need to specify a user list or account list here.")
	}
	if add {
		m.tell(" Adding Coordinator User(s)\n  %s\n To Account(s) and all sub-accounts\n  %s",
			strings.Join(users, "\n  "), strings.Join(accounts, "\n  "))
		return m.commit(m.coordChanges(users, accounts, true, nil), "adding coordinators")
	}
	if users != nil {
		m.tell(" Removing Coordinators with user name\n  %s", strings.Join(users, "\n  "))
	}
	if accounts != nil {
		m.tell(" From Account(s)\n  %s", strings.Join(accounts, "\n  "))
	} else {
		m.tell(" From all accounts")
	}
	var gone []string
	changes := m.coordChanges(users, accounts, false, &gone)
	if len(changes) == 0 {
		return m.nothing(" Nothing removed")
	}
	m.tell(" Removed Coordinators (sub accounts not listed)...\n%s", strings.Join(gone, "\n"))
	return m.commit(changes, "removing coordinators")
}

// coordChanges are the accounts with users among their coordinators, or without; no users or accounts: all.
func (m *manager) coordChanges(users, accounts []string, add bool, gone *[]string) (changes []cluster.Change) {
	for _, old := range m.books.Accounts {
		if len(accounts) > 0 && !slices.Contains(accounts, old.Name) {
			continue
		}
		a := *old
		a.Coordinators = nil
		for _, u := range old.Coordinators {
			if add || len(users) > 0 && !slices.Contains(users, u) {
				a.Coordinators = append(a.Coordinators, u)
			} else {
				*gone = append(*gone, fmt.Sprintf("  U = %-9.9s A = %-10.10s", u, a.Name))
			}
		}
		if add {
			a.Coordinators = append(a.Coordinators, users...)
			slices.Sort(a.Coordinators)
			a.Coordinators = slices.Compact(a.Coordinators)
		}
		if add || len(a.Coordinators) < len(old.Coordinators) {
			changes = append(changes, cluster.Change{Account: &a})
		}
	}
	return changes
}

// showTable prints rows that are none of the books' records.
func showTable[T any](m *manager, q *mgrQuery, cols []front.Column[T], fields string, rows []T) int {
	t := front.Table[T]{NoHeader: m.report.NoHeader, Parse: m.report.Parse}
	if bad := t.Pick(cols, cmp.Or(q.format, fields)); bad != "" {
		return m.wrong("Unknown field '" + bad + "'")
	}
	out := bufio.NewWriter(m.sys.Stdout)
	defer out.Flush()
	t.Print(out, rows)
	return 0
}

// problem is something in the books that cannot be as it was meant.
type problem struct{ cluster, account, user, what string }

func problemColumns() []front.Column[problem] {
	return []front.Column[problem]{
		{Name: "Cluster", Head: "Cluster", Width: 10, Of: func(p *problem) string { return p.cluster }},
		{Name: "Account", Head: "Account", Width: 10, Of: func(p *problem) string { return p.account }},
		{Name: "User", Head: "User", Width: 10, Of: func(p *problem) string { return p.user }},
		{Name: "Problem", Head: "Problem", Width: 40, Of: func(p *problem) string { return p.what }},
	}
}

// problems are accounts without users, users without associations, and those whom this machine does not know, as
// Slurm looks for them.
func (m *manager) problems() (rows []problem) {
	for _, a := range m.books.Accounts {
		used := slices.ContainsFunc(m.books.Assocs, func(x *cluster.Association) bool {
			above := m.books.Assoc(x.Parent)
			return x.Account == a.Name && x.User != "" || above != nil && above.Account == a.Name && x.User == ""
		})
		if !used {
			rows = append(rows, problem{m.books.Cluster, a.Name, "", "Account has no users"})
		}
	}
	var names []string
	for _, u := range m.books.Users {
		if names = append(names, u.Name); !slices.ContainsFunc(m.books.Assocs, func(a *cluster.Association) bool { return a.User == u.Name }) {
			rows = append(rows, problem{"", "", u.Name, "User has no Associations"})
		}
	}
	known := front.LookupUsers(names)
	for _, name := range names {
		if _, ok := known[name]; !ok {
			rows = append(rows, problem{"", "", name, "User does not have a uid"})
		}
	}
	return rows
}

// expandNames unfolds a host list, or keeps what is none.
func expandNames(list string) []string {
	names, err := hostlist.Expand(list)
	if err != nil {
		return []string{list}
	}
	return names
}

// span sets the times that are asked for. If one cannot be read, it is the answer, with the position of what is wrong.
func (q *mgrQuery) span(now time.Time, from, to *time.Time) (bad string, pos int) {
	for _, e := range []struct {
		text string
		at   *time.Time
	}{{q.from, from}, {q.to, to}} {
		if e.text == "" {
			continue
		}
		t, pos, ok := values.ParsePast(e.text, now)
		if !ok {
			return e.text, pos
		}
		*e.at = t
	}
	return "", 0
}
