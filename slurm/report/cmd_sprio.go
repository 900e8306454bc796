package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"dev.muster/api"
	"dev.muster/cluster"
	"dev.muster/slurm/format"
	"dev.muster/slurm/front"
	"dev.muster/slurm/opt"
	"dev.muster/slurm/show"
)

// prioOptions is what sprio's line and variables ask for.
type prioOptions struct {
	jobs                          []cluster.JobID
	jobWord, jobsGiven            bool // -j without an argument: it may be the next word; with one, that none is in
	jobText, userText, partText   string
	users                         []uint32
	named                         bool     // -u: with the users
	strangers                     []string // that there are not
	parts                         []string
	format, sort                  string
	long, norm, weights, noHeader bool
	clusters                      string
	verbose                       int
	fed                           front.FedAsk
}

// SprioOptions are the options of sprio.
var SprioOptions = []opt.Option[prioOptions]{
	{Long: "federation", On: opt.Sprio, Env: "FEDERATION", Help: "all clusters of the federation in one list",
		Set: func(o *prioOptions, _ string) error { o.fed.Federation = true; return nil }},
	{Long: "local", On: opt.Sprio, Env: "LOCAL", Help: "this cluster only, also with FederationParameters=fed_display",
		Set: func(o *prioOptions, _ string) error { o.fed.Local = true; return nil }},
	{Long: "sibling", On: opt.Sprio, Env: "SIBLING", Help: "the jobs of the federation at each cluster that has them",
		Set: func(o *prioOptions, _ string) error { o.fed.Sibling = true; return nil }},
	{
		Long: "format", Short: 'o', Arg: opt.Required, On: opt.Sprio, Env: "FORMAT", Meta: "format",
		Help: "what to show, as %[[.]width]letter",
		Set:  func(o *prioOptions, v string) error { o.format = v; return nil },
	},
	{Long: "helpformat", On: opt.Sprio, Newer: true, Group: opt.HelpGroup, Help: "list the letters of -o",
		Set: func(*prioOptions, string) error {
			return opt.Answer(opt.Listed(format.Letters(prioColumns()), 8, 6)...)
		}},
	{
		Long: "jobs", Short: 'j', Arg: opt.Optional, On: opt.Sprio, Meta: "ids", Help: "only these jobs",
		Set: setPrioJobs,
	},
	{
		Long: "long", Short: 'l', On: opt.Sprio, Help: "more columns",
		Set: func(o *prioOptions, _ string) error { o.long = true; return nil },
	},
	{
		Long: "clusters", Short: 'M', Arg: opt.Required, On: opt.Sprio, Env: "sprio=SLURM_CLUSTERS",
		Meta: "names", Help: "clusters to ask",
		Set: func(o *prioOptions, v string) error { return opt.SetClusters(v, &o.clusters) },
	},
	{Long: "cluster", Arg: opt.Required, On: opt.Sprio, Alias: "clusters"},
	{
		Long: "noheader", Short: 'h', On: opt.Sprio, Help: "no line of headers",
		Set: func(o *prioOptions, _ string) error { o.noHeader = true; return nil },
	},
	{
		Long: "norm", Short: 'n', On: opt.Sprio, Help: "factors before they are weighed",
		Set: func(o *prioOptions, _ string) error { o.norm = true; return nil },
	},
	{Long: "partition", Short: 'p', Arg: opt.Required, On: opt.Sprio, Meta: "names",
		Help: "only jobs in these partitions",
		Set: func(o *prioOptions, v string) error {
			o.partText = v
			if o.parts = front.SplitList(v); v == "" {
				o.parts = []string{""} // a filter of none, which nothing passes
			}
			return nil
		}},
	{
		Long: "sort", Short: 'S', Arg: opt.Required, On: opt.Sprio, Meta: "fields",
		Help: "letters to sort by, - before one for the other direction",
		Set:  func(o *prioOptions, v string) error { o.sort = v; return nil },
	},
	{
		Long: "user", Short: 'u', Arg: opt.Required, On: opt.Sprio, Meta: "users",
		Help: "only jobs of these users", Set: setPrioUsers,
	},
	{Long: "users", Arg: opt.Required, On: opt.Sprio, Alias: "user"},
	{
		Long: "verbose", Short: 'v', On: opt.Sprio, Help: "more messages",
		Set: func(o *prioOptions, _ string) error { o.verbose++; return nil },
	},
	{
		Long: "weights", Short: 'w', On: opt.Sprio, Help: "the weight of each factor",
		Set: func(o *prioOptions, _ string) error { o.weights = true; return nil },
	},
	{Long: "version", Short: 'V', On: opt.Sprio, Group: opt.HelpGroup, Help: "print the version"},
	{Long: "help", On: opt.Sprio, Group: opt.HelpGroup, Help: "print this"},
	{Long: "usage", On: opt.Sprio, Group: opt.HelpGroup, Help: "print a short help"},
}

