package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/show"
)

// sizeGroup is a column of the reports of sizes: jobs with from to to CPUs.
type sizeGroup struct {
	from, to float64 // to: 0 is no bound
	head     string
}

// sizeGroups reads grouping=: where the groups after the first begin. One for each size that there is with
// individual. Sizes are of CPUs, whatever is summed and the heads say.
func sizeGroups(text, unit string, rows []cluster.UsageRow) (out []sizeGroup, bad string) {
	if strings.EqualFold(text, "individual") {
		var sizes []float64
		for i := range rows {
			sizes = append(sizes, cluster.AmountOf(rows[i].TRES, "cpu"))
		}
		slices.Sort(sizes)
		for _, n := range slices.Compact(sizes) {
			out = append(out, sizeGroup{n, n, PlainNumber(n) + " " + unit})
		}
		return out, ""
	}
	if text == "" {
		text = "50,250,500,1000"
	}
	from := 0
	for _, w := range front.SplitList(text) {
		n, err := strconv.Atoi(w)
		if err != nil || n <= from {
			return nil, w
		}
		out = append(out, sizeGroup{float64(from), float64(n - 1), fmt.Sprintf("%d-%d %s", from, n-1, unit)})
		from = n
	}
	return append(out, sizeGroup{float64(from), 0, fmt.Sprintf(">= %d %s", from, unit)}), ""
}

func (g *sizeGroup) has(n float64) bool {
	return n >= g.from && (g.to == 0 && g.from != 0 || n <= g.to)
}

// sizeRow is a line of the reports of sizes: one sum for each group.
type sizeRow struct {
	name string
	sums []float64
	all  float64
}

// sizesByAccount is sreport job SizesByAccount.
func (r *reporter) sizesByAccount(a *reportAsk) int {
	return r.sizes(a, "Job Sizes", front.Column[sizeRow]{
		Name: "Account", Head: "Account", Width: 9, Of: func(s *sizeRow) string { return s.name },
	}, func(u *cluster.UsageRow) []string {
		return r.topAccounts(a, u.Account)
	})
}

// sizesByBoth is sreport job SizesByAccountAndWckey.
func (r *reporter) sizesByBoth(a *reportAsk) int {
	return r.sizes(a, "Job Sizes", front.Column[sizeRow]{
		Name: "Account", Head: "Account", Width: -20, Of: func(s *sizeRow) string { return s.name },
	}, func(u *cluster.UsageRow) (names []string) {
		if u.WCKey == "" && !a.flat {
			return nil
		}
		for _, n := range r.topAccounts(a, u.Account) {
			names = append(names, n+":"+u.WCKey)
		}
		return names
	})
}

// sizesByKey is sreport job SizesByWckey.
func (r *reporter) sizesByKey(a *reportAsk) int {
	return r.sizes(a, "Job Sizes by Wckey", front.Column[sizeRow]{
		Name: "Wckey", Head: "Wckey", Width: 9, Of: func(s *sizeRow) string { return s.name },
	}, func(u *cluster.UsageRow) []string {
		if u.WCKey == "" {
			return nil
		}
		return []string{u.WCKey}
	})
}

// topAccounts are the lines that an account's jobs belong to: its own with flatview, else those of the named accounts
// above it (by default root), or with acctasparent of the accounts right below these.
func (r *reporter) topAccounts(a *reportAsk, account string) (out []string) {
	if a.flat {
		if len(a.tops) > 0 && !slices.Contains(a.tops, account) {
			return nil
		}
		return []string{account}
	}
	tops := a.tops
	if len(tops) == 0 {
		tops = []string{cluster.RootName}
	}
	before := ""
	for name, n := account, 0; name != "" && n <= len(r.books.Accounts); n++ {
		if slices.Contains(tops, name) {
			if !a.asParent {
				out = append(out, name)
			} else if before != "" {
				out = append(out, before)
			}
		}
		up := r.parentOf(name)
		if up == "" && name != cluster.RootName {
			up = cluster.RootName
		}
		before, name = name, up
	}
	return out
}

