package report

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/data"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

// shareOptions is what sshare's line asks for.
type shareOptions struct {
	accounts, users             []string
	all, long, parts, usersOnly bool
	report                      front.Table[shareRow]
	format                      *string
	helpFormat                  bool
	clusters                    string
	verbose                     int
	data                        data.Ask
}

// Asked is what --json and --yaml say.
func (o *shareOptions) Asked() *data.Ask {
	return &o.data
}

// SshareOptions are the options of sshare.
var SshareOptions = []opt.Option[shareOptions]{
	{Long: "accounts", Short: 'A', Arg: opt.Required, On: opt.Sshare, Meta: "names",
		Help: "only these accounts",
		Set: func(o *shareOptions, v string) error {
			if o.accounts == nil {
				o.accounts = []string{} // not all of them, even if no name follows
			}
			o.accounts = append(o.accounts, front.SplitList(strings.ToLower(v))...)
			return nil
		}},
	{
		Long: "all", Short: 'a', On: opt.Sshare, Help: "all users",
		Set: func(o *shareOptions, _ string) error { o.all, o.users = true, nil; return nil },
	},
	{
		Long: "helpformat", Short: 'e', On: opt.Sshare, Help: "list the fields of --format",
		Set: func(o *shareOptions, _ string) error { o.helpFormat = true; return nil },
	},
	{
		Long: "long", Short: 'l', On: opt.Sshare, Help: "more fields",
		Set: func(o *shareOptions, _ string) error { o.long = true; return nil },
	},
	{
		Long: "partition", Short: 'm', On: opt.Sshare, Help: "the associations' partitions",
		Set: func(o *shareOptions, _ string) error { o.parts = true; return nil },
	},
	{
		Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.Sshare, Env: "sshare=SLURM_CLUSTERS",
		Meta: "names", Help: "clusters to ask",
		Set: func(o *shareOptions, v string) error { return opt.SetClusters(v, &o.clusters) },
	},
	{Long: "cluster", Arg: opt.Required, On: opt.Sshare, Alias: "clusters"},
	{
		Long: "noheader", Short: 'n', On: opt.Sshare, Help: "no line of headers",
		Set: func(o *shareOptions, _ string) error { o.report.NoHeader = true; return nil },
	},
	{
		Long: "noheader", Short: 'h', On: opt.Sshare, Alias: "noheader", Hidden: true,
		Set: func(o *shareOptions, _ string) error { o.report.NoHeader = true; return nil },
	},
	{Long: "format", Short: 'o', Arg: opt.Required, On: opt.Sshare, Meta: "fields",
		Help: "what to show, as name[%width],...",
		Set: func(o *shareOptions, v string) error {
			if o.format != nil {
				v = *o.format + "," + v
			}
			o.format = &v
			return nil
		}},
	{
		Long: "parsable", Short: 'p', On: opt.Sshare, Help: "fields end with |",
		Set: func(o *shareOptions, _ string) error { o.report.Parse = 1; return nil },
	},
	{
		Long: "parsable2", Short: 'P', On: opt.Sshare, Help: "fields are separated by |",
		Set: func(o *shareOptions, _ string) error { o.report.Parse = 2; return nil },
	},
	{Long: "users", Short: 'u', Arg: opt.Required, On: opt.Sshare, Meta: "names",
		Help: "only these users, names or numbers",
		Set: func(o *shareOptions, v string) error {
			o.users, o.all = append(o.users, front.SplitList(strings.ToLower(v))...), false
			return nil
		}},
	{
		Long: "Users", Short: 'U', On: opt.Sshare, Help: "users alone, no accounts",
		Set: func(o *shareOptions, _ string) error { o.usersOnly = true; return nil },
	},
	{
		Long: "verbose", Short: 'v', On: opt.Sshare, Help: "more messages",
		Set: func(o *shareOptions, _ string) error { o.verbose++; return nil },
	},
	{Long: "json", Arg: opt.Optional, On: opt.Sshare, Meta: "version", Newer: true,
		Help: "print JSON: v0.0.42 to v0.0.45, or list",
		Set:  func(o *shareOptions, v string) error { return o.data.JSON(v) }},
	{Long: "yaml", Arg: opt.Optional, On: opt.Sshare, Meta: "version", Newer: true, Help: "print YAML, as --json",
		Set: func(o *shareOptions, v string) error { return o.data.Yaml(v) }},
	{Long: "version", Short: 'V', On: opt.Sshare, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", On: opt.Sshare, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sshare, Group: opt.HelpGroup, Help: "print a short help"},
}

// shareRow is one association with its standing.
type shareRow struct {
	*cluster.Association
	stand *cluster.Standing
	depth int
	books *api.BooksResponse
	flat  bool // no indents
}

func (r *shareRow) root() bool {
	return r.Parent == 0
}

// SixDigits writes a number with six digits behind the point.
func SixDigits(x float64) string {
	return strconv.FormatFloat(x, 'f', 6, 64)
}

// shareColumns are the fields of sshare. A function: nothing is laid out at start.
func shareColumns() []front.Column[shareRow] {
	return []front.Column[shareRow]{
		{Name: "Account", Head: "Account", Width: -20, Of: func(r *shareRow) string {
			if r.flat {
				return r.Association.Account
			}
			return strings.Repeat(" ", r.depth) + r.Association.Account
		}},
		{Name: "User", Head: "User", Width: 10, Of: func(r *shareRow) string { return r.Association.User }},
		{
			Name: "Partition", Head: "Partition", Width: 12,
			Of: func(r *shareRow) string { return r.Association.Partition },
		},
		{Name: "RawShares", Head: "RawShares", Width: 10, Of: func(r *shareRow) string {
			switch {
			case r.root():
				return ""
			case r.Shares == cluster.ShareParent:
				return "parent"
			}
			return strconv.Itoa(r.Shares)
		}},
		{
			Name: "NormShares", Head: "NormShares", Width: 11,
			Of: func(r *shareRow) string { return SixDigits(r.stand.NormShares) },
		},
		{
			Name: "RawUsage", Head: "RawUsage", Width: 11,
			Of: func(r *shareRow) string { return strconv.FormatInt(int64(r.Spent.Raw), 10) },
		},
		{Name: "NormUsage", Head: "NormUsage", Width: 11, Of: func(r *shareRow) string {
			if r.root() {
				return ""
			}
			return SixDigits(r.stand.NormUsage)
		}},
		{Name: "EffectvUsage", Head: "EffectvUsage", Width: 13, Of: func(r *shareRow) string {
			if r.root() { // all of it, also while there is none
				return SixDigits(1)
			}
			return SixDigits(r.stand.Usage)
		}},
		{Name: "FairShare", Head: "FairShare", Width: 10, Of: func(r *shareRow) string {
			if r.Association.User == "" && !r.books.Priority.NoFairTree {
				return ""
			}
			return SixDigits(r.FairShare)
		}},
		{Name: "LevelFS", Head: "LevelFS", Width: 10, Of: levelFS},
		{
			Name: "GrpTRESMins", Head: "GrpTRESMins", Width: 30,
			Of: func(r *shareRow) string { return show.LimitText(r.Limits, "GrpTRESMins") },
		},
		{Name: "GrpTRESRaw", Head: "GrpTRESRaw", Width: 30, Of: func(r *shareRow) string {
			list := slices.Concat(r.Spent.TRES, []cluster.Amount{{TRES: "billing", N: r.Spent.Raw}})
			for i := range list {
				list[i].N /= 60
			}
			return amountsText(r.books, list)
		}},
		{
			Name: "TRESRunMins", Head: "TRESRunMins", Width: 30,
			Of: func(r *shareRow) string { return amountsText(r.books, r.books.RunMins[r.Association.ID]) },
		},
		{
			Name: "ID", Head: "ID", Width: 6,
			Of: func(r *shareRow) string { return strconv.FormatUint(uint64(r.Association.ID), 10) },
		},
		{Name: "Cluster", Head: "Cluster", Width: 10, Of: func(r *shareRow) string { return r.books.Cluster }},
	}
}

// levelFS is how far an association is behind its share, among those of one parent.
func levelFS(r *shareRow) string {
	switch {
	case r.Shares == cluster.ShareParent:
		return ""
	case r.books.Priority.NoFairTree: // which knows no levels
		return SixDigits(0)
	case r.root():
		return ""
	case math.IsInf(r.stand.LevelFS, 1):
		return "inf"
	}
	return SixDigits(r.stand.LevelFS)
}

// The fields that sshare shows without -o, with -l, and the one that -m adds.
const (
	shareFormat     = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
	shareLongFormat = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,TRESRunMins"
)

// Sshare shows the tree of accounts.
func Sshare(sys *front.Sys, argv []string) int {
	var o shareOptions
	_, code := front.ParseQuery(sys, opt.Sshare, SshareOptions, &o, argv)
	if code >= 0 {
		return code
	}
	out := bufio.NewWriter(sys.Stdout)
	defer out.Flush()
	if o.helpFormat {
		columnNames(out, shareColumns())
		return 0
	}
	spec := front.Choose(o.long, shareLongFormat, shareFormat)
	switch {
	case o.format != nil:
		spec = cmp.Or(strings.Trim(*o.format, ","), "Account") // nothing is the beginning of the first name
	case o.parts:
		spec = strings.Replace(spec, "User,", "User,Partition,", 1)
	}
	if bad := o.report.Pick(shareColumns(), spec); bad != "" {
		return sys.Fail("Invalid field requested: %q", bad)
	}
	if _, code := sys.OwnCluster(o.clusters); code >= 0 {
		return code
	}
	resp, err := front.Call(sys, api.ListBooks, api.AfterQuery{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return sys.Fail("%s", text)
	}
	if !resp.Priority.Multifactor {
		sys.Say("error: You are not running a supported priority plugin\n(%s).\nOnly 'priority/multifactor' is supported.",
			"priority/basic")
		return 1
	}
	users, nobody := o.whose(sys)
	if nobody != "" {
		return sayWrong(sys, "Invalid user id: "+nobody)
	}
	if o.verbose > 0 {
		list := func(all bool, names []string) string { return front.Choose(all, "all", strings.Join(names, "\n\t: ")) }
		fmt.Fprintf(sys.Stderr, "Users requested:\n\t: %s\nAccounts requested:\n\t: %s\n",
			list(o.all, users), list(o.accounts == nil, o.accounts))
	}
	if o.data.On {
		all := sharesOf(o.rows(users, &resp))
		return sys.Answer(&o.data, out, resp.Cluster, data.One("shares", "shares_resp_msg",
			data.Record(&allSharesTable, all)))
	}
	if o.clusters != "" {
		_, _ = out.WriteString(sys.ClusterHead(resp.Cluster))
	}
	o.report.Print(out, o.rows(users, &resp))
	return 0
}

// columnNames lists names in four columns.
func columnNames[T any](out *bufio.Writer, cols []front.Column[T]) {
	var names []string
	for _, c := range cols {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	for i, n := range names {
		end := " "
		if i%4 == 3 || i+1 == len(names) {
			end = "\n"
		}
		out.WriteString(n + strings.Repeat(" ", max(17-len(n), 0)) + end)
	}
}

// whose are the users to show: those of -u, who asks without one. nobody is a number that no user has.
func (o *shareOptions) whose(sys *front.Sys) (users []string, nobody string) {
	list := o.users
	if len(list) == 0 {
		list = []string{strconv.FormatUint(uint64(sys.UID), 10)}
	}
	for _, name := range list {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			u, known := front.LookupUser(name)
			switch {
			case known:
				name = u.Name
			case len(o.users) > 0:
				return nil, name
			}
		}
		users = append(users, name)
	}
	return users, ""
}

// rows walks the tree: an account's users, then the accounts below it, by name.
func (o *shareOptions) rows(users []string, resp *api.BooksResponse) (rows []shareRow) {
	stands := cluster.FairShares(slices.Values(resp.Assocs), resp.Priority.NoFairTree, resp.Priority.Dampening)
	shown := map[cluster.AssocID]int{} // at which depth
	for _, t := range show.TreeOf(resp.Assocs) {
		a := t.Association
		switch {
		case o.accounts != nil && !slices.Contains(o.accounts, a.Account):
			continue
		case a.User == "" && o.usersOnly:
			continue
		case a.User != "" && !o.all && !slices.Contains(users, a.User):
			continue
		}
		depth, under := shown[a.Parent]
		if under {
			depth++
		}
		shown[a.ID] = depth
		rows = append(rows, shareRow{a, stands[a.ID], depth, resp, o.usersOnly})
	}
	return rows
}

// FirstOwnTRES is the number of the first resource that the configuration names.
const FirstOwnTRES = 1001

// TrackedTRES are all that are: Slurm's own and those of the configuration.
func TrackedTRES(resp *api.BooksResponse) []string {
	return append(show.SlurmTRES(), resp.TRES...)
}

// amountsText writes a number for each tracked resource.
func amountsText(resp *api.BooksResponse, list []cluster.Amount) string {
	var parts []string
	for _, name := range TrackedTRES(resp) {
		parts = append(parts, name+"="+strconv.FormatInt(int64(cluster.AmountOf(list, name)), 10))
	}
	return strings.Join(parts, ",")
}
