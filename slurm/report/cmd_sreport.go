package report

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/values"
)

// SreportOptions are the options of sreport, which are fields of a reporter.
var SreportOptions = []opt.Option[reporter]{
	{
		Long: "all_clusters", Short: 'a', On: opt.Sreport, Help: "all clusters",
		Set: func(r *reporter, _ string) error { r.allClusters = true; return nil },
	},
	{Long: "cluster", Short: 'M', Arg: opt.Required, On: opt.Sreport, Meta: "names", Help: "these clusters",
		Set: func(r *reporter, v string) error { r.cluster = v; return nil }},
	{Long: "federation", On: opt.Sreport, Env: "sreport=SREPORT_FEDERATION",
		Help: "refused at a member of a federation: a report is of one cluster",
		Set:  func(r *reporter, _ string) error { r.fed.Federation = true; return nil }},
	{Long: "immediate", On: opt.Sreport, Newer: true, Ignored: "a report changes nothing"},
	{Long: "sort", On: opt.Sreport, Newer: true, Ignored: "TopUsage sorts by usage, the other reports by name"},
	{Long: "local", On: opt.Sreport, Env: "sreport=SREPORT_LOCAL", Help: "this cluster",
		Set: func(r *reporter, _ string) error { r.fed.Local = true; return nil }},
	{
		Long: "noheader", Short: 'n', On: opt.Sreport, Help: "no headers",
		Set: func(r *reporter, _ string) error { r.noHeader = true; return nil },
	},
	{
		Long: "parsable", Short: 'p', On: opt.Sreport, Help: "fields end with |",
		Set: func(r *reporter, _ string) error { r.parse = 1; return nil },
	},
	{
		Long: "parsable2", Short: 'P', On: opt.Sreport, Help: "fields are separated by |",
		Set: func(r *reporter, _ string) error { r.parse = 2; return nil },
	},
	{
		Long: "quiet", Short: 'Q', On: opt.Sreport, Help: "fewer messages",
		Set: func(*reporter, string) error { return nil },
	},
	{
		Short: 't', Long: "time", Arg: opt.Required, On: opt.Sreport, Meta: "unit",
		Help: "Seconds, Minutes, Hours, Percent, SecPer, MinPer or HourPer",
		Set:  func(r *reporter, v string) error { r.setUnit(v); return nil },
	},
	{
		Short: 'T', Long: "tres", Arg: opt.Required, On: opt.Sreport, Meta: "names",
		Help: "which resources, or ALL",
		Set: func(r *reporter, v string) error {
			if r.tresText = v; v == "" {
				r.tresText = "," // a list of none
			}
			return nil
		},
	},
	{
		Long: "verbose", Short: 'v', On: opt.Sreport, Help: "more messages",
		Set: func(*reporter, string) error { return nil },
	},
	{Long: "version", Short: 'V', On: opt.Sreport, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", Short: 'h', On: opt.Sreport, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sreport, Group: opt.HelpGroup, Help: "print a short help"},
}

// Sreport sums up what was used.
func Sreport(sys *front.Sys, argv []string) int {
	r := &reporter{sys: sys, unit: reportUnits()[4]}
	rest, code := front.ParseQuery(sys, opt.Sreport, SreportOptions, r, argv)
	if code >= 0 {
		return code
	}
	if bad, is := strings.CutPrefix(r.unit.name, "?"); is {
		fmt.Fprint(sys.Stderr, "unknown time format "+bad)
		r.unit = reportUnits()[4]
	}
	if code := r.alone(); code != 0 {
		return code
	}
	if len(rest) == 0 {
		return r.session()
	}
	return r.run(rest)
}

// alone refuses --federation where that is more than this cluster: each cluster has its own books, and there are no
// sums over them.
func (r *reporter) alone() int {
	if !r.fed.Wants("", false) {
		return 0
	}
	var names []string
	for _, m := range r.sys.Members() {
		names = append(names, m.Named())
	}
	if len(names) < 2 {
		return 0
	}
	return r.sys.Fail("--federation: there are no sums over %s, each has books of its own: "+
		"run sreport at each of them; sacct --federation lists the jobs of all", strings.Join(names, ","))
}

// session does the commands of standard input, one a line, until quit or its end.
func (r *reporter) session() int {
	in := bufio.NewScanner(r.sys.Stdin)
	in.Buffer(nil, front.MaxLine)
	file, _ := r.sys.Stdin.(*os.File)
	echo := file == nil || !front.IsTerminal(file)
	for code := 0; ; {
		fmt.Fprint(r.sys.Stdout, "sreport: ")
		if !in.Scan() {
			fmt.Fprintln(r.sys.Stdout)
			return code
		}
		if echo { // as the line editor of Slurm does
			fmt.Fprintln(r.sys.Stdout, in.Text())
		}
		words, ok := front.SplitQuoted(in.Text())
		if len(words) == 1 && words[0] == "!!" {
			words = r.last
		}
		switch {
		case !ok:
			code = r.sys.Fail("a quote is not closed: %s", in.Text())
		case len(words) == 0:
		case words[0] == "quit" || words[0] == "exit":
			return code
		default:
			r.last = words
			code = r.run(words)
		}
	}
}

// run does one command.
func (r *reporter) run(words []string) int {
	word := strings.ToLower(words[0])
	set := map[string]func(){"parsable": func() { r.parse = 1 }, "parsable2": func() { r.parse = 2 },
		"nonparsable": func() { r.parse = 0 },
		"quiet":       func() {}, "verbose": func() {}, "local": func() {}}
	switch {
	case set[word] != nil:
		set[word]()
		return 0
	case front.IsKey(word, 4, "version"):
		fmt.Fprintln(r.sys.Stdout, "slurm-wlm "+front.SlurmVersion)
		return 0
	case word == "help":
		return Sreport(r.sys, []string{"--help"})
	case word == "time":
		if len(words) > 1 {
			r.setUnit(words[1])
		}
		return 0
	}
	for _, k := range reportKinds() {
		if !front.IsKey(word, k.least, k.name) {
			continue
		}
		if len(words) < 2 {
			return sayWrong(r.sys, "too few arguments for keyword:"+words[0])
		}
		for _, n := range k.reports {
			if front.IsKey(strings.ToLower(words[1]), n.least, n.name) {
				return r.report(&n, words[2:])
			}
		}
		return sayWrong(r.sys, "Not valid report "+words[1], "Valid "+k.name+" reports are, "+k.valid)
	}
	return sayWrong(r.sys, "invalid keyword: "+words[0])
}

// reportKind is a word that sreport begins with.
type reportKind struct {
	name    string
	least   int
	valid   string
	reports []reportRow
}

// reportRow is one report: its name, what may be set, and the function that makes it.
type reportRow struct {
	name  string
	least int
	make  func(*reporter, *reportAsk) int
}

func reportKinds() []reportKind {
	return []reportKind{
		{"cluster", 2, `"AccountUtilizationByUser", "UserUtilizationByAccount", "UserUtilizationByWckey", "Utilization", and "WCKeyUtilizationByUser"`, []reportRow{
			{"accountutilizationbyuser", 1, (*reporter).accountsByUser},
			{"userutilizationbyaccount", 18, (*reporter).usersByAccount},
			{"userutilizationbywckey", 18, (*reporter).usersByKey}, {"utilization", 2, (*reporter).utilization},
			{"wckeyutilizationbyuser", 1, (*reporter).keysByUser}, {"goodput", 1, (*reporter).goodput}}},
		{"job", 1, `"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"`, []reportRow{
			{"sizesbyaccount", 1, (*reporter).sizesByAccount},
			{"sizesbyaccountandwckey", 15, (*reporter).sizesByBoth},
			{"sizesbywckey", 8, (*reporter).sizesByKey}}},
		{"reservation", 1, `"Utilization"`, []reportRow{{"utilization", 1, (*reporter).reservations}}},
		{"user", 1, `"Top"`, []reportRow{{"topusage", 1, (*reporter).topUsers}}},
	}
}

// report reads the words behind a report's name and makes it.
func (r *reporter) report(row *reportRow, words []string) int {
	a := &reportAsk{top: 10}
	resp, err := front.Call(r.sys, api.ListBooks, api.AfterQuery{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return r.sys.Fail("%s", text)
	}
	r.books = &resp
	if r.cluster != "" {
		words = append([]string{"cluster=" + r.cluster}, words...)
	}
	for _, w := range words {
		key, value, isSet := strings.Cut(w, "=")
		key = strings.ToLower(key)
		switch {
		case !isSet:
			r.bareWord(a, key)
		case front.IsKey(key, 1, "clusters"):
			r.ofClusters(a, value)
		case front.IsKey(key, 1, "start"):
			a.start = value
		case front.IsKey(key, 1, "end"):
			a.end = value
		case front.IsKey(key, 1, "format"):
			a.format = value
		default:
			if code := r.filter(a, key, value, w); code != 0 {
				a.code = code
			}
		}
	}
	if r.allClusters {
		a.elsewhere = false
	}
	if code := r.window(a, a.start, a.end); code != 0 {
		a.code = code
	}
	if code := r.pickTRES(); code != 0 {
		return code
	}
	return max(row.make(r, a), a.code)
}

// bareWord takes a word without a value; one that is not known names a cluster.
func (r *reporter) bareWord(a *reportAsk, word string) {
	switch word {
	case "tree":
		a.tree = true
	case "group":
		a.group = true
	case "flatview", "flat_view":
		a.flat = true
	case "acctasparent":
		a.asParent = true
	case "printjobcount":
		a.counts = true
	case "all_clusters":
		r.allClusters = true
	case "where", "set":
	default:
		r.ofClusters(a, word)
	}
}

// ofClusters takes the names of clusters.
func (r *reporter) ofClusters(a *reportAsk, names string) {
	list := front.SplitList(strings.ToLower(names))
	if !slices.Contains(list, strings.ToLower(r.books.Cluster)) {
		a.elsewhere = true
	}
}

// filter takes one condition.
func (r *reporter) filter(a *reportAsk, key, value, word string) int {
	lower := front.SplitList(strings.ToLower(value))
	switch {
	case front.IsKey(key, 1, "accounts", "acct"):
		a.Accounts = lower
	case front.IsKey(key, 1, "users"):
		a.Users = lower
	case front.IsKey(key, 1, "wckeys"):
		a.WCKeys = front.SplitList(value)
	case front.IsKey(key, 1, "partitions"):
		a.Partitions = lower
	case front.IsKey(key, 2, "names"):
		a.names = front.SplitList(value)
	case front.IsKey(key, 2, "nodes"):
		if err := front.SetNodes(&a.Nodes, value); err != nil {
			return r.sys.Fail("%v", err)
		}
	case front.IsKey(key, 2, "grouping"):
		a.grouping = value
	case front.IsKey(key, 2, "gid"):
		for _, g := range lower {
			n, err := strconv.ParseUint(g, 10, 32)
			if err != nil {
				return r.sys.Fail("Invalid gid (%s)", g)
			}
			a.GIDs = append(a.GIDs, uint32(n))
		}
	case front.IsKey(key, 1, "jobs"):
		for _, j := range front.SplitList(value) {
			t, ok := front.ParseTarget(j)
			if !ok {
				return r.sys.Fail("Invalid job id %s specified", j)
			}
			a.Refs = append(a.Refs, t.Ref)
		}
	case front.IsKey(key, 1, "topcount"):
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return r.sys.Fail("Invalid value for TopCount (%s)", value)
		}
		a.top = n
	default:
		return sayWrong(r.sys, " Unknown condition: "+word, "Use keyword set to modify value")
	}
	return 0
}

// window settles the time: full hours, by default yesterday, and one hour at least.
func (r *reporter) window(a *reportAsk, from, to string) int {
	now := r.sys.Now().Local()
	y, m, d := now.Date()
	a.from, a.to = time.Date(y, m, d-1, 0, 0, 0, 0, now.Location()), time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	code := 0
	for _, e := range []struct {
		text string
		at   *time.Time
	}{{from, &a.from}, {to, &a.to}} {
		if e.text == "" {
			continue
		}
		t, pos, ok := values.ParsePast(e.text, now)
		if !ok {
			code = sayWrong(r.sys, fmt.Sprintf("Invalid time specification (pos=%d): %s", pos, e.text))
			continue
		}
		*e.at = t
	}
	cut := func(t time.Time) time.Time {
		return t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	}
	a.from, a.to = cut(a.from), cut(a.to)
	if !a.to.After(a.from) {
		a.to = a.from.Add(time.Hour)
	}
	a.Time = cluster.Span{From: a.from.Unix(), To: a.to.Unix()}
	return code
}

// pickTRES settles which resources are shown.
func (r *reporter) pickTRES() int {
	all := TrackedTRES(r.books)
	switch {
	case r.tresText == "":
		r.tres = []string{"cpu"}
		return 0
	case strings.EqualFold(r.tresText, "ALL"):
		r.tres = all
		return 0
	}
	r.tres = nil
	for _, t := range front.SplitList(strings.ToLower(r.tresText)) {
		known := slices.Contains(all, t) || t == "gres/gpu" || strings.HasPrefix(t, "gres/gpu:") // GPUs are tracked whatever AccountingStorageTRES says
		if known && !slices.Contains(r.tres, t) {
			r.tres = append(r.tres, t)
		}
	}
	if len(r.tres) == 0 {
		return r.fatal("No valid TRES given")
	}
	return 0
}
