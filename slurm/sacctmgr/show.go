package sacctmgr

import (
	"bufio"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/cluster/federation"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/report"
	"dev.muster/slurm/show"
)

// mgrRow is one line of sacctmgr show: whatever of these the line is about.
type mgrRow struct {
	account *cluster.Account
	user    *cluster.User
	assoc   *cluster.Association
	qos     *cluster.QOS
	tres    string
	number  int // of the TRES, or of the cluster in its federation
	depth   int
	host    string // of a cluster, where it is asked
	bare    bool   // shown with its associations, of which it has none
	own     bool   // of limits only those of its own
	orphan  bool   // without what is above
	span    [2]int // in the tree of associations
	whole   func() *clusterRow

	isCluster  bool
	federation string // that the cluster is in
	member     *federation.Member
	books      *show.Books
}

// limits are those of the line's association or QOS.
func (r *mgrRow) limits() cluster.Limits {
	switch {
	case r.qos != nil:
		return r.qos.Limits
	case r.assoc != nil && r.own:
		return r.assoc.Limits
	case r.assoc != nil:
		return r.books.Effective(r.assoc)
	}
	return nil
}

// allowed are the QOS of the line's association.
func (r *mgrRow) allowed() []string {
	if r.own {
		return r.assoc.QOS
	}
	return r.books.Allowed(r.assoc)
}

func (r *mgrRow) allowedIDs() (ids []string) {
	for _, q := range r.books.QOS {
		if slices.Contains(r.allowed(), q.Name) {
			ids = append(ids, strconv.Itoa(int(q.ID)))
		}
	}
	return ids
}

func limitColumn(name, head string, width int, limit string) front.Column[mgrRow] {
	return front.Column[mgrRow]{
		Name: name, Head: head, Width: width,
		Of: func(r *mgrRow) string { return show.LimitText(r.limits(), limit) },
	}
}

