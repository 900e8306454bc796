package sacctmgr

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/show"
)

// withChanges is the books as they will be with other associations in place of some.
func withChanges(b *show.Books, changes []cluster.Change) *show.Books {
	n := *b
	n.Assocs = slices.Clone(b.Assocs)
	for _, c := range changes {
		for i, a := range n.Assocs {
			if c.Assoc != nil && a.ID == c.Assoc.ID {
				n.Assocs[i] = c.Assoc
			}
		}
	}
	return &n
}

// lineage is what an association has of its own or from above.
type lineage struct {
	limits   map[cluster.Limit]bool
	qos      []string
	deflt    string
	priority int
}

func lineageOf(b *show.Books, a *cluster.Association) lineage {
	out := lineage{
		limits: map[cluster.Limit]bool{}, qos: b.Allowed(a), deflt: b.DefaultQOS(a),
		priority: b.PriorityOf(a),
	}
	for _, l := range b.Effective(a) {
		out.limits[l] = true
	}
	return out
}

// below places the associations of users below an account for which what they inherit is another than in the books
// of before, deeper accounts first.
func (m *manager) below(top *cluster.Association, after *show.Books) (places []string) {
	var own []string
	for _, t := range show.TreeOf(after.Assocs) {
		switch a := t.Association; {
		case a.Parent != top.ID || a.ID == top.ID:
		case a.User == "":
			places = append(places, m.below(a, after)...)
		case !reflect.DeepEqual(lineageOf(m.books, m.books.Assoc(a.ID)), lineageOf(after, a)):
			own = append(own, m.place(a))
		}
	}
	return append(places, own...)
}

// noAccess tells, in Slurm's words, of associations that would have a default QOS without being allowed to use it:
// those that changes are about and those below them. It reports whether there are any.
func (m *manager) noAccess(changes []cluster.Change) bool {
	after := withChanges(m.books, changes)
	var lines []string
	for _, t := range show.TreeOf(after.Assocs) {
		touched := false
		for a := t.Association; a != nil; a = after.Assoc(a.Parent) {
			touched = touched || slices.ContainsFunc(changes,
				func(c cluster.Change) bool { return c.Assoc != nil && c.Assoc.ID == a.ID })
		}
		if q := after.DefaultQOS(t.Association); touched && q != "" && !slices.Contains(after.Allowed(t.Association), q) {
			lines = append(lines, m.defaultPlace(q, t.Association))
		}
	}
	if lines != nil {
		m.wrong(slices.Concat([]string{
			" These associations don't have access to their default qos.\n Please give them access before they the default can be set to this.",
		}, lines)...)
	}
	return lines != nil
}

// defaultPlace tells of an association and its default QOS.
func (m *manager) defaultPlace(qos string, a *cluster.Association) string {
	line := fmt.Sprintf("  DefQOS = %-10.10s C = %-10.10s A = %-20.20s ", qos, m.books.Cluster, a.Account)
	if a.User != "" {
		line += fmt.Sprintf("U = %-9.9s", a.User) + partPlace(a)
	}
	return line
}

// keepsAccount reports whether a user has an account other than those that a query names.
func keepsAccount(b *show.Books, q *mgrQuery, user string) bool {
	return slices.ContainsFunc(b.Assocs, func(a *cluster.Association) bool {
		return a.User == user && !q.has("account", a.Account)
	})
}

// stillDefault refuses to remove accounts and QOS that are somebody's default; 0 if they are nobody's. A user who loses
// all accounts needs no default.
func (m *manager) stillDefault(entity string, q *mgrQuery) int {
	var lines []string
	for _, a := range m.books.Assocs {
		switch u := m.books.User(a.User); {
		case entity == "account" && u != nil && q.has("account", a.Account) && u.DefaultAccount == a.Account &&
			keepsAccount(m.books, q, a.User):
			lines = append(lines,
				fmt.Sprintf("  C = %-15.15s A = %-10.10s U = %-9.9s", m.books.Cluster, a.Account, a.User))
		case entity == "qos" && a.DefaultQOS != "" && q.has("qos", a.DefaultQOS):
			line := m.defaultPlace(a.DefaultQOS, a)
			if a.User == "" { // here a column ends there
				line = strings.TrimSuffix(line, " ")
			}
			lines = append(lines, line)
		}
	}
	if lines == nil {
		return 0
	}
	words := map[string][2]string{
		"account": {" Error with request: You can not remove the default account of a user",
			" Please either remove the accounts listed above from list and resubmit,\n or change these users' default accounts to remove the account(s).\n Changes Discarded"},
		"qos": {" Associations listed below have these as their Default QOS.",
			" Please either remove the qos' listed above from list and resubmit,\n or change the default qos to remove the qos.\n Changes Discarded"},
	}[entity]
	return m.wrong(slices.Concat([]string{words[0]}, lines, []string{words[1]})...)
}
