package sacctmgr

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
)

// wckeyRow is a user's workload characterization key.
type wckeyRow struct {
	cluster, user string
	cluster.WCKey
}

func wckeyColumns() []front.Column[wckeyRow] {
	return []front.Column[wckeyRow]{
		{Name: "WCKeys", Head: "WCKey", Width: 10, Of: func(r *wckeyRow) string { return r.Name }},
		{Name: "Cluster", Head: "Cluster", Width: 10, Of: func(r *wckeyRow) string { return r.cluster }},
		{Name: "User", Head: "User", Width: 10, Of: func(r *wckeyRow) string { return r.user }},
		{Name: "ID", Head: "ID", Width: 6, Of: func(r *wckeyRow) string { return strconv.Itoa(int(r.ID)) }},
	}
}

// wckeys is sacctmgr show wckey: the keys by name, and who has them.
func wckeys(m *manager, q *mgrQuery) int {
	return showTable(m, q, wckeyColumns(), "WCKey,Cluster,User", wckeyRows(m, q))
}

func wckeyRows(m *manager, q *mgrQuery) (rows []wckeyRow) {
	for _, u := range m.books.Users {
		for _, k := range u.WCKeys {
			if q.has("user", u.Name) && q.has("wckey", k.Name) && q.has("id", strconv.Itoa(int(k.ID))) {
				rows = append(rows, wckeyRow{m.books.Cluster, u.Name, k})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b wckeyRow) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// addWCKeys gives a user the keys that are new to it, and a default one if it has none: the given one, or the first.
func addWCKeys(u *cluster.User, keys []string, byDefault string) (added []string) {
	u.WCKeys = slices.Clone(u.WCKeys)
	for _, k := range keys {
		if !u.HasWCKey(k) {
			u.WCKeys, added = append(u.WCKeys, cluster.WCKey{Name: k}), append(added, k)
		}
	}
	if added != nil {
		u.DefaultWCKey = cmp.Or(u.DefaultWCKey, byDefault, keys[0])
	}
	return added
}

// removeWCKeys takes keys from users: delete user where user=U wckey=K.
func (m *manager) removeWCKeys(q *mgrQuery) int {
	if len(q.where["account"]) > 0 {
		return m.wrong(" Mixing Account and WCKeys is not allowed")
	}
	var changes []cluster.Change
	var places []string
	for _, u := range m.books.Users {
		n := *u
		n.WCKeys = slices.DeleteFunc(slices.Clone(u.WCKeys), func(k cluster.WCKey) bool {
			gone := q.has("user", u.Name) && q.has("wckey", k.Name)
			if gone {
				places = append(places,
					fmt.Sprintf("  C = %-10.10s W = %-20.20s U = %-9.9s", m.books.Cluster, k.Name, u.Name))
			}
			return gone
		})
		if len(n.WCKeys) == len(u.WCKeys) {
			continue
		}
		if !n.HasWCKey(n.DefaultWCKey) {
			n.DefaultWCKey = ""
		}
		changes = append(changes, cluster.Change{User: &n})
	}
	if len(changes) == 0 {
		return m.nothing(" Nothing deleted")
	}
	return m.announced(" Deleting user WCKeys...\n"+strings.Join(places, "\n"), changes, "deleting wckeys")
}

// dumpWCKeys are a user's keys as a file of dump has them.
func dumpWCKeys(u *cluster.User) string {
	if len(u.WCKeys) == 0 {
		return ""
	}
	var names []string
	for _, k := range u.WCKeys {
		names = append(names, k.Name)
	}
	return ":WCKeys='" + strings.Join(names, ",") + "'"
}