func oldColumn(name string, width int, limit, tres string) front.Column[mgrRow] {
	return front.Column[mgrRow]{Name: name, Head: name, Width: width, Of: func(r *mgrRow) string {
		n, ok := r.limits().Get(limit, tres)
		if !ok {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}}
}

// wallColumn is a column of a limit on time, which the first of the names is.
func wallColumn(names string) front.Column[mgrRow] {
	limit, _, _ := strings.Cut(names, " ")
	return front.Column[mgrRow]{Name: names, Head: limit, Width: 11, Of: func(r *mgrRow) string {
		n, ok := r.limits().Get(limit, "")
		if !ok {
			return ""
		}
		return format.Padded(time.Duration(n) * time.Second)
	}}
}

// mgrColumns are all fields that sacctmgr shows.
func mgrColumns() []front.Column[mgrRow] {
	return slices.Concat(mgrNames(), clusterColumns(), fedColumns(), mgrAssocTexts(), mgrQOSTexts(), mgrLimits())
}

func mgrLimits() []front.Column[mgrRow] {
	return []front.Column[mgrRow]{
		limitColumn("GrpTRES", "GrpTRES", 13, "GrpTRES"), limitColumn("GrpTRESMins", "GrpTRESMins", 13, "GrpTRESMins"),
		limitColumn("GrpTRESRunMins", "GrpTRESRunMins", 13, "GrpTRESRunMins"),
		limitColumn("GrpJobs", "GrpJobs", 7, "GrpJobs"),
		limitColumn("GrpJobsAccrue", "GrpJobsAccrue", 13, "GrpJobsAccrue"),
		limitColumn("GrpSubmitJobs", "GrpSubmit", 9, "GrpSubmitJobs"), wallColumn("GrpWall"),
		limitColumn("MaxTRES MaxTRESPerJob MaxTRESPJ", "MaxTRES", 13, "MaxTRES"),
		limitColumn("MaxTRESPerNode MaxTRESPN", "MaxTRESPerNode", 14, "MaxTRESPerNode"),
		limitColumn("MaxTRESMins MaxTRESMinsPerJob MaxTRESMinsPJ", "MaxTRESMins", 13, "MaxTRESMins"), wallColumn("MaxWall MaxWallDurationPerJob"),
		limitColumn("MaxJobs", "MaxJobs", 7, "MaxJobs"),
		limitColumn("MaxJobsAccrue", "MaxJobsAccrue", 13, "MaxJobsAccrue"),
		limitColumn("MaxSubmitJobs", "MaxSubmit", 9, "MaxSubmitJobs"),
		limitColumn("MinPrioThreshold", "MinPrioThres", 12, "MinPrioThreshold"),
		limitColumn("MaxTRESPU MaxTRESPerUser", "MaxTRESPU", 13, "MaxTRESPerUser"),
		limitColumn("MaxJobsPU MaxJobsPerUser", "MaxJobsPU", 9, "MaxJobsPerUser"),
		limitColumn("MaxSubmitPU MaxSubmitJobsPU MaxSubmitJobsPerUser", "MaxSubmitPU", 11, "MaxSubmitJobsPerUser"),
		limitColumn("MaxTRESPA MaxTRESPerAccount", "MaxTRESPA", 13, "MaxTRESPerAccount"),
		limitColumn("MaxJobsPA MaxJobsPerAccount", "MaxJobsPA", 9, "MaxJobsPerAccount"),
		limitColumn("MaxSubmitPA MaxSubmitJobsPA MaxSubmitJobsPerAccount", "MaxSubmitPA", 11,
			"MaxSubmitJobsPerAccount"),
		limitColumn("MaxJobsAccruePU MaxJobsAccruePerUser", "MaxJobsAccruePU", 15, "MaxJobsAccruePerUser"),
		limitColumn("MaxJobsAccruePA MaxJobsAccruePerAccount", "MaxJobsAccruePA", 15, "MaxJobsAccruePerAccount"),
		limitColumn("MaxTRESRunMinsPU MaxTRESRunMinsPerUser", "MaxTRESRunMinsPU", 15, "MaxTRESRunMinsPerUser"),
		limitColumn("MaxTRESRunMinsPA MaxTRESRunMinsPerAccount", "MaxTRESRunMinsPA", 15, "MaxTRESRunMinsPerAccount"),
		limitColumn("MinTRES MinTRESPerJob", "MinTRES", 13, "MinTRES"),
		oldColumn("GrpNodes", 8, "GrpTRES", "node"), oldColumn("GrpCPUs", 8, "GrpTRES", "cpu"),
		oldColumn("GrpMem", 7, "GrpTRES", "mem"),
		oldColumn("GrpCPUMins", 11, "GrpTRESMins", "cpu"), oldColumn("MaxNodes", 8, "MaxTRES", "node"),
		oldColumn("MaxCPUs", 8, "MaxTRES", "cpu"),
		oldColumn("MaxCPUMins", 11, "MaxTRESMins", "cpu"),
	}
}

// maxLineage ends the walk to the root of a tree of accounts that has a circle in it.
const maxLineage = 64

// lineageText returns where an association is in the tree of accounts: /ACCOUNT/0-USER-PARTITION/.
func lineageText(b *show.Books, a *cluster.Association) string {
	text := "/"
	if a.User != "" {
		text = "/0-" + a.User + front.Prefixed("-", a.Partition) + "/"
	}
	for range maxLineage {
		if a == nil || a.Account == cluster.RootName && a.User == "" {
			break
		}
		if a.User == "" {
			text = "/" + a.Account + text
		}
		a = b.Assoc(a.Parent)
	}
	return text
}

// ofAssoc, ofUser and ofQOS are texts of lines that have one.
func ofAssoc(r *mgrRow, text func(*cluster.Association) string) string {
	if r.assoc == nil {
		return ""
	}
	return text(r.assoc)
}

func ofUser(r *mgrRow, text func(*cluster.User) string) string {
	if r.user == nil {
		return ""
	}
	return text(r.user)
}

func ofQOS(r *mgrRow, text func(*cluster.QOS) string) string {
	if r.qos == nil {
		return ""
	}
	return text(r.qos)
}

// mgrNames are the fields that say what a line is about.
func mgrNames() []front.Column[mgrRow] {
	return []front.Column[mgrRow]{
		{Name: "Cluster", Head: "Cluster", Width: 10, Of: func(r *mgrRow) string {
			return front.Choose(r.bare, "", r.books.Cluster)
		}},
		{Name: "Account", Head: "Account", Width: 10, Of: func(r *mgrRow) string {
			if r.account != nil {
				return r.account.Name
			}
			return ofAssoc(r, func(a *cluster.Association) string { return strings.Repeat(" ", r.depth) + a.Account })
		}},
		{Name: "User", Head: "User", Width: 10, Of: func(r *mgrRow) string {
			if r.user != nil {
				return r.user.Name
			}
			return ofAssoc(r, func(a *cluster.Association) string { return a.User })
		}},
		{Name: "Description", Head: "Descr", Width: 20, Of: func(r *mgrRow) string {
			if r.account != nil {
				return r.account.Description
			}
			return ofQOS(r, func(q *cluster.QOS) string { return q.Description })
		}},
		{Name: "Organization", Head: "Org", Width: 20, Of: func(r *mgrRow) string {
			if r.account == nil {
				return ""
			}
			return r.account.Organization
		}},
		{Name: "DefaultAccount", Head: "Def Acct", Width: 10, Of: func(r *mgrRow) string {
			return ofUser(r, func(u *cluster.User) string {
				return front.Choose(r.books.Has(u.DefaultAccount, u.Name), u.DefaultAccount, "")
			})
		}},
		{
			Name: "DefaultWCKey", Head: "Def WCKey", Width: 10,
			Of: func(r *mgrRow) string { return ofUser(r, func(u *cluster.User) string { return u.DefaultWCKey }) },
		},
		{Name: "AdminLevel", Head: "Admin", Width: 9, Of: func(r *mgrRow) string {
			return ofUser(r, func(u *cluster.User) string { return cmp.Or(u.AdminLevel, "None") })
		}},
		{Name: "Coordinators", Head: "Coord Accounts", Width: 20, Of: func(r *mgrRow) string {
			switch {
			case r.account != nil:
				return strings.Join(coordinatorsOf(r.books, r.account.Name), ",")
			case r.user != nil:
				return strings.Join(coordinatedBelow(r.books, r.user.Name), ",")
			}
			return ""
		}},
		{Name: "Name", Head: "Name", Width: 10, Of: func(r *mgrRow) string {
			if r.tres != "" {
				_, name, _ := strings.Cut(r.tres, "/")
				return name
			}
			return ofQOS(r, func(q *cluster.QOS) string { return q.Name })
		}},
		{
			Name: "Type", Head: "Type", Width: 8,
			Of: func(r *mgrRow) string { t, _, _ := strings.Cut(r.tres, "/"); return t },
		},
		{Name: "ID", Head: "ID", Width: 6, Of: func(r *mgrRow) string {
			switch {
			case r.tres != "" || r.isCluster: // in its federation
				return strconv.Itoa(r.number)
			case r.qos != nil:
				return strconv.Itoa(int(r.qos.ID))
			}
			return ofAssoc(r, func(a *cluster.Association) string { return strconv.Itoa(int(a.ID)) })
		}},
	}
}

// clusterColumns are the fields of clusters.
func clusterColumns() []front.Column[mgrRow] {
	return []front.Column[mgrRow]{
		{Name: "ControlHost", Head: "ControlHost", Width: 15, Of: func(r *mgrRow) string { return r.host }},
		{Name: "ControlPort", Head: "ControlPort", Width: 12, Of: func(r *mgrRow) string { return "0" }},
		{Name: "RPC", Head: "RPC", Width: 5, Of: func(r *mgrRow) string { return "0" }},
		{Name: "Classification", Head: "Class", Width: 9, Of: func(*mgrRow) string { return "" }},
		{Name: "ClusterNodes NodeNames", Head: "Cluster Nodes", Width: 20, Of: wholeText((*clusterRow).nodeNames)},
		{Name: "NodeCount", Head: "NodeCount", Width: 9, Of: wholeText(func(r *clusterRow) string {
			return strconv.Itoa(len(r.nodes))
		})},
		{Name: "TRES", Head: "TRES", Width: 20, Of: wholeText((*clusterRow).tresText)},
	}
}

// wholeText is what a field tells of the cluster that a line is about, if it is this one.
func wholeText(of func(*clusterRow) string) func(*mgrRow) string {
	return func(r *mgrRow) string {
		if r.whole == nil {
			return ""
		}
		return of(r.whole())
	}
}

func mgrAssocTexts() []front.Column[mgrRow] {
	return []front.Column[mgrRow]{
		{
			Name: "Partition", Head: "Partition", Width: 10,
			Of: func(r *mgrRow) string {
				return ofAssoc(r,
					func(a *cluster.Association) string { return a.Partition })
			},
		},
		{Name: "Lineage", Head: "Lineage", Width: 20, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(a *cluster.Association) string { return lineageText(r.books, a) })
		}},
		{Name: "ParentName", Head: "ParentName", Width: 10, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(a *cluster.Association) string {
				if p := r.books.Assoc(a.Parent); p != nil && a.User == "" && !r.orphan {
					return p.Account
				}
				return ""
			})
		}},
		{Name: "Fairshare Share", Head: "Share", Width: 9, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(a *cluster.Association) string {
				return sharesText(a)
			})
		}},
		{Name: "Priority", Head: "Priority", Width: 10, Of: func(r *mgrRow) string {
			if r.qos != nil {
				return strconv.Itoa(r.qos.Priority)
			}
			return ofAssoc(r, func(a *cluster.Association) string {
				if n := r.books.PriorityOf(a); n != 0 && (!r.own || a.Priority != 0) {
					return strconv.Itoa(n)
				}
				return ""
			})
		}},
		{Name: "QOS QOSLevel", Head: "QOS", Width: 20, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(a *cluster.Association) string { return strings.Join(r.allowed(), ",") })
		}},
		{Name: "QOSRAW QOS_RAW", Head: "QOS_RAW", Width: 10, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(*cluster.Association) string { return strings.Join(r.allowedIDs(), ",") })
		}},
		{Name: "DefaultQOS", Head: "Def QOS", Width: 9, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(a *cluster.Association) string {
				return front.Choose(r.own, a.DefaultQOS, r.books.DefaultQOS(a))
			})
		}},
		{Name: "ParentID", Head: "ParentID", Width: 8, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(a *cluster.Association) string { return strconv.Itoa(int(a.Parent)) })
		}},
		{Name: "LFT", Head: "LFT", Width: 6, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(*cluster.Association) string { return strconv.Itoa(r.span[0]) })
		}},
		{Name: "RGT", Head: "RGT", Width: 6, Of: func(r *mgrRow) string {
			return ofAssoc(r, func(*cluster.Association) string { return strconv.Itoa(r.span[1]) })
		}},
	}
}