func setPrioJobs(o *prioOptions, v string) error {
	o.jobWord, o.jobsGiven, o.jobText = v == "", o.jobsGiven || v != "", v
	for _, w := range front.SplitList(v) {
		t, ok := front.ParseTarget(w)
		if !ok || t.Step != nil || !t.Ref.Tasks.Empty() {
			return opt.Errorf(opt.CodeError, "error: Invalid job id: %s", w)
		}
		o.jobs = append(o.jobs, t.Ref.One())
	}
	return nil
}

func setPrioUsers(o *prioOptions, v string) error {
	o.named, o.userText = true, v
	for _, w := range front.SplitList(v) {
		if u, ok := front.LookupUser(w); ok {
			o.users = append(o.users, u.UID)
		} else {
			o.strangers = append(o.strangers, w)
		}
	}
	return nil
}

// prioRow is one line of sprio: a job in a partition, or the weights.
type prioRow struct {
	*api.JobPriority
	weighed cluster.Factors
	w       *cluster.PriorityWeights

	weights     bool
	tresWeights string // as configured
	cluster     string // of a federation, that ranks it so
}

// part is one factor: as it comes, weighed, or its weight.
func (r *prioRow) part(of func(*cluster.Factors) float64, weight uint32, norm bool) string {
	switch {
	case r.weights:
		return front.UintText(weight)
	case norm && weight == 0: // which Slurm does not work out
		return strconv.FormatFloat(0, 'f', 7, 64)
	case norm:
		return strconv.FormatFloat(of(&r.Factors), 'f', 7, 64)
	}
	return strconv.FormatFloat(of(&r.weighed), 'f', 0, 64)
}

// share is the priority as a part of the highest one there is; with the fraction that the number itself lacks.
func (r *prioRow) share() string {
	sum := float64(r.Sum)
	if exact := r.weighed.Total(); math.Floor(exact) == sum {
		sum = exact
	}
	return strconv.FormatFloat(sum/math.MaxUint32, 'f', 14, 64)
}

// words is a text that the line of weights leaves empty.
func (r *prioRow) words(text func() string) string {
	if r.weights {
		return ""
	}
	return text()
}

func ageOf(f *cluster.Factors) float64 {
	return f.Age
}

func assocOf(f *cluster.Factors) float64 {
	return f.Assoc
}

func fairOf(f *cluster.Factors) float64 {
	return f.FairShare
}

func sizeOf(f *cluster.Factors) float64 {
	return f.Size
}

func partOf(f *cluster.Factors) float64 {
	return f.Partition
}

func qosOf(f *cluster.Factors) float64 {
	return f.QOS
}

// tresParts writes cpu=156,gres/gpu=375; of the weights, what the configuration says.
func (r *prioRow) tresParts(norm bool) string {
	list, digits := r.weighed.TRES, 0
	switch {
	case r.weights && norm:
		return ""
	case r.weights:
		return cmp.Or(r.tresWeights, "(null)")
	case norm:
		list, digits = r.Factors.TRES, 2
	}
	var parts []string
	for _, a := range inTRESOrder(list) {
		if a.N > 0 {
			parts = append(parts, a.TRES+"="+strconv.FormatFloat(a.N, 'f', digits, 64))
		}
	}
	return strings.Join(parts, ",")
}

