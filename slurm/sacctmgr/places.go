package sacctmgr

import (
	"cmp"
	"slices"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// hasPlace reports whether an association is one of the accounts, users and partitions that are named.
func (q *mgrQuery) hasPlace(a *cluster.Association) bool {
	return q.has("account", a.Account) && q.has("user", a.User) && q.has("partition", a.Partition)
}

// asksPlaces reports whether conditions are about the associations of an entity's records.
func (q *mgrQuery) asksPlaces(entity string) bool {
	named := slices.ContainsFunc([]string{"account", "user", "partition"},
		func(key string) bool { return key != entity && len(q.where[key]) > 0 })
	return named || len(q.places) > 0
}

// asksRecords reports whether conditions name records of an entity, or are about what they say.
func (q *mgrQuery) asksRecords(entity string) bool {
	return len(q.where[entity]) > 0 || len(q.records) > 0
}

// asksAnything reports whether there is a condition at all. No partition is none: nearly all associations have that.
func (q *mgrQuery) asksAnything() bool {
	for key, names := range q.where {
		if key != "partition" || !slices.Equal(names, []string{""}) {
			return true
		}
	}
	return q.byCluster || len(q.records) > 0 || len(q.places) > 0
}

// recordRow is the row of what an association belongs to: its user, or its account.
func recordRow(b *show.Books, a *cluster.Association, entity string) mgrRow {
	r := mgrRow{assoc: a, books: b}
	if entity == "user" {
		r.user = b.User(a.User)
	} else {
		r.account = b.Account(a.Account)
	}
	return r
}

// placed are the rows of the associations of each account, or user, that conditions select.
func (q *mgrQuery) placed(b *show.Books, entity string) map[string][]mgrRow {
	out := map[string][]mgrRow{}
	list := b.Assocs
	if entity == "account" {
		list = nil
		for _, t := range show.TreeOf(b.Assocs) {
			list = append(list, t.Association)
		}
	}
	spans := nestedSets(b.Assocs)
	for _, a := range list {
		name := front.Choose(entity == "account", a.Account, a.User)
		if name == "" || !q.hasPlace(a) {
			continue
		}
		if r := recordRow(b, a, entity); pass(q.places, &r) {
			r.span, r.own = spans[a.ID], q.ownLimits
			out[name] = append(out[name], r)
		}
	}
	return out
}

// recordRows are the rows of an entity's records: each one alone, or one for each of its associations. One whose
// associations are asked for and that has none of these is there without any, as in Slurm.
func recordRows(
	q *mgrQuery, entity string, names []string, of func(name string) mgrRow, b *show.Books,
) (rows []mgrRow) {
	placed := q.placed(b, entity)
	for _, name := range names {
		r := of(name)
		switch own := placed[name]; {
		case !q.has(entity, name) || !pass(q.records, &r):
		case q.withAssoc && len(own) > 0:
			rows = append(rows, own...)
		case q.withAssoc:
			r.bare = true
			rows = append(rows, r)
		case len(own) > 0 || !q.asksPlaces(entity):
			rows = append(rows, r)
		}
	}
	return rows
}

// nestedSets numbers associations as Slurm's tree of them is numbered: what is below one has numbers between its two.
func nestedSets(all []*cluster.Association) map[cluster.AssocID][2]int {
	kids, out, next := map[cluster.AssocID][]cluster.AssocID{}, map[cluster.AssocID][2]int{}, 1
	for _, a := range all {
		kids[a.Parent] = append(kids[a.Parent], a.ID)
	}
	var walk func(cluster.AssocID)
	walk = func(id cluster.AssocID) {
		for _, kid := range slices.Backward(kids[id]) { // the newest is put in front
			left := next
			next++
			walk(kid)
			out[kid] = [2]int{left, next}
			next++
		}
	}
	walk(0)
	return out
}

// showsPlace reports whether show assoc has an association.
func (q *mgrQuery) showsPlace(b *show.Books, a *cluster.Association) bool {
	u := b.User(a.User)
	byDefault := u != nil && u.DefaultAccount == a.Account
	return q.hasPlace(a) && q.keeps(&mgrRow{assoc: a, books: b}) && (byDefault || !q.onlyDefaults)
}

// addSubAccounts adds the accounts below those that are named.
func (q *mgrQuery) addSubAccounts(b *show.Books) {
	named := q.where["account"]
	if !q.subAccounts || len(named) == 0 {
		return
	}
	for _, t := range show.TreeOf(b.Assocs) {
		above := b.Assoc(t.Parent)
		if t.User == "" && above != nil && slices.Contains(named, above.Account) && !slices.Contains(named, t.Account) {
			named = append(named, t.Account)
		}
	}
	q.where["account"] = named
}

// assocRows are associations in the order of their tree; those of users alone by their names, and without parents
// users first.
func assocRows(b *show.Books, q *mgrQuery) (rows []mgrRow) {
	q.addSubAccounts(b)
	spans := nestedSets(b.Assocs)
	for _, t := range show.TreeOf(b.Assocs) {
		if !q.showsPlace(b, t.Association) {
			continue
		}
		rows = append(rows, mgrRow{assoc: t.Association, depth: t.Depth * front.BoolInt(q.tree && !q.noParents),
			books: b, span: spans[t.ID], own: q.ownLimits, orphan: q.noParents})
	}
	switch {
	case q.onlyDefaults:
		slices.SortStableFunc(rows, func(x, y mgrRow) int { return strings.Compare(x.assoc.User, y.assoc.User) })
	case q.noParents:
		slices.SortFunc(rows, func(x, y mgrRow) int {
			return cmp.Or(front.BoolInt(x.assoc.User == "")-front.BoolInt(y.assoc.User == ""), x.span[0]-y.span[0])
		})
	}
	return rows
}

// records are the rows of an entity's records that are meant, each once.
func records(m *manager, entity string, q *mgrQuery) []mgrRow {
	ask := *q
	ask.withAssoc = false
	return m.rows(entity, &ask)
}