func mgrQOSTexts() []front.Column[mgrRow] {
	return []front.Column[mgrRow]{
		{Name: "GraceTime", Head: "GraceTime", Width: 10, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string { return format.Padded(q.GraceTime) })
		}},
		{Name: "Preempt", Head: "Preempt", Width: 10, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string { return strings.Join(q.Preempt, ",") })
		}},
		{Name: "PreemptExemptTime", Head: "PreemptExemptTime", Width: 19, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string {
				if q.PreemptExempt == 0 {
					return ""
				}
				return format.Padded(q.PreemptExempt)
			})
		}},
		{Name: "PreemptMode", Head: "PreemptMode", Width: 11, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string { return strings.ToLower(cmp.Or(q.PreemptMode, "cluster")) })
		}},
		{Name: "Flags", Head: "Flags", Width: 40, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string { return strings.Join(q.Flags, ",") })
		}},
		{Name: "UsageThreshold", Head: "UsageThres", Width: 10, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string { return sixOrNone(q.UsageThreshold) })
		}},
		{Name: "UsageFactor", Head: "UsageFactor", Width: 11, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string { return report.SixDigits(q.UsageFactor) })
		}},
		{Name: "UsageResetPeriod", Head: "UsageResetPeriod", Width: 16, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string { return cmp.Or(string(q.UsageReset), "NONE") })
		}},
		{Name: "LimitFactor", Head: "LimitFactor", Width: 11, Of: func(r *mgrRow) string {
			return ofQOS(r, func(q *cluster.QOS) string { return sixOrNone(q.LimitFactor) })
		}},
	}
}

