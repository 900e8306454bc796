package report

import (
	"slices"
	"strings"
	"sync"

	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// utilization is sreport cluster Utilization.
func (r *reporter) utilization(a *reportAsk) int {
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	if slices.Contains(front.SplitList(strings.ToLower(r.tresText)), "node") {
		return r.fatal("TRES node usage is no longer reported in the Cluster Utilization report.  " +
			"Please use TRES CPU instead.")
	}
	r.title(a, "Cluster Utilization", false, r.usageTitle())
	var rows []cluster.Utilization
	if len(resp.Utilization) > 0 {
		for _, t := range r.tres {
			if t == "node" { // nodes that jobs share would count more than once
				continue
			}
			i := slices.IndexFunc(resp.Utilization, func(u cluster.Utilization) bool { return u.TRES == t })
			if i < 0 {
				rows = append(rows, cluster.Utilization{TRES: t})
				continue
			}
			rows = append(rows, resp.Utilization[i])
		}
	}
	type U = cluster.Utilization
	field := func(name, head string, of func(*U) float64) front.Column[U] {
		largest := 0.0
		for i := range rows {
			largest = max(largest, of(&rows[i]))
		}
		return front.Column[U]{
			Name: name, Head: head, Width: r.unit.width(8, largest),
			Of: func(u *U) string { return r.unit.write(of(u), u.Reported) },
		}
	}
	cols := []front.Column[U]{
		{Name: "Cluster", Head: "Cluster", Width: 9, Of: func(*U) string { return resp.Cluster }},
		{Name: "TresName", Head: "TRES Name", Width: 14, Of: func(u *U) string { return u.TRES }},
		{
			Name: "TresCount CPUCount Count", Head: "TRES Count", Width: 10,
			Of: func(u *U) string { return PlainNumber(u.Count) },
		},
		field("Allocated", "Allocated", func(u *U) float64 { return u.Allocated }),
		field("Down", "Down", func(u *U) float64 { return u.Down }),
		field("PlannedDown", "PLND Down", func(u *U) float64 { return u.PlannedDown }),
		field("Idle", "Idle", func(u *U) float64 { return u.Idle }),
		field("Planned Reserved", "Planned", func(u *U) float64 { return u.Planned }),
		field("Reported", "Reported", func(u *U) float64 { return u.Reported }),
		field("OverCommitted", "Over Comm", func(u *U) float64 { return u.Over }),
	}
	return printReport(r, a, cols,
		"Cluster"+front.Choose(r.tresText == "", "", ",TresName")+",Allocated,Down,PlannedDown,Idle,Planned,Reported",
		rows)
}

// ownerRow is a line of a report about accounts, users and wckeys: the use of one resource.
type ownerRow struct {
	account, user, wckey, tres string
	depth                      int
	used                       []cluster.Amount
}

// amounts is what the row's owner used of a resource.
func (o *ownerRow) of(tres string) float64 {
	return cluster.AmountOf(o.used, tres)
}

// eachTRES makes a line for each resource of each owner.
func (r *reporter) eachTRES(rows []ownerRow) (out []ownerRow) {
	for _, o := range rows {
		for _, t := range r.tres {
			o.tres = t
			out = append(out, o)
		}
	}
	return out
}

// ownerColumns are the fields of those reports.
func (r *reporter) ownerColumns(cluster string, tree bool, rows []ownerRow) []front.Column[ownerRow] {
	largest := 0.0
	for i := range rows {
		largest = max(largest, rows[i].of(rows[i].tres))
	}
	known := sync.OnceValue(func() map[string]front.User { // only for those who want to see it
		var names []string
		for i := range rows {
			names = append(names, rows[i].user)
		}
		return front.LookupUsers(names)
	})
	account := front.Column[ownerRow]{
		Name: "Account Accounts", Head: "Account", Width: 15,
		Of: func(o *ownerRow) string { return o.account },
	}
	if tree {
		account = front.Column[ownerRow]{
			Name: "Account Accounts", Head: "Account", Width: -20,
			Of: func(o *ownerRow) string { return strings.Repeat(" ", o.depth) + o.account },
		}
	}
	return []front.Column[ownerRow]{
		account,
		{Name: "Cluster", Head: "Cluster", Width: 9, Of: func(*ownerRow) string { return cluster }},
		{Name: "Login", Head: "Login", Width: 9, Of: func(o *ownerRow) string { return o.user }},
		{Name: "Proper", Head: "Proper Name", Width: 15, Of: func(o *ownerRow) string { return known()[o.user].Full }},
		{Name: "TresName", Head: "TRES Name", Width: 14, Of: func(o *ownerRow) string { return o.tres }},
		{
			Name: "Used", Head: "Used", Width: r.unit.width(8, largest),
			Of: func(o *ownerRow) string { return r.unit.write(o.of(o.tres), r.total[o.tres]) },
		},
		{
			Name: "Energy", Head: "Energy", Width: r.unit.width(8, 0),
			Of: func(o *ownerRow) string { return r.unit.write(o.of("energy"), r.total["energy"]) },
		},
		{Name: "WCKey", Head: "WCKey", Width: 15, Of: func(o *ownerRow) string { return o.wckey }},
	}
}

// used ends a list of fields: without --tres with the energy, else with the resource's name.
func (r *reporter) used(head string) string {
	return head + front.Choose(r.tresText == "", ",Used,Energy", ",TresName,Used")
}

// sumOwners adds up rows that agree in what key keeps.
func sumOwners(rows []cluster.UsageRow, key func(*cluster.UsageRow) ownerRow) (out []ownerRow) {
	at := map[[3]string]int{}
	for i := range rows {
		o := key(&rows[i])
		k := [3]string{o.account, o.user, o.wckey}
		n, ok := at[k]
		if !ok {
			n, out = len(out), append(out, o)
			at[k] = n
		}
		out[n].used = cluster.AddAmounts(out[n].used, rows[i].Used, 1)
	}
	return out
}

// byUse puts those first that used most of the first resource.
func (r *reporter) byUse(rows []ownerRow) {
	slices.SortStableFunc(rows, func(a, b ownerRow) int {
		switch x, y := a.of(r.tres[0]), b.of(r.tres[0]); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
}

// below adds the accounts below those that are named.
func (r *reporter) below(names []string) []string {
	names = slices.Clone(names)
	for _, t := range show.TreeOf(r.books.Assocs) {
		if t.User == "" && !slices.Contains(names, t.Account) && slices.Contains(names, r.parentOf(t.Account)) {
			names = append(names, t.Account)
		}
	}
	return names
}

// parentOf is the account above another one.
func (r *reporter) parentOf(account string) string {
	b := show.Books{BooksResponse: *r.books}
	a := b.Find(account, "", "")
	if a == nil {
		return ""
	}
	for _, p := range r.books.Assocs {
		if p.ID == a.Parent {
			return p.Account
		}
	}
	return ""
}

// accountsByUser is sreport cluster AccountUtilizationByUser: the tree of accounts, with sums.
func (r *reporter) accountsByUser(a *reportAsk) int {
	if len(a.Accounts) > 0 {
		a.Accounts = r.below(a.Accounts)
	}
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	rows := r.tree(resp.Rows, len(a.Users) > 0, a.Accounts)
	r.title(a, "Cluster/Account/User Utilization", true, r.usageTitle())
	rows = r.eachTRES(rows)
	return printReport(r, a, r.ownerColumns(resp.Cluster, a.tree, rows), r.used("Cluster,Account,Login,Proper"), rows)
}

// tree lays sums over the tree of accounts: an account's own line has those of its users and of the accounts below it.
// With usersOnly there are no lines of accounts. Owners that are not in the books any more come last.
func (r *reporter) tree(used []cluster.UsageRow, usersOnly bool, accounts []string) (out []ownerRow) {
	own := sumOwners(used, func(u *cluster.UsageRow) ownerRow { return ownerRow{account: u.Account, user: u.User} })
	find := func(account, user string) *ownerRow {
		i := slices.IndexFunc(own, func(o ownerRow) bool { return o.account == account && o.user == user })
		if i < 0 {
			return nil
		}
		return &own[i]
	}
	sums := map[string][]cluster.Amount{}
	for i := range own {
		name := own[i].account
		for range len(r.books.Accounts) + 1 {
			sums[name] = cluster.AddAmounts(sums[name], own[i].used, 1)
			up := r.parentOf(name)
			if up == "" && name != cluster.RootName {
				up = cluster.RootName
			}
			if up == "" {
				break
			}
			name = up
		}
	}
	shown := map[[2]string]bool{}
	add := func(account, user string, depth int) {
		k := [2]string{account, user}
		if shown[k] || len(accounts) > 0 && !slices.Contains(accounts, account) {
			return
		}
		if o := find(account, user); user != "" && o != nil {
			shown[k] = true
			out = append(out, ownerRow{account: account, user: user, depth: depth, used: o.used})
		} else if user == "" && !usersOnly && sums[account] != nil {
			shown[k] = true
			out = append(out, ownerRow{account: account, depth: depth, used: sums[account]})
		}
	}
	for _, t := range show.TreeOf(r.books.Assocs) {
		add(t.Account, t.User, t.Depth)
	}
	for i := range own { // owners that the books do not know
		add(own[i].account, "", 1)
		add(own[i].account, own[i].user, 2)
	}
	return out
}

// usersByAccount is sreport cluster UserUtilizationByAccount.
func (r *reporter) usersByAccount(a *reportAsk) int {
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	rows := sumOwners(resp.Rows,
		func(u *cluster.UsageRow) ownerRow { return ownerRow{account: u.Account, user: u.User} })
	r.byUse(rows)
	return r.printOwners(a, resp.Cluster, "Cluster/User/Account Utilization",
		r.used("Cluster,Login,Proper,Account"), rows)
}

// printOwners prints a report of a line per owner, or per owner and TRES that was asked for.
func (r *reporter) printOwners(a *reportAsk, name, title, fields string, rows []ownerRow) int {
	r.title(a, title, true, r.usageTitle())
	rows = r.eachTRES(rows)
	return printReport(r, a, r.ownerColumns(name, false, rows), fields, rows)
}

// keyRows are the sums of runs that have a wckey.
func (r *reporter) keyRows(rows []cluster.UsageRow) []ownerRow {
	rows = slices.DeleteFunc(rows, func(u cluster.UsageRow) bool { return u.WCKey == "" })
	return sumOwners(rows, func(u *cluster.UsageRow) ownerRow { return ownerRow{user: u.User, wckey: u.WCKey} })
}

// usersByKey is sreport cluster UserUtilizationByWckey.
func (r *reporter) usersByKey(a *reportAsk) int {
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	rows := r.keyRows(resp.Rows)
	r.byUse(rows)
	return r.printOwners(a, resp.Cluster, "Cluster/User/WCKey Utilization",
		"Cluster,Login,Proper,WCKey"+front.Choose(r.tresText == "", "", ",TresName")+",Used", rows)
}

// keysByUser is sreport cluster WCKeyUtilizationByUser: each key, and who used it.
func (r *reporter) keysByUser(a *reportAsk) int {
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	var rows []ownerRow
	users := r.keyRows(resp.Rows)
	slices.SortStableFunc(users, func(a, b ownerRow) int { return strings.Compare(a.wckey, b.wckey) })
	for i, u := range users {
		if i == 0 || users[i-1].wckey != u.wckey {
			rows = append(rows, ownerRow{wckey: u.wckey})
		}
		key := &rows[slices.IndexFunc(rows, func(o ownerRow) bool { return o.wckey == u.wckey })]
		key.used = cluster.AddAmounts(key.used, u.used, 1)
		rows = append(rows, u)
	}
	return r.printOwners(a, resp.Cluster, "Cluster/WCKey/User Utilization",
		"Cluster,WCKey,Login,Proper"+front.Choose(r.tresText == "", "", ",TresName")+",Used", rows)
}

// topUsers is sreport user TopUsage.
func (r *reporter) topUsers(a *reportAsk) int {
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	rows := sumOwners(resp.Rows,
		func(u *cluster.UsageRow) ownerRow { return ownerRow{account: u.Account, user: u.User} })
	r.byUse(rows)
	if a.group {
		var users []ownerRow
		for _, o := range rows {
			i := slices.IndexFunc(users, func(u ownerRow) bool { return u.user == o.user })
			if i < 0 {
				users = append(users, ownerRow{user: o.user, account: o.account, used: slices.Clone(o.used)})
				continue
			}
			users[i].account += ", " + o.account
			users[i].used = cluster.AddAmounts(users[i].used, o.used, 1)
		}
		rows = users
		r.byUse(rows)
	}
	rows = rows[:min(len(rows), a.top)]
	r.title(a, "Top "+PlainNumber(float64(a.top))+" Users", true, r.usageTitle())
	rows = r.eachTRES(rows)
	return printReport(r, a, r.ownerColumns(resp.Cluster, false, rows), r.used("Cluster,Login,Proper,Account"), rows)
}
