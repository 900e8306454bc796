package sacctmgr

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// modify changes what the conditions select: modify ENTITY [NAMES] [where K=V …] set K=V ….
func (m *manager) modify(args []string) int {
	entity := ""
	if len(args) > 0 {
		entity = mgrEntity(args[0])
	}
	if !slices.Contains([]string{"account", "user", "qos", "cluster", "job", "federation"}, entity) {
		return m.noEntity(args, modifyInput)
	}
	var conds []string
	var sets []front.Setting
	setting := false
	for _, a := range args[1:] {
		switch {
		case strings.EqualFold(a, "set"):
			setting = true
		case strings.EqualFold(a, "where"):
			setting = false
		case setting:
			s, bad := front.Settings([]string{a})
			if bad != "" {
				return m.wrong(" Bad format on " + a + ": End your option with an '=' sign")
			}
			sets = append(sets, s...)
		default:
			conds = append(conds, a)
		}
	}
	q, code := m.conditions(entity, conds)
	if code >= 0 {
		return code
	}
	if len(sets) == 0 {
		return m.wrong(" You didn't give me anything to set")
	}
	if code := impossible(m, entity, q, sets); code != 0 {
		return code
	}
	if own, rest := m.ownSettings(entity, sets); misplaced(entity, q, own, rest) {
		return m.wrong(" There was a problem with your 'where' options.")
	}
	switch entity {
	case "qos":
		return m.modifyQOS(q, sets)
	case "federation":
		return modifyFederation(m, q, sets)
	case "cluster":
		if slices.ContainsFunc(sets, ofFederation) {
			return modifyMembers(m, q, sets)
		}
		return m.modifyRoot(q, sets)
	case "job":
		return m.modifyJobs(q, sets)
	}
	return m.modifyAssocs(entity, q, sets)
}

// impossible refuses what cannot be set, or not of those who are meant.
func impossible(m *manager, entity string, q *mgrQuery, sets []front.Setting) int {
	for _, s := range sets {
		_, possible := usageOf(s)
		switch {
		case s.Key == "rawusage" && entity == "user" && len(q.where["account"]) == 0:
			return m.wrong("sacctmgr: error: An account must be specified")
		case s.Key == "rawusage" && entity == "qos" && !possible:
			return m.wrong(" Bad RawUsage value: " + s.Value)
		case s.Key == "rawusage" && !possible:
			return m.wrong("sacctmgr: error: Invalid value for RawUsage ("+s.Value+")",
				" You didn't give me anything to set")
		case entity == "account" && front.IsKey(s.Key, 1, "names"):
			return m.wrong(" Can't modify the name of an account")
		case entity == "user" && s.Key == "newname":
			return m.wrong("sacctmgr: error: muster's users keep their names: add the new one, and delete the old one")
		case entity == "user" && front.IsKey(s.Key, 2, "adminlevel") && adminLevel(s.Value) == "":
			return m.nothing(" Nothing modified")
		}
	}
	return 0
}

// usageOf reads a usage; possible is false for what is none. Slurm sets that of associations to zero alone.
func usageOf(s front.Setting) (n float64, possible bool) {
	if s.Value == "" {
		return 0, true
	}
	n, err := strconv.ParseFloat(s.Value, 64)
	return n, err == nil && n >= 0 && !math.IsInf(n, 1)
}

// setUsage has a change set a usage. Zero is also for all below an account.
func setUsage(c *cluster.Change, s front.Setting) {
	n, _ := usageOf(s)
	c.Reset = n == 0
	c.Usage = nil
	if n > 0 {
		c.Usage = &cluster.Spent{Raw: n}
	}
}

// misplaced reports whether what is set belongs to records and all conditions are about associations, or the other
// way round: who is meant would be more than was asked for.
func misplaced(entity string, q *mgrQuery, own, rest []front.Setting) bool {
	if entity != "account" && entity != "user" {
		return false
	}
	records, places := q.asksRecords(entity), q.asksPlaces(entity) || q.byCluster
	alone := records && !places && len(q.where[entity]) == 0
	return len(own) > 0 && places && !records || len(rest) > 0 && alone
}

// modifyRoot changes what holds for the whole cluster: root's association.
func (m *manager) modifyRoot(q *mgrQuery, sets []front.Setting) int {
	old := m.books.Find(cluster.RootName, "", "")
	if !q.has("cluster", m.books.Cluster) || old == nil {
		return m.nothing(" Nothing modified")
	}
	n := *old
	var given []string
	for _, s := range sets {
		label, code := m.setAssoc(&n, old.QOS, s)
		if code != 0 {
			return code
		}
		given = append(given, label)
	}
	shown := cluster.Association{Shares: n.Shares}
	for _, l := range n.Limits {
		if slices.Contains(given, l.Name) {
			shown.Limits = shown.Limits.With(l)
		}
	}
	m.tell(" Setting\n  Default Limits:\n%s", strings.Join(assocTold(&shown, given, ""), "\n"))
	return m.modified(" Modified cluster defaults for associations...", []string{m.place(old)},
		[]cluster.Change{{Assoc: &n}})
}

