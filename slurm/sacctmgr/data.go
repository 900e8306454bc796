package sacctmgr

import (
	"bufio"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/report"
	"dev.muster/slurm/show"
)

// Objects that show prints (--json, --yaml), in the manner of show.go: a row is a record with the books.

// booksRow is a record of the books, and what of it was asked for.
type booksRow[T any] struct {
	v     *T
	books *show.Books
	assoc bool // with its associations
	coord bool // with its coordinators
}

var accountTable = data.Table[booksRow[cluster.Account]]{Schema: "account",
	Members: []data.Member[booksRow[cluster.Account]]{
		{Path: "associations", Of: func(r *booksRow[cluster.Account]) data.Value {
			return r.short(func(a *cluster.Association) bool { return a.Account == r.v.Name })
		}},
		{Path: "coordinators", Of: func(r *booksRow[cluster.Account]) data.Value {
			if !r.coord {
				return data.Unset
			}
			return coords(r.v.Coordinators)
		}},
		{Path: "description", Of: func(r *booksRow[cluster.Account]) data.Value {
			return data.Text(r.v.Description)
		}},
		{Path: "name", Of: func(r *booksRow[cluster.Account]) data.Value { return data.Text(r.v.Name) }},
		{Path: "organization", Of: func(r *booksRow[cluster.Account]) data.Value {
			return data.Text(r.v.Organization)
		}},
		{Path: "flags", Of: func(*booksRow[cluster.Account]) data.Value { return data.Unset }},
	}}

var userTable = data.Table[booksRow[cluster.User]]{Schema: "user", Members: []data.Member[booksRow[cluster.User]]{
	{Path: "administrator_level", Of: func(r *booksRow[cluster.User]) data.Value {
		level := cmp.Or(r.v.AdminLevel, "None")
		if level == "Admin" {
			level = "Administrator"
		}
		return data.Words(level)
	}},
	{Path: "associations", Of: func(r *booksRow[cluster.User]) data.Value {
		return r.short(func(a *cluster.Association) bool { return a.User == r.v.Name })
	}},
	{Path: "coordinators", Of: func(r *booksRow[cluster.User]) data.Value {
		if !r.coord {
			return data.Unset
		}
		return coords(coordinatedBy(r.books, r.v.Name))
	}},
	{Path: "default.qos", Of: func(*booksRow[cluster.User]) data.Value { return data.Num(0) }},
	{Path: "default.account", Of: func(r *booksRow[cluster.User]) data.Value {
		return data.Text(r.v.DefaultAccount)
	}},
	{Path: "default.wckey", Of: func(r *booksRow[cluster.User]) data.Value { return data.Text(r.v.DefaultWCKey) }},
	{Path: "flags", Of: func(*booksRow[cluster.User]) data.Value { return data.Words("NONE") }},
	{Path: "name", Of: func(r *booksRow[cluster.User]) data.Value { return data.Text(r.v.Name) }},
	{Path: "old_name", Of: func(*booksRow[cluster.User]) data.Value { return data.Unset }},
	{Path: "wckeys", Of: func(r *booksRow[cluster.User]) data.Value {
		var rows []wckeyRow
		for _, k := range r.v.WCKeys {
			rows = append(rows, wckeyRow{r.books.Cluster, r.v.Name, k})
		}
		return data.Records(&wckeyTable, rows)
	}},
}}

// coord is a coordinator of an account, or an account of which somebody is one.
type coord string

var coordTable = data.Table[coord]{Schema: "coord", Members: []data.Member[coord]{
	{Path: "name", Of: func(c *coord) data.Value { return data.Text(*c) }},
	{Path: "direct", Of: func(*coord) data.Value { return data.Bool(true) }},
}}

func coords(names []string) data.Value {
	list := make([]coord, len(names))
	for i, n := range names {
		list[i] = coord(n)
	}
	return data.Records(&coordTable, list)
}

type assocRow = booksRow[cluster.Association]

// short lists associations, if they were asked for.
func (r *booksRow[T]) short(is func(*cluster.Association) bool) data.Value {
	var rows []assocRow
	for _, a := range r.books.Assocs {
		if r.assoc && is(a) {
			rows = append(rows, assocRow{v: a, books: r.books})
		}
	}
	return data.Records(&shortTable, rows)
}