// sizes makes a report of sizes: names says to which lines runs belong.
func (r *reporter) sizes(a *reportAsk, title string, first front.Column[sizeRow],
	names func(*cluster.UsageRow) []string) int {
	if len(r.tres) > 1 {
		return sayWrong(r.sys, " Job report only supports a single --tres type.",
			" Generate a separate report for each TRES type.")
	}
	a.By, a.tops, a.Accounts = cluster.BySize, a.Accounts, nil
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	tres := r.tres[0]
	groups, bad := sizeGroups(a.grouping, front.Choose(r.tresText == "", "CPUs", "TRES"), resp.Rows)
	if bad != "" {
		return r.sys.Fail("Invalid grouping %q: numbers that rise, or individual", bad)
	}
	rows, all := sumSizes(resp.Rows, groups, tres, a.counts, names)
	lines := []string{"Time reported in " + r.unit.text("")}
	if a.counts {
		lines = []string{"Units are in number of jobs ran"}
	}
	lines[0] = strings.Replace(lines[0], "in  ", "in ", 1)
	if r.tresText != "" {
		lines = append([]string{"TRES type is " + tres}, lines...)
	}
	r.title(a, title, true, lines...)
	cols := []front.Column[sizeRow]{
		{Name: "Cluster", Head: "Cluster", Width: 9, Of: func(*sizeRow) string { return resp.Cluster }},
		first,
	}
	text := cmpOr(a.format, "Cluster,"+first.Name)
	a.format = ""
	wide := 13
	if r.unit.percent && r.unit.secs > 0 {
		wide = 20
	}
	for i, g := range groups {
		name := "group" + strconv.Itoa(i) + "."
		text += "," + name
		cols = append(cols, front.Column[sizeRow]{Name: name, Head: g.head, Width: wide, Of: func(s *sizeRow) string {
			if a.counts {
				return PlainNumber(s.sums[i])
			}
			return r.unit.write(s.sums[i], s.all)
		}})
	}
	cols = append(cols, front.Column[sizeRow]{
		Name: "share.", Head: "% of cluster", Width: 12,
		Of: func(s *sizeRow) string { return (&reportUnit{}).write(s.all, all) },
	})
	return printReport(r, a, cols, text+",share.", rows)
}

func cmpOr(a, b string) string {
	return front.Choose(a != "", a, b)
}

// sumSizes adds up runs by line and group, as time or as jobs, in order of name.
func sumSizes(used []cluster.UsageRow, groups []sizeGroup, tres string, counts bool,
	names func(*cluster.UsageRow) []string) (rows []sizeRow, all float64) {
	for i := range used {
		u := &used[i]
		g := slices.IndexFunc(groups, func(g sizeGroup) bool { return g.has(cluster.AmountOf(u.TRES, "cpu")) })
		x := cluster.AmountOf(u.Used, tres)
		if counts {
			x = float64(u.Jobs)
		}
		for _, name := range names(u) {
			k := slices.IndexFunc(rows, func(s sizeRow) bool { return s.name == name })
			if k < 0 {
				k, rows = len(rows), append(rows, sizeRow{name: name, sums: make([]float64, len(groups))})
			}
			rows[k].all += x
			all += x
			if g >= 0 {
				rows[k].sums[g] += x
			}
		}
	}
	slices.SortFunc(rows, func(a, b sizeRow) int { return strings.Compare(a.name, b.name) })
	return rows, all
}

// resvUse is a line of sreport reservation Utilization: one resource of one reservation.
type resvUse struct {
	*cluster.ResvSpan
	tres string
}

func (u *resvUse) secs() float64 {
	return float64(u.To - u.From)
}

func (u *resvUse) all() float64 {
	return cluster.AmountOf(u.TRES, u.tres) * u.secs()
}

func (u *resvUse) alloc() float64 {
	return cluster.AmountOf(u.Used, u.tres)
}