// inTRESOrder is a list in the order of Slurm's own resources; those of the cluster come last, by name.
func inTRESOrder(list []cluster.Amount) []cluster.Amount {
	at := func(a cluster.Amount) int {
		if i := slices.Index(show.SlurmTRES(), a.TRES); i >= 0 {
			return i
		}
		return len(show.SlurmTRES())
	}
	return slices.SortedStableFunc(slices.Values(list),
		func(a, b cluster.Amount) int { return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.TRES, b.TRES)) })
}

// prioColumns are the letters of sprio. A function: nothing is laid out at start.
func prioColumns() []format.Column[prioRow] {
	return []format.Column[prioRow]{
		{Code: 'a', Head: "AGE", Of: func(r *prioRow) string { return r.part(ageOf, r.w.Age, true) }},
		{Code: 'A', Head: "AGE", Of: func(r *prioRow) string { return r.part(ageOf, r.w.Age, false) }},
		{Code: 'b', Head: "ASSOC", Of: func(r *prioRow) string { return r.part(assocOf, r.w.Assoc, true) }},
		{Code: 'B', Head: "ASSOC", Of: func(r *prioRow) string { return r.part(assocOf, r.w.Assoc, false) }},
		{Code: 'c', Head: "CLUSTER", Of: func(r *prioRow) string { return cmp.Or(r.cluster, "(null)") }},
		{Code: 'f', Head: "FAIRSHARE", Of: func(r *prioRow) string { return r.part(fairOf, r.w.FairShare, true) }},
		{Code: 'F', Head: "FAIRSHARE", Of: func(r *prioRow) string { return r.part(fairOf, r.w.FairShare, false) }},
		{Code: 'i', Head: "JOBID", Of: func(r *prioRow) string {
			if r.weights {
				return "Weights"
			}
			return front.UintText(uint32(cmp.Or(r.Job.ArrayID, r.Job.ID)))
		}},
		{Code: 'j', Head: "JOBSIZE", Of: func(r *prioRow) string { return r.part(sizeOf, r.w.Size, true) }},
		{Code: 'J', Head: "JOBSIZE", Of: func(r *prioRow) string { return r.part(sizeOf, r.w.Size, false) }},
		{
			Code: 'N', Head: "NICE",
			Of: func(r *prioRow) string { return r.words(func() string { return strconv.Itoa(r.Factors.Nice) }) },
		},
		{Code: 'p', Head: "PARTITION", Of: func(r *prioRow) string { return r.part(partOf, r.w.Partition, true) }},
		{Code: 'P', Head: "PARTITION", Of: func(r *prioRow) string { return r.part(partOf, r.w.Partition, false) }},
		{Code: 'q', Head: "QOS", Of: func(r *prioRow) string { return r.part(qosOf, r.w.QOS, true) }},
		{Code: 'Q', Head: "QOS", Of: func(r *prioRow) string { return r.part(qosOf, r.w.QOS, false) }},
		{
			Code: 'r', Head: "PARTITION",
			Of: func(r *prioRow) string { return r.words(func() string { return r.Partition }) },
		},
		{Code: 'S', Head: "SITE", Of: func(r *prioRow) string {
			if r.weights {
				return "1"
			}
			return strconv.Itoa(r.Factors.Site)
		}},
		{Code: 't', Head: "TRES", Of: func(r *prioRow) string { return r.tresParts(true) }},
		{Code: 'T', Head: "TRES", Of: func(r *prioRow) string { return r.tresParts(false) }},
		{
			Code: 'u', Head: "USER",
			Of: func(r *prioRow) string { return r.words(func() string { return r.Job.Spec.User }) },
		},
		{Code: 'y', Head: "PRIORITY", Of: func(r *prioRow) string {
			return r.words(r.share)
		}},
		{
			Code: 'Y', Head: "PRIORITY",
			Of: func(r *prioRow) string { return r.words(func() string { return front.UintText(r.Sum) }) },
		},
	}
}