var shortTable = data.Table[assocRow]{Schema: "assoc_short", Members: []data.Member[assocRow]{
	{Path: "account", Of: func(r *assocRow) data.Value { return data.Text(r.v.Account) }},
	{Path: "cluster", Of: func(r *assocRow) data.Value { return data.Text(r.books.Cluster) }},
	{Path: "partition", Of: func(r *assocRow) data.Value { return data.Text(r.v.Partition) }},
	{Path: "user", Of: func(r *assocRow) data.Value { return data.Text(r.v.User) }},
	{Path: "id", Of: func(r *assocRow) data.Value { return data.Num(r.v.ID) }},
}}

var assocTable = data.Table[assocRow]{Schema: "assoc", Members: []data.Member[assocRow]{
	{Path: "accounting"},
	{Path: "account", Of: func(r *assocRow) data.Value { return data.Text(r.v.Account) }},
	{Path: "cluster", Of: func(r *assocRow) data.Value { return data.Text(r.books.Cluster) }},
	{Path: "comment", Of: func(r *assocRow) data.Value { return data.Text(r.v.Comment) }},
	{Path: "default.qos", Of: func(r *assocRow) data.Value { return data.Text(r.v.DefaultQOS) }},
	{Path: "flags"},
	{Path: "max.jobs.per.count", By: assocCount, Arg: "MaxJobs"},
	{Path: "max.jobs.per.accruing", By: assocCount, Arg: "MaxJobsAccrue"},
	{Path: "max.jobs.per.submitted", By: assocCount, Arg: "GrpSubmitJobs"},
	{Path: "max.jobs.per.wall_clock", By: assocWall, Arg: "MaxWall"},
	{Path: "max.jobs.active", By: assocCount, Arg: "MaxJobs"},
	{Path: "max.jobs.accruing", By: assocCount, Arg: "MaxJobsAccrue"},
	{Path: "max.jobs.total", By: assocCount, Arg: "MaxSubmitJobs"},
	{Path: "max.tres.total", By: assocTRES, Arg: "GrpTRES"},
	{Path: "max.tres.group.minutes", By: assocTRES, Arg: "GrpTRESMins"},
	{Path: "max.tres.group.active", By: assocTRES, Arg: "GrpTRESRunMins"},
	{Path: "max.tres.minutes.total", By: assocTRES, Arg: "GrpTRESMins"},
	{Path: "max.tres.minutes.per.job", By: assocTRES, Arg: "MaxTRESMins"},
	{Path: "max.tres.per.job", By: assocTRES, Arg: "MaxTRES"},
	{Path: "max.tres.per.node", By: assocTRES, Arg: "MaxTRESPerNode"},
	{Path: "max.per.account.wall_clock", By: assocWall, Arg: "GrpWall"},
	{Path: "id", Of: func(r *assocRow) data.Value { return data.Num(r.v.ID) }},
	{Path: "is_default", Of: func(r *assocRow) data.Value {
		u := r.books.User(r.v.User)
		return data.Bool(u != nil && u.DefaultAccount == r.v.Account)
	}},
	{Path: "lineage", Of: func(r *assocRow) data.Value { return data.Text(placeOf(r.books, r.v)) }},
	{Path: "min.priority_threshold", By: assocCount, Arg: "MinPrioThreshold"},
	{Path: "parent_account", Of: func(r *assocRow) data.Value {
		if p := r.books.Assoc(r.v.Parent); p != nil && r.v.User == "" {
			return data.Text(p.Account)
		}
		return data.Unset
	}},
	{Path: "partition", Of: func(r *assocRow) data.Value { return data.Text(r.v.Partition) }},
	{Path: "priority", Of: func(r *assocRow) data.Value { return data.Limit(r.v.Priority) }},
	{Path: "qos", Of: func(r *assocRow) data.Value { return data.Words(r.books.Allowed(r.v)...) }},
	{Path: "shares_raw", Of: func(r *assocRow) data.Value { return data.Num(r.v.Shares) }},
	{Path: "user", Of: func(r *assocRow) data.Value { return data.Text(r.v.User) }},
}}