func sixOrNone(x *float64) string {
	if x == nil {
		return ""
	}
	return report.SixDigits(*x)
}

// entityFormat is what show prints of an entity unless format= says otherwise.
func (m *manager) entityFormat(entity string, q *mgrQuery) string {
	coord := front.Choose(q.withCoord, ",Coordinators", "")
	user := "User,DefaultAccount" + front.Choose(m.books.TrackWCKey, ",DefaultWCKey", "") + ",AdminLevel" + coord
	switch {
	case entity == "account" && q.withAssoc:
		return "Account,Description,Organization" + coord + ",Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMem,GrpSubmitJobs,GrpWall,GrpCPUMins," +
			"MaxJobs,MaxNodes,MaxCPUs,MaxSubmitJobs,MaxWall,MaxCPUMins,QOS,DefaultQOS"
	case entity == "account":
		return "Account,Description,Organization" + coord
	case entity == "user" && q.withAssoc:
		return user + ",Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmitJobs,MaxWall,MaxCPUMins,QOS,DefaultQOS"
	case entity == "user":
		return user
	case entity == "association" && q.noLimits:
		return "Cluster,Account,User,Partition"
	case entity == "association":
		return "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmitJobs,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode," +
			"MaxSubmitJobs,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins"
	case entity == "qos":
		return "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThreshold,UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins," +
			"GrpJobs,GrpSubmitJobs,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES"
	case entity == "tres":
		return "Type,Name%15,ID"
	}
	limits := ",Share,GrpJobs,GrpTRES,GrpSubmitJobs,MaxJobs,MaxTRES,MaxSubmitJobs,MaxWall,QOS,DefaultQOS"
	return "Cluster,ControlHost,ControlPort,RPC" + front.Choose(q.noLimits, "", limits) +
		front.Choose(len(q.where[withFed]) > 0, ",Federation,ID,Features,FedState", "")
}