// The long lists; without -l the factors of no weight are left out.
const (
	prioLong     = "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T"
	prioLongNorm = "%.15i %9r %.8u %10y %10a %10b %10f %10j %10p %10q %20t"
)

// defaultFormat shows the factors that have a weight.
func (o *prioOptions) defaultFormat(w *cluster.PriorityWeights) string {
	switch {
	case o.long && o.norm:
		return prioLongNorm
	case o.long:
		return prioLong
	}
	out, size, letters := "%.15i %9r", " %.10", "YSABFJPQT"
	if o.norm {
		out, size, letters = "%.15i %9r", " %10", "y-abfjpqt"
	}
	if o.named {
		out += " %.8u"
	}
	has := []bool{
		true, !o.norm, w.Age > 0, w.Assoc > 0, w.FairShare > 0, w.Size > 0, w.Partition > 0, w.QOS > 0,
		len(w.TRES) > 0,
	}
	for i, show := range has {
		switch {
		case show && i == len(has)-1:
			out += strings.Replace(size, "10", "20", 1) + letters[i:i+1]
		case show:
			out += size + letters[i:i+1]
		}
	}
	return out
}

// prioUsage is what Slurm prints of a stray word.
const prioUsage = `Usage: sprio [-j jid[s]] [-u user_name[s]] [-o format] [-p partitions]
   [--federation] [--local] [--sibling] [--usage] [-hlnvVw]`

// Sprio shows the factors of pending jobs.
func Sprio(sys *front.Sys, argv []string) int {
	var o prioOptions
	rest, code := front.ParseQuery(sys, opt.Sprio, SprioOptions, &o, argv)
	if code >= 0 {
		return code
	}
	if o.jobWord && len(rest) > 0 {
		if err := setPrioJobs(&o, rest[0]); err != nil {
			return sys.Usage(opt.Named(opt.Sprio, "jobs", rest[0], err))
		}
		o.jobsGiven, rest = true, rest[1:]
	}
	if o.format != "" && o.long {
		sys.Say("fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.")
		return 1
	}
	if len(rest) > 0 {
		sys.Say("error: Unrecognized option: %s", rest[0])
		return sys.Usage(&opt.UsageError{Code: opt.CodeError, Stdout: true, Lines: []string{prioUsage}})
	}
	for _, w := range o.strangers {
		sys.Say("error: Invalid user: %s\n", w)
	}
	if _, code := sys.OwnCluster(o.clusters); code >= 0 {
		return code
	}
	o.tell(sys.Stdout)
	resp, err := front.Call(sys, api.ListPriorities, api.AfterQuery{})
	if err != nil {
		text, _ := front.ErrorText(err)
		return sys.Fail("%s", text)
	}
	if !resp.Priority.Multifactor {
		sys.Say("You are not running a supported priority plugin\n(%s).\nOnly 'priority/multifactor' is supported.",
			"priority/basic")
		return 1
	}
	w := &resp.Priority.Weights
	f, bad := format.Parse(prioColumns(), cmp.Or(o.format, o.defaultFormat(w)), "")
	f.DropUnknown()
	for _, c := range bad {
		sys.Say("error: Invalid job format specification: %s", c)
	}
	rows := o.rows(&resp)
	if o.fed.Wants(o.clusters, resp.Federal) {
		rows = o.federal(sys, rows)
	}
	out := bufio.NewWriterSize(sys.Stdout, 1<<16)
	defer out.Flush()
	switch {
	case len(rows) == 0 && o.jobsGiven:
		out.WriteString("Unable to find jobs matching user/id(s) specified\n")
		return 0
	case o.weights:
		rows = []prioRow{
			{
				JobPriority: &api.JobPriority{Job: &cluster.Job{Spec: &cluster.JobSpec{Layout: &cluster.Layout{}}}},
				w:           w, weights: true, tresWeights: resp.TRESWeights,
			},
		}
	default:
		if bad := o.order(rows); bad != "" {
			f.Table(out, !o.noHeader, nil)
			out.Flush()
			return sys.Fail("Invalid sort specification: %s", bad)
		}
	}
	f.Table(out, !o.noHeader, rows)
	return 0
}