// placeOf is an association's place below root: /team-a/0-alice/.
func placeOf(b *show.Books, a *cluster.Association) string {
	text := "/"
	if a.User != "" {
		text = "/0-" + a.User + "/"
	}
	if a.Partition != "" {
		text = "/0-" + a.User + "/" + a.Partition + "/"
	}
	if a.User != "" {
		a = b.Assoc(a.Parent)
	}
	for ; a != nil && a.Parent != 0; a = b.Assoc(a.Parent) {
		text = "/" + a.Account + text
	}
	return text
}

func countLimit(l cluster.Limits, name string) data.Value {
	n, ok := l.Get(name, "")
	if !ok {
		return data.Infinite
	}
	return data.Num(n)
}

func wallLimit(l cluster.Limits, name string) data.Value {
	n, ok := l.Get(name, "")
	if !ok {
		return data.Infinite
	}
	return data.Num(n / int64(time.Minute/time.Second))
}

func tresLimits(b *show.Books, l cluster.Limits, name string) data.Value {
	var rows []show.TRESRow
	for x := range l.Named(name) {
		kind, tres, _ := strings.Cut(x.TRES, "/")
		rows = append(rows, show.TRESRow{Type: kind, Name: tres, ID: show.TRESID(b, x.TRES), Count: x.Max})
	}
	return data.Records(&show.TRESTable, rows)
}

func assocCount(r *assocRow, name string) data.Value { return countLimit(r.v.Limits, name) }
func assocWall(r *assocRow, name string) data.Value  { return wallLimit(r.v.Limits, name) }
func assocTRES(r *assocRow, name string) data.Value  { return tresLimits(r.books, r.v.Limits, name) }

type qosRow = booksRow[cluster.QOS]

func qosCount(r *qosRow, name string) data.Value { return countLimit(r.v.Limits, name) }
func qosWall(r *qosRow, name string) data.Value  { return wallLimit(r.v.Limits, name) }
func qosTRES(r *qosRow, name string) data.Value  { return tresLimits(r.books, r.v.Limits, name) }

var qosTable = data.Table[qosRow]{Schema: "qos", Members: []data.Member[qosRow]{
	{Path: "description", Of: func(r *qosRow) data.Value { return data.Text(r.v.Description) }},
	{Path: "flags", Of: func(r *qosRow) data.Value { return data.Words(qosFlagWords(r.v)...) }},
	{Path: "id", Of: func(r *qosRow) data.Value { return data.Num(r.v.ID) }},
	{Path: "limits.grace_time", Of: func(r *qosRow) data.Value { return show.Seconds(r.v.GraceTime) }},
	{Path: "limits.max.active_jobs.accruing", By: qosCount, Arg: "GrpJobsAccrue"},
	{Path: "limits.max.active_jobs.count", By: qosCount, Arg: "GrpJobs"},
	{Path: "limits.max.jobs.count", By: qosCount, Arg: "GrpSubmitJobs"},
	{Path: "limits.max.jobs.active_jobs.per.account", By: qosCount, Arg: "MaxJobsPerAccount"},
	{Path: "limits.max.jobs.active_jobs.per.user", By: qosCount, Arg: "MaxJobsPerUser"},
	{Path: "limits.max.jobs.per.account", By: qosCount, Arg: "MaxSubmitJobsPerAccount"},
	{Path: "limits.max.jobs.per.user", By: qosCount, Arg: "MaxSubmitJobsPerUser"},
	{Path: "limits.max.tres.total", By: qosTRES, Arg: "GrpTRES"},
	{Path: "limits.max.tres.minutes.total", By: qosTRES, Arg: "GrpTRESMins"},
	{Path: "limits.max.tres.minutes.per.qos", By: qosTRES, Arg: "GrpTRESRunMins"},
	{Path: "limits.max.tres.minutes.per.job", By: qosTRES, Arg: "MaxTRESMins"},
	{Path: "limits.max.tres.minutes.per.account", By: qosTRES, Arg: "MaxTRESRunMinsPerAccount"},
	{Path: "limits.max.tres.minutes.per.user", By: qosTRES, Arg: "MaxTRESRunMinsPerUser"},
	{Path: "limits.max.tres.per.account", By: qosTRES, Arg: "MaxTRESPerAccount"},
	{Path: "limits.max.tres.per.job", By: qosTRES, Arg: "MaxTRES"},
	{Path: "limits.max.tres.per.node", By: qosTRES, Arg: "MaxTRESPerNode"},
	{Path: "limits.max.tres.per.user", By: qosTRES, Arg: "MaxTRESPerUser"},
	{Path: "limits.max.wall_clock.per.qos", By: qosWall, Arg: "GrpWall"},
	{Path: "limits.max.wall_clock.per.job", By: qosWall, Arg: "MaxWall"},
	{Path: "limits.max.accruing.per.account", By: qosCount, Arg: "MaxJobsAccruePerAccount"},
	{Path: "limits.max.accruing.per.user", By: qosCount, Arg: "MaxJobsAccruePerUser"},
	{Path: "limits.factor", Of: func(r *qosRow) data.Value { return floatOr(r.v.LimitFactor) }},
	{Path: "limits.min.priority_threshold", By: qosCount, Arg: "MinPrioThreshold"},
	{Path: "limits.min.tres.per.job", By: qosTRES, Arg: "MinTRES"},
	{Path: "name", Of: func(r *qosRow) data.Value { return data.Text(r.v.Name) }},
	{Path: "preempt.list", Of: func(r *qosRow) data.Value { return data.Words(r.v.Preempt...) }},
	{Path: "preempt.mode", Of: func(r *qosRow) data.Value {
		return data.Words(strings.ToUpper(cmp.Or(r.v.PreemptMode, "DISABLED")))
	}},
	{Path: "preempt.exempt_time", Of: func(r *qosRow) data.Value {
		if r.v.PreemptExempt == 0 {
			return data.Infinite
		}
		return show.Seconds(r.v.PreemptExempt)
	}},
	{Path: "priority", Of: func(r *qosRow) data.Value { return data.Num(r.v.Priority) }},
	{Path: "usage_factor", Of: func(r *qosRow) data.Value { return data.Float(r.v.UsageFactor) }},
	{Path: "usage_threshold", Of: func(r *qosRow) data.Value { return floatOr(r.v.UsageThreshold) }},
}}