func (m *manager) modifyQOS(q *mgrQuery, sets []front.Setting) int {
	var changes []cluster.Change
	var names []string
	for _, old := range m.books.QOS {
		if !q.has("qos", old.Name) || !q.keeps(&mgrRow{qos: old, books: m.books}) {
			continue
		}
		n, c := *old, cluster.Change{}
		for _, s := range sets {
			if s.Key == "rawusage" {
				setUsage(&c, s)
				continue
			}
			label, known, err := setQOSKey(&n, s)
			if !known {
				return m.unknownQOS(s)
			} else if err != nil {
				return m.badQOS(label, err)
			} else if code := m.checkQOS(label, s); code != 0 {
				return code
			}
		}
		c.QOS = &n
		changes, names = append(changes, c), append(names, "  "+n.Name)
	}
	return m.modified(" Modified qos...", names, changes)
}

// modified tells what will be another way, and commits it.
func (m *manager) modified(head string, lines []string, changes []cluster.Change) int {
	if len(changes) == 0 {
		return m.nothing(" Nothing modified")
	}
	return m.announced(head+"\n"+strings.Join(lines, "\n"), changes, "modifying records")
}

// announced commits what a text tells. With -i it is done before it is told, so that a refusal stands alone.
func (m *manager) announced(text string, changes []cluster.Change, what string) int {
	if !m.immediate {
		m.tell("%s", text)
		return m.commit(changes, what)
	}
	code := m.commit(changes, what)
	if code == 0 {
		m.tell("%s", text)
	}
	return code
}

// modifyAssocs changes accounts or users, and their associations.
func (m *manager) modifyAssocs(entity string, q *mgrQuery, sets []front.Setting) int {
	own, rest := m.ownSettings(entity, sets)
	var changes []cluster.Change
	var names, places []string
	if own != nil {
		var code int
		if changes, names, code = modifyOwn(m, entity, q, own); code != 0 {
			return code
		}
	}
	for _, t := range show.TreeOf(m.books.Assocs) {
		a := t.Association
		if len(rest) == 0 || !q.takes(m.books, entity, a) {
			continue
		}
		c, code := changeAssoc(m, entity, a, rest)
		if code != 0 {
			return code
		}
		changes = append(changes, c)
		places = append(places, m.place(a))
		if a.User == "" {
			places = append(places, m.below(c.Assoc, withChanges(m.books, []cluster.Change{c}))...)
		}
	}
	if places == nil {
		return m.modified(" Modified "+entity+"s...", names, changes)
	}
	if m.noAccess(changes) {
		return 0 // as Slurm's
	}
	head := " Modified " + entity + " associations..."
	if names != nil {
		head = " Modified " + entity + "s...\n" + strings.Join(names, "\n") + "\n" + head
	}
	return m.modified(head, places, changes)
}

// modifyOwn changes the records of accounts or users themselves.
func modifyOwn(m *manager, entity string, q *mgrQuery, own []front.Setting) (
	changes []cluster.Change, names []string, code int,
) {
	chosen := meant(m, entity, q)
	if entity == "account" {
		for _, a := range m.books.Accounts {
			if n := *a; chosen[a.Name] {
				setOwn(own, &n, &cluster.User{})
				changes = append(changes, cluster.Change{Account: &n})
				names = append(names, "  "+n.Name)
			}
		}
		return changes, names, 0
	}
	for _, u := range m.books.Users {
		n := *u
		if !chosen[u.Name] {
			continue
		}
		setOwn(own, &cluster.Account{}, &n)
		if what := m.notOf(u, &n); what != "" {
			return nil, nil, m.nothing(" Can't modify because these users aren't associated with new default " +
				what + "...\n  U = " + n.Name + " C = " + m.books.Cluster)
		}
		changes = append(changes, cluster.Change{User: &n})
		names = append(names, "  "+n.Name)
	}
	return changes, names, 0
}

// takes reports whether an association is one of accounts, or of users, that are meant.
func (q *mgrQuery) takes(b *show.Books, entity string, a *cluster.Association) bool {
	ofAccount := a.User == ""
	if ofAccount != (entity == "account") || !q.hasPlace(a) {
		return false
	}
	r := recordRow(b, a, entity)
	return q.keeps(&r)
}