// rows are the jobs that were asked for.
func (o *prioOptions) rows(resp *api.PrioritiesResponse) (rows []prioRow) {
	w := &resp.Priority.Weights
	for i := range resp.Jobs {
		p := &resp.Jobs[i]
		switch {
		case o.jobsGiven && !slices.Contains(o.jobs, p.Job.ID) && !slices.Contains(o.jobs, p.Job.ArrayID):
		case o.named && !slices.Contains(o.users, p.Job.Spec.UID):
		case len(o.parts) > 0 && !slices.Contains(o.parts, p.Partition):
		default:
			rows = append(rows, prioRow{JobPriority: p, weighed: p.Factors.Weigh(w), w: w})
		}
	}
	return rows
}

// federal are the rows of all clusters of the federation: of each job that of this one, or else of the first that has
// it; with --sibling all.
func (o *prioOptions) federal(sys *front.Sys, here []prioRow) (rows []prioRow) {
	members := sys.Members()
	if members == nil {
		return here
	}
	slices.SortStableFunc(members, func(a, b *front.Sys) int {
		return front.BoolInt(a.Remote()) - front.BoolInt(b.Remote())
	})
	seen := map[cluster.JobID]bool{}
	for _, one := range members {
		there := here
		if one.Remote() {
			resp, err := front.Call(one, api.ListPriorities, api.AfterQuery{})
			if err != nil {
				one.MemberFailed(err)
				continue
			}
			there = o.rows(&resp)
		}
		known := maps.Clone(seen)
		for _, r := range there {
			if r.cluster = one.Named(); o.fed.Sibling || !known[r.Job.ID] {
				rows = append(rows, r)
			}
			seen[r.Job.ID] = true
		}
	}
	return rows
}

// order sorts by the letters of -S: numbers as numbers. bad is a word that names no column.
func (o *prioOptions) order(rows []prioRow) (bad string) {
	for _, key := range slices.Backward(strings.Split(o.sort, ",")) {
		letter, down := strings.TrimLeft(key, "+-"), strings.HasPrefix(key, "-")
		if letter == "" {
			continue
		}
		c := format.Find(prioColumns(), letter[0])
		if c == nil {
			return key
		}
		slices.SortStableFunc(rows, func(a, b prioRow) int {
			x, y := c.Of(&a), c.Of(&b)
			d := strings.Compare(x, y)
			if n, err := strconv.ParseFloat(x, 64); err == nil {
				m, _ := strconv.ParseFloat(y, 64)
				d = cmp.Compare(n, m)
			}
			if down {
				return -d
			}
			return d
		})
	}
	return ""
}

// tell prints with -v what was asked for, in Slurm's layout; with -vv, what numbers that came to.
func (o *prioOptions) tell(out io.Writer) {
	if o.verbose == 0 {
		return
	}
	var b strings.Builder
	line := strings.Repeat("-", 29) + "\n"
	b.WriteString(line)
	asked := 0
	if o.jobsGiven {
		asked = 1
	}
	null := func(s string) string { return cmp.Or(s, "(null)") }
	fmt.Fprintf(&b, "format     = %s\njob_flag   = %d\njobs       = %s\npartition  = %s\nusers      = %s\nverbose    = %d\n",
		null(o.format), asked, null(o.jobText), null(o.partText), null(o.userText), o.verbose)
	if o.verbose > 1 {
		for i, id := range o.jobs {
			fmt.Fprintf(&b, "job_list[%d] = %d\n", i, id)
		}
		for i, uid := range o.users {
			fmt.Fprintf(&b, "user_list[%d] = %d\n", i, uid)
		}
	}
	b.WriteString(line + "\n\n")
	_, _ = io.WriteString(out, b.String())
}