func floatOr(f *float64) data.Value {
	if f == nil {
		return data.Infinite
	}
	return data.Float(*f)
}

// qosWords are the words of the schema for the flags of a QOS.
var qosWords = [...]struct{ flag, word string }{{"DenyOnLimit", "DENY_LIMIT"}, {"EnforceUsageThreshold",
	"ENFORCE_USAGE_THRESHOLD"},
	{"NoReserve", "NO_RESERVE"}, {"PartitionMaxNodes", "PARTITION_MAXIMUM_NODE"}, {"PartitionMinNodes",
		"PARTITION_MINIMUM_NODE"},
	{"OverPartQOS", "OVERRIDE_PARTITION_QOS"}, {"PartitionTimeLimit",
		"PARTITION_TIME_LIMIT"}, {"RequiresReservation", "REQUIRED_RESERVATION"},
	{"NoDecay", "NO_DECAY"}, {"UsageFactorSafe", "USAGE_FACTOR_SAFE"}, {"Relative", "RELATIVE"}}

func qosFlagWords(q *cluster.QOS) (words []string) {
	for _, f := range qosWords {
		if q.Flag(f.flag) {
			words = append(words, f.word)
		}
	}
	return words
}

var wckeyTable = data.Table[wckeyRow]{Schema: "wckey", Members: []data.Member[wckeyRow]{
	{Path: "accounting"},
	{Path: "cluster", Of: func(r *wckeyRow) data.Value { return data.Text(r.cluster) }},
	{Path: "id", Of: func(r *wckeyRow) data.Value { return data.Num(r.ID) }},
	{Path: "name", Of: func(r *wckeyRow) data.Value { return data.Text(r.Name) }},
	{Path: "user", Of: func(r *wckeyRow) data.Value { return data.Text(r.user) }},
	{Path: "flags"},
}}

// clusterRow is this cluster.
type clusterRow struct {
	books *show.Books
	conf  *api.ClusterResponse
	nodes []api.NodeInfo
}