// meant are the names of the accounts, or users, whose records are meant.
func meant(m *manager, entity string, q *mgrQuery) map[string]bool {
	names := map[string]bool{}
	for _, r := range records(m, entity, q) {
		if r.account != nil {
			names[r.account.Name] = true
		} else {
			names[r.user.Name] = true
		}
	}
	return names
}

// changeAssoc makes another association of one.
func changeAssoc(m *manager, entity string, a *cluster.Association, sets []front.Setting) (
	c cluster.Change, code int,
) {
	n := *a
	c.Assoc = &n
	for _, s := range sets {
		switch {
		case s.Key == "rawusage":
			setUsage(&c, s)
		case front.IsKey(s.Key, 3, "parent") && entity == "account":
			above := m.books.Find(strings.ToLower(s.Value), "", "")
			if above == nil {
				return c, m.wrong(" Parent Account " + s.Value + " doesn't exist.")
			}
			n.Parent = above.ID
		default:
			if _, code := m.setAssoc(&n, m.books.Allowed(a), s); code != 0 {
				return c, code
			}
		}
	}
	return c, 0
}

// notOf is the new default account or wckey of a user that the user does not have, in Slurm's words, or "".
func (m *manager) notOf(old, u *cluster.User) string {
	switch {
	case u.DefaultAccount != old.DefaultAccount && !m.books.Has(u.DefaultAccount, u.Name):
		return "account '" + u.DefaultAccount + "'"
	case u.DefaultWCKey != old.DefaultWCKey && !u.HasWCKey(u.DefaultWCKey):
		return "wckey '" + u.DefaultWCKey + "'"
	}
	return ""
}

// partPlace names the partition of an association that is for one alone.
func partPlace(a *cluster.Association) string {
	if a.Partition == "" {
		return ""
	}
	return " P = " + a.Partition
}

// place tells of an association.
func (m *manager) place(a *cluster.Association) string {
	switch above := m.books.Assoc(a.Parent); {
	case a.User != "":
		return fmt.Sprintf("  C = %-10.10s A = %-20.20s U = %-9.9s", m.books.Cluster, a.Account, a.User) + partPlace(a)
	case above != nil:
		return fmt.Sprintf("  C = %-10.10s A = %s of %s", m.books.Cluster, a.Account, above.Account)
	}
	return fmt.Sprintf("  C = %-10.10s A = %s", m.books.Cluster, a.Account)
}

// ownSettings parts the settings of the record itself from those of its associations.
func (m *manager) ownSettings(entity string, sets []front.Setting) (own, rest []front.Setting) {
	for _, s := range sets {
		mine := entity == "user" && (front.IsKey(s.Key, 8, "defaultaccount", "defaultwckey") || front.IsKey(s.Key, 2, "adminlevel")) ||
			entity == "account" && (front.IsKey(s.Key, 3, "description") || front.IsKey(s.Key, 1, "organization"))
		if mine {
			own = append(own, s)
		} else {
			rest = append(rest, s)
		}
	}
	return own, rest
}

func setOwn(own []front.Setting, a *cluster.Account, u *cluster.User) {
	for _, s := range own {
		switch {
		case front.IsKey(s.Key, 2, "adminlevel"):
			u.AdminLevel = adminLevel(s.Value)
		case front.IsKey(s.Key, 1, "organization"):
			a.Organization = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 3, "description"):
			a.Description = strings.ToLower(s.Value)
		case front.IsKey(s.Key, 8, "defaultwckey"):
			u.DefaultWCKey = strings.ToLower(s.Value)
		default:
			u.DefaultAccount = strings.ToLower(s.Value)
		}
	}
}

// remove deletes accounts, users and QOS, or users' associations alone.
func (m *manager) remove(args []string) int {
	entity := ""
	if len(args) > 0 {
		entity = mgrEntity(args[0])
	}
	if slices.Contains([]string{"coordinator", "federation"}, entity) {
		return removeOther(m, entity, args[1:])
	}
	if !slices.Contains([]string{"account", "cluster", "user", "qos"}, entity) {
		return m.noEntity(args, deleteInput)
	}
	q, code := m.conditions(entity, args[1:])
	if code >= 0 {
		return code
	}
	if !q.asksAnything() {
		return m.wrong(noConditions)
	}
	switch {
	case entity == "cluster" && slices.Contains(q.where["cluster"], strings.ToLower(m.books.Cluster)):
		return m.wrong(" Cluster " + m.books.Cluster + " is what the servers of muster form: it goes with them")
	case entity == "cluster":
		return m.nothing(" Nothing deleted")
	case entity == "account" && slices.Contains(q.where["account"], cluster.RootName):
		return m.wrong(" You are not allowed to remove the root account.", " Use remove cluster instead.")
	case entity == "user" && len(q.where["wckey"]) > 0:
		return m.removeWCKeys(q)
	case removesPlaces(entity, q):
		return m.removePlaces(entity, q)
	}
	names, changes := removals(m, entity, q)
	if len(names) == 0 {
		return m.nothing(" Nothing deleted")
	}
	q = &mgrQuery{where: map[string][]string{entity: names}}
	if code := m.stillDefault(entity, q); code != 0 {
		return code
	}
	switch entity {
	case "qos":
		changes = append(m.forgetQOS(q), changes...)
	case "account":
		changes = append(changes, forgetDefaults(m.books, q)...)
	}
	what := map[string]string{"user": "users", "account": "accounts", "qos": "QOS(s)"}[entity]
	return m.announced(" Deleting "+what+"...\n  "+strings.Join(names, "\n  "), changes, "deleting records")
}