// ownLists are the entities that have columns of their own.
func ownLists() map[string]func(*manager, *mgrQuery) int {
	return map[string]func(*manager, *mgrQuery) int{
		"event": (*manager).events, "transaction": (*manager).transactions, "reservation": (*manager).reservations,
		"wckey": wckeys, "federation": showFederation, "resource": resources,
		"stats":         func(m *manager, _ *mgrQuery) int { return m.stats() },
		"configuration": func(m *manager, _ *mgrQuery) int { return m.configuration() },
		"problem": func(m *manager, q *mgrQuery) int {
			return showTable(m, q, problemColumns(), "Cluster,Account,User,Problem", m.problems())
		},
		"runawayjobs": func(m *manager, _ *mgrQuery) int { // jobs and their history are one state
			m.tell("Runaway Jobs: No runaway jobs found on cluster %s", m.books.Cluster)
			return 0
		},
	}
}

// show prints the records of an entity that the conditions select.
func (m *manager) show(args []string) int {
	if len(args) == 0 {
		return m.wrong(listInput)
	}
	entity := mgrEntity(args[0])
	if entity == "" || entity == "coordinator" || entity == "job" {
		return m.noEntity(args, listInput)
	}
	q, code := conditionsOf(m, entity, args[1:])
	if code >= 0 {
		return code
	}
	if m.data.On || entity == "instance" {
		return showData(m, entity, q)
	}
	if list := ownLists()[entity]; list != nil {
		return list(m, q)
	}
	if bad := m.report.Pick(mgrColumns(), cmp.Or(q.format, m.entityFormat(entity, q))); bad != "" {
		return m.wrong("Unknown field '" + bad + "'")
	}
	if q.withGone {
		if code := m.addGone(); code != 0 {
			return code
		}
	}
	out := bufio.NewWriterSize(m.sys.Stdout, 1<<16)
	m.report.Print(out, m.rows(entity, q))
	_ = out.Flush()
	noteUnheld(m.sys.Stderr, m.books, limitsShown(m.books, entity)...)
	return 0
}