var clusterTable = data.Table[clusterRow]{Schema: "cluster_rec", Members: []data.Member[clusterRow]{
	{Path: "controller.host", Of: func(r *clusterRow) data.Value { host, _ := r.leader(); return data.Text(host) }},
	{Path: "controller.port", Of: func(r *clusterRow) data.Value { _, port := r.leader(); return data.Text(port) }},
	{Path: "flags"},
	{Path: "name", Of: func(r *clusterRow) data.Value { return data.Text(r.books.Cluster) }},
	{Path: "nodes", Of: func(r *clusterRow) data.Value { return data.Text(r.nodeNames()) }},
	{Path: "select_plugin", Of: func(*clusterRow) data.Value { return data.Text("select/cons_tres") }},
	{Path: "associations.root", Of: func(r *clusterRow) data.Value {
		if len(r.books.Assocs) == 0 {
			return data.Record[assocRow](&shortTable, nil)
		}
		return data.Record(&shortTable, &assocRow{v: r.books.Assocs[0], books: r.books})
	}},
	{Path: "rpc_version", Of: func(*clusterRow) data.Value { return data.Num(0) }},
	{Path: "tres", Of: func(r *clusterRow) data.Value {
		return data.Records(&show.TRESTable, r.counts())
	}},
}}

// wholeCluster asks for the nodes once, when a field tells of them; who may see none sees none here.
func wholeCluster(m *manager) func() *clusterRow {
	return sync.OnceValue(func() *clusterRow {
		nodes, _ := front.Call(m.sys, api.ListNodes, api.NodeQuery{})
		return &clusterRow{books: m.books, nodes: nodes.Nodes}
	})
}

func (r *clusterRow) nodeNames() string {
	names := make([]cluster.NodeName, len(r.nodes))
	for i := range r.nodes {
		names[i] = r.nodes[i].Name
	}
	return front.NodeText(names)
}

// counts are the resources that are tracked, with how much the nodes have.
func (r *clusterRow) counts() []show.TRESRow {
	rows := trackedRows(r.books, &mgrQuery{})
	for i := range rows {
		rows[i].Count = r.has(rows[i].Type, rows[i].Name)
	}
	return rows
}

// tresText is the same in one line.
func (r *clusterRow) tresText() string {
	var all []cluster.Amount
	for _, t := range r.counts() {
		all = append(all, cluster.Amount{TRES: t.Type + front.Choose(t.Name == "", "", "/"+t.Name), N: float64(t.Count)})
	}
	return amountsText(all)
}