// removesPlaces reports whether users are to be taken out of accounts, rather than records to be removed.
func removesPlaces(entity string, q *mgrQuery) bool {
	if entity == "account" {
		return len(q.where["user"])+len(q.where["partition"]) > 0
	}
	return entity == "user" && (q.byCluster || q.asksPlaces(entity))
}

// removals are the records that a query selects, each to be deleted.
func removals(m *manager, entity string, q *mgrQuery) (names []string, changes []cluster.Change) {
	add := func(name string, c cluster.Change) {
		c.Delete = true
		changes = append(changes, c)
		names = append(names, name)
	}
	for _, r := range records(m, entity, q) {
		switch {
		case r.user != nil:
			add(r.user.Name, cluster.Change{User: r.user})
		case r.account != nil:
			add(r.account.Name, cluster.Change{Account: r.account})
		default:
			add(r.qos.Name, cluster.Change{QOS: r.qos})
		}
	}
	return names, changes
}

// forgetQOS takes QOS that are to be deleted out of the lists that name them, so that a later one of that name is
// nobody's.
func (m *manager) forgetQOS(q *mgrQuery) (changes []cluster.Change) {
	gone := func(name string) bool { return q.has("qos", name) }
	for _, a := range m.books.Assocs {
		if slices.ContainsFunc(a.QOS, gone) {
			n := *a
			n.QOS = slices.DeleteFunc(slices.Clone(a.QOS), gone)
			changes = append(changes, cluster.Change{Assoc: &n})
		}
	}
	for _, other := range m.books.QOS {
		if !gone(other.Name) && slices.ContainsFunc(other.Preempt, gone) {
			n := *other
			n.Preempt = slices.DeleteFunc(slices.Clone(other.Preempt), gone)
			changes = append(changes, cluster.Change{QOS: &n})
		}
	}
	return changes
}

// forgetDefaults has users without an account left have no default one, so that a later account of that name is not
// theirs by chance.
func forgetDefaults(b *show.Books, q *mgrQuery) (changes []cluster.Change) {
	for _, u := range b.Users {
		if u.DefaultAccount != "" && q.has("account", u.DefaultAccount) {
			n := *u
			n.DefaultAccount = ""
			changes = append(changes, cluster.Change{User: &n})
		}
	}
	return changes
}

// removePlaces takes users out of accounts, or out of some partitions of these; users who are
// named and in none any more go.
func (m *manager) removePlaces(entity string, q *mgrQuery) int {
	var changes []cluster.Change
	var places, gone []string
	left := map[string]int{}
	for _, a := range m.books.Assocs {
		left[a.User]++
	}
	for _, a := range m.books.Assocs {
		r := recordRow(m.books, a, entity)
		if a.User == "" || !q.hasPlace(a) || !q.keeps(&r) {
			continue
		}
		changes = append(changes, cluster.Change{Assoc: a, Delete: true})
		places = append(places,
			fmt.Sprintf("  C = %-10.10s A = %-10.10s U = %-9.9s", m.books.Cluster, a.Account, a.User)+partPlace(a))
		if left[a.User]--; left[a.User] == 0 && entity == "user" {
			gone = append(gone, a.User)
		}
	}
	if len(changes) == 0 {
		return m.nothing(" Nothing deleted")
	}
	text := " Deleting " + entity + " associations...\n" + strings.Join(places, "\n")
	if slices.Sort(gone); gone != nil {
		text += "\n Deleting users (No Associations)...\n  " + strings.Join(gone, "\n  ")
	}
	for _, name := range gone {
		changes = append(changes, cluster.Change{User: m.books.User(name), Delete: true})
	}
	return m.announced(text, changes, "deleting users")
}