// reservations is sreport reservation Utilization. The time of a report does not cut reservations.
func (r *reporter) reservations(a *reportAsk) int {
	nodes := a.Nodes
	a.Nodes, a.Reservations = nil, true
	resp, code := r.fetch(a)
	if code != 0 {
		return code
	}
	var rows []resvUse
	for i := range resp.Reservations {
		s := &resp.Reservations[i]
		if len(a.names) > 0 && !slices.Contains(a.names, s.Name) ||
			len(nodes) > 0 && !slices.ContainsFunc(s.Nodes,
				func(n cluster.NodeName) bool { return slices.Contains(nodes, n) }) {
			continue
		}
		for _, x := range s.TRES {
			if r.tresText != "" && slices.Contains(r.tres, x.TRES) || r.tresText == "" && (x.TRES == "cpu" || x.TRES == "gres/gpu") {
				rows = append(rows, resvUse{s, x.TRES})
			}
		}
	}
	r.title(a, "Reservation Utilization", false, "Usage reported in "+r.unit.text("TRES"))
	return printReport(r, a, r.resvColumns(resp), "Cluster,Name,Start,End,TresName,Allocated,Idle", rows)
}

func (r *reporter) resvColumns(resp *api.UsageResponse) []front.Column[resvUse] {
	at := func(secs int64) string { return front.Stamp(time.Unix(secs, 0)) }
	wide := r.unit.width(20, 0)
	return []front.Column[resvUse]{
		{
			Name: "Allocated", Head: "Allocated", Width: wide,
			Of: func(u *resvUse) string { return r.unit.write(u.alloc(), u.all()) },
		},
		{Name: "Associations", Head: "Associations", Width: 15, Of: func(u *resvUse) string {
			return commaed(MayUseReservation((&show.Books{BooksResponse: *r.books}), u.ResvSpan))
		}},
		{Name: "Cluster", Head: "Cluster", Width: 9, Of: func(*resvUse) string { return resp.Cluster }},
		{
			Name: "TresCount Count", Head: "TRES count", Width: 10,
			Of: func(u *resvUse) string { return PlainNumber(cluster.AmountOf(u.TRES, u.tres)) },
		},
		{
			Name: "TresTime CPUTime", Head: "TRES Time", Width: 9,
			Of: func(u *resvUse) string { return format.Padded(time.Duration(u.all()) * time.Second) },
		},
		{Name: "End", Head: "End", Width: 19, Of: func(u *resvUse) string { return at(u.To) }},
		{
			Name: "Flags", Head: "Flags", Width: 20,
			Of: func(u *resvUse) string { return show.ResvText(&cluster.Reservation{Flags: u.Flags}) },
		},
		{
			Name: "Idle", Head: "Idle", Width: wide,
			Of: func(u *resvUse) string { return r.unit.write(max(u.all()-u.alloc(), 0), u.all()) },
		},
		{Name: "Name", Head: "Name", Width: 9, Of: func(u *resvUse) string { return u.Name }},
		{Name: "Nodes", Head: "Nodes", Width: 15, Of: func(u *resvUse) string { return front.NodeText(u.Nodes) }},
		{
			Name: "ReservationId", Head: "Id", Width: 8,
			Of: func(u *resvUse) string { return strconv.FormatInt(u.ID, 10) },
		},
		{Name: "Start", Head: "Start", Width: 19, Of: func(u *resvUse) string { return at(u.From) }},
		{
			Name: "TotalTime", Head: "TotalTime", Width: 9,
			Of: func(u *resvUse) string { return format.Padded(time.Duration(u.To-u.From) * time.Second) },
		},
		{Name: "TresName", Head: "TRES Name", Width: 14, Of: func(u *resvUse) string { return u.tres }},
	}
}

// MayUseReservation lists the associations that may use a reservation.
func MayUseReservation(b *show.Books, s *cluster.ResvSpan) (ids []string) {
	for _, a := range b.Assocs {
		if slices.Contains(s.Users, a.User) && a.User != "" || len(s.Users) == 0 && slices.Contains(s.Accounts, a.Account) && a.User == "" {
			ids = append(ids, strconv.FormatUint(uint64(a.ID), 10))
		}
	}
	return ids
}

// commaed is a list with a comma before and behind each, as sreport has it.
func commaed(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "," + strings.Join(list, ",") + ","
}