// amountsText are amounts in order of their names.
func amountsText(all []cluster.Amount) string {
	var words []string
	for _, a := range all {
		count := strconv.FormatInt(int64(a.N), 10)
		if a.TRES == "mem" {
			count = format.Mem(cluster.MemMB(a.N))
		}
		words = append(words, a.TRES+"="+count)
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// leader is where the server that leads listens.
func (r *clusterRow) leader() (host, port string) {
	for _, s := range r.conf.Servers {
		if s.Leader {
			k := strings.LastIndexByte(s.Addr, ':')
			if k < 0 {
				return s.Name, ""
			}
			return s.Addr[:k], s.Addr[k+1:]
		}
	}
	return "", ""
}

// has is how much of a resource the nodes have.
func (r *clusterRow) has(kind, name string) (n int64) {
	for i := range r.nodes {
		inv := &r.nodes[i].Inventory
		switch kind + "/" + name {
		case "cpu/", "billing/":
			n += int64(inv.CPUs)
		case "mem/":
			n += int64(inv.MemMB)
		case "node/":
			n++
		case "gres/gpu":
			n += int64(len(inv.Found()))
		default:
			for _, g := range inv.Found() {
				if kind == "gres" && name == "gpu:"+g.Type {
					n++
				}
			}
		}
	}
	return n
}

func trackedRows(b *show.Books, q *mgrQuery) (rows []show.TRESRow) {
	for _, r := range tresRows(b, q) {
		if kind, tres, _ := strings.Cut(r.tres, "/"); q.keeps(&r) {
			rows = append(rows, show.TRESRow{Type: kind, Name: tres, ID: show.TRESID(b, r.tres)})
		}
	}
	return rows
}

// showData prints the records of an entity as objects.
func showData(m *manager, entity string, q *mgrQuery) int {
	k := slices.IndexFunc(entityLists[:], func(e entityList) bool { return e.entity == entity })
	switch {
	case !m.data.On:
		return m.wrong("sacctmgr: error: nodes of clouds are not counted by instance: sinfo -o '%n %T' shows them")
	case k < 0:
		return m.wrong("sacctmgr: error: show " + entity + " has no answer in JSON or YAML: leave the option out")
	case q.withGone:
		if code := m.addGone(); code != 0 {
			return code
		}
	}
	part, err := entityLists[k].of(m, q)
	if err != nil {
		text, _ := front.ErrorText(err)
		return m.wrong("sacctmgr: error: " + text)
	}
	return m.sys.Answer(&m.data, bufio.NewWriter(m.sys.Stdout), m.books.Cluster, part)
}

// entityList is a row: how the list of an entity's records is made.
type entityList struct {
	entity string
	of     func(*manager, *mgrQuery) (data.Part, error)
}

var entityLists = [...]entityList{
	{"configuration", configList},
	{"account", accountList}, {"user", userList}, {"association", assocList}, {"qos", qosList}, {"wckey", wckeyList},
	{"tres", func(m *manager, q *mgrQuery) (data.Part, error) {
		return data.Each("TRES", &show.TRESTable, trackedRows(m.books, q)), nil
	}},
	{"cluster", clusterList}, {"stats", statsList},
	{"instance", func(*manager, *mgrQuery) (data.Part, error) {
		return data.Each("instances", &instanceTable, []coord{}), nil
	}},
}

func accountList(m *manager, q *mgrQuery) (data.Part, error) {
	var rows []booksRow[cluster.Account]
	for _, r := range records(m, "account", q) {
		rows = append(rows, booksRow[cluster.Account]{v: r.account, books: m.books, assoc: q.withAssoc,
			coord: q.withCoord})
	}
	return data.Each("accounts", &accountTable, rows), nil
}

func userList(m *manager, q *mgrQuery) (data.Part, error) {
	var rows []booksRow[cluster.User]
	for _, r := range records(m, "user", q) {
		rows = append(rows, booksRow[cluster.User]{v: r.user, books: m.books, assoc: q.withAssoc,
			coord: q.withCoord})
	}
	return data.Each("users", &userTable, rows), nil
}

func assocList(m *manager, q *mgrQuery) (data.Part, error) {
	var rows []assocRow
	q.addSubAccounts(m.books)
	for _, a := range m.books.Assocs {
		if q.showsPlace(m.books, a) {
			rows = append(rows, assocRow{v: a, books: m.books})
		}
	}
	return data.Each("associations", &assocTable, rows), nil
}

func qosList(m *manager, q *mgrQuery) (data.Part, error) {
	var rows []qosRow
	for _, x := range m.books.QOS {
		if q.has("qos", x.Name) && q.keeps(&mgrRow{qos: x, books: m.books}) {
			rows = append(rows, qosRow{v: x, books: m.books})
		}
	}
	return data.Each("qos", &qosTable, rows), nil
}

func wckeyList(m *manager, q *mgrQuery) (data.Part, error) {
	return data.Each("wckeys", &wckeyTable, wckeyRows(m, q)), nil
}

func statsList(m *manager, _ *mgrQuery) (data.Part, error) {
	resp, err := front.Call(m.sys, api.ShowStats, api.StatsRequest{})
	return data.One("statistics", "stats_rec", data.Record(&report.StatsTable, &resp)), err
}

// instanceTable has no rows: nodes of clouds are not counted by instance.
var instanceTable = data.Table[coord]{Schema: "instance"}

func clusterList(m *manager, q *mgrQuery) (data.Part, error) {
	conf, err := front.Call(m.sys, api.ShowCluster, api.Empty{})
	nodes, _ := front.Call(m.sys, api.ListNodes, api.NodeQuery{}) // who may see none sees none here
	var rows []clusterRow
	if q.has("cluster", strings.ToLower(m.books.Cluster)) {
		rows = append(rows, clusterRow{m.books, &conf, nodes.Nodes})
	}
	return data.Each("clusters", &clusterTable, rows), err
}

// QOSFlags are the flags of a QOS that words of the schema mean.
func QOSFlags(words []string) (flags []string) {
	for _, f := range qosWords {
		if slices.Contains(words, f.word) {
			flags = append(flags, f.flag)
		}
	}
	return flags
}