// rows are the lines of an entity.
func (m *manager) rows(entity string, q *mgrQuery) (rows []mgrRow) {
	b := m.books
	switch entity {
	case "account":
		return recordRows(q, entity, accountNames(b), func(n string) mgrRow {
			return mgrRow{account: b.Account(n), books: b}
		}, b)
	case "user":
		return recordRows(q, entity, userNames(b, q), func(n string) mgrRow {
			return mgrRow{user: b.User(n), books: b}
		}, b)
	case "association":
		return assocRows(b, q)
	case "qos":
		for _, x := range b.QOS {
			if q.has("qos", x.Name) {
				rows = append(rows, mgrRow{qos: x, books: b})
			}
		}
	case "tres":
		rows = tresRows(b, q)
	case "cluster":
		if q.has("cluster", strings.ToLower(b.Cluster)) {
			rows = append(rows, mgrRow{assoc: b.Assocs[0], books: b, whole: wholeCluster(m)})
		}
		return withFederation(m, append(rows, peerRows(m, q)...))
	}
	return slices.DeleteFunc(rows, func(r mgrRow) bool { return !q.keeps(&r) })
}

func accountNames(b *show.Books) (names []string) {
	for _, a := range b.Accounts {
		names = append(names, a.Name)
	}
	return names
}

// userNames are the users who have one of the wckeys that are asked for.
func userNames(b *show.Books, q *mgrQuery) (names []string) {
	asked := func(k cluster.WCKey) bool { return q.has("wckey", k.Name) }
	for _, u := range b.Users {
		if len(q.where["wckey"]) == 0 || slices.ContainsFunc(u.WCKeys, asked) {
			names = append(names, u.Name)
		}
	}
	return names
}

// tresRows are what is tracked, Slurm's first.
func tresRows(b *show.Books, q *mgrQuery) (rows []mgrRow) {
	own := len(show.SlurmTRES())
	for i, name := range report.TrackedTRES(&b.BooksResponse) {
		n := i + 1
		if i >= own {
			n = report.FirstOwnTRES + i - own
		}
		if q.has("tres", name) {
			rows = append(rows, mgrRow{tres: name, number: n, books: b})
		}
	}
	return rows
}

// peerRows are the clusters that this one can ask; what they allow is theirs to show.
func peerRows(m *manager, q *mgrQuery) (rows []mgrRow) {
	resp, err := front.Call(m.sys, api.ListPeers, api.Empty{})
	if err != nil { // a daemon of before
		return nil
	}
	for _, p := range resp.Peers {
		if !q.has("cluster", strings.ToLower(p.Name)) {
			continue
		}
		_, at, _ := strings.Cut(p.URLs, "://")
		host, _, _ := strings.Cut(at, ",")
		host, _, _ = strings.Cut(host, ":")
		rows = append(rows, mgrRow{host: host, books: &show.Books{BooksResponse: api.BooksResponse{Cluster: p.Name}}})
	}
	return rows
}
